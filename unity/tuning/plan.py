"""The policy ``"measure"``: whole programs by each road, their parts by each road, and mixtures.

1. The whole program is timed with all its sites resolved alike: our kernels, a library where there
   is one, each engine. These are the roads.
2. Our kernels have other forms at some sites. Programs that take the second, the third form
   everywhere are probes: their kernels are timed one by one, within the whole.
3. Segments are timed by each engine, by themselves; ours are known from the kernels. A dynamic
   program along them finds where changing to an engine should pay, joints and layouts included.
4. The mixture of the fastest parts is compiled and timed against the fastest roads. The fastest of
   all is taken, so no choice is slower than the best single road was when measured.

What was decided is remembered, so that the next compile of the same program measures nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from unity.errors import UnityError
from unity.runtime.explanation import RoadRow
from unity.transform.graph.resolve import ENGINES, Resolve, scopes_of, sites_of, written_choices
from unity.transform.graph.resolve.call_site import ENGINE, TIR, is_ours

from .database import Database, key_of
from .decision import MIXED, WITHOUT, SiteDecision, decoded, encoded
from .measured_program import MeasuredProgram, Said
from .mixture import Mixture, mixture, probes
from .timing import check_sizes, sizes_for
from .versions import versions

MARGIN = 0.97
"""A mixture is taken if it runs in at most this share of the best road's time: where memory comes
to lie makes as much of a difference between two instances of one program."""
_CLOSE = 1.3
"""How many times the best road's time a road may take to be timed again with the mixture."""
_FIRST_SECONDS, _LAST_SECONDS = 0.25, 1.0
"""How long each road is run at first, and those that are left at last."""


def measured_resolution(program: MeasuredProgram, database: Database, passes: str = "") -> Resolve:
    """How the sites of a program are resolved fastest on this machine.

    Args:
        program: The program.
        database: What was measured and decided before; added to.
        passes: What the programs go through, as text: part of what is remembered.

    Raises:
        UnityError: `sizes` or overrides name what there is not, or the program runs in no way.
    """
    for given in program.sizes:
        check_sizes(program.function, given)
    functions = program.module.graph_functions().items()
    scopes = [(name, scope) for name, f in functions for scope in scopes_of(f)]
    everywhere = [s for name, scope in scopes for s in sites_of(name, scope, program.target)]
    program.base.check(everywhere, written_choices(program.module))  # before anything is measured
    key = _key(program, passes)
    known = database.decision(key)
    decision = None if known is None else decoded(known)
    if decision is None or not _holds(program, decision):
        decision = _decided(program, database)
        if program.base.chooser is None:
            database.decide(key, encoded(decision), f"{program.name}: {decision.road}")
    return replace(
        program.resolved(decision.overrides),
        reasons=decision.reasons,
        roads=decision.roads,
        measured=decision.measured,
        partial=False,
    )


def _holds(program: MeasuredProgram, decision: SiteDecision) -> bool:
    """Whether each site may still become what was decided."""
    sites = {s.name: s for s in program.sites}
    for name, implementation in decision.overrides:
        site = sites.get(name)
        candidate = None if site is None else site.candidate(implementation)
        if name != "*" and (candidate is None or not candidate.legal):
            return False
    return True


