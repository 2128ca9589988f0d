"""Unique, valid names for the variables of one function.

Variables are identities; the text needs a name for each that is a Python identifier, no word of the
language, and not taken by another variable in scope.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from unity.ir.dtype import SHORT_NAMES

LANGUAGE: frozenset[str] = frozenset(
    {*keyword.kwlist, *keyword.softkwlist, *SHORT_NAMES}
    | {"R", "T", "script", "Tensor", "Buffer", "dim", "range", "min", "max", "float"}
)
"""Names that mean something else in a printed text."""
_ODD = re.compile(r"\W")
_NUMBERED = re.compile(r"(.*)_(\d+)$")


def identifier(hint: str) -> str:
    """A hint made a Python identifier.

    >>> identifier("conv1.weight:0"), identifier("2x"), identifier("for")
    ('conv1_weight_0', 'v2x', 'for_')
    """
    name = hint if hint.isidentifier() else _ODD.sub("_", hint) or "v"
    if not name.isidentifier():
        name = f"v{name}"
    name = name.replace("__", "_") if name.startswith("__") else name
    return f"{name}_" if name in LANGUAGE else name


class Names:
    """The names given so far; `scope` forgets those given inside it."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._reserved = frozenset(reserved)
        self._taken: set[str] = set()
        self._of: dict[object, str] = {}
        self._next: dict[str, int] = {}

    def define(self, variable: object, hint: str) -> str:
        """A fresh name for a variable, which is hashed (identity, for variables and buffers)."""
        name = self.fresh(hint)
        self._of[variable] = name
        return name

    def alias(self, variable: object, name: str) -> None:
        """Give a variable a name that another one has, where the text means it so."""
        self._of[variable] = name

    def define_once(self, variable: object, hint: str) -> str:
        """The name of a variable, given now unless it has one already."""
        return self._of.get(variable) or self.define(variable, hint)

    def fresh(self, hint: str) -> str:
        """A name nothing else has."""
        base = name = identifier(hint)
        if self._is_taken(name):
            numbered = _NUMBERED.match(base)
            if numbered is not None:
                base = numbered[1]
            count = self._next.get(base, 1)
            while self._is_taken(name := f"{base}_{count}"):
                count += 1
            self._next[base] = count + 1
        self._taken.add(name)
        return name

    def _is_taken(self, name: str) -> bool:
        return name in self._taken or name in self._reserved

    def of(self, variable: object, hint: str) -> str:
        """The name of a variable; its hint if nothing defines it (in a fragment)."""
        return self._of.get(variable) or identifier(hint)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Names defined inside may be used again after it."""
        taken, following = set(self._taken), dict(self._next)
        yield
        self._taken, self._next = taken, following
