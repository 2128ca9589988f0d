"""Random modules of graph functions, kernels called from them, and control flow.

Every module is well typed and runs: `arguments_for` makes inputs for its ``main``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

import numpy as np

from unity.ir.attrs import Attrs
from unity.ir.convert import to_dim
from unity.ir.dims import Dim, dim, evaluate, product
from unity.ir.dtype import BOOL, FLOAT32, INT64, Array, DType
from unity.ir.graph import (
    Body,
    Call,
    CallTir,
    Constant,
    Expr,
    Function,
    FunctionRef,
    If,
    PrimValue,
    Scan,
    ShapeValue,
    Tuple,
    TupleGet,
    Var,
    While,
)
from unity.ir.lattice import function_type
from unity.ir.module import IRModule
from unity.ir.prim_expr import SizeVar
from unity.ir.stmt import Buffer, PrimFunc
from unity.ir.types import ObjectType, TensorType, Type
from unity.op.builder import GraphBuilder
from unity.op.call import call_op

from .prim_func import Options, prim_func, random_array

N, M = dim("n"), dim("m", min=1)
SIZES: Mapping[str, int] = {"n": 3, "m": 2}
"""What the symbols of random modules stand for when they are run."""
_DTYPES: tuple[DType, ...] = (FLOAT32, FLOAT32, FLOAT32, INT64, BOOL)
_UNARY = ("nn.relu", "tanh", "sigmoid", "negative", "abs", "nn.silu", "floor")
_BINARY = ("add", "subtract", "multiply", "maximum", "minimum")
_COMPARE = ("less", "greater_equal", "equal")
_REDUCE = ("sum", "max", "min", "mean")


@dataclass
class State:
    """A function while it grows: its builder, the values at hand, the module's functions."""

    rng: Random
    builder: GraphBuilder
    kernels: Mapping[str, PrimFunc]
    helpers: Mapping[str, Function]
    values: list[Var] = field(default_factory=list[Var])
    depth: int = 0

    def tensors(self, dtype: DType | None = None) -> list[Var]:
        """The tensors of known shape, of one dtype if given."""
        return [
            v
            for v in self.values
            if isinstance(v.type, TensorType)
            and isinstance(v.type.shape, tuple)
            and dtype in (None, v.type.dtype)
        ]

    def child(self) -> State:
        """A nested body, which sees the values so far."""
        inner = self.builder.child()
        return State(self.rng, inner, self.kernels, self.helpers, [*self.values], self.depth + 1)


def module(rng: Random, size: int = 12, control_flow: bool = True) -> IRModule:
    """A random module with a function ``main``.

    Args:
        rng: The choices.
        size: How many bindings there are, about.
        control_flow: Whether if, while, scan, closures and calls of functions may occur.
    """
    options = Options(
        dtypes=(FLOAT32, INT64), symbols=(SizeVar("n"),), intrinsics=False, depth=2, stages=2
    )
    kernels = {f"kernel_{i}": prim_func(rng, options=options) for i in range(rng.randint(0, 2))}
    helpers: dict[str, Function] = {}
    if control_flow and rng.random() < 0.5:
        helpers["helper"] = _function(rng, kernels, {}, 3, False)
    main = _function(rng, kernels, helpers, size, control_flow)
    attrs = Attrs(made_by="tests") if rng.random() < 0.1 else Attrs()
    return IRModule({**kernels, **helpers, "main": main}, attrs)


def arguments_for(m: IRModule, rng: np.random.Generator, name: str = "main") -> list[Array]:
    """Arrays for the parameters of a random function."""
    function = m.graph_functions()[name]
    arrays: list[Array] = []
    for param in function.params:
        kind = param.type
        assert isinstance(kind, TensorType)
        assert isinstance(kind.shape, tuple)
        assert kind.dtype is not None
        sizes = {N: SIZES["n"], M: SIZES["m"]}
        shape = tuple(evaluate(d, sizes) for d in kind.shape)
        arrays.append(random_array(rng, shape, kind.dtype))
    return arrays


def _function(
    rng: Random,
    kernels: Mapping[str, PrimFunc],
    helpers: Mapping[str, Function],
    size: int,
    control_flow: bool,
) -> Function:
    signatures: dict[str, Type] = {name: ObjectType() for name in kernels}
    signatures.update({name: function_type(f) for name, f in helpers.items()})
    builder = GraphBuilder(signatures, dataflow=rng.random() < 0.7)
    builder.reserve_symbols("n", "m")
    state = State(rng, builder, kernels, helpers)
    state.values.append(builder.param("x", TensorType((N, M), FLOAT32)))
    for i in range(rng.randint(0, 2)):
        shape = tuple(rng.choice((1, 2, 3, N, N, M)) for _ in range(rng.randint(0, 3)))
        state.values.append(builder.param(f"x{i}", TensorType(shape, rng.choice(_DTYPES))))
    _grow(state, size, control_flow)
    result: Expr = state.values[-1]
    if rng.random() < 0.25:
        result = Tuple(tuple(rng.choice(state.values) for _ in range(rng.randint(0, 2))))
    return builder.finish(result)


