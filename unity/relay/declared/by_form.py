"""Models whose inputs are of declared types: compiled for each form that they are called with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from unity.errors import UnityError
from unity.frontend.relay import syntax
from unity.frontend.relay.examples import example_of, holds_declared
from unity.op.builder import GraphBuilder

if TYPE_CHECKING:
    from ..building import Library


class ByForm:
    """A model that is compiled when it is called: once for each form of its lists and trees.

    Args:
        module: The model.
        params: The names of parameters that have values.
        build: Compiles it for examples of its inputs, by name.
    """

    def __init__(
        self,
        module: syntax.Module,
        params: Sequence[str],
        build: Callable[[Mapping[str, object]], Library],
    ) -> None:
        self._module, self._build = module, build
        self.params = tuple(p for p in module.functions["main"].params if p.name not in params)
        self._built: dict[tuple[tuple[object, ...], ...], Library] = {}

    def named(self, args: Sequence[object], named: Mapping[str, object]) -> dict[str, object]:
        """The inputs by name.

        Raises:
            UnityError: There are too many, or too few.
        """
        names = [p.name for p in self.params]
        found = {**dict(zip(names, args, strict=False)), **named}
        if len(args) > len(names) or set(found) != set(names):
            raise UnityError(
                f"main takes {', '.join(names)}, got {', '.join(found) or 'none'}"
                + f" and {len(args) - len(names)} more" * (len(args) > len(names))
            )
        return found

    def library(self, values: Mapping[str, object]) -> Library:
        """The compiled model for inputs of this form.

        Raises:
            UnityError: An input is of another type.
        """
        examples = {p.name: values[p.name] for p in self.params if holds_declared(p.type)}
        fresh = GraphBuilder().fresh
        key = tuple(
            example_of(p, values[p.name], self._module, fresh).key
            for p in self.params
            if p.name in examples
        )
        if key not in self._built:
            self._built[key] = self._build(examples)
        return self._built[key]


def takes_declared(module: syntax.Module, params: Sequence[str]) -> bool:
    """Whether the entry of a module has an input of a declared type."""
    main = module.functions.get("main")
    own = () if main is None else main.params
    return any(holds_declared(p.type) for p in own if p.name not in params)
