"""The mixture of implementations that should be fastest, by what their parts take."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from unity.ir.graph import Var
from unity.ir.symbols.representative import representative
from unity.ir.types import TensorType
from unity.machine.machine import Machine
from unity.runtime.explanation import time_text
from unity.transform.graph.resolve import CallSite
from unity.transform.graph.resolve.call_site import ENGINE, TIR, is_ours

from .chain import cheapest, savings
from .database import Database
from .engine_times import engine_seconds
from .kernel_times import KernelTimes
from .measured_program import MeasuredProgram
from .segments import Segment, segments_of

_PROMISING = 2.5
"""How many times the estimate of the form we prefer another one's may be to be tried."""
BETTER = 0.97
"""The share of our kernel's time that another must stay below to take its place."""
_HOPELESS = 3.0
"""How many times our program's time an engine's may be for its segments to be tried."""


@dataclass(frozen=True, slots=True)
class Mixture:
    """What to resolve sites to, and why.

    Attributes:
        overrides: Of sites that don't become what we prefer.
        without: The same without engines.
        reasons: By site.
        own_reasons: Those without engines.
        measured: Seconds by site and implementation: those of the kernel that a site is part of.
    """

    overrides: tuple[tuple[str, str], ...]
    without: tuple[tuple[str, str], ...]
    reasons: Mapping[str, str]
    own_reasons: Mapping[str, str]
    measured: Mapping[str, Mapping[str, float]]


def probes(sites: Sequence[CallSite], free: Collection[str]) -> dict[str, list[tuple[str, str]]]:
    """Programs to learn from what other forms of our kernels take: the i-th has the i-th forms.

    Args:
        sites: All sites.
        free: Names of those that may be changed.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for site in sites:
        ours = [c for c in site.legal() if is_ours(c.implementation)]
        if site.name not in free or len(ours) < 2:
            continue
        limit = _PROMISING * (ours[0].row.seconds or 0.0)
        others = [c for c in ours[1:] if (c.row.seconds or 0.0) <= limit]
        for i, candidate in enumerate(others):
            found.setdefault(f"probe {i + 1}", []).append((site.name, candidate.implementation))
    return found


def mixture(
    program: MeasuredProgram,
    database: Database,
    ways: Mapping[str, Mapping[str, str]],
    kernels: Mapping[str, KernelTimes],
    engines: Mapping[str, float],
    whole: Mapping[str, float],
) -> Mixture:
    """The mixture of parts.

    Args:
        program: What is measured.
        database: What engines took for segments before; added to.
        ways: What was tried without engines: for each way what each site is; the first is ours.
        kernels: What kernels take each way.
        engines: The whole program's time by each engine.
        whole: By each road.
    """
    by_var = {s.var: s for s in program.sites}
    parts = OwnParts(ways, kernels, by_var, program.free)
    table, segments = _segments(program, database, parts, engines, whole)
    roads = [TIR, *engines]
    sums = {r: whole[r] for r in roads if r in whole}
    plan = cheapest(table, roads, savings(table, sums), _changes(segments, program.target.machine))
    overrides: list[tuple[str, str]] = []
    reasons: dict[str, str] = {}
    for segment, row, road in zip(segments, table, plan, strict=True):
        told = ", ".join(f"{r} {time_text(t)}" for r, t in sorted(row.items(), key=lambda x: x[1]))
        for var in segment.members:
            site = by_var.get(var)
            if site is None or site.glue or site.name not in program.free:
                continue
            if road != TIR:
                overrides.append((site.name, road))
                reasons[site.name] = f"its segment measured: {told}"
            elif site.name in parts.better:
                overrides.append((site.name, parts.better[site.name]))
    apart = {s.var for g in segments for s in map(by_var.get, g.members) if s is not None}
    inside = [s.name for s in program.sites if s.var not in apart]
    overrides += [(name, parts.better[name]) for name in inside if name in parts.better]
    without = tuple(parts.better.items())
    told_of = {**parts.reasons, **reasons}
    return Mixture(tuple(overrides), without, told_of, parts.reasons, parts.measured)


class OwnParts:
    """Carries what each group of sites takes each way without engines, and the best of it.

    Args:
        ways: For each way what each site is; one is called `TIR`: what we prefer.
        kernels: What kernels take each way.
        by_var: The sites.
        free: Names of those that may be changed.
    """

    def __init__(
        self,
        ways: Mapping[str, Mapping[str, str]],
        kernels: Mapping[str, KernelTimes],
        by_var: Mapping[Var, CallSite],
        free: Collection[str],
    ) -> None:
        self.ours = kernels[TIR]
        self.best: dict[Var, float] = {}
        self.better: dict[str, str] = {}
        self.reasons: dict[str, str] = {}
        self.measured: dict[str, dict[str, float]] = {}
        extra = {name: _extra(name, ways, kernels) for name in ways}
        for group in self.ours.groups():
            sites = [s for v in group if (s := by_var.get(v)) is not None and s.name in free]
            times: dict[str, float] = {}
            for name, choices in ways.items():
                changed = [s for s in sites if choices[s.name] != ways[TIR][s.name]]
                time = kernels[name].time(group)
                if name == TIR or (changed and time):  # else it is part of others' kernels there
                    times[name] = time + extra[name] * len(changed)
            first = min(times, key=lambda n: times[n])
            if times[first] > BETTER * times[TIR]:
                first = TIR
            for var in group:
                self.best[var] = times[first] / len(group)
            self.note(sites, times, ways, first)

    def note(
        self,
        sites: Sequence[CallSite],
        times: Mapping[str, float],
        ways: Mapping[str, Mapping[str, str]],
        first: str,
    ) -> None:
        """Keep what was measured of a group's sites, and what is best."""
        for site in sites:
            known = {ways[name][site.name]: t for name, t in times.items()}
            known[ways[TIR][site.name]] = times[TIR]
            self.measured[site.name] = known
            told = ", ".join(f"{c} {time_text(t)}" for c, t in sorted(known.items(), key=_second))
            self.reasons[site.name] = f"its kernel measured: {told}"
            if ways[first][site.name] != ways[TIR][site.name]:
                self.better[site.name] = ways[first][site.name]