def _grow(state: State, size: int, control_flow: bool) -> None:
    """Add bindings; a draw that fits nothing at hand adds none."""
    rules: list[Rule] = [*_PLAIN]
    if control_flow and state.depth < 2:
        rules += _CONTROL
    for _ in range(size):
        made = state.rng.choice(rules)(state)
        state.values += [] if made is None else [made]


Rule: TypeAlias = Callable[[State], Var | None]


def _pick(state: State, dtype: DType | None = None, ranks: range = range(9)) -> Var | None:
    found = [v for v in state.tensors(dtype) if len(_shape(v)) in ranks]
    return state.rng.choice(found) if found else None


def _shape(v: Var) -> tuple[Dim, ...]:
    assert isinstance(v.type, TensorType)
    assert isinstance(v.type.shape, tuple)
    return v.type.shape


def _dtype(v: Var) -> DType:
    assert isinstance(v.type, TensorType)
    assert v.type.dtype is not None
    return v.type.dtype


def _constant(state: State, shape: tuple[int, ...], dtype: DType) -> Constant:
    numbers = np.random.default_rng(state.rng.randrange(2**32))
    name = "weight" if state.rng.random() < 0.5 else None
    return Constant(random_array(numbers, shape, dtype), name)


def _unary(state: State) -> Var | None:
    x = _pick(state, FLOAT32)
    return None if x is None else state.builder.op(state.rng.choice(_UNARY), x)


def _binary(state: State) -> Var | None:
    x = _pick(state, state.rng.choice((FLOAT32, FLOAT32, INT64)))
    if x is None:
        return None
    same = [v for v in state.tensors(_dtype(x)) if _shape(v) == _shape(x)]
    known = [d for d in _shape(x)[-2:] if isinstance(d, int)]
    others: list[object] = [state.rng.choice(same), 2]
    if len(known) == len(_shape(x)[-2:]):
        others.append(_constant(state, tuple(known), _dtype(x)))
    y = state.rng.choice(others)
    operands: list[object] = [x, y]
    if state.rng.random() < 0.5:
        operands.reverse()
    return state.builder.op(state.rng.choice(_BINARY), *operands)


def _where(state: State) -> Var | None:
    x = _pick(state, FLOAT32)
    if x is None:
        return None
    test = call_op(state.rng.choice(_COMPARE), x, 0.5)
    return state.builder.emit(call_op("where", test, x, state.rng.choice((0.0, -1.0))))


def _reduce(state: State) -> Var | None:
    x = _pick(state, FLOAT32, range(1, 9))
    if x is None:
        return None
    axis = state.rng.choice([None, state.rng.randrange(len(_shape(x)))])
    if state.rng.choice(_REDUCE) and any(d == N for d in _shape(x)) and axis is None:
        return state.builder.op("sum", x)
    keep = state.rng.random() < 0.5
    return state.builder.op(state.rng.choice(_REDUCE), x, axis=axis, keepdims=keep)


def _cast(state: State) -> Var | None:
    x = _pick(state)
    return None if x is None else state.builder.op("astype", x, dtype=state.rng.choice(_DTYPES))


def _permute(state: State) -> Var | None:
    x = _pick(state)
    if x is None:
        return None
    axes = list(range(len(_shape(x))))
    state.rng.shuffle(axes)
    return state.builder.op("permute_dims", x, axes=tuple(axes))


def _reshape(state: State) -> Var | None:
    x = _pick(state)
    if x is None:
        return None
    shape = _shape(x)
    if state.rng.random() < 0.5:
        return state.builder.op("reshape", x, (product(shape),))
    return state.builder.op("expand_dims", x, axis=(state.rng.randint(0, len(shape)),))


def _matmul(state: State) -> Var | None:
    x = _pick(state, FLOAT32, range(2, 4))
    if x is None or not isinstance(_shape(x)[-1], int):
        return None
    inner = _shape(x)[-1]
    assert isinstance(inner, int)
    weight = _constant(state, (inner, state.rng.randint(1, 9)), FLOAT32)
    return state.builder.op("matmul", x, weight)


def _softmax(state: State) -> Var | None:
    x = _pick(state, FLOAT32, range(1, 9))
    return None if x is None else state.builder.op("nn.softmax", x, axis=-1)


def _shape_of(state: State) -> Var | None:
    x = _pick(state, FLOAT32)
    if x is None:
        return None
    if state.rng.random() < 0.5:
        return state.builder.op("zeros", _shape(x), dtype=FLOAT32)
    return state.builder.op("shape_of", x)


def _data_dependent(state: State) -> Var | None:
    x = _pick(state, None, range(1, 3))
    if x is None:
        return None
    found = state.builder.op("nonzero", x)
    count = state.builder.fresh("k")
    return state.builder.match_cast(found, TensorType((len(_shape(x)), count), INT64))


def _tuple(state: State) -> Var | None:
    fields = [state.rng.choice(state.values) for _ in range(state.rng.randint(1, 3))]
    pair = state.builder.emit(Tuple(tuple(fields)))
    return state.builder.emit(TupleGet(pair, state.rng.randrange(len(fields))))


