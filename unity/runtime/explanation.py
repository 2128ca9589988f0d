"""What each call site of a program was resolved to, and why: a table to read and to process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from unity import notebook
from unity.arguments import public_class
from unity.errors import UnityError
from unity.runtime.records import RecordError, decode

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions


class MissingSiteError(UnityError, KeyError):
    """An explanation was asked for a call site that it does not have."""


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """One implementation of a site.

    Attributes:
        implementation: ``tir``, ``library:...`` or ``engine:...``.
        seconds: What it takes; None if nothing is known.
        measured: Whether that was measured, not estimated.
        why_not: Why it can't be taken; None if it can.
    """

    implementation: str
    seconds: float | None = None
    measured: bool = False
    why_not: str | None = None

    @property
    def text(self) -> str:
        """A short form."""
        if self.why_not is not None:
            return f"{self.implementation}: no, {self.why_not}"
        if self.seconds is None:
            return self.implementation
        about = "" if self.measured else "~"
        return f"{self.implementation} {about}{time_text(self.seconds)}"


@dataclass(frozen=True, slots=True)
class SiteRow:
    """One call site.

    Attributes:
        site: ``function/variable``, as overrides name it.
        op: The operator.
        place: Where it comes from: the node of the imported model, or file and line.
        shapes: Its operands' and its result's types.
        choice: The implementation taken.
        reason: Why.
        group: Sites of one group run as one call: the subgraph that an engine was given.
    """

    site: str
    op: str
    place: str
    shapes: str
    choice: str
    reason: str
    group: str = ""
    candidates: tuple[CandidateRow, ...] = ()

    @property
    def seconds(self) -> float | None:
        """What the choice takes."""
        found = [c.seconds for c in self.candidates if c.implementation == self.choice]
        return found[0] if found else None


@dataclass(frozen=True, slots=True)
class RoadRow:
    """The whole program by one plan: all by one implementation, or mixed.

    Attributes:
        seconds: The fastest run measured; None where it can't be compiled or doesn't run.
        taken: Whether the executable is this one.
        why_not: Why it can't be.
    """

    name: str
    seconds: float | None
    taken: bool = False
    why_not: str | None = None

    @property
    def text(self) -> str:
        """Its time, or why there is none."""
        if self.seconds is None:
            return f"no, {self.why_not}"
        return time_text(self.seconds)


@public_class
@dataclass(frozen=True, slots=True)
class Explanation:
    """All call sites of a program; shows itself as a table in a terminal and in a notebook."""

    sites: tuple[SiteRow, ...] = ()
    roads: tuple[RoadRow, ...] = ()
    policy: str = "tir"
    notes: tuple[str, ...] = ()
    """What else is to be known: overrides that fit nothing."""
    functions: tuple[tuple[str, str], ...] = ()
    """How each function runs, as `Executable.native` says."""

    def __iter__(self) -> Iterator[SiteRow]:
        """The sites in order."""
        return iter(self.sites)

    def __len__(self) -> int:
        """How many sites there are."""
        return len(self.sites)

    def __getitem__(self, site: str) -> SiteRow:
        """The row of a site by name, with or without its function.

        Raises:
            MissingSiteError: There is none; names those like it.
        """
        for row in self.sites:
            if site in _names(row):
                return row
        near = get_close_matches(site, [n for r in self.sites for n in _names(r)], 3)
        like = f"did you mean {', '.join(near)}?" if near else "iterate over the table for all"
        raise MissingSiteError(f"no call site {site!r}", hint=like)

    def counts(self) -> dict[str, int]:
        """How many sites each implementation was chosen for."""
        found: dict[str, int] = {}
        for row in self.sites:
            found[row.choice] = found.get(row.choice, 0) + 1
        return found

    @property
    def total(self) -> float | None:
        """What the whole takes: as measured, or the sum of the sites' estimates."""
        taken = [r.seconds for r in self.roads if r.taken and r.seconds is not None]
        if taken:
            return taken[0]
        known = [r.seconds for r in self.sites if r.seconds is not None]
        return sum(known) if known else None

    def to_json(self) -> str:
        """As JSON text."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str | bytes) -> Explanation:
        """What `to_json` wrote.

        Raises:
            RecordError: The text is something else; says where.
        """
        return decode(Explanation, text)

    @staticmethod
    def stored(text: str | bytes) -> Explanation:
        """What an executable has of it; empty if it has nothing.

        Raises:
            UnityError: It is something else.
        """
        try:
            return Explanation.from_json(text) if text else Explanation()
        except RecordError as error:
            raise UnityError(
                f"the explanation was written by another Unity, which says more or less: {error}",
                hint="compile the model again with this one",
            ) from error

    def summary(self) -> str:
        """One line: how many sites of each kind, and the time of the whole."""
        parts = [f"{count} {name}" for name, count in sorted(self.counts().items())]
        total = "" if self.total is None else f", {time_text(self.total)} in all"
        return f"{len(self.sites)} call sites ({self.policy}): {', '.join(parts)}{total}"

    def rows(self) -> list[tuple[str, str, str, str, str, str]]:
        """The table's cells: site, op and place, shapes, choice, candidates, reason."""
        return [
            (
                row.site,
                f"{row.op} {row.place}".strip(),
                row.shapes,
                row.choice + (f" [{row.group}]" if row.group else ""),
                "; ".join(c.text for c in row.candidates if c.implementation != row.choice),
                row.reason,
            )
            for row in self.sites
        ]

    def short_rows(self) -> list[tuple[str, str, str, str, str]]:
        """The cells of what was chosen: site, op and place, choice, its time, reason."""
        return [
            (site, op, choice, "" if row.seconds is None else time_text(row.seconds), why)
            for row, (site, op, _, choice, _, why) in zip(self.sites, self.rows(), strict=True)
        ]

    def __str__(self) -> str:
        """As plain text, one site a line."""
        lines = [" | ".join((s, o, h, c, r)) for s, o, h, c, _, r in self.rows()]
        lines += [f"{'*' if road.taken else ' '} {road.name}: {road.text}" for road in self.roads]
        return "\n".join([*lines, *self.notes, *self.running(), self.summary()])

    def running(self) -> list[str]:
        """A line for each function: native code, or bytecode and why."""
        return [f"{name}: {how}" for name, how in self.functions]

    def _repr_html_(self) -> str:
        parts = [notebook.table(HEADINGS, self.rows(), self.summary())]
        if self.roads:
            plans = [(r.name, r.text, "taken" if r.taken else "") for r in self.roads]
            parts.append(notebook.table(("plan", "fastest run", ""), plans))
        return notebook.page(*parts, *map(notebook.note, (*self.notes, *self.running())))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[object]:
        """As rich shows it: a narrow terminal gets what was chosen, without what else there was."""
        from rich.table import Table

        narrow = options.max_width < NARROW
        headings = SHORT_HEADINGS if narrow else HEADINGS
        table = Table(title=self.summary(), title_justify="left")
        for heading in headings:
            table.add_column(heading, no_wrap=heading == "site", overflow="fold")
        for row in self.short_rows() if narrow else self.rows():
            table.add_row(*row)
        yield table
        if narrow:
            yield f"shapes and other candidates: in {NARROW} columns, in a pipe, by --json"
        if self.roads:
            roads = Table("plan", "fastest run", "")
            for road in self.roads:
                roads.add_row(road.name, road.text, "taken" if road.taken else "")
            yield roads
        yield from (*self.notes, *self.running())


def _names(row: SiteRow) -> tuple[str, str]:
    """A site's name with and without its function."""
    return row.site, row.site.rpartition("/")[2]


HEADINGS = ("site", "op", "shapes", "choice", "other candidates", "why")
SHORT_HEADINGS = ("site", "op", "choice", "time", "why")
NARROW = 140
"""Columns below which a terminal is shown the short table."""


def time_text(seconds: float) -> str:
    """A duration with a fitting unit.

    >>> time_text(0.00123), time_text(2e-6)
    ('1.23 ms', '2.00 us')
    """
    if seconds >= 1:
        return f"{seconds:.2f} s"
    if seconds >= 1e-3:
        return f"{seconds * 1e3:.2f} ms"
    return f"{seconds * 1e6:.2f} us"
