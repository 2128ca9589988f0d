"""The policy ``"measure"``: whole programs by each road, segments by each road, and mixtures.

First the whole program is timed with all its sites resolved alike: our kernels, a library where
there is one, each engine. Then its segments, each by itself, are timed by each road, equal ones
once. A segment alone pays for what lies between it and its neighbours (layouts, calls); how much,
tells the difference between the sum of a road's segments and its whole. A dynamic program finds
the mixture that should be fastest, which is compiled and timed against the roads. The fastest of
all is taken, so no choice is slower than the best single road was when measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from unity.errors import UnityError
from unity.ir.graph import Function
from unity.ir.module import IRModule
from unity.ir.target import Target
from unity.runtime.executable import Executable
from unity.runtime.explanation import RoadRow, time_text
from unity.transform.graph.resolve import Policy, Resolve, Site, sites_of
from unity.transform.graph.resolve.policy import Override
from unity.transform.graph.resolve.site import TIR
from unity.transform.pattern import Graph

from .database import Database, key_of
from .segments import Segment, segments_of
from .timing import check_sizes, inputs_for, interleaved, sizes_for

Build = Callable[[IRModule, Resolve], Executable]
"""Compiles a program with its sites resolved so."""
MARGIN = 0.99
"""A mixture is taken if it runs in at most this share of the best road's time."""


@dataclass(slots=True)
class _Measurer:
    """Carries how to compile, what is known, and the sizes to measure at."""

    build: Build
    target: Target
    database: Database
    sizes: Sequence[Mapping[str, int]]
    base: Policy
    passes: str = ""

    def policy(self, road: str) -> Policy:
        """Everything by one road, but for what the user said."""
        chosen: tuple[Override, ...] = () if road == TIR else (("*", road),)
        return Policy("tir", (*self.base.overrides, *chosen), self.base.chooser)

    def keys(self, module: IRModule, road: str) -> list[str]:
        """The database's key of a program by a road, one for each assignment of sizes."""
        versions = _versions(road)
        given = "".join(f" {key!r}={value}" for key, value in self.base.overrides)
        name = f"{road}{given} {self.passes}"
        return [key_of(module, name, self.target, sorted(s.items()), versions) for s in self.sizes]

    def times(
        self,
        module: IRModule,
        function: Function,
        plans: Mapping[str, Resolve],
        remembered: bool,
    ) -> dict[str, float]:
        """The fastest run of a program by each plan; those that can't be compiled are left out."""
        found: dict[str, float] = {}
        if remembered:
            for name in plans:
                known = [self.database.get(k) for k in self.keys(module, name)]
                if all(t is not None for t in known):
                    found[name] = sum(t for t in known if t is not None)
        todo = {n: p for n, p in plans.items() if n not in found}
        compiled: dict[str, Executable] = {}
        for name, step in todo.items():
            try:
                compiled[name] = self.build(module, step)
            except UnityError:
                continue  # an engine that can't: the road is closed
        totals = dict.fromkeys(compiled, 0.0)
        for i, given in enumerate(self.sizes):
            args = inputs_for(function, sizes_for(function, given))
            still = {n: exe for n, exe in compiled.items() if n in totals}
            running = self.running(still, args)
            measured = interleaved(list(running.values()), args)
            for name, seconds in zip(running, measured, strict=True):
                totals[name] += seconds
                if remembered:
                    self.database.put(self.keys(module, name)[i], seconds, name)
            for name in still.keys() - running.keys():
                del totals[name]  # it must run at all sizes
        return {**found, **totals}

    def running(
        self, compiled: Mapping[str, Executable], args: Sequence[object]
    ) -> dict[str, Executable]:
        """Those that run at all."""
        found: dict[str, Executable] = {}
        for name, exe in compiled.items():
            try:
                exe(*args)
            except UnityError:
                continue
            found[name] = exe
        return found


