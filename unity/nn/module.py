"""Modules: parameters and other modules under names, and what they compute of inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import cast

import numpy as np

from unity.arguments import public
from unity.errors import UnityError
from unity.ir.dtype import Array
from unity.ir.graph import Constant, Expr
from unity.ir.module import IRModule
from unity.op.builder import GraphBuilder, identifier
from unity.script.graph_names import as_type

from .parameter import Parameter
from .value import CURRENT, Exporting, Value, expr_of

__all__ = ["Module", "Parameter", "Sequential"]


def _no_forward(self: Module, *args: object, **named: object) -> object:
    raise UnityError(f"{type(self).__name__} has no forward", hint="define it: forward(self, x)")


class Module:
    """A part of a model: a subclass sets parameters and modules as attributes, and has `forward`.

    Lists, tuples and dicts of modules count, under their indices and keys.
    """

    forward: Callable[..., object] = _no_forward
    """What it computes: a value, or a tuple of values."""

    def __call__(self, *args: object, **named: object) -> Value:
        """`forward`, in that of another module; a tuple is typed as a value, to be unpacked."""
        return cast("Value", self.forward(*args, **named))

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Parameter]]:
        """The parameters by dotted names, in the order in which they were set; each once."""
        seen: set[int] = set()
        for name, found in _walk(self, prefix):
            if id(found) not in seen:
                seen.add(id(found))
                yield name, found

    def state(self) -> dict[str, Array]:
        """The numbers of the parameters that have them."""
        return {n: p.data for n, p in self.named_parameters() if p.data is not None}

    @public
    def load(self, state: Mapping[str, Array], strict: bool = True) -> None:
        """Give parameters their numbers.

        Args:
            state: By name, as a ``state_dict`` of torch has them (as numpy arrays).
            strict: Whether each parameter must be there, and nothing else.

        Raises:
            UnityError: Names are missing or too many, or an array doesn't fit.
        """
        mine = dict(self.named_parameters())
        missing, more = [n for n in mine if n not in state], [n for n in state if n not in mine]
        if strict and (missing or more):
            said = [f"missing: {', '.join(missing)}"] if missing else []
            said += [f"not in the model: {', '.join(more)}"] if more else []
            raise UnityError("; ".join(said), hint="strict=False loads what there is")
        for name, array in state.items():
            if name in mine:
                try:
                    mine[name].set(array)
                except UnityError as error:
                    raise UnityError(f"{name}: {error.message}", hint=error.hint) from None

    @public
    def initialize(self, seed: int = 0, scale: float = 0.02) -> None:
        """Give parameters that have no numbers normal ones: to try a model before it is trained.

        Args:
            seed: Of the generator.
            scale: The standard deviation.
        """
        rng = np.random.default_rng(seed)
        for _, parameter in self.named_parameters():
            if parameter.data is None:
                made = rng.standard_normal(parameter.shape) * scale
                parameter.set(made.astype(parameter.dtype.numpy))

    @public
    def export(
        self,
        inputs: Mapping[str, object],
        *,
        bind: bool = True,
        method: str = "forward",
        name: str = "main",
    ) -> IRModule:
        """The program of a method.

        Args:
            inputs: The types of its inputs by name, in order: ``{"x": f32[Tensor, n, 8]}``.
            bind: Whether parameters are constants; else they are inputs behind the others, named
                by their dotted names with ``_`` for ``.``, see `unity.nn.bind`.
            method: Which method is run.
            name: What its function is called.

        Raises:
            UnityError: A parameter that is to be bound has no numbers, an operator refuses its
                operands, or the method returns something else than values.
        """
        builder = GraphBuilder()
        given = {n: Value(builder.param(n, as_type(t))) for n, t in inputs.items()}
        names = {id(p): n for n, p in self.named_parameters()}
        made: dict[int, Expr] = {}
        if not bind:
            for n, p in self.named_parameters():
                made[id(p)] = builder.param(identifier(n), p.type)

        def of(parameter: Parameter) -> Expr:
            if id(parameter) not in made:
                named = names.get(id(parameter), "a parameter of no module")
                if parameter.data is None:
                    raise UnityError(
                        f"{named} has no numbers",
                        hint="load(...), initialize(), or export(..., bind=False)",
                    )
                made[id(parameter)] = Constant(parameter.data, named)
            return made[id(parameter)]

        token = CURRENT.set(Exporting(builder, of))
        try:
            result = expr_of(getattr(self, method)(**given))
        finally:
            CURRENT.reset(token)
        return IRModule({name: builder.finish(result)})


class Sequential(Module):
    """Modules one behind the other.

    Args:
        *parts: Them; functions of one value are taken as well.
    """

    def __init__(self, *parts: Callable[[Value], Value]) -> None:
        self.parts = list(parts)

    def forward(self, x: Value) -> Value:
        """What the last one gives."""
        for part in self.parts:
            x = part(x)
        return x


def _walk(of: object, prefix: str) -> Iterator[tuple[str, Parameter]]:
    """The parameters below something, with their dotted names."""
    match of:
        case Parameter():
            yield prefix, of
        case Sequential():
            yield from _walk(of.parts, prefix)
        case Module():
            yield from _walk(vars(of), prefix)
        case Mapping():
            for key, value in of.items():
                yield from _walk(value, f"{prefix}.{key}" if prefix else str(key))
        case list() | tuple():
            for k, value in enumerate(of):
                yield from _walk(value, f"{prefix}.{k}" if prefix else str(k))
        case _:
            return
