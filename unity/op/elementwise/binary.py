"""Arithmetic, logical and bitwise operators of two tensors that broadcast."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dtype import Array, dtype
from unity.ir.prim_expr import Binary, BinaryOp, Compare, Intrinsic, PrimExpr, Select, imm
from unity.ir.types import TensorType, Type
from unity.op.accumulate import exact, widened
from unity.op.argument import common_dtype, tensor
from unity.op.broadcast import broadcast_types, read_broadcast
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample
from unity.op.sampling import Sampler, sample

from .unary import ACCEPTED, Accepts, accepts_dtype

Scalar2 = Callable[[PrimExpr, PrimExpr], PrimExpr]
_PARAMS = (Param("x1"), Param("x2"))
BROADCASTS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((3, 4), (3, 4)),
    ((2, 3, 4), (4,)),
    ((2, 1, 4), (3, 1)),
    ((), (5,)),
    ((0, 3), (1, 3)),
    ((1,), (2, 1)),
)
_KINDS: dict[Accepts, tuple[str, ...]] = {
    "float": ("float32", "float64", "float16", "bfloat16"),
    "number": ("float32", "int32", "int64", "float16", "uint8", "float64"),
    "int": ("int32", "uint8", "int64"),
    "bool": ("bool",),
}


def _rule(accepts: Accepts) -> Callable[[OpCall], Type]:
    def infer(call: OpCall) -> Type:
        types = (tensor(call, 0), tensor(call, 1))
        kind = common_dtype(call, types)
        if kind is not None and not accepts_dtype(accepts, kind):
            wanted = "numbers" if accepts == "number" else f"of {accepts} dtype"
            raise call.error(f"operands must be {wanted}, got {kind}", "convert with astype")
        return TensorType(broadcast_types(call, types), kind)

    return infer


def map_pairs(args: Sequence[ComputeArg], result: Type, fn: Scalar2, name: str) -> te.Tensor:
    """The tensor of `fn` of the elements that broadcasting pairs, in their working dtype."""
    a, b = args
    assert isinstance(a, te.Tensor)
    assert isinstance(b, te.Tensor)
    assert isinstance(result, TensorType)
    assert isinstance(result.shape, tuple)
    out = result.dtype
    assert out is not None

    def element(*i: PrimExpr) -> PrimExpr:
        return te.cast(fn(widened(read_broadcast(a, i)), widened(read_broadcast(b, i))), out)

    return te.compute(result.shape, element, name)


def pair_of_arrays(args: Sequence[RefArg]) -> tuple[Array, Array]:
    """The two arrays that a reference got."""
    a, b = args
    assert isinstance(a, np.ndarray)
    assert isinstance(b, np.ndarray)
    return a, b


def _op(
    name: str,
    fn: Scalar2,
    reference: Callable[[Array, Array], Array],
    doc: str,
    accepts: Accepts = "number",
    low: float | tuple[float, float] = -3,
    high: float | tuple[float, float] = 3,
    *,
    finite: bool = False,
    onnx: str | None = None,
) -> OpDef:
    """The row of an operator; `low` and `high` bound its samples (one pair for each operand)."""
    (low1, low2), (high1, high2) = (v if isinstance(v, tuple) else (v, v) for v in (low, high))

    def samples(seed: int) -> Sequence[Sample]:
        s = Sampler.seeded(seed)
        kinds = _KINDS[accepts]
        return [
            sample(_PARAMS, (s.array(a, kind, low1, high1), s.array(b, kind, low2, high2)))
            for i, (a, b) in enumerate(BROADCASTS)
            for kind in dict.fromkeys((kinds[0], kinds[i % len(kinds)]))
        ]

    def refer(args: Sequence[RefArg], attrs: Attrs) -> Array:
        a, b = pair_of_arrays(args)
        with np.errstate(all="ignore"):
            return np.asarray(reference(exact(a), exact(b))).astype(a.dtype)

    return OpDef(
        name,
        _PARAMS,
        _rule(accepts),
        refer,
        f"{doc}\n\nBoth tensors broadcast, as numpy's do, and have one dtype, {ACCEPTED[accepts]};"
        "\nothers are refused. The result has it, too.",
        compute=lambda args, attrs, result: map_pairs(args, result, fn, name),
        pattern="broadcast",
        samples=samples,
        finite=finite,
        onnx=onnx,
    )


def _node(op: BinaryOp) -> Scalar2:
    return lambda a, b: Binary(op, a, b)


def _guarded(op: BinaryOp, a: PrimExpr, b: PrimExpr, at_minus_one: PrimExpr) -> PrimExpr:
    """An integer division that no operands make trap: by 0 it gives 0, as numpy does.

    Machines also trap on the least integer divided by -1, which must wrap.
    """
    zero, one = imm(0, b.dtype), imm(1, b.dtype)
    by_zero = Compare("eq", b, zero)
    if b.dtype.kind == "uint":
        return Select(by_zero, zero, Binary(op, a, Select(by_zero, one, b)))
    by_minus_one = Compare("eq", b, imm(-1, b.dtype))
    safe = Select(Binary("or", by_zero, by_minus_one), one, b)
    return Select(by_zero, zero, Select(by_minus_one, at_minus_one, Binary(op, a, safe)))


def _log_add_exp(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    high, low = te.max_(a, b), te.min_(a, b)
    # Equal ones may be infinite, whose difference is no number.
    apart = te.select(te.eq(high, low), imm(0, a.dtype), low - high)
    return high + te.log1p(te.exp(apart))


def _minus(a: PrimExpr) -> PrimExpr:
    return Binary("sub", imm(0, a.dtype), a)


def _divide(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    return a / b if a.dtype.is_float else _guarded("truncdiv", a, b, _minus(a))


def _floor_divide(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    if a.dtype.is_float:
        return Intrinsic("floor", (a / b,), a.dtype)
    return _guarded("floordiv", a, b, _minus(a))


def _mod(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    if a.dtype.is_float:
        return Intrinsic("fmod", (a, b), a.dtype)
    return _guarded("truncmod", a, b, imm(0, a.dtype))


def _floor_mod(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    if not a.dtype.is_float:
        return _guarded("floormod", a, b, imm(0, a.dtype))
    rest = Intrinsic("fmod", (a, b), a.dtype)
    zero = imm(0, a.dtype)
    differ = Binary("xor", Compare("lt", rest, zero), Compare("lt", b, zero))
    return Select(Binary("and", Compare("ne", rest, zero), differ), rest + b, rest)


def _power(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    return Intrinsic("pow", (a, b), a.dtype)


def _ref_divide(a: Array, b: Array) -> Array:
    if dtype(a.dtype).is_float:
        return np.asarray(np.divide(a, b))
    down = np.floor_divide(a, b)
    rest = np.subtract(a, np.multiply(down, b))
    differ = np.not_equal(np.less(a, 0), np.less(b, 0))
    inexact = np.not_equal(rest, 0) & differ & np.not_equal(b, 0)
    return np.asarray(np.add(down, inexact.astype(down.dtype)))


def _left_shift(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """Machines take the shift modulo the width, so a wide one is told apart."""
    inside = Compare("lt", b, imm(b.dtype.bits, b.dtype))
    shifted = Binary("shl", a, Select(inside, b, imm(0, b.dtype)))
    return Select(inside, shifted, imm(0, a.dtype))


def _right_shift(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """A wide shift leaves the sign alone: 0, or -1 of a negative integer."""
    last = imm(b.dtype.bits - 1, b.dtype)
    if a.dtype.kind == "int":
        return Binary("shr", a, Binary("min", b, last))
    inside = Compare("le", b, last)
    shifted = Binary("shr", a, Select(inside, b, imm(0, b.dtype)))
    return Select(inside, shifted, imm(0, a.dtype))


OPS: tuple[OpDef, ...] = (
    _op("add", _node("add"), np.add, "``x1 + x2``; integers wrap.", finite=True, onnx="Add"),
    _op(
        "subtract",
        _node("sub"),
        np.subtract,
        "``x1 - x2``; integers wrap.",
        finite=True,
        onnx="Sub",
    ),
    _op(
        "multiply",
        _node("mul"),
        np.multiply,
        "``x1 * x2``; integers wrap.",
        finite=True,
        onnx="Mul",
    ),
    _op(
        "divide",
        _divide,
        _ref_divide,
        "``x1 / x2``; integers are truncated towards zero (C, ONNX Div). By 0 they give 0, or an "
        "error if compiled with ``check_bounds=True``; so do all divisions and remainders.",
        finite=True,
        onnx="Div",
    ),
    _op(
        "floor_divide",
        _floor_divide,
        np.floor_divide,
        "``x1 // x2`` rounded down; an integer divided by 0 gives 0.",
        low=0.5,
    ),
    _op(
        "mod",
        _mod,
        np.fmod,
        "The remainder with the sign of `x1` (C's ``%``, fmod); an integer by 0 gives 0.",
    ),
    _op(
        "floor_mod",
        _floor_mod,
        np.mod,
        "The remainder with the sign of `x2` (Python's ``%``); an integer by 0 gives 0.",
    ),
    _op("power", _power, np.power, "``x1 ** x2``, on floats.", "float", low=0.1, onnx="Pow"),
    _op(
        "maximum",
        _node("max"),
        np.maximum,
        "The larger; NaN if either is NaN.",
        finite=True,
        onnx="Max",
    ),
    _op(
        "minimum",
        _node("min"),
        np.minimum,
        "The smaller; NaN if either is NaN.",
        finite=True,
        onnx="Min",
    ),
    _op(
        "logical_and", _node("and"), np.logical_and, "``x1 and x2``, on bools.", "bool", onnx="And"
    ),
    _op("logical_or", _node("or"), np.logical_or, "``x1 or x2``, on bools.", "bool", onnx="Or"),
    _op("logical_xor", _node("xor"), np.logical_xor, "``x1 != x2``, on bools.", "bool", onnx="Xor"),
    _op(
        "bitwise_and",
        _node("and"),
        np.bitwise_and,
        "Both bits set, on integers.",
        "int",
        onnx="BitwiseAnd",
    ),
    _op(
        "bitwise_or",
        _node("or"),
        np.bitwise_or,
        "Either bit set, on integers.",
        "int",
        onnx="BitwiseOr",
    ),
    _op(
        "bitwise_xor",
        _node("xor"),
        np.bitwise_xor,
        "Bits that differ, on integers.",
        "int",
        onnx="BitwiseXor",
    ),
    _op(
        "left_shift",
        _left_shift,
        np.left_shift,
        "``x1 << x2`` for ``0 <= x2``; shifting all bits out gives 0.",
        "int",
        low=(-100, 0),
        high=(100, 70),
    ),
    _op(
        "right_shift",
        _right_shift,
        np.right_shift,
        "``x1 >> x2`` for ``0 <= x2``, keeping the sign; shifting all bits out leaves it.",
        "int",
        low=(-100, 0),
        high=(100, 70),
    ),
    _op(
        "atan2",
        te.atan2,
        np.arctan2,
        "The angle of the point (x2, x1), between -pi and pi: of ``x1 / x2`` by both signs "
        "(R.atan2, torch.atan2).",
        "float",
    ),
    _op(
        "log_add_exp",
        _log_add_exp,
        np.logaddexp,
        "``log(exp(x1) + exp(x2))``, the larger one taken out first (R.log_add_exp).",
        "float",
        low=-30,
        high=30,
    ),
)
