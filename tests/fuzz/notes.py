"""What ran and what failed, kept in a file over many runs: a row a kind.

A row holds its slices: the seeds of a run, its commit, date, machine and seconds on the clock. A
run that goes on where the one before ended, at the same commit, on the same day and machine, makes
one slice with it; so slices say where the code changed. The row's ``count`` is how many seeds were
judged in all, ``failures`` what fails by seed, and ``mended`` what failed once: how, and the commit
at which it was judged again and passed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Slice:
    """A run: which seeds, and where and when they were judged.

    Attributes:
        seeds: In steps of one.
        commit: That was checked out.
        date: As ISO 8601 has it.
        machine: The cpu.
        seconds: On the clock, whatever else the machine did.
    """

    seeds: range
    commit: str
    date: str
    machine: str
    seconds: int

    def as_json(self) -> Row:
        """The slice in a file; ``seeds`` are the first and the one after the last."""
        about = {"commit": self.commit, "date": self.date, "machine": self.machine}
        return {"seeds": [self.seeds.start, self.seeds.stop], "seconds": self.seconds, **about}


def rows_of(path: Path | None) -> dict[str, Row]:
    """The rows of a file by kind; none where there is no file."""
    if path is None or not path.exists():
        return {}
    rows: dict[str, Row] = json.loads(path.read_text())
    return rows


def next_seed(path: Path | None, kind: str) -> int:
    """The seed after all that were judged; 0 where none was."""
    slices = rows_of(path).get(kind, {}).get("slices", [])
    return max((s["seeds"][1] for s in slices), default=0)


def note(path: Path, kind: str, ran: Slice, failures: Mapping[int, str]) -> None:
    """Add a run to a kind's row; the file is replaced whole."""
    rows = rows_of(path)
    text = json.dumps({**rows, kind: _with(rows.get(kind), ran, failures)}, indent=1)
    beside = path.with_suffix(".new")
    beside.write_text(text + "\n")
    beside.replace(path)


def _with(row: Row | None, ran: Slice, failures: Mapping[int, str]) -> Row:
    before = row or {"slices": [], "failures": {}, "mended": {}}
    slices = [*before["slices"], ran.as_json()]
    if len(slices) > 1 and _one(slices[-2], slices[-1]):
        first, last = slices[-2:]
        seeds = [first["seeds"][0], last["seeds"][1]]
        slices[-2:] = [{**last, "seeds": seeds, "seconds": first["seconds"] + last["seconds"]}]
    passed = {str(s) for s in ran.seeds} - {str(s) for s in failures}
    now = {**before["failures"], **{str(s): how for s, how in failures.items()}}
    mended = {s: {"failure": how, "passes_at": ran.commit} for s, how in now.items() if s in passed}
    old = {s: was for s, was in before["mended"].items() if int(s) not in failures}
    judged = {s for x in slices for s in range(*x["seeds"])}
    return {
        "count": len(judged),
        "failures": {s: how for s, how in now.items() if s not in passed},
        "mended": {**old, **mended},
        "slices": slices,
    }


def _one(before: Row, after: Row) -> bool:
    """Whether a slice goes on where another ended, with nothing changed."""
    same = all(before[x] == after[x] for x in ("commit", "date", "machine"))
    return same and bool(before["seeds"][1] == after["seeds"][0])
