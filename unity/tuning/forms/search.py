"""The forms of a program's calls, measured in front of its schedules: what is fastest is recorded.

Another form makes other kernels, so it is chosen before theirs are searched. Programs in which
calls have their second, their third form are compiled and run by turns with the default, in one
child, so that what crashes or hangs ends no session; kernels are timed within them
(`mixture.py`). The program of the forms that won is then compared as a whole with the default's: if
it is not faster, no form is used. What is measured is recorded, also that a call stays what it is:
a session that knows of no other form measures it no more.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from logging import getLogger

from unity.errors import UnityError
from unity.machine.target import Target
from unity.transform.graph.resolve import CallSite, call_identity, numbered_sizes, written_choices
from unity.transform.graph.resolve.call_site import HOST, OURS, TIR

from ..decision import WITHOUT
from ..measured_program import MeasuredProgram, Said
from ..mixture import BETTER, OwnParts, probes
from ..records import FormRecord, Records, joined, now
from ..records.record import Sizes
from ..report import FormReport
from ..timing import completed
from ..workers.machine_key import key_of_target

log = getLogger("unity")
_SECONDS = 2.0
"""How long the program of other forms and the default run by turns, at most."""
_RUNS = 10
"""Runs of a program that measuring takes at least, about."""

Key = tuple[str, Sizes]
"""A call, and what its sizes are."""


class FormSearch:
    """Carries the measuring of a program's forms.

    Args:
        program: The program; only our own kernels are tried. Who runs it says where.
        records: What was measured before; added to.
        target: The machine.
    """

    def __init__(self, program: MeasuredProgram, records: Records, target: Target) -> None:
        self._program = program
        self._records = records
        self._target = key_of_target(target)
        self._calls = _calls(program)
        known = {(r.call, r.sizes): {*r.tried} for r in records.forms(self._target)}
        fresh = {s.name for sites in self._calls.values() for s in sites}
        tried = probes(program.sites, fresh)
        asked = _forms_in(tried.values())
        self._new = {
            key: sites
            for key, sites in self._calls.items()
            if not {f for s in sites for f in asked.get(s.name, ())} <= known.get(key, set())
        }
        free = {s.name for sites in self._new.values() for s in sites}
        self._probes = probes(program.sites, free)
        self._found: list[FormRecord] = []
        self._reached: set[str] = set()
        self.short: float | None = None
        """What a program of other forms takes to compile, where there was no time for one."""
        self._compile_seconds = self._call_seconds = 0.0

    @property
    def is_needed(self) -> bool:
        """Whether calls have forms that no record tells of, which may be measured here.

        They are not where engines are asked for, too, or where the program calls Python: users'
        functions are not to be called again and again on numbers made up.
        """
        ours = self._program.base.base == "tir"
        return (
            bool(self._probes)
            and ours
            and HOST not in written_choices(self._program.module).values()
        )

    def begin(self) -> bool:
        """Compile and run the program as it is by default; whether that can be."""
        begin = time.monotonic()
        if not self._program.compile(TIR, []):
            return False
        self._compile_seconds = time.monotonic() - begin
        begin = time.monotonic()
        try:
            self._program.run(TIR)
        except UnityError as error:
            log.info("forms are not measured, as the program does not run: %s", error.message)
            return False
        self._call_seconds = time.monotonic() - begin
        return True

    def run(self, end: float | None) -> None:
        """Measure the forms, as far as there is time, and record what is fastest.

        Args:
            end: When measuring is to be over, by `time.monotonic`; None for no limit.
        """
        program = self._program
        ways = self._ways(end)
        tried = _forms_in(said for name, said in self._probes.items() if name in self._reached)
        if self._reached:
            by_var = {s.var: s for s in program.sites}
            kernels = program.kernels([*ways]) if len(ways) > 1 else {}
            ran = bool(kernels) and all(times.seconds for times in kernels.values())
            parts = OwnParts(ways, kernels, by_var, program.free) if ran else None
            found = [
                self._record(key, sites, ways[TIR], parts, tried)
                for key, sites in self._new.items()
                if any(s.name in tried for s in sites)
            ]
            faster = self._is_faster(found, ways)
            self._found = [r if faster or not r.worth else _as_usual(r) for r in found]
            for record in self._found:
                self._records.add(record)
        program.forget()

    def _record(
        self,
        key: Key,
        sites: Sequence[CallSite],
        default: Mapping[str, str],
        parts: OwnParts | None,
        tried: Mapping[str, Sequence[str]],
    ) -> FormRecord:
        """What was measured of some calls that records can't tell apart.

        Their weights differ: what is too inexact for those of one may be the default of another.
        """
        measured = [{} if parts is None else parts.measured.get(s.name, {}) for s in sites]
        usual = [m.get(default[s.name], 0.0) for s, m in zip(sites, measured, strict=True)]
        reference = sum(usual) / len(sites)
        times = {
            form: sum(m[form] for m in measured) / len(sites)
            for form in measured[0]
            if all(form in m for m in measured)
        }
        first = default[sites[0].name]
        best = min(times, key=lambda form: times[form], default=first)
        if times.get(best, reference) > BETTER * reference:
            best = first
        call, sizes = key
        return FormRecord(
            call,
            self._target,
            sizes,
            best.removeprefix(OURS),
            first.removeprefix(OURS),
            reference if best == first else times[best],
            reference,
            tuple(sorted({f for s in sites for f in tried.get(s.name, ())})),
            f"{sites[0].var.name}: {sites[0].op_name}",
            now(),
        )

    def _ways(self, end: float | None) -> dict[str, Mapping[str, str]]:
        """What each site is by default and in the programs of other forms, as far as they compile.

        One is not begun if there is no time left to compile it, and the one that wins, and to run
        them: by what the one before took, as the default may have been in the cache. Those that are
        reached are noted, also those that fail.
        """
        program = self._program
        ways: dict[str, Mapping[str, str]] = {TIR: program.choices([])}
        longest = self._compile_seconds
        for name, said in self._probes.items():
            begin = time.monotonic()
            running = _RUNS * (len(ways) + 1) * self._call_seconds
            if end is not None and begin + 2 * longest + running > end:
                self.short = longest
                break
            self._reached.add(name)
            if program.compile(name, said):
                ways[name] = program.choices(said)
            longest = max(longest, time.monotonic() - begin)
        return ways

    def _is_faster(
        self, found: Sequence[FormRecord], ways: Mapping[str, Mapping[str, str]]
    ) -> bool:
        """Whether the program as a whole is faster in the forms that won."""
        program = self._program
        won = {(r.call, r.sizes): f"{OURS}{r.form}" for r in found if r.worth}
        said = [(s.name, won[k]) for k, sites in self._new.items() if k in won for s in sites]
        said = [(name, form) for name, form in said if program.may_be(name, form)]
        if not said:
            return False
        choices = program.choices(said)
        name = next((n for n, tried in ways.items() if tried == choices), WITHOUT)
        if name not in program.compiled and not program.compile(name, said):
            return False
        times = program.times([TIR, name], _SECONDS)
        return times[name] < times[TIR]

    @property
    def taken(self) -> list[FormRecord]:
        """What this session found: calls that have another form than by default."""
        return [r for r in self._found if r.worth]

    @property
    def without(self) -> Records:
        """Records by which the program has the forms that it had before this session."""
        return joined(map(_as_usual, self.taken))

    def withdraw(self) -> None:
        """Record that the program is not faster by the forms that this session found."""
        for record in self.taken:
            self._records.add(_as_usual(record))
        self._found = []

    def report(self) -> list[FormReport]:
        """The calls that records give another form, those first that gain most."""
        last = {r.call: r for r in self._records.forms(self._target)}
        found = [
            FormReport(site.name, r.usual, r.form, r.reference, r.seconds)
            for (call, _), sites in self._calls.items()
            if (r := last.get(call)) is not None and r.worth
            for site in sites
        ]
        return sorted(found, key=lambda f: f.after - f.before)


def _calls(program: MeasuredProgram) -> dict[Key, list[CallSite]]:
    """The sites that have forms, those that records can't tell apart together."""
    found: dict[Key, list[CallSite]] = {}
    several = [completed(program.function, given) for given in program.sizes]
    for site in program.sites:
        if site.name in program.free and any(c.implementation != TIR for c in site.candidates):
            key = (call_identity(site.call), _sizes(several, site))
            found.setdefault(key, []).append(site)
    return found


def _sizes(several: Sequence[Mapping[str, int]], site: CallSite) -> Sizes:
    """What a call's unknown sizes are, by the names that its identity gives them.

    Of several assignments those behind the first have a number: ``s0``, ``s0.1``.
    """
    names = {s.name: number for s, number in numbered_sizes(site.call).items()}
    return tuple(
        (f"{number}.{k}" if k else number, sizes[name])
        for k, sizes in enumerate(several)
        for name, number in names.items()
        if name in sizes
    )


def _forms_in(probes: Iterable[Sequence[Said]]) -> dict[str, list[str]]:
    """By site the forms that some programs try, without what says that they are ours."""
    found: dict[str, list[str]] = {}
    for said in probes:
        for name, form in said:
            found.setdefault(name, []).append(form.removeprefix(OURS))
    return found


def _as_usual(record: FormRecord) -> FormRecord:
    return replace(record, form=record.usual, seconds=record.reference, date=now())
