"""Functions that TVM's sources call and nobody has, and what stands in for them on both sides.

A source of TVM's tests may call ``"my_optimized_add_impl"``, or take a function as input. A
stand-in gives for its arguments what depends on each of them and on their order: their weighted
mean, in the shape and dtype that the program expects of that call. Of a function with effects, what
it was given is part of the results. Of TVM's own runtime, `RUNTIME` says what its functions do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

import unity
from unity.ir.dtype import FLOAT32
from unity.ir.graph import (
    Call,
    CallLibrary,
    CallPython,
    Expr,
    Function,
    FunctionRef,
    MatchCast,
    PrimValue,
    Var,
)
from unity.ir.module import ExternFunc, IRModule
from unity.ir.types import FuncType, ObjectType, PrimType, ShapeType, TensorType, TupleType, Type
from unity.ir.visiting.visit_graph import substitute_vars, walk_bindings
from unity.transform.graph.rewriter import BodyRewriter

Array: TypeAlias = npt.NDArray[np.generic]
Given: TypeAlias = "Array | int | float | bool | StandIn | tuple[Given, ...]"
"""What a function is called with and what it gives."""
RUNTIME: Mapping[str, Callable[..., object]] = {
    "vm.builtin.copy": lambda value: value,
    "relax.run.shape_to_tensor": lambda value: np.array(value, np.int64),
    "vm.builtin.tensor_to_shape": lambda value: tuple(int(d) for d in value),
}
"""What functions of TVM's runtime do."""
_TVMS = ("vm.", "tvm.", "runtime.", "relax.")
"""How names of TVM's own begin: it has these functions, if anybody."""
RANK, SIZE = 2, 3
"""The axes, and their sizes, of what nothing tells the shape of."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What a call's value is: its type, and the numbers it is called with, by which it is known."""

    kind: Type
    numbers: tuple[object, ...] = ()


@dataclass(slots=True, eq=False)
class StandIn:
    """A function that stands in for one that nobody has.

    Attributes:
        expected: What its calls give.
        effects: Whether it is called for its effects.
        outputs: How many of its last arguments are written to; None of one that returns its value.
        given: The arrays that it was called with, if it has effects.
    """

    expected: list[Expected] = field(default_factory=list)
    effects: bool = False
    outputs: int | None = None
    given: list[Array] = field(default_factory=list)

    def __call__(self, *args: object) -> Given | None:
        """The value of a call; None where nothing is asked for."""
        arrays = [a for value in args for a in leaves(value)]
        if self.effects:
            self.given += [a.copy() for a in arrays]
        numbers = tuple(a for a in args if isinstance(a, int))
        known = [e for e in self.expected if e.numbers == numbers] or self.expected
        return _value(known[0].kind, arrays) if known else None

    def write(self, *args: object) -> None:
        """Write the value of a call to its last arguments."""
        count = len(args) - (self.outputs or 0)
        arrays = [a for value in args[:count] for a in leaves(value)]
        for target in args[count:]:
            assert isinstance(target, np.ndarray)
            target[...] = _mean(arrays, target.shape, target.dtype)


def leaves(value: object) -> list[Array]:
    """The arrays and numbers of an argument, in order."""
    if isinstance(value, tuple | list):
        return [a for item in value for a in leaves(item)]
    return [np.asarray(value)] if isinstance(value, np.ndarray | int | float) else []


def _value(kind: Type, args: Sequence[Array]) -> Given | None:
    match kind:
        case TensorType(shape, dtype):
            return _mean(args, _shape(shape, args), (dtype or FLOAT32).numpy)
        case TupleType(fields):
            parts = [_value(f, [*args, np.asarray(k)]) for k, f in enumerate(fields)]
            return tuple(part for part in parts if part is not None)
        case ShapeType(shape):
            return _shape(shape, args)
        case PrimType(dtype):
            return 2 if dtype.is_int else 2.0
        case ObjectType() | FuncType():
            return None


