"""The file of records: appended to a line at a time, read whole, never rewritten while in use."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from logging import getLogger
from pathlib import Path

from unity.errors import UnityError
from unity.machine.target import Target
from unity.runtime.artifact.replacing import replacing
from unity.transform.graph.resolve import RecordedForm
from unity.transform.rules.by_record import Replay

from ..workers.machine_key import key_of_target, without_threads
from .record import BEGINNINGS, Best, FormRecord, Record, Trial, decoded, encoded

log = getLogger("unity")


class Records:
    """What was found out by tuning.

    A line that is torn (the process ended while it was written) or changed is told of by the logger
    ``unity`` and skipped; what is written after it begins a line of its own.

    Args:
        path: The file, which need not exist; None keeps everything in memory.
        read_only: Whether nothing is written: what ships with a model or a package.

    Raises:
        UnityError: The file can't be read.
    """

    def __init__(self, path: Path | str | None = None, *, read_only: bool = False) -> None:
        self.path = None if path is None else Path(path)
        self.read_only = read_only
        self._records: list[Record] = []
        self._torn = False
        if self.path is not None:
            self._records, damaged, self._torn = read(self.path)
            if damaged:
                log.warning("%s: %d lines are no records and are skipped", self.path, damaged)

    def __len__(self) -> int:
        """How many records there are."""
        return len(self._records)

    def __iter__(self) -> Iterator[Record]:
        """The records, oldest first."""
        return iter(self._records)

    def add(self, record: Record) -> None:
        """Keep a record; its line is in the file when this returns.

        Raises:
            UnityError: The file can't be written, or is not to be.
        """
        if self.read_only:
            raise UnityError(f"{self.path} is read only")
        self._records.append(record)
        if self.path is None:
            return
        line = ("\n" if self._torn else "") + encoded(record) + "\n"
        self._torn = False
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                os.write(file, line.encode())
            finally:
                os.close(file)
        except OSError as error:
            raise UnityError(f"{self.path} can't be written: {error.strerror}") from error

    def trials(self, kernel: str | None = None, target: str | None = None) -> list[Trial]:
        """The trials of a kernel, or of all, on a machine."""
        return [
            r
            for r in self._records
            if isinstance(r, Trial)
            and (kernel is None or r.kernel == kernel)
            and (target is None or r.target == target)
        ]

    def bests(self, target: str | None = None) -> list[Best]:
        """For each kernel, sizes and machine the fastest; of one point the latest line counts.

        What was found before the kernel was measured within a program no longer counts after it.
        """
        of: dict[tuple[object, ...], list[Best]] = {}
        for r in self._records:
            if isinstance(r, Best) and (target is None or r.target == target):
                of.setdefault((r.kernel, r.target, r.sizes), []).append(r)
        return [min(_counting(lines), key=lambda r: r.ratio) for lines in of.values()]

    def forms(self, target: str | None = None) -> list[FormRecord]:
        """For each call, sizes and machine what was measured of its forms last, oldest first."""
        latest: dict[tuple[object, ...], FormRecord] = {}
        found = [r for r in self._records if isinstance(r, FormRecord)]
        for r in sorted(found, key=lambda r: r.date):
            if target is None or r.target == target:
                latest.pop((r.call, r.sizes, r.target), None)
                latest[r.call, r.sizes, r.target] = r
        return list(latest.values())

    def recorded_forms(self, target: Target) -> tuple[RecordedForm, ...]:
        """What `FormByRecord` takes: of each call the fastest form, if that is worth it.

        A call has one form for all sizes: that of those it was measured at last.
        """
        last = {r.call: r for r in self.forms(key_of_target(target))}
        return tuple(
            RecordedForm(r.call, r.form, f"{r.form} {1 / r.ratio:.2f}x of {r.usual}")
            for r in last.values()
            if r.worth
        )

    def replays(self, target: Target) -> tuple[Replay, ...]:
        """What `ScheduleByRecord` takes: of each kernel the fastest, if that is worth it."""
        return tuple(
            Replay(
                r.kernel,
                r.trace,
                r.point if r.space == "rules" else None,
                r.sizes,
                f"{r.space} {1 / r.ratio:.2f}x" + (f" at {_told(r)}" if r.sizes else ""),
                r.seconds,
            )
            for r in self.bests(key_of_target(target))
            if r.worth
        )

    def by_other_threads(self, target: Target) -> dict[str, int]:
        """Kernels and calls tuned on this machine for other numbers of threads alone: for which.

        Of several numbers it is the one that was tuned for last.
        """
        here = key_of_target(target)
        machine = without_threads(here)[0]
        known = {_of(r) for r in self._records if r.target == here}
        tuned: list[Best | FormRecord] = [*self.bests(), *self.forms()]
        return {
            _of(r): without_threads(r.target)[1]
            for r in sorted(tuned, key=lambda r: r.date)
            if r.worth and _of(r) not in known and without_threads(r.target)[0] == machine
        }


def _of(record: Record) -> str:
    return record.call if isinstance(record, FormRecord) else record.kernel


def joined(*groups: Iterable[Record]) -> Records:
    """Records of several sources, in memory."""
    found = Records()
    for group in groups:
        for record in group:
            found.add(record)
    return found


def _counting(lines: Sequence[Best]) -> list[Best]:
    """Of a kernel's lines, oldest first, those that count: the latest of each point."""
    last = max((r.date for r in lines if r.within), default=None)
    latest: dict[tuple[str, str], Best] = {}
    for r in lines:
        if last is None or r.date > last or (r.within and r.date == last):
            latest[r.space, r.point] = r
    return list(latest.values())


