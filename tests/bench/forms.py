"""Works in two forms, of fixed sizes and with unknown ones, against onnxruntime and openvino.

Each runs by Unity and both peers, both forms in turns in one process, a process for each number of
threads. Printed are the ratio of the best peer's time to ours (above 1: ours is faster; the median
of neighbours in time, `Times.by_turns`; before 2026-11-29 it was of the least times) for both
forms, their geometric means, and what the unknown form has of the fixed one's speed. A JSON file
keeps the rows of each machine; those that were not measured this time stay.

On a machine that others use too, ``--cpu-time`` counts what the process had of a processor instead
of what the clock says: for one thread that is the same where nobody else runs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import onnx

import unity

from .machine import machine
from .peers import PEERS, relative_error
from .timing import Run, interleaved
from .work import Feeds

OTHERS = ("onnxruntime", "openvino")
"""Those of `PEERS` that are asked."""
FORMS = {True: "fixed", False: "unknown"}
Row = dict[str, Any]
_WRONG = 1e-2
"""What a result is off by, of its greatest number, that is no rounding: it is not measured."""


class InForms(Protocol):
    """A work that has both forms."""

    @property
    def name(self) -> str:
        """What the table calls it."""
        ...

    def model(self, known: bool) -> onnx.ModelProto:
        """The model, of fixed sizes or with unknown ones."""
        ...

    def feeds(self) -> Feeds:
        """Seeded inputs."""
        ...


@runtime_checkable
class WithPeers(Protocol):
    """A work that others compute as well, without its model."""

    def peers(self, threads: int, feeds: Feeds) -> Mapping[str, Run]:
        """Who, each to be run."""
        ...


Works = Mapping[str, InForms]


def measured(
    work: InForms, forms: Sequence[str], threads: int, seconds: float, cpu_time: bool
) -> list[Row]:
    """A row for each form: microseconds of each program by turns, the ratio, the error.

    All forms take turns: what one of them has of another's speed is not what the machine had in
    between.
    """
    feeds, runs, spent = work.feeds(), dict[str, dict[str, Run]](), dict[str, float]()
    with tempfile.TemporaryDirectory() as folder:
        for form in forms:
            path = Path(folder) / f"{form}.onnx"
            onnx.save_model(work.model(form == FORMS[True]), str(path))
            begin = time.process_time()
            executable = unity.compile(str(path), threads=threads, cache=None)
            spent[form] = time.process_time() - begin
            runs[form] = {"unity": partial(executable.run, feeds)} | _peers(path, threads, feeds)
            if isinstance(work, WithPeers):
                runs[form] |= work.peers(threads, feeds)
        clock = time.process_time if cpu_time else time.perf_counter
        together = {f"{form} {who}": run for form, of in runs.items() for who, run in of.items()}
        times = interleaved(together, seconds * len(forms), clock=clock, spinning=threads > 1)
        rows: list[Row] = []
        for form, of in runs.items():
            taken = {who: times[f"{form} {who}"].by_turns for who in of}
            best = min((who for who in taken if who != "unity"), key=taken.__getitem__)
            error = max(
                relative_error(got, want)
                for got, want in zip(of["unity"]().values(), of["onnxruntime"](), strict=True)
            )
            if not error < _WRONG:
                raise SystemExit(f"{work.name}, {form}, {threads} threads: off by {error:.2g}")
            rows.append(
                {
                    "work": work.name,
                    "form": form,
                    "threads": threads,
                    **({"cpu_time": True} if cpu_time else {}),
                    "ratio": round(taken[best] / taken["unity"], 3),
                    "best": best,
                    "us": {who: round(t * 1e6, 2) for who, t in taken.items()},
                    "error": float(f"{error:.1g}"),
                    "compile_s": round(spent[form], 2),
                }
            )
    return rows


def _peers(path: Path, threads: int, feeds: Feeds) -> dict[str, Run]:
    """Those that take a model."""
    runs: dict[str, Run] = {}
    for peer in (p for p in OTHERS if PEERS[p].installed):
        try:
            run = partial(PEERS[peer].load(path, threads, feeds), feeds)
            run()
        except Exception:  # what a peer refuses, it doesn't take part in
            continue
        runs[peer] = run
    return runs


def line(row: Row) -> str:
    """A row of the table."""
    times = "  ".join(f"{k} {v:.1f}" for k, v in row["us"].items())
    at = f"{row['work']:44} {row['form']:7} {row['threads']}"
    return f"{at}  {row['ratio']:6.3f}  us: {times}  compile {row['compile_s']} s  {row['error']}"


def summary(rows: list[Row]) -> list[str]:
    """For each form and number of threads the geometric mean, the median, and the worst."""
    found: list[str] = []
    for form, threads in sorted({(r["form"], r["threads"]) for r in rows}):
        group = [r for r in rows if (r["form"], r["threads"]) == (form, threads)]
        ratios = np.array([r["ratio"] for r in group])
        worst = sorted(group, key=lambda r: float(r["ratio"]))[:5]
        found.append(
            f"{form}, {threads} threads: {len(group)} works, geometric mean "
            f"{np.exp(np.log(ratios).mean()):.3f}, median {np.median(ratios):.3f}; worst: "
            + ", ".join(f"{r['work']} {r['ratio']:.2f}" for r in worst)
        )
    return [*found, *_beside(rows)]


def _beside(rows: list[Row]) -> list[str]:
    """What the forms of unknown sizes have of the speed of the fixed ones."""
    ours = {(r["work"], r["threads"], r["form"]): float(r["us"]["unity"]) for r in rows}
    both = [
        (work, threads, ours[work, threads, FORMS[True]] / ours[work, threads, form])
        for work, threads, form in ours
        if form == FORMS[False] and (work, threads, FORMS[True]) in ours
    ]
    found: list[str] = []
    for count in sorted({threads for _, threads, _ in both}):
        here = sorted((ratio, work) for work, threads, ratio in both if threads == count)
        mean = np.exp(np.mean(np.log([ratio for ratio, _ in here])))
        worst = ", ".join(f"{work} {ratio:.2f}" for ratio, work in here[:5])
        found.append(f"unknown of fixed, {count} threads: mean {mean:.3f}; worst: {worst}")
    return found


def merged(earlier: list[Row], rows: list[Row], works: Works) -> list[Row]:
    """The rows of the file with those measured now in their places."""
    by_key = {(r["work"], r["form"], r["threads"]): r for r in [*earlier, *rows]}
    order = {name: k for k, name in enumerate(works)}
    kept = (k for k in by_key if k[0] in order)
    return [by_key[k] for k in sorted(kept, key=lambda k: (k[2], k[1], order[k[0]]))]


def _child(options: argparse.Namespace, works: Works) -> None:
    forms = [f for f in FORMS.values() if f in options.forms]
    for work in works.values():
        for row in measured(work, forms, options.threads[0], options.seconds, options.cpu_time):
            print(json.dumps(row), flush=True)


def main(works: Works, module: str, results: Path, about: str | None) -> None:
    """Measure what the command line names; everything by default.

    Args:
        works: By name.
        module: Which of ours starts this.
        results: The file that keeps the rows.
        about: What the module's documentation says.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("works", nargs="*", help="parts of their names; all if none is given")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument(
        "--forms", nargs="*", choices=list(FORMS.values()), default=["fixed", "unknown"]
    )
    parser.add_argument("--seconds", type=float, default=0.5, help="for each row")
    parser.add_argument("--cpu-time", action="store_true", help="of one thread")
    parser.add_argument("--output", type=Path, default=results)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = [n for n in works if not options.works or any(w in n for w in options.works)]
    if not names:
        parser.error(f"nothing is called {' or '.join(options.works)}")
    if options.cpu_time and options.threads != [1]:
        parser.error("--cpu-time is of one thread: --threads 1")
    if options.child:
        _child(options, {n: works[n] for n in names})
        return
    earlier: Row = json.loads(options.output.read_text()) if options.output.exists() else {}
    rows: list[Row] = []
    for threads in options.threads:
        command = [sys.executable, "-m", module, "--child", "--threads", str(threads)]
        command += ["--seconds", str(options.seconds), "--forms", *options.forms]
        command += [*(["--cpu-time"] if options.cpu_time else []), "--", *names]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            for text in child.stdout:
                rows.append(json.loads(text))
                print(line(rows[-1]), flush=True)
        if child.returncode:
            print(f"the process of {threads} threads ended with {child.returncode}")
    known = earlier.get(machine(), {}).get("rows", [])
    print("\n".join(summary(rows)))
    earlier[machine()] = {"date": time.strftime("%Y-%m-%d"), "rows": merged(known, rows, works)}
    options.output.write_text(json.dumps(earlier, indent=1) + "\n")
