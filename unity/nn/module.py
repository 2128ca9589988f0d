"""Modules: parameters and other modules under names, and what they compute of inputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import cast

import numpy as np

from unity.arguments import Named, Signature, public, shown
from unity.errors import UnityError
from unity.ir.dtype import Array
from unity.ir.graph import Constant, Expr
from unity.ir.module import IRModule
from unity.ir.types import Type
from unity.op.builder import GraphBuilder, identifier, required_identifier
from unity.script.graph_names import as_type
from unity.transform.graph.signature.parameters import recorded

from .parameter import Parameter, numbers_for
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
        """`forward`, in that of another module; a tuple is typed as a value, to be unpacked.

        Raises:
            UnityError: It is called with an array, and nothing is exported.
        """
        if CURRENT.get() is None and any(map(_is_array, (*args, *named.values()))):
            raise UnityError(
                f"{type(self).__name__} is called with arrays: a module makes a graph, "
                "there are no numbers outside of an export",
                hint='unity.compile(model.export({"x": f32[Tensor, n, 8]})) takes arrays',
            )
        return cast("Value", self.forward(*args, **named))

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Parameter]]:
        """The parameters by dotted names, in the order in which they were set; each once.

        Raises:
            UnityError: Two have the same name, or a module is a part of itself.
        """
        seen: dict[int, str] = {}
        for name, found in _walk(self, prefix, ()):
            if id(found) not in seen:
                if name in seen.values():
                    raise UnityError(
                        f"two parameters of {type(self).__name__} are called {name!r}",
                        hint="rename an attribute, or a key of a dict",
                    )
                seen[id(found)] = name
                yield name, found

    def state(self) -> dict[str, Array]:
        """The numbers of the parameters that have them."""
        return {n: p.data for n, p in self.named_parameters() if p.data is not None}

    @public
    def load(self, state: Mapping[str, object], strict: bool = True) -> None:
        """Give parameters their numbers.

        Args:
            state: By name, as a ``state_dict`` of torch has them: arrays of numpy, of torch, or
                what has DLPack or ``__array__``. They are copied.
            strict: Whether each parameter must be there, and nothing else.

        Raises:
            UnityError: Names are missing or too many, or an array doesn't fit; then nothing is
                loaded.
        """
        mine = dict(self.named_parameters())
        missing, more = [n for n in mine if n not in state], [n for n in state if n not in mine]
        if strict and (missing or more):
            said = [f"missing: {', '.join(missing)}"] if missing else []
            said += [f"not in the model: {', '.join(more)}"] if more else []
            raise UnityError("; ".join(said), hint="strict=False loads what there is")
        loaded = {n: numbers_for(mine[n].type, a, n) for n, a in state.items() if n in mine}
        for name, array in loaded.items():
            mine[name].data = array

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
                like them as far as identifiers can be. The function's attribute ``parameters``
                holds pairs (input, parameter): `unity.nn.bind` takes the parameters' own names.
            method: Which method is run.
            name: What its function is called.

        Raises:
            UnityError: There is no such method or it takes other inputs, a parameter that is to be
                bound has no numbers, an operator refuses its operands, or the method returns
                something else than values.
        """
        required_identifier("a function", name)
        run = self._method(method)
        _require_inputs(run, f"{type(self).__name__}.{method}", inputs)
        builder = GraphBuilder()
        variables = {n: builder.param(n, _type_of(n, t)) for n, t in inputs.items()}
        names = {id(p): n for n, p in self.named_parameters()}
        made: dict[int, Expr] = {}
        inputs_of: dict[str, str] = {}
        if not bind:
            for n, p in self.named_parameters():
                var = builder.param(identifier(n), p.type)
                made[id(p)], inputs_of[var.name] = var, n

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

        state = Exporting(builder, of)
        token = CURRENT.set(state)
        try:
            result = expr_of(run(**{n: state.value(var) for n, var in variables.items()}))
        finally:
            CURRENT.reset(token)
        return IRModule({name: builder.finish(result, attrs=recorded(inputs_of))})

    def _method(self, name: str) -> Callable[..., object]:
        """A method by name.

        Raises:
            UnityError: There is none.
        """
        found = cast("object", getattr(self, name, None))
        if callable(found):
            return found
        known = [n for n in dir(type(self)) if n == "forward" or n not in dir(Module)]
        methods = [n for n in known if n[0] != "_" and callable(getattr(type(self), n))]
        near = get_close_matches(name, methods, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(methods)}"
        raise UnityError(f"{type(self).__name__} has no method {name!r}", hint=hint)


def _is_array(value: object) -> bool:
    return hasattr(value, "__dlpack__")


def _require_inputs(run: Callable[..., object], name: str, inputs: Mapping[str, object]) -> None:
    """Refuse inputs that a method does not take, or that lack one of its.

    Raises:
        UnityError: They do.
    """
    params = inspect.signature(run).parameters.values()
    if first := [p.name for p in params if p.kind is p.POSITIONAL_ONLY]:
        raise UnityError(
            f"{name} takes {first[0]!r} by position only",
            hint="inputs have names: leave / out",
        )
    own = Signature.of(run, name)
    takes_more = any(p.kind is p.VAR_KEYWORD for p in params)
    known = {p.name for p in own.params}
    own.bind((), [Named(n, None) for n in inputs if n in known or not takes_more])


def _type_of(name: str, given: object) -> Type:
    """The type of an input.

    Raises:
        UnityError: It is none.
    """
    try:
        return as_type(given)
    except UnityError as error:
        raise UnityError(f"input {name!r}: {error.message}", hint=error.hint) from None


class Sequential(Module):
    """Modules one behind the other.

    Args:
        *parts: Them; functions of one value are taken as well.

    Raises:
        UnityError: One is neither.
    """

    def __init__(self, *parts: Callable[[Value], Value]) -> None:
        for k, part in enumerate(parts):
            if not callable(part):
                raise UnityError(
                    f"Sequential, part {k}: expected a module or a function, got {shown(part)}",
                    hint="each part by itself: Sequential(*parts)",
                )
        self.parts = list(parts)

    def forward(self, x: Value) -> Value:
        """What the last one gives."""
        for part in self.parts:
            x = part(x)
        return x


def _walk(of: object, prefix: str, around: tuple[object, ...]) -> Iterator[tuple[str, Parameter]]:
    """The parameters below something that others are around, with their dotted names.

    Raises:
        UnityError: It is among those.
    """
    if any(of is other for other in around):
        raise UnityError(
            f"{prefix!r} is a {type(of).__name__} that it is a part of",
            hint="keep what is around a module out of its attributes: give it to forward",
        )
    inner = (*around, of)
    match of:
        case Parameter():
            yield prefix, of
        case Sequential():
            others = {k: v for k, v in vars(of).items() if k != "parts"}
            yield from _walk(of.parts, prefix, inner)
            yield from _walk(others, prefix, inner)
        case Module():
            yield from _walk(vars(of), prefix, inner)
        case Mapping():
            for key, value in of.items():
                yield from _walk(value, f"{prefix}.{key}" if prefix else str(key), inner)
        case list() | tuple():
            for k, value in enumerate(of):
                yield from _walk(value, f"{prefix}.{k}" if prefix else str(k), inner)
        case _:
            return
