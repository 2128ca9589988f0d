"""Random bindings without control flow: operators, tuples, kernels, data-dependent sizes."""

from __future__ import annotations

from unity.ir.dims import Dim, product
from unity.ir.dtype import FLOAT32, INT64
from unity.ir.graph import CallTir, Expr, FunctionRef, PrimValue, ShapeValue, Tuple, TupleGet, Var
from unity.ir.stmt import Buffer
from unity.ir.symbols.convert import to_dim
from unity.ir.types import TensorType
from unity.op.call import call_op

from .state import DTYPES, N, Rule, State, constant, dtype_of, pick, shape_of

_UNARY = ("nn.relu", "tanh", "sigmoid", "negative", "abs", "nn.silu", "floor")
_BINARY = ("add", "subtract", "multiply", "maximum", "minimum")
_COMPARE = ("less", "greater_equal", "equal")
_REDUCE = ("sum", "max", "min", "mean")


def _unary(state: State) -> Var | None:
    x = pick(state, FLOAT32)
    return None if x is None else state.builder.op(state.rng.choice(_UNARY), x)


def _binary(state: State) -> Var | None:
    x = pick(state, state.rng.choice((FLOAT32, FLOAT32, INT64)))
    if x is None:
        return None
    same = [v for v in state.tensors(dtype_of(x)) if shape_of(v) == shape_of(x)]
    known = [d for d in shape_of(x)[-2:] if isinstance(d, int)]
    others: list[object] = [state.rng.choice(same), 2]
    if len(known) == len(shape_of(x)[-2:]):
        others.append(constant(state, tuple(known), dtype_of(x)))
    y = state.rng.choice(others)
    operands: list[object] = [x, y]
    if state.rng.random() < 0.5:
        operands.reverse()
    return state.builder.op(state.rng.choice(_BINARY), *operands)


def _where(state: State) -> Var | None:
    x = pick(state, FLOAT32)
    if x is None:
        return None
    test = call_op(state.rng.choice(_COMPARE), x, 0.5)
    return state.builder.emit(call_op("where", test, x, state.rng.choice((0.0, -1.0))))


def _reduce(state: State) -> Var | None:
    x = pick(state, FLOAT32, range(1, 9))
    if x is None:
        return None
    axis = state.rng.choice([None, state.rng.randrange(len(shape_of(x)))])
    if state.rng.choice(_REDUCE) and any(d == N for d in shape_of(x)) and axis is None:
        return state.builder.op("sum", x)
    keep = state.rng.random() < 0.5
    return state.builder.op(state.rng.choice(_REDUCE), x, axis=axis, keepdims=keep)


def _cast(state: State) -> Var | None:
    x = pick(state)
    return None if x is None else state.builder.op("astype", x, dtype=state.rng.choice(DTYPES))


def _permute(state: State) -> Var | None:
    x = pick(state)
    if x is None:
        return None
    axes = list(range(len(shape_of(x))))
    state.rng.shuffle(axes)
    return state.builder.op("permute_dims", x, axes=tuple(axes))


def _reshape(state: State) -> Var | None:
    x = pick(state)
    if x is None:
        return None
    shape = shape_of(x)
    if state.rng.random() < 0.5:
        return state.builder.op("reshape", x, (product(shape),))
    return state.builder.op("expand_dims", x, axis=(state.rng.randint(0, len(shape)),))


def _matmul(state: State) -> Var | None:
    x = pick(state, FLOAT32, range(2, 4))
    if x is None or not isinstance(shape_of(x)[-1], int):
        return None
    inner = shape_of(x)[-1]
    assert isinstance(inner, int)
    weight = constant(state, (inner, state.rng.randint(1, 9)), FLOAT32)
    return state.builder.op("matmul", x, weight)


def _softmax(state: State) -> Var | None:
    x = pick(state, FLOAT32, range(1, 9))
    return None if x is None else state.builder.op("nn.softmax", x, axis=-1)


def _shapes(state: State) -> Var | None:
    x = pick(state, FLOAT32)
    if x is None:
        return None
    if state.rng.random() < 0.5:
        return state.builder.op("zeros", shape_of(x), dtype=FLOAT32)
    return state.builder.op("shape_of", x)


def _data_dependent(state: State) -> Var | None:
    x = pick(state, None, range(1, 3))
    if x is None:
        return None
    found = state.builder.op("nonzero", x)
    count = state.builder.fresh("k")
    return state.builder.match_cast(found, TensorType((len(shape_of(x)), count), INT64))


def _tuple(state: State) -> Var | None:
    fields = [state.rng.choice(state.values) for _ in range(state.rng.randint(1, 3))]
    pair = state.builder.emit(Tuple(tuple(fields)))
    return state.builder.emit(TupleGet(pair, state.rng.randrange(len(fields))))


def _alias(state: State) -> Var | None:
    values: list[Expr] = [
        state.rng.choice(state.values),
        constant(state, (state.rng.choice((1, 3, 40)),), FLOAT32),
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
        fitting = [v for v in state.tensors(buffer.dtype) if shape_of(v) == shape]
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


PLAIN: tuple[Rule, ...] = (
    *(_unary, _binary, _binary, _where, _reduce, _cast, _permute, _reshape, _matmul),
    *(_softmax, _shapes, _data_dependent, _tuple, _alias, _kernel, _kernel),
)
