"""What the names in a text stand for, and where a name ends."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from .. import syntax
from ..schema.dtypes import named

_CUT = re.compile(r"[./:$-]")


@dataclass(slots=True)
class Names:
    """The names that are known at a place.

    Attributes:
        functions: Those of the module.
        constructors: Those of its types.
        lent: Functions and constructors that the prelude would lend.
        borrowed: Those of them that the text uses.
        blocks: What variables and graph bindings stand for, the innermost block last.
        types: The type parameters.
    """

    functions: Collection[str]
    constructors: Collection[str]
    lent: Collection[str] = ()
    borrowed: set[str] = field(default_factory=set[str])
    blocks: list[dict[str, syntax.Expr]] = field(default_factory=lambda: [{}])
    types: list[str] = field(default_factory=list[str])

    @contextmanager
    def block(self, types: tuple[str, ...] = ()) -> Iterator[None]:
        """A block, which forgets at its end what it binds."""
        self.blocks.append({})
        self.types.extend(types)
        yield
        self.blocks.pop()
        del self.types[len(self.types) - len(types) :]

    def is_function(self, name: str) -> bool:
        """Whether the module or the prelude has a function."""
        return name in self.functions or self._borrow(name)

    def is_constructor(self, name: str) -> bool:
        """Whether a type of the module or of the prelude has a constructor."""
        return name in self.constructors or (name[:1].isupper() and self._borrow(name))

    def _borrow(self, name: str) -> bool:
        if name in self.lent:
            self.borrowed.add(name)
            return True
        return False

    def bind(self, name: str, value: syntax.Expr) -> None:
        """Let a name stand for something till the block ends."""
        self.blocks[-1][name] = value

    def find(self, name: str) -> syntax.Expr | None:
        """What a name stands for."""
        for block in reversed(self.blocks):
            if name in block:
                return block[name]
        return None

    def longest(self, text: str) -> tuple[syntax.Expr, str] | None:
        """The longest beginning of a text that is a known name, and what is left of the text.

        ``0.1`` is the second field of ``0`` unless something is called just that.
        """
        found = self.find(text)
        if found is not None:
            return found, ""
        for cut in reversed(list(_CUT.finditer(text))):
            found = self.find(text[: cut.start()])
            if found is not None:
                return found, text[cut.start() :]
        return None

    def close(self, name: str) -> str | None:
        """A hint with names like one that is not known."""
        known = [n for block in self.blocks for n in block]
        found = difflib.get_close_matches(name[:100], known[-2000:], 3)
        return "known are " + ", ".join(f"%{n}" for n in found) if found else None


def bound_name(text: str, following: str) -> str:
    """The name that a variable is given: without the type that follows a colon and no blank.

    >>> bound_name("x:float32", ","), bound_name("x:Tensor", "["), bound_name("input:0", ":")
    ('x', 'x', 'input:0')
    """
    name, colon, last = text.rpartition(":")
    typed = last in ("Tensor", "_", "fn") or named(last) is not None or following == "["
    return name if colon and typed else text