def _alias(state: State) -> Var | None:
    values: list[Expr] = [
        state.rng.choice(state.values),
        _constant(state, (state.rng.choice((1, 3, 40)),), FLOAT32),
        ShapeValue((N + 1, 2)),
        PrimValue(N * 2, INT64),
        PrimValue(1.5, FLOAT32),
    ]
    return state.builder.emit(state.rng.choice(values), "alias")


def _kernel(state: State) -> Var | None:
    """A call of a kernel whose inputs are at hand or can be made."""
    if not state.kernels:
        return None
    name = state.rng.choice(list(state.kernels))
    func = state.kernels[name]
    args: list[Expr] = []
    for buffer in func.buffers[:-1]:
        shape = _dims(buffer)
        fitting = [v for v in state.tensors(buffer.dtype) if _shape(v) == shape]
        made = call_op("ones", shape, dtype=buffer.dtype)
        args.append(state.rng.choice(fitting) if fitting else state.builder.emit(made))
    out = func.buffers[-1]
    kind = TensorType(_dims(out), out.dtype)
    if not any(N in _dims(b) for b in func.buffers[:-1]) and N in _dims(out):
        return None
    return state.builder.emit(CallTir(FunctionRef(name), tuple(args), (kind,)))


def _dims(buffer: Buffer) -> tuple[Dim, ...]:
    found = tuple(to_dim(n) for n in buffer.shape)
    return tuple(d for d in found if d is not None)


_PLAIN: tuple[Rule, ...] = (
    *(_unary, _binary, _binary, _where, _reduce, _cast, _permute, _reshape, _matmul),
    *(_softmax, _shape_of, _data_dependent, _tuple, _alias, _kernel, _kernel),
)


def _branch(state: State, kind: Type) -> Body:
    """A body that gives a value of a type: something computed, else something at hand."""
    inner = state.child()
    _grow(inner, state.rng.randint(0, 3), True)
    fitting = [v for v in inner.values if v.type == kind]
    fitting = [v for v in fitting if v not in state.values] or fitting
    return inner.builder.body(state.rng.choice(fitting))


def _if(state: State) -> Var | None:
    like = _pick(state)
    x = _pick(state, FLOAT32)
    if like is None or x is None:
        return None
    total = state.builder.op("sum", x)
    condition = state.builder.op("greater", total, 0.5)
    branches = (_branch(state, like.type), _branch(state, like.type))
    return state.builder.emit(If(condition, *branches), "chosen")


def _while(state: State) -> Var | None:
    """A few turns: a counter and one value that keeps its type."""
    x = _pick(state, FLOAT32)
    if x is None:
        return None
    counter = state.builder.new_var("i", TensorType((), INT64))
    value = state.builder.new_var("value", x.type)
    test, step = state.child(), state.child()
    limit = Constant(np.asarray(state.rng.randint(0, 3), np.int64))
    condition = test.builder.body(test.builder.op("less", counter, limit))
    step.values = [*state.values, value]
    _grow(step, 2, False)
    following = step.builder.op("add", counter, 1)
    kept = step.rng.choice([v for v in step.values if v.type == x.type])
    body = step.builder.body(Tuple((following, kept)))
    start = Constant(np.asarray(0, np.int64))
    loop = state.builder.emit(While((counter, value), (start, x), condition, body), "loop")
    return state.builder.emit(TupleGet(loop, 1))


def _scan(state: State) -> Var | None:
    """A running sum over the leading axis."""
    x = _pick(state, FLOAT32, range(1, 4))
    if x is None:
        return None
    slice_type = TensorType(_shape(x)[1:], FLOAT32)
    total = state.builder.new_var("total", slice_type)
    element = state.builder.new_var("element", slice_type)
    step = state.child()
    added = step.builder.op("add", total, element)
    body = step.builder.body(Tuple((added, step.builder.op("negative", added))))
    zero = state.builder.op("zeros", _shape(x)[1:], dtype=FLOAT32)
    made = state.builder.emit(Scan((total,), (zero,), (element,), (x,), body), "scanned")
    return state.builder.emit(TupleGet(made, state.rng.randint(0, 1)))


def _closure(state: State) -> Var | None:
    """A nested function that sees the values around it, and a call of it."""
    x = _pick(state, FLOAT32)
    if x is None:
        return None
    inner = state.child()
    param = inner.builder.param("arg", x.type)
    inner.values.append(param)
    _grow(inner, 2, False)
    function = inner.builder.finish(inner.values[-1])
    closure = state.builder.emit(function, "closure")
    return state.builder.emit(Call(closure, (x,)))


def _call(state: State) -> Var | None:
    """A call of another function of the module, with arguments made to fit."""
    if not state.helpers:
        return None
    name = state.rng.choice(list(state.helpers))
    args: list[Expr] = []
    for param in state.helpers[name].params:
        fitting = [v for v in state.tensors() if v.type == param.type]
        made = call_op("ones", _shape(param), dtype=_dtype(param))
        args.append(state.rng.choice(fitting) if fitting else state.builder.emit(made))
    return state.builder.emit(Call(FunctionRef(name), tuple(args)))


_CONTROL: tuple[Rule, ...] = (_if, _if, _while, _scan, _closure, _call)
