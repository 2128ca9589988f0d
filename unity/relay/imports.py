"""Imports of scripts by the names that are there: ``unity.relay.autotvm.tuner``.

TVM has a module for each of its names, and scripts import from them. Here most names are functions
and namespaces of few modules: what follows ``unity.relay`` is looked up attribute by attribute,
where Python finds no file.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any

ROOT = __package__ or "unity.relay"


class Names(ModuleType):
    """A namespace as a module.

    Args:
        name: What it is imported as.
        found: The namespace.
    """

    def __init__(self, name: str, found: object) -> None:
        super().__init__(name)
        self.__path__ = list[str]()  # a package, as there may be further names in it
        self._found = found

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":  # what `import *` takes
            return [n for n in dir(self._found) if not n.startswith("_")]
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._found, name)

    def __dir__(self) -> list[str]:
        return dir(self._found)


class Finder(MetaPathFinder, Loader):
    """Finds namespaces below ``unity.relay``; asked where there is no such file."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """How to import a namespace; None if there is none of this name."""
        if not fullname.startswith(f"{ROOT}.") or _namespace(fullname) is None:
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module of a namespace."""
        return Names(spec.name, _namespace(spec.name))

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: its names are there."""


def _namespace(fullname: str) -> object:
    """What a dotted name stands for; None for nothing, a function or a class."""
    found: object = sys.modules[ROOT]
    for part in fullname.removeprefix(f"{ROOT}.").split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            return None
    return None if isinstance(found, type | FunctionType) else found


FINDER = Finder()


def install() -> None:
    """Ask `FINDER` behind all others; once, however often."""
    if FINDER not in sys.meta_path:
        sys.meta_path.append(FINDER)