def _second(item: tuple[str, float]) -> float:
    return item[1]


def _extra(
    name: str, ways: Mapping[str, Mapping[str, str]], kernels: Mapping[str, KernelTimes]
) -> float:
    """What a way takes outside of all sites' kernels more than ours, for each site it changes."""
    changed = sum(ways[name][site] != ours for site, ours in ways[TIR].items())
    return max(0.0, kernels[name].rest - kernels[TIR].rest) / max(1, changed)


def _segments(
    program: MeasuredProgram,
    database: Database,
    parts: OwnParts,
    engines: Mapping[str, float],
    whole: Mapping[str, float],
) -> tuple[list[dict[str, float]], list[Segment]]:
    """What each segment takes by ours at its best and by each engine that can have it."""
    segments = segments_of(program.function, parts.best)
    attributed = parts.ours.time(parts.ours.of.keys())
    # Kernels alone take less than a run, and some of them are nobody's.
    scale = whole.get(TIR, attributed) / attributed if attributed else 1.0
    trusted = [e for e, t in engines.items() if t <= _HOPELESS * whole.get(TIR, t)]
    by_var = {s.var: s for s in program.sites}
    table: list[dict[str, float]] = []
    for segment in segments:
        row = {TIR: scale * sum(parts.best.get(v, 0.0) for v in segment.members)}
        for name in trusted:
            if _takes(name, segment, by_var, program.free):
                seconds = engine_seconds(name.removeprefix(ENGINE), segment, program, database)
                if seconds is not None:
                    row[name] = seconds / BETTER
        table.append(row)
    return table, segments


def _takes(
    engine: str, segment: Segment, by_var: Mapping[Var, CallSite], free: Collection[str]
) -> bool:
    """Whether an engine can have all sites of a segment."""
    sites = [s for v in segment.members if (s := by_var.get(v)) is not None and not s.glue]
    return bool(sites) and all(
        s.name in free and (c := s.candidate(engine)) is not None and c.legal for s in sites
    )


def _changes(segments: Sequence[Segment], machine: Machine) -> list[float]:
    """What a change to or from an engine costs in front of each segment: an image's layout."""
    found, speed = [0.0], machine.hertz * machine.relayout_bytes_per_cycle
    for before in segments[:-1]:
        last = before.members[-1].type
        images = isinstance(last, TensorType) and last.ndim == 4
        found.append(_bytes(last) / speed if images else 0.0)
    return found


def _bytes(t: object) -> float:
    if not isinstance(t, TensorType) or not isinstance(t.shape, tuple) or t.dtype is None:
        return 0.0
    return 2.0 * prod(representative(d) for d in t.shape) * t.dtype.bytes
