"""What a kind of random program is: how one is drawn, judged, made smaller and written down."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Kind(Generic[P]):
    """A kind of random programs.

    Attributes:
        name: As the command calls it.
        draw: The program of a seed.
        check: Raises whatever it raises if the program is treated wrongly.
        smaller: Programs with one thing less, the largest cuts first. Each is well formed.
        script: Python that fails as the program does; its second argument says how that is.
        limit: How many seconds one program may take.
    """

    name: str
    draw: Callable[[int], P]
    check: Callable[[P], None]
    smaller: Callable[[P], Iterator[P]]
    script: Callable[[P, str], str]
    limit: float = 120.0


def said(error: Exception) -> str:
    """A failure as text: the class, then the message on one line.

    >>> said(ValueError("a  b"))
    'ValueError: a b'
    """
    return " ".join(f"{type(error).__name__}: {error}".split())


def sort_of(failure: str) -> str:
    """What failures have in common that are one bug: their first words, numbers and names apart.

    >>> sort_of("UnityError: FuseOps changed what 'main' computes: at [1, 2] expected 3")
    'UnityError: FuseOps changed what computes'
    """
    plain = re.sub(r"'[^']*'|\"[^\"]*\"|\[[^\]]*\]|\d+", " ", failure)
    name, _, rest = plain.partition(": ")
    return f"{name}: {' '.join(rest.split(':')[0].split()[:6])}"
