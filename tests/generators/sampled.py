"""Any operator in a random function, on the arguments of one of its own samples."""

from __future__ import annotations

import numpy as np

from unity.ir.attrs import Attrs
from unity.ir.dtype import Array, dtype
from unity.ir.graph import Call, Constant, Expr, Op, ShapeValue, Tuple, TupleGet, Var
from unity.ir.types import TupleType
from unity.op.infer import infer_type
from unity.op.registry import RefArg
from unity.op.table import OPS

from .state import State, pick

_SAMPLED = [
    name for name, row in OPS.items() if row.samples is not None and row.reference is not None
]


def sampled(state: State) -> Var | None:
    """A call of any operator; its result is a value of the function."""
    row = OPS[state.rng.choice(_SAMPLED)]
    assert row.samples is not None
    chosen = state.rng.choice(row.samples(state.rng.randint(0, 9)))
    args = tuple(_argument(state, arg) for arg in chosen.args)
    call = Call(Op(row.name), args, _as_calls_have_them(chosen.attrs))
    kind = infer_type(call, state.builder.signatures, state.builder.fresh)
    result = state.builder.emit(call, None, None, kind)
    if isinstance(kind, TupleType):
        return state.builder.emit(TupleGet(result, state.rng.randrange(len(kind.fields))))
    return result


def _as_calls_have_them(attrs: Attrs) -> Attrs:
    """Samples may name a dtype; `call_op` leaves no names."""
    named = {k: v for k, v in attrs.items() if k.endswith("dtype") and isinstance(v, str)}
    return attrs.with_(**{k: dtype(v) for k, v in named.items()})


def _argument(state: State, arg: RefArg) -> Expr:
    if isinstance(arg, np.ndarray):
        return _tensor(state, arg)
    arrays = [a for a in arg if isinstance(a, np.ndarray)]
    if arrays:
        return Tuple(tuple(_tensor(state, a) for a in arrays))
    return ShapeValue(tuple(n for n in arg if isinstance(n, int)))


def _tensor(state: State, data: Array) -> Expr:
    """The array; mostly as a value that is only known at run time: plus nothing from an input."""
    constant, kind = Constant(data), dtype(data.dtype)
    source = pick(state)
    if source is None or not (kind.is_float or kind.is_int) or state.rng.random() < 0.3:
        return constant
    b = state.builder
    found = b.op("sum", b.op("astype", source, dtype="float32"))
    nothing = b.op("astype", b.op("multiply", found, 0.0), dtype=kind)
    return b.op("add", constant, nothing)
