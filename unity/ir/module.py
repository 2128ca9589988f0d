"""The module: graph functions, prim funcs and externs by name, immutable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from unity.arguments import public_class
from unity.errors import UnityError
from unity.ir.attrs import NO_ATTRS, Attrs
from unity.ir.display import Displayed, show_as
from unity.ir.graph import Function
from unity.ir.stmt import PrimFunc
from unity.ir.types import FuncType


class MissingDefinitionError(UnityError, KeyError):
    """A module was asked for a name that it does not have; ``module.get(name)`` gives None."""


@dataclass(frozen=True, slots=True)
class ExternFunc:
    """A function defined elsewhere: a C symbol and its type."""

    symbol: str
    type: FuncType


Definition: TypeAlias = Function | PrimFunc | ExternFunc


@public_class
@dataclass(frozen=True, slots=True, eq=False)
class IRModule(Mapping[str, Definition], Displayed):
    """A mapping name -> definition; compare modules with `structural_equal`."""

    functions: Mapping[str, Definition]
    attrs: Attrs = NO_ATTRS

    def __post_init__(self) -> None:
        """Freeze a private copy of the mapping."""
        object.__setattr__(self, "functions", MappingProxyType(dict(self.functions)))
        for name, definition in self.functions.items():
            show_as(definition, name)

    def __getitem__(self, name: str) -> Definition:
        """The definition of a name.

        Raises:
            MissingDefinitionError: There is none.
        """
        try:
            found = self.functions[name]
        except KeyError:
            known = ", ".join(self.functions) or "(nothing)"
            raise MissingDefinitionError(f"the module has no {name!r}; it has {known}") from None
        show_as(found, name)
        return found

    def __iter__(self) -> Iterator[str]:
        """The names, in order of definition."""
        return iter(self.functions)

    def __len__(self) -> int:
        """How many definitions there are."""
        return len(self.functions)

    def __contains__(self, name: object) -> bool:
        """Whether the name is defined."""
        return name in self.functions

    def with_(self, functions: Mapping[str, Definition]) -> IRModule:
        """The module with definitions added or replaced; itself if nothing changes."""
        if all(self.functions.get(k) is v for k, v in functions.items()):
            return self
        return IRModule({**self.functions, **functions}, self.attrs)

    def without(self, *names: str) -> IRModule:
        """The module lacking some definitions."""
        return IRModule({k: v for k, v in self.functions.items() if k not in names}, self.attrs)

    def graph_functions(self) -> dict[str, Function]:
        """The graph functions that we compile, by name."""
        every = self.functions.items()
        return {k: v for k, v in every if isinstance(v, Function) and "engine" not in v.attrs}

    def engine_functions(self) -> dict[str, Function]:
        """The graph functions that external engines compile, by name: no pass changes them."""
        every = self.functions.items()
        return {k: v for k, v in every if isinstance(v, Function) and "engine" in v.attrs}

    def prim_funcs(self) -> dict[str, PrimFunc]:
        """The prim funcs by name."""
        return {k: v for k, v in self.functions.items() if isinstance(v, PrimFunc)}
