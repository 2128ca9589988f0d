"""What a translation did, call by call: operators, attributes left out, compilers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from . import syntax
from .relay_call import RelayCall

WISHES = "wishes"
"""The attribute of a function: pairs of a call site and the name of a compiler."""


@dataclass(frozen=True, slots=True)
class Translated:
    """One call of an operator of Relay.

    Attributes:
        call: The call.
        operator: What it calls.
        ops: The operators of ours that it became, in order.
        sites: Names of their call sites, ``function/variable``.
        dropped: Attributes that the source gives and that say nothing to us.
        compiler: The ``Compiler`` of the function around it, if it has one.
    """

    call: syntax.Call
    operator: str
    ops: tuple[str, ...]
    sites: tuple[str, ...]
    dropped: tuple[str, ...]
    compiler: str | None


@dataclass(slots=True)
class Record:
    """All of a translation; calls translated in several bodies stand there several times."""

    calls: list[Translated] = field(default_factory=list[Translated])
    _compilers: list[str] = field(default_factory=list[str])

    @contextmanager
    def within(self, function: syntax.Function) -> Iterator[None]:
        """What is translated meanwhile is of a function, which may name a compiler."""
        named = function.attributes.get("Compiler")
        if not isinstance(named, str):
            yield
            return
        self._compilers.append(named)
        yield
        self._compilers.pop()

    def note(self, call: RelayCall, expr: syntax.Call, function: str) -> None:
        """A call that is translated, in a function of ours."""
        self.calls.append(
            Translated(
                expr,
                call.name,
                tuple(name for name, _ in call.emitted),
                tuple(f"{function}/{var}" for _, var in call.emitted if var is not None),
                tuple(name for name in expr.given if name in call.dropped),
                self._compilers[-1] if self._compilers else None,
            )
        )

    def wishes(self) -> tuple[tuple[str, str], ...]:
        """Call sites, and the compilers that the source gives them to."""
        return tuple((s, c.compiler) for c in self.calls if c.compiler for s in c.sites)
