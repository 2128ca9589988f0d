"""What is asked of `unity.tune`, refused before hours are spent on it."""

from __future__ import annotations

import inspect
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from random import Random

from unity.errors import UnityError
from unity.transform.schedule.schedule import Schedule

from .records.store import check_holds_records
from .search import strategy
from .spaces import ProgramSpace, SpaceProgram
from .spaces.by_rules import NAME
from .spaces.generic import STRUCTURAL
from .tasks import Task


def check_limits(trials: int | None, seconds: float | None) -> None:
    """Refuse limits of a search that are none.

    Raises:
        UnityError: They are not positive.
    """
    if trials is not None and trials < 1:
        raise UnityError(f"trials={trials}", hint="at least 1")
    if seconds is not None and not (seconds > 0 and isfinite(seconds)):
        raise UnityError(f"seconds={seconds}", hint="more than 0; None for no limit")


def check_strategy(name: str) -> None:
    """Refuse a strategy that there is not.

    Raises:
        UnityError: There is none of the name.
    """
    strategy(name, ())


def check_measurable(several: Sequence[Mapping[str, int]]) -> None:
    """Refuse sizes at which nothing can be timed.

    Raises:
        UnityError: One is 0.
    """
    for sizes in several:
        for name, size in sizes.items():
            if not size:
                raise UnityError(
                    f"sizes: {name!r} is 0: there is nothing to time",
                    hint='sizes of which kernels have elements: {"n": 128}',
                )


def check_called(what: str, function: Callable[..., object], usage: str) -> None:
    """Refuse a function that does not take one argument.

    Args:
        what: Which it is, for messages.
        function: The function.
        usage: How one is written.

    Raises:
        UnityError: It takes none, or more.
    """
    try:
        inspect.signature(function).bind(None)
    except TypeError as error:
        raise UnityError(f"{what} is called with one argument: {error}", hint=usage) from None
    except ValueError:
        return  # a builtin that tells nothing of its parameters


def check_spaces(spaces: Sequence[SpaceProgram], tasks: Sequence[Task]) -> None:
    """Refuse spaces of users that records could not tell apart, or that have nothing for a program.

    Raises:
        UnityError: There is such a space.
    """
    own = {NAME, *STRUCTURAL}
    for program in spaces:
        name: object = getattr(program, "__name__", None)
        if not isinstance(name, str):
            raise UnityError(
                f"spaces: {program!r} has no name for records",
                hint="a function: def rows(sch: Schedule) -> None",
            )
        if name in own:
            raise UnityError(
                f"spaces: {name!r} is a space of Unity's",
                hint=f"another name: records tell spaces by it; taken are {', '.join(own)}",
            )
        check_called(f"spaces: {name!r}", program, f"def {name}(sch: Schedule) -> None")
    for name, count in Counter(p.__name__ for p in spaces).items():
        if count > 1:
            raise UnityError(
                f"spaces: {count} are called {name!r}", hint="records tell spaces by their names"
            )
    for program in spaces:
        fits = (ProgramSpace(t.func, t.target, program).first(Random(0)) for t in tasks)
        if tasks and all(point is None for point in fits):
            why = "; ".join(f"{t.name}: {_refusal(program, t)}" for t in tasks[:3])
            raise UnityError(
                f"spaces: {program.__name__!r} is refused for every kernel: {why}",
                hint="blocks of a kernel are called b0, b1 ...; sch.func prints it",
            )


def _refusal(program: SpaceProgram, task: Task) -> str:
    try:
        program(Schedule(task.func, task.target))
    except UnityError as error:
        return error.message
    return "refused for what was drawn"


def check_files(db: Path | str | None, report: Path | str | None) -> None:
    """Make the folders of the records and of the report, unless they are there.

    A file of records that can be made is not left behind: what else was asked may be refused yet.

    Raises:
        UnityError: They can't be written, or the file holds something else.
    """
    try:
        if db is not None and Path(db).is_file():
            check_holds_records(Path(db))
        if db is not None:
            Path(db).parent.mkdir(parents=True, exist_ok=True)
            if Path(db).exists() or Path(db).is_symlink():
                os.close(os.open(db, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644))
            else:  # made here, or by nobody
                os.close(os.open(db, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
                Path(db).unlink()
    except OSError as error:
        raise UnityError(
            f"db: {db} can't be written: {error.strerror}",
            hint="a file that may be added to; compile(db=...) reads those that may not",
        ) from error
    try:
        if report is not None:
            Path(report).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnityError(
            f"the report can't be written to {report}: {error.strerror}", hint="a folder"
        ) from error
