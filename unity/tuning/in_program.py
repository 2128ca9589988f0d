"""The program whose kernels are tuned: kernels are timed within it, and it is timed as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from unity.errors import UnityError
from unity.runtime.executable import Executable

from .records import Records
from .workers import Measurer, Program
from .workers.program import written

Build = Callable[[Records], Executable]
"""Compiles the program with its kernels laid out by records."""

_SECONDS, _ROUNDS = 0.6, 3
"""How long the whole program is timed by default and tuned, each, and how often."""


def saved(build: Build, inputs: Sequence[Sequence[object]], folder: Path) -> Program:
    """The program as it is by default, in a file.

    Args:
        build: Compiles it.
        inputs: Arguments of its main function, for each of the sizes that are tuned for.
        folder: Where files are made.

    Raises:
        UnityError: It can't be compiled, or not be saved, as what calls Python can't.
    """
    path = folder / "usual.unity"
    build(Records()).save(path)
    return Program(path, [[written(a, folder) for a in args] for args in inputs])


def compared(
    build: Build, records: Records, measurer: Measurer, folder: Path
) -> tuple[float, float] | None:
    """Seconds of a call of the program by default and by records, for all sizes together.

    Of some rounds, in each of which memory lies elsewhere, the one whose ratio is in the middle.

    Args:
        build: Compiles it.
        records: How its kernels are laid out.
        measurer: Knows the program, and runs it.
        folder: Where files are made.

    Returns:
        None where it does not run.
    """
    path = folder / "tuned.unity"
    try:
        build(records).save(path)
    except UnityError:
        return None
    rounds = [measurer.whole(path, _SECONDS) for _ in range(_ROUNDS)]
    known = sorted((r for r in rounds if r is not None), key=lambda r: r[1] / r[0])
    return known[len(known) // 2] if known else None
