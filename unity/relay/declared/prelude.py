"""`Prelude`: lists, options and trees, and functions on them, put into a module of a script's."""

from __future__ import annotations

from typing import Any

from unity.frontend.relay.text.module import prelude

from ..expr import GlobalVar, wrap
from ..module import IRModule
from .adt import Constructor, GlobalTypeVar

_TYPES = {"l": "List", "optional": "Option", "tree": "Tree"}
"""What types were called as attributes before TVM 0.8."""


class Prelude:
    """The prelude in a module: ``p.foldl``, ``p.cons``, ``p.mod.get_type("List")``.

    Args:
        mod: The module; a new one if not given.
    """

    def __init__(self, mod: IRModule | None = None) -> None:
        self.mod = IRModule() if mod is None else mod
        source = prelude()
        for name, declaration in source.types.items():
            self.mod.add_type(name, declaration)
        for name, function in source.functions.items():
            if name not in set(self.mod):
                self.mod[name] = wrap(function)

    def get_type(self, name: str) -> list[GlobalTypeVar | Constructor]:
        """A type's name and its constructors."""
        return self.mod.get_type(name)

    def get_ctor(self, ty_name: str, constructor: str) -> Constructor:
        """A constructor, by its name in any case: ``p.get_ctor("List", "cons")``."""
        wanted = constructor.lower()
        for found in self.mod.get_type(ty_name)[1:]:
            assert isinstance(found, Constructor)
            if found.name_hint.lower() == wanted:
                return found
        raise AttributeError(f"{ty_name} has no constructor {constructor!r}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "mod":
            raise AttributeError(name)
        if name in set(self.mod):
            return GlobalVar(name)
        if name in _TYPES:
            return GlobalTypeVar(_TYPES[name])
        for ty_name in self.mod.type_definitions:
            try:
                return self.get_ctor(ty_name, name)
            except AttributeError:
                continue
        raise AttributeError(f"the prelude has no {name!r}")