def _decided(program: MeasuredProgram, database: Database) -> SiteDecision:
    roads = _roads(program)
    taken: dict[str, dict[str, str]] = {}
    for road, said in roads.items():
        choices = program.choices(said)
        if choices not in taken.values() and program.compile(road, said):
            taken[road] = choices
    if not taken:
        raise UnityError(
            "the program runs in no way that was tried",
            hint="; ".join(f"{road}: {why}" for road, why in program.closed.items())
            + _sizes_text(program),
        )
    names = list(taken)
    times = program.times(names, _FIRST_SECONDS) if len(names) > 1 else {}
    mixed = _mixed(program, database, taken, times) if TIR in taken else None
    mixtures: dict[str, Sequence[Said]] = {}
    if mixed is not None:
        for name, mix in ((MIXED, mixed.overrides), (WITHOUT, mixed.without)):
            choices = program.choices(mix)
            if choices not in taken.values() and program.compile(name, mix):
                taken[name], mixtures[name] = choices, mix
    if mixtures:
        limit = _CLOSE * min(times.values(), default=float("inf"))
        close = [n for n in names if n not in times or times[n] <= limit]
        times = _again(times, program.times([*close, *mixtures], _LAST_SECONDS))
    if not times:
        times = program.times(names, _FIRST_SECONDS)
    road = _best(times, mixtures)
    rows = [RoadRow(n, t, n == road) for n, t in sorted(times.items(), key=lambda x: x[1])]
    rows += [RoadRow(n, None, why_not=why) for n, why in program.closed.items()]
    measured = {} if mixed is None else mixed.measured
    if mixed is not None and road in mixtures:
        reasons = mixed.reasons if road == MIXED else mixed.own_reasons
        kept = {name: why for name, why in reasons.items() if name in program.free}
        return SiteDecision(road, tuple(mixtures[road]), tuple(rows), kept, measured)
    reason = f"the whole program ran fastest by {road}"
    if TIR in program.closed:
        reason += "; our own kernels failed"
    same = dict.fromkeys(sorted(program.free), reason)
    return SiteDecision(road, tuple(roads[road]), tuple(rows), same, measured)


def _again(first: Mapping[str, float], last: Mapping[str, float]) -> dict[str, float]:
    """The times of the last race, and those of the first as they would have been in it."""
    both = [n for n in first if n in last]
    slower = min((last[n] for n in both), default=1.0) / min((first[n] for n in both), default=1.0)
    return {**{n: t * slower for n, t in first.items()}, **last}


def _sizes_text(program: MeasuredProgram) -> str:
    """At what sizes it was tried, if it has any."""
    assigned = [sizes_for(program.function, given) for given in program.sizes]
    told = "; ".join(", ".join(f"{s.name}={n}" for s, n in a.items()) for a in assigned if a)
    return f" (at {told}; `sizes` gives others)" if told else ""


def _best(times: Mapping[str, float], mixtures: Collection[str]) -> str:
    """The fastest road; a mixture must be faster than the others by a margin."""
    return min(times, key=lambda r: times[r] / (MARGIN if r in mixtures else 1.0))


def _mixed(
    program: MeasuredProgram,
    database: Database,
    taken: dict[str, dict[str, str]],
    times: Mapping[str, float],
) -> Mixture | None:
    """The mixture of the fastest parts; None where there is nothing to mix."""
    ways = {n: c for n, c in taken.items() if not _has_engine(c)}
    for name, said in probes(program.sites, program.free).items():
        choices = program.choices(said)
        if choices not in ways.values() and program.compile(name, said):
            ways[name] = choices
        program.closed.pop(name, None)
    engines = [n for n, c in taken.items() if _has_engine(c)]
    if len(ways) + len(engines) < 2:
        return None
    return mixture(
        program, database, ways, program.kernels([*ways]), {e: times[e] for e in engines}, times
    )


def _has_engine(choices: Mapping[str, str]) -> bool:
    return any(c.startswith(ENGINE) for c in choices.values())


def _roads(program: MeasuredProgram) -> dict[str, list[Said]]:
    """Ours, and every other implementation that some site may have; a library as a whole."""
    found: dict[str, list[Said]] = {TIR: []}
    for site in program.sites:
        for c in () if site.glue else site.legal():
            name = c.implementation
            if not is_ours(name):
                road = name.partition(".")[0]
                found.setdefault(road, [("*", road)])
    return found


def _key(program: MeasuredProgram, passes: str) -> str:
    """What a decision depends on besides what `key_of` knows: overrides, sizes, all versions."""
    sizes = [(f"{name}/{i}", n) for i, s in enumerate(program.sizes) for name, n in s.items()]
    said = "".join(f" {key!r}={value}" for key, value in program.base.overrides)
    candidates = [
        f"{s.name} {c.implementation} {c.legal}" for s in program.sites for c in s.candidates
    ]
    packages = {type(e).__module__.partition(".")[0] for e in ENGINES.values()}
    return key_of(
        program.module,
        f"decision{said} {passes} {' '.join(candidates)}",
        program.target,
        sizes,
        versions("onnxruntime", "openvino", *(packages - {"unity"})),
    )
