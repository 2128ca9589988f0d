"""Passes as the Python that makes them: the expression, and what it needs imported."""

from __future__ import annotations

import sys
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from typing import Protocol, TypeGuard

_WIDTH = 100


class _Named(Protocol):
    """A class or a function."""

    __module__: str
    __qualname__: str


class Held:
    """A value that prints as the variable of a module that holds it; it has a name besides."""

    __slots__ = ()
    name: str


@dataclass(slots=True)
class Source:
    """Writes values as Python, and carries the names that this uses.

    >>> from unity.transform.graph import FoldConstants
    >>> from unity.transform.source import Source
    >>> source = Source()
    >>> source.text((FoldConstants(), FoldConstants(limit=1)))
    '(FoldConstants(), FoldConstants(limit=1))'
    >>> source.statements()
    ['from unity.transform.graph import FoldConstants']

    Attributes:
        homes: Where each name comes from: its module, and what it is called there.
        free: Names that can't be imported, because they are local to a function.
    """

    homes: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    free: list[str] = field(default_factory=list[str])

    def text(self, value: object) -> str:
        """A value as an expression; its `repr` if it is none of what passes are made of."""
        if isinstance(value, tuple):
            inner = ", ".join(map(self.text, value))
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        if isinstance(value, frozenset) and value:
            return f"frozenset({{{', '.join(sorted(map(self.text, value)))}}})"
        if isinstance(value, dict):
            pairs = (f"{self.text(k)}: {self.text(v)}" for k, v in value.items())
            return f"{{{', '.join(pairs)}}}"
        if isinstance(value, Held):
            return self.variable(value)
        if is_dataclass(value) and not isinstance(value, type):
            return self.call(value)
        return self.name(value) if _is_named(value) else repr(value)

    def call(self, value: object) -> str:
        """A dataclass as a call, without the arguments that have their defaults."""
        given: list[str] = []
        assert is_dataclass(value)
        for f in fields(value):
            content: object = getattr(value, f.name)
            if f.init and not _is_default(f, content):
                by_place = f.default is MISSING and f.default_factory is MISSING
                given.append(self.text(content) if by_place else f"{f.name}={self.text(content)}")
        return f"{self.name(type(value))}({', '.join(given)})"

    def variable(self, value: Held) -> str:
        """The variable of a module that holds a value."""
        for module, held in list(sys.modules.items()):
            for name, other in list(getattr(held, "__dict__", {}).items()):
                if other is value:
                    return self.imported(module, name)
        return self.unknown(value.name)

    def name(self, value: type | _Named) -> str:
        """What a class or a function is called; another name where its own is taken."""
        name = value.__qualname__
        if "<" in name or "." in name:
            return self.unknown(name.rpartition(".")[2])
        return self.imported(_home(value), name)

    def unknown(self, name: str) -> str:
        """A name that can't be imported."""
        if name not in self.free:
            self.free.append(name)
        return name

    def imported(self, module: str, name: str) -> str:
        """A name of a module."""
        home = (module, name)
        own, count = name, 1
        while self.homes.setdefault(own, home) != home:
            count += 1
            own = f"{name}_{count}"
        return own

    def statements(self) -> list[str]:
        """The imports, and a comment on what must be there already."""
        modules: dict[str, list[str]] = {}
        for own, (module, name) in self.homes.items():
            if module != "builtins":
                modules.setdefault(module, []).append(own if own == name else f"{name} as {own}")
        lines: list[str] = []
        for module in sorted(modules):
            names = sorted(modules[module])
            line = f"from {module} import {', '.join(names)}"
            if len(line) > _WIDTH:
                line = f"from {module} import (\n" + "".join(f"    {n},\n" for n in names) + ")"
            lines.append(line)
        return [*lines, *(f"# {n} is local to a function: it must be in scope" for n in self.free)]


def _is_named(value: object) -> TypeGuard[_Named]:
    return hasattr(value, "__qualname__") and hasattr(value, "__module__")


def _home(value: type | _Named) -> str:
    """The outermost package that has it under its name."""
    parts = value.__module__.split(".")
    for i in range(1, len(parts)):
        outer = sys.modules.get(".".join(parts[:i]))
        if outer is not None and vars(outer).get(value.__qualname__) is value:
            return ".".join(parts[:i])
    return value.__module__


def _is_default(f: Field[object], value: object) -> bool:
    default = f.default if f.default_factory is MISSING else f.default_factory()
    if default is MISSING:
        return False
    return value is default or (type(value) is type(default) and bool(value == default))