def _shape(shape: object, args: Sequence[Array]) -> tuple[int, ...]:
    if isinstance(shape, tuple) and all(isinstance(d, int) for d in shape):
        return shape
    rank = shape if isinstance(shape, int) else len(shape) if isinstance(shape, tuple) else RANK
    return next((a.shape for a in args if a.ndim == rank), (SIZE,) * rank)


def _mean(args: Sequence[Array], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """The arguments' weighted mean, each repeated or cut to the shape."""
    weights = range(1, len(args) + 1)
    whole = sum(
        (w * np.resize(a.astype(np.float64), shape) for w, a in zip(weights, args, strict=True)),
        np.zeros(shape),
    )
    return np.asarray(whole / max(sum(weights), 1)).astype(dtype)


def stand_ins(module: IRModule) -> dict[str, StandIn]:
    """A stand-in for each function that a module calls by name, by that name."""
    found: dict[str, StandIn] = {}
    externs = {
        name: (it.symbol, it.type)
        for name, it in module.items()
        if isinstance(it, ExternFunc) and not it.symbol.startswith(_TVMS)
    }
    for function in module.graph_functions().values():
        _note(function, externs, found)
    return found


def parameters(function: Function) -> dict[Var, StandIn]:
    """A stand-in for each parameter that is a function."""
    found: dict[str, StandIn] = {}
    given = {p: p.type for p in function.params if isinstance(p.type, FuncType)}
    _note(function, {p.name: (p.name, kind) for p, kind in given.items()}, found)
    return {p: found.get(p.name, StandIn()) for p in given}


def _note(
    function: Function, named: Mapping[str, tuple[str, FuncType]], found: dict[str, StandIn]
) -> None:
    made: dict[Expr, tuple[str, int]] = {}
    for binding in walk_bindings(function):
        match binding:
            case MatchCast(_, value, kind) if value in made:
                name, at = made[value]
                found[name].expected[at] = replace(found[name].expected[at], kind=kind)
                continue
        match binding.value:
            case Call(FunctionRef(said) | Var(said), args) if said in named:
                name, kind = named[said]
                it = found.setdefault(name, StandIn(effects=not kind.pure))
                numbers = tuple(a.value for a in args if isinstance(a, PrimValue))
                made[binding.var] = name, len(it.expected)
                it.expected.append(Expected(kind.result, numbers))
            case CallLibrary(symbol, _, out):
                found.setdefault(symbol, StandIn(outputs=len(out)))
            case _:
                pass


def with_stand_ins(
    module: IRModule, name: str, named: Mapping[str, StandIn], bound: Mapping[Var, StandIn]
) -> IRModule:
    """The module that calls stand-ins: registered ones, and those of function `name`'s inputs.

    It takes no functions any more: where it called one that it was given, it calls one by name.
    """
    functions: dict[str, Callable[..., object]] = {**named, **RUNTIME}
    for symbol, function in functions.items():
        unity.register_function(symbol, function, override=True)
    made = dict(module)
    if bound:
        entry = made[name]
        assert isinstance(entry, Function)
        refs: dict[Var, Expr] = {}
        for param, it in bound.items():
            assert isinstance(param.type, FuncType)
            symbol = f"given.{param.name}"
            unity.register_function(symbol, it, override=True)
            made[f"given_{param.name}"] = ExternFunc(symbol, param.type)
            refs[param] = FunctionRef(f"given_{param.name}")
        made[name] = replace(
            entry,
            params=tuple(p for p in entry.params if p not in bound),
            body=substitute_vars(entry.body, refs),
        )
    whole = IRModule(made, module.attrs)
    rewriter = _Libraries(whole, named)
    for key, each in whole.graph_functions().items():
        made[key] = rewriter.function(each)
    return IRModule(made, module.attrs)


class _Libraries(BodyRewriter):
    """Puts calls of stand-ins where a library's functions were called."""

    def __init__(self, module: IRModule, named: Mapping[str, StandIn]) -> None:
        super().__init__(module)
        self.named = named

    def rewrite(self, var: Var, value: Expr) -> Expr:
        """A call of Python for one of a library."""
        if isinstance(value, CallLibrary) and value.symbol in self.named:
            return CallPython(self.named[value.symbol].write, value.args, value.out, value.span)
        return value
