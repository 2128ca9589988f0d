"""The forms of a program's calls, measured in front of its schedules: what is fastest is recorded.

Another form makes other kernels, so it is chosen before theirs are searched. Programs in which
calls have their second, their third form are compiled and run by turns with the default; kernels
are timed within them (`mixture.py`). The program of the forms that won is then compared as a whole
with the default's: if it is not faster, no form is used. What is measured is recorded, also that a
call stays what it is: the next session measures it no more.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from unity.machine.target import Target
from unity.transform.graph.resolve import CallSite, call_identity
from unity.transform.graph.resolve.call_site import OURS, TIR

from .decision import WITHOUT
from .measured_program import MeasuredProgram
from .mixture import BETTER, OwnParts, probes
from .records import FormRecord, Records, now
from .report import FormReport
from .workers.machine_key import key_of_target

_SECONDS = 2.0
"""How long the program of other forms and the default run by turns."""


class FormSearch:
    """Carries the measuring of a program's forms.

    Args:
        program: The program; only our own kernels are tried.
        records: What was measured before; added to.
        target: The machine.
    """

    def __init__(self, program: MeasuredProgram, records: Records, target: Target) -> None:
        self._program = program
        self._records = records
        self._target = key_of_target(target)
        self._sizes = tuple(sorted((n, v) for given in program.sizes for n, v in given.items()))
        self._calls = _calls(program)
        known = {r.call for r in records.forms(self._target) if r.sizes == self._sizes}
        self._new = {c: sites for c, sites in self._calls.items() if c not in known}
        free = {s.name for sites in self._new.values() for s in sites}
        self._probes = probes(program.sites, free)

    @property
    def is_needed(self) -> bool:
        """Whether calls have forms that no record tells of, and our kernels are asked for."""
        return bool(self._probes) and self._program.base.base == "tir"

    def begin(self) -> bool:
        """Compile and run the program as it is by default; whether that can be."""
        return self._program.compile(TIR, [])

    def run(self, end: float | None) -> None:
        """Measure the forms and record what is fastest.

        Args:
            end: When the last program is to be compiled, by `time.monotonic`; None for no limit.
        """
        program = self._program
        ways = self._ways(end)
        if len(ways) < 2:
            return
        by_var = {s.var: s for s in program.sites}
        parts = OwnParts(ways, program.kernels([*ways]), by_var, program.free)
        date, found = now(), list[FormRecord]()
        for call, sites in self._new.items():
            times = _times(parts, sites)
            usual = ways[TIR][sites[0].name]
            if len(times) < 2:
                continue
            best = min(times, key=lambda form: times[form])
            if times[best] > BETTER * times[usual]:
                best = usual
            found.append(
                FormRecord(
                    call, self._target, self._sizes,
                    best.removeprefix(OURS), usual.removeprefix(OURS), times[best], times[usual],
                    f"{sites[0].var.name}: {sites[0].op_name}", date,
                )
            )  # fmt: skip
        faster = self._is_faster(found, ways)
        for record in found:
            self._records.add(record if faster else _as_usual(record))

    def _ways(self, end: float | None) -> dict[str, Mapping[str, str]]:
        """What each site is by default and in the programs of other forms, as far as they compile.

        One is not begun that would not be compiled in time.
        """
        program = self._program
        ways: dict[str, Mapping[str, str]] = {TIR: program.choices([])}
        longest = 0.0
        for name, said in self._probes.items():
            begin = time.monotonic()
            if end is not None and begin + longest > end:
                break
            if program.compile(name, said):
                ways[name] = program.choices(said)
            longest = max(longest, time.monotonic() - begin)
        return ways

    def _is_faster(
        self, found: Sequence[FormRecord], ways: Mapping[str, Mapping[str, str]]
    ) -> bool:
        """Whether the program as a whole is faster in the forms that won."""
        program = self._program
        won = {r.call: f"{OURS}{r.form}" for r in found if r.worth}
        said = [(s.name, won[c]) for c, sites in self._new.items() if c in won for s in sites]
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
        """What records say of the program's calls, where that is another form than by default."""
        return [r for r in self._records.forms(self._target) if r.worth and r.call in self._calls]

    def withdraw(self) -> None:
        """Record that the program is not faster by other forms."""
        for record in self.taken:
            self._records.add(_as_usual(record))

    def report(self) -> list[FormReport]:
        """What became of calls that have another form now, those first that gain most."""
        found = [
            FormReport(site.name, r.usual, r.form, r.reference, r.seconds)
            for r in self.taken
            for site in self._calls[r.call]
        ]
        return sorted(found, key=lambda f: f.after - f.before)


def _calls(program: MeasuredProgram) -> dict[str, list[CallSite]]:
    """The sites that have forms, those that records can't tell apart together."""
    found: dict[str, list[CallSite]] = {}
    for site in program.sites:
        if site.name in program.free and any(c.implementation != TIR for c in site.candidates):
            found.setdefault(call_identity(site.call), []).append(site)
    return found


def _times(parts: OwnParts, sites: Sequence[CallSite]) -> dict[str, float]:
    """Seconds of some sites' kernels, their mean, by the forms that all of them were tried in."""
    measured = [parts.measured.get(s.name, {}) for s in sites]
    return {
        form: sum(m[form] for m in measured) / len(sites)
        for form in measured[0]
        if all(form in m for m in measured)
    }


def _as_usual(record: FormRecord) -> FormRecord:
    return FormRecord(
        record.call, record.target, record.sizes, record.usual, record.usual,
        record.reference, record.reference, record.about, now(),
    )  # fmt: skip
