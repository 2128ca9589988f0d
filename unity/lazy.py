"""Packages whose names are imported when they are first used: what is not needed costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def exports(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """The ``__getattr__`` of a package, which imports a name from its home.

    Args:
        package: The package's ``__name__``.
        homes: In which module of the package each name is defined: ``"parse": ".parser.text"``.

    >>> find = exports("unity", {"imm": ".ir.prim_expr"})
    >>> find("imm")(3)
    Imm(value=3, dtype=DType(name='int64', lanes=1))
    """

    def find(name: str) -> object:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(home, package), name)

    return find
