"""The table and the plot of what was measured: Unity against the best of its peers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .peers import STATIC

Row = Mapping[str, Any]
Key = tuple[str, int, int, str]
"""A work, its length, threads, precision."""
_COLUMNS = "{work:22} {length:>6} {threads:>3}  {peer:14} {unity:>24} {theirs:>24}  {ratio:7}"
HEADINGS = (
    _COLUMNS.format(
        work="work",
        length="length",
        threads="thr",
        peer="peer",
        unity="Unity: min (median) ms",
        theirs="peer: min (median) ms",
        ratio="ratio",
    )
    + "  error"
)
"""Of the columns of `lines`; the ratio is minimum by minimum, above 1 Unity is faster."""


def best_peers(rows: Iterable[Row]) -> dict[Key, Row]:
    """Of each work the row with the peer that comes out best: the least ratio."""
    groups: defaultdict[Key, list[Row]] = defaultdict(list)
    for r in rows:
        if "ratio" in r and r["peer"] != STATIC:
            groups[r["work"], r["length"], r["threads"], r["precision"]].append(r)
    return {key: min(found, key=lambda r: float(r["ratio"])) for key, found in groups.items()}


def lines(rows: Sequence[Row]) -> list[str]:
    """A line for each row, under `HEADINGS`."""
    return [_line(r) for r in rows]


def _line(r: Row) -> str:
    failed = f"  failed: {str(r['failed'])[:90]}" if "failed" in r else None
    start = _COLUMNS.format(
        work=r["work"],
        length=r.get("length", ""),
        threads=r["threads"],
        peer=r["peer"],
        unity="" if failed else f"{r['unity_min_ms']:.4f} ({r['unity_median_ms']:.4f})",
        theirs="" if failed else f"{r['peer_min_ms']:.4f} ({r['peer_median_ms']:.4f})",
        ratio="" if failed else f"x{r['ratio']:.3f}",
    )
    return start.rstrip() + failed if failed else f"{start}  {r['error']:.1g}"


def section(heading: str, found: Sequence[str]) -> str:
    """Lines under a heading; nothing where there are none."""
    return "\n".join(["", heading, *found, ""]) if found else ""


def summary(rows: Sequence[Row]) -> list[str]:
    """A line for each work: the ratio to its best peer."""
    found = best_peers(rows).items()
    return [f"{work_text(key):40} x{r['ratio']:.3f}  ({r['peer']})" for key, r in found]


def worst_lengths(rows: Iterable[Row]) -> list[str]:
    """A line for each work of unknown sizes: where it loses most by not knowing them."""
    groups: defaultdict[tuple[str, int], list[Row]] = defaultdict(list)
    for r in rows:
        if "ratio" in r and r["peer"] == STATIC:
            groups[r["work"], r["threads"]].append(r)
    return [
        f"{work_text((work, worst['length'], threads, 'f32')):40} x{worst['ratio']:.3f}"
        f"  (the least of {len(found)} lengths)"
        for (work, threads), found in groups.items()
        for worst in [min(found, key=lambda r: float(r["ratio"]))]
    ]


def memory_lines(name: str, memory: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[str]:
    """A line for each length and runtime: MiB loaded, at most while loading, and what runs take."""
    return [
        f"{name:22} {length:>5}  {runtime:20} loaded {m['loaded_mib']:7.1f}"
        f"  (peak {m['load_peak_mib']:7.1f})  a run {m['run_mib']:6.1f}, three {m['runs_mib']:6.1f}"
        for length, runtimes in memory.items()
        for runtime, m in runtimes.items()
    ]


def work_text(key: Key) -> str:
    """A row's name in the table and the plot."""
    work, length, threads, precision = key
    at = f" @{length}" if length != 1 else ""
    kind = "" if precision == "f32" else f" {precision}"
    return f"{work}{at}{kind}, {threads} thread{'s' if threads > 1 else ''}"


def plot(rows: Sequence[Row], path: Path) -> bool:
    """Bars of the ratios to the best peer, as SVG; False where matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        return False
    import_module("matplotlib").use("svg")
    pyplot: Any = import_module("matplotlib.pyplot")
    found = list(best_peers(rows).items())[::-1]
    ratios = [float(r["ratio"]) for _, r in found]
    figure, axes = pyplot.subplots(figsize=(9, 1 + 0.22 * len(found)))
    axes.barh(
        [work_text(key) for key, _ in found],
        ratios,
        color=["tab:green" if ratio >= 1 else "tab:red" for ratio in ratios],
    )
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlabel("time of the best peer / Unity's (minima; above 1 Unity is faster)")
    for at, (_, r) in enumerate(found):
        axes.text(float(r["ratio"]), at, f" {r['ratio']:.2f} {r['peer']}", va="center", fontsize=7)
    figure.tight_layout()
    figure.savefig(path)
    return True