def _told(record: Best) -> str:
    return ", ".join(f"{name}={size}" for name, size in record.sizes)


def read(path: Path) -> tuple[list[Record], int, bool]:
    """The records of a file, how many lines are none, and whether the last one is torn.

    Raises:
        UnityError: The file is there and can't be read.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return [], 0, False
    except OSError as error:
        raise UnityError(f"{path} can't be read: {error.strerror}") from error
    lines = data.decode(errors="replace").splitlines()
    found = [decoded(line) for line in lines if line.strip()]
    records = [r for r in found if r is not None]
    return records, len(found) - len(records), bool(data) and not data.endswith(b"\n")


def merge(sources: Sequence[Path], into: Path) -> int:
    """Write the records of several files to one, equal ones once.

    Returns:
        How many there are.

    Raises:
        UnityError: A file is missing, is none of records, or can't be read or written; `into` is
            there and none of the sources.
    """
    if into.exists() and into.resolve() not in {s.resolve() for s in sources}:
        raise UnityError(f"{into} is there", hint="name it among the sources, or another file")
    found: dict[Record, None] = {}
    for source in sources:
        found.update(dict.fromkeys(records_of(source)))
    _write(into, found)
    return len(found)


def prune(path: Path) -> tuple[int, int]:
    """Drop trials and what was beaten: what is left is what `unity.compile` uses.

    Returns:
        How many records there were, and how many are left.

    Raises:
        UnityError: The file is missing, is none of records, or can't be read or written.
    """
    records_of(path)
    records = Records(path)
    kept: list[Record] = [r for r in records.forms() if r.worth]
    kept += [r for r in records.bests() if r.worth]
    _write(path, kept)
    return len(records), len(kept)


def records_of(path: Path) -> list[Record]:
    """The records of a file that is to have some.

    Raises:
        UnityError: It is missing, or what it holds are no records.
    """
    if not path.exists():
        raise UnityError(f"there is no file {path}")
    records, damaged, _ = read(path)
    if damaged and not records:
        raise UnityError(f"{path} is no file of records", hint="files of `unity tune --db`")
    return records


def check_holds_records(path: Path) -> None:
    """Refuse a file that holds something else than records, whole or torn, or nothing.

    Raises:
        UnityError: It does, or it can't be read.
    """
    if read(path)[0]:
        return
    with path.open("rb") as file:
        begin = file.read(max(map(len, BEGINNINGS))).lstrip()
    if not any(b.startswith(begin) or begin.startswith(b) for b in BEGINNINGS):
        raise UnityError(f"{path} is no file of records", hint="files of `unity tune --db`")


def _write(path: Path, records: Iterable[Record]) -> None:
    try:
        with replacing(path) as file:
            file.writelines(f"{encoded(r)}\n".encode() for r in records)
    except OSError as error:
        raise UnityError(f"{path} can't be written: {error.strerror}") from error