def measured_resolution(
    module: IRModule,
    name: str,
    target: Target,
    build: Build,
    base: Policy,
    database: Database,
    sizes: Sequence[Mapping[str, int]] = ({},),
    passes: str = "",
) -> Resolve:
    """How the sites of a program are resolved fastest on this machine.

    Args:
        module: The program as `Resolve` will see it.
        name: Its function to measure.
        target: This machine.
        build: Compiles it.
        base: What the user said besides ``"measure"``.
        database: What was measured before; added to.
        passes: What the programs go through, as text: part of what is remembered.
        sizes: Values of symbols to measure at, by name; times are added up.
    """
    function = module.graph_functions()[name]
    for given in sizes:
        check_sizes(function, given)
    measurer = _Measurer(build, target, database, sizes, base, passes)
    sites = sites_of(name, function, target)
    others = [s for n, f in module.graph_functions().items() for s in sites_of(n, f, target)]
    base.check(others)  # before anything is measured
    roads = _roads(sites)
    plans = {road: Resolve(measurer.policy(road), partial=True) for road in roads}
    times = measurer.times(module, function, plans, remembered=False)
    graph = Graph.of(function)
    free = [s.name for s in sites if not s.glue and base.said(s, graph) is None]
    if len(times) < 2:
        return _decision(plans[TIR], times, TIR, {})
    mixed = _mixture(function, sites, list(times), times, measurer)
    if mixed is not None:
        overrides, reasons = mixed
        policy = Policy("tir", (*base.overrides, *overrides), base.chooser)
        step = Resolve(policy, partial=True)
        again = measurer.times(module, function, {**plans, "mixed": step}, remembered=False)
        best = min((r for r in again if r != "mixed"), key=lambda r: again[r])
        if again.get("mixed", float("inf")) <= MARGIN * again[best]:
            kept = {name: why for name, why in reasons.items() if name in free}
            return _decision(step, again, "mixed", kept)
        times = again
        times.pop("mixed", None)
    best = min(times, key=lambda r: times[r])
    reason = f"the whole program ran fastest by {best}"
    return _decision(plans[best], times, best, dict.fromkeys(free, reason))


def _decision(
    step: Resolve, times: Mapping[str, float], taken: str, reasons: Mapping[str, str]
) -> Resolve:
    rows = tuple(RoadRow(n, t, n == taken) for n, t in sorted(times.items(), key=lambda x: x[1]))
    return Resolve(step.policy, dict(reasons), rows)


def _roads(sites: Sequence[Site]) -> list[str]:
    """Ours, and every other implementation that some site may have; a library as a whole."""
    found: dict[str, None] = {TIR: None}
    for site in sites:
        if site.glue:
            continue
        for c in site.legal():
            found.setdefault(c.implementation.partition(".")[0])
    return list(found)


def _mixture(
    function: Function,
    sites: Sequence[Site],
    roads: Sequence[str],
    times: Mapping[str, float],
    measurer: _Measurer,
) -> tuple[list[Override], dict[str, str]] | None:
    """The mixture of roads along the segments that should be fastest; None if that is one road."""
    by_var = {s.var: s for s in sites}
    weight = {s.var: (s.legal()[0].row.seconds or 0.0) for s in sites if s.legal()}
    segments = segments_of(function, weight)
    if len(segments) < 2:
        return None
    table = [_segment_times(s, roads, measurer) for s in segments]
    plan = _cheapest(table, roads, times)
    if len(set(plan)) < 2:
        return None
    overrides: list[Override] = []
    reasons: dict[str, str] = {}
    for segment, row, road in zip(segments, table, plan, strict=True):
        told = ", ".join(f"{r} {time_text(t)}" for r, t in sorted(row.items(), key=lambda x: x[1]))
        for var in segment.members:
            site = by_var.get(var)
            if site is None or site.glue:
                continue
            reasons[site.name] = f"its segment measured: {told}"
            candidate = site.candidate(road)
            if road != TIR and candidate is not None and candidate.legal:
                overrides.append((site.name, candidate.implementation))
    return overrides, reasons


def _segment_times(segment: Segment, roads: Sequence[str], measurer: _Measurer) -> dict[str, float]:
    module = segment.module()
    if module is None or segment.function is None:
        return {}
    plans = {road: Resolve(measurer.policy(road), partial=True) for road in roads}
    return measurer.times(module, segment.function, plans, remembered=True)


def _cheapest(
    table: Sequence[Mapping[str, float]], roads: Sequence[str], whole: Mapping[str, float]
) -> list[str]:
    """The road of each segment that makes the sum least, neighbours of one road paying less.

    Args:
        table: For each segment the time of each road that it can take; empty: it must be ours.
        roads: All roads.
        whole: The time of the whole program by each road.
    """
    joints = max(1, len(table) - 1)
    saving = {
        road: max(0.0, sum(row.get(road, 0.0) for row in table) - whole[road]) / joints
        for road in roads
    }
    best: dict[str, tuple[float, list[str]]] = {r: (0.0, []) for r in roads}
    for i, row in enumerate(table):
        step: dict[str, tuple[float, list[str]]] = {}
        for road in roads:
            if road not in row and (row or road != TIR):
                continue
            options = [
                (cost - (saving[road] if i and before[-1] == road else 0.0), before)
                for cost, before in best.values()
                if len(before) == i
            ]
            cost, before = min(options, key=lambda o: o[0])
            step[road] = (cost + row.get(road, 0.0), [*before, road])
        best = step
    return min(best.values(), key=lambda o: o[0])[1]


def _versions(road: str) -> str:
    package = {"engine:onnxruntime": "onnxruntime", "engine:openvino": "openvino"}.get(
        road, "numpy"
    )
    names = {"unity-mlc", "numpy", package}
    found: list[str] = []
    for name in sorted(names):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} ?")
    return ", ".join(found)
