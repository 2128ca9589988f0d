"""Selection and search: where, argmax, argmin, nonzero and its form of a known size."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from unity import te
from unity.errors import UnityError
from unity.ir.attrs import Attrs
from unity.ir.dims import equal
from unity.ir.dtype import BOOL, INT64, Array
from unity.ir.prim_expr import Load, PrimExpr, PrimVar, Select, imm
from unity.ir.stmt import Allocate, Buffer, For, IfThen, PrimWhile, Seq, Stmt, Store
from unity.ir.types import TensorType, Type
from unity.op.argument import common_dtype, shape, tensor, type_text
from unity.op.attribute import FLAG, INT
from unity.op.broadcast import broadcast_types, read_broadcast
from unity.op.elementwise.unary import accepts_dtype
from unity.op.ordering.position import BLOCK, LEAST, Extreme, first_position
from unity.op.reduction.reduce import Reduction, infer_reduced, known, tensor_of
from unity.op.registry import (
    ComputeArg,
    OpCall,
    OpDef,
    Param,
    RefArg,
    Sample,
    attr,
    axes_attr,
    flag_attr,
    int_attr,
)
from unity.op.sampling import Sampler, sample

_WHERE = (Param("condition"), Param("x1"), Param("x2"))
_ARG = (Param("x"), attr("axis", INT, None), attr("keepdims", FLAG, False))
_NONZERO = (Param("x"), attr("at_least_1d", FLAG, False))
_STATIC = (Param("x"), Param("size", "shape"), attr("fill_value", INT, -1))


def _infer_where(call: OpCall) -> Type:
    condition, a, b = tensor(call, 0), tensor(call, 1), tensor(call, 2)
    if condition.dtype not in (None, BOOL):
        raise call.error(f"'condition' must be bool, got {condition.dtype}", "compare first")
    return TensorType(broadcast_types(call, (condition, a, b)), common_dtype(call, (a, b)))


def _compute_where(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    shape, _ = known(result)
    condition, a, b = args
    assert isinstance(condition, te.Tensor)
    assert isinstance(a, te.Tensor)
    assert isinstance(b, te.Tensor)

    def element(*i: PrimExpr) -> PrimExpr:
        chosen = read_broadcast(condition, i)
        return Select(chosen, read_broadcast(a, i), read_broadcast(b, i))

    return te.compute(shape, element, "where")


def _refer_where(args: Sequence[RefArg], attrs: Attrs) -> Array:
    condition, a, b = (x for x in args if isinstance(x, np.ndarray))
    return np.where(condition.astype(np.bool_), a, b).astype(a.dtype)


def _infer_arg(call: OpCall) -> Type:
    x, axis = tensor(call, 0), call.attrs["axis"]
    if axis is not None and (isinstance(axis, bool) or not isinstance(axis, int)):
        raise call.error(f"'axis' must be an int or None, got {axis!r}")
    if x.dtype is not None and not accepts_dtype("number", x.dtype):
        raise call.error(f"'x' must be numbers, got {x.dtype}")
    found = infer_reduced(call, x, INT64)
    if isinstance(x.shape, tuple):
        over = axes_attr(call.attrs, "axis", len(x.shape))
        if any(equal(x.shape[k], 0) for k in over):
            raise call.error(f"{type_text(x)} is empty over axis {axis}: nothing is an extreme")
    return found


def _arg(
    name: str,
    extreme: Extreme,
    reference: Callable[..., Array],
    doc: str,
) -> OpDef:
    def compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
        shape, _ = known(result)
        x = tensor_of(args)
        r = Reduction(x, attrs)
        if not r.over:
            return te.compute(shape, lambda *_: imm(0), name)

        first = first_position(x, r, shape, extreme, name)
        if first.dtype == INT64:
            return first
        return te.compute(shape, lambda *out: te.cast(first[out], INT64), name)

    def refer(args: Sequence[RefArg], attrs: Attrs) -> Array:
        (x,) = args
        assert isinstance(x, np.ndarray)
        axis = attrs["axis"]
        assert axis is None or isinstance(axis, int)
        if x.ndim == 0:
            return np.zeros((), np.int64)
        if any(x.shape[k] == 0 for k in axes_attr(attrs, "axis", x.ndim)):
            raise UnityError(f"{name}: shape {x.shape} is empty over axis {axis}")
        keepdims = flag_attr(attrs, "keepdims")
        return np.asarray(reference(x, axis=axis, keepdims=keepdims)).astype(np.int64)

    def samples(seed: int) -> Sequence[Sample]:
        s = Sampler.seeded(seed)
        return [
            sample(_ARG, (s.array((3, 4)),)),
            sample(_ARG, (s.array((3, 4, 2)),), axis=1),
            sample(_ARG, (s.array((3, 4, 2), "int32"),), axis=-1, keepdims=True),
            sample(_ARG, (s.array((6,), "uint8", 0, 2),), axis=0),
            sample(_ARG, (s.array((0, 3)),), axis=1),
            sample(_ARG, (np.asarray([[1.0, np.nan, 2.0]], np.float32),), axis=1),
            sample(_ARG, (s.array((5, 2), "float16"),), axis=0),
            *_long_samples(s),
        ]

    return OpDef(
        name,
        _ARG,
        _infer_arg,
        refer,
        doc,
        compute=compute,
        pattern="reduction",
        samples=samples,
    )


def _long_samples(s: Sampler) -> list[Sample]:
    """Rows that are searched in blocks: ties in several, in what is left, and NaN."""
    ties = s.array((2, LEAST + 77), "int32", 0, 3)
    late = np.zeros(LEAST + 9, np.float32)
    late[[0, -3, -1]] = -1.0, 2.0, 2.0
    holes = s.array((1, LEAST + BLOCK))
    holes[0, [1500, 7000]] = np.nan
    return [sample(_ARG, (x,), axis=-1, keepdims=x.ndim == 2) for x in (ties, late, holes)]


def _infer_nonzero(call: OpCall) -> Type:
    x = tensor(call, 0)
    if x.ndim is None:
        return TensorType(2, INT64)
    rank = max(x.ndim, 1) if flag_attr(call.attrs, "at_least_1d") else x.ndim
    return TensorType((rank, call.fresh("nonzero")), INT64)


def _refer_nonzero(args: Sequence[RefArg], attrs: Attrs) -> Array:
    (x,) = args
    return _places(x, at_least_1d=flag_attr(attrs, "at_least_1d"))


def _places(x: RefArg, *, at_least_1d: bool = False) -> Array:
    assert isinstance(x, np.ndarray)
    if x.ndim == 0 and not at_least_1d:
        return np.zeros((0, int(bool(x))), np.int64)
    return np.stack(np.nonzero(np.atleast_1d(x))).astype(np.int64)


def _infer_static(call: OpCall) -> Type:
    x, size = tensor(call, 0), shape(call, 1)
    if not isinstance(size.dims, tuple):
        return TensorType(2, INT64)
    if len(size.dims) != 1:
        raise call.error(f"'size' must be one number, got {len(size.dims)}")
    return TensorType(2 if x.ndim is None else (x.ndim, size.dims[0]), INT64)


def _compute_static(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x, (extents, _) = args[0], known(result)
    assert isinstance(x, te.Tensor)
    fill = imm(int_attr(attrs, "fill_value"))

    def body(inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> Stmt:
        """Each element in order is written where the next is to stand, and stays if it is not 0.

        So nothing branches by what the elements are, until there is no more room.
        """
        (of,), (places,) = inputs, outputs
        state = Buffer("state", (imm(2),), INT64, scope="local")
        found, last = (Load(state, (imm(k),)) for k in range(2))
        outer = tuple(PrimVar(f"i{k}") for k in range(len(of.shape) - 1))
        at: tuple[PrimExpr, ...] = (*outer, last)
        size, j = places.shape[1], PrimVar("j")

        def put(k: int, value: PrimExpr) -> Stmt:
            return Store(state, (imm(k),), value)

        value = Load(of, at)
        there = value if of.dtype == BOOL else te.ne(value, imm(0, of.dtype))
        stores = [Store(places, (imm(k), found), i) for k, i in enumerate(at)]
        counted = put(0, found + te.cast(there, INT64))
        more = te.and_(last < of.shape[-1], found < size)
        row = PrimWhile(more, Seq((*stores, counted, put(1, last + 1))))
        step: Stmt = Seq((put(1, imm(0)), row))
        for i, extent in zip(reversed(outer), reversed(of.shape[:-1]), strict=True):
            step = For(i, imm(0), extent, step)
        rest = [Store(places, (imm(k), j), fill) for k in range(len(at))]
        fills = For(j, imm(0), size, IfThen(j >= found, Seq(tuple(rest))))
        return Allocate(state, Seq((put(0, imm(0)), step, fills)))

    (made,) = te.extern([(extents, INT64)], [x], body, "nonzero_static")
    return made


def _refer_static(args: Sequence[RefArg], attrs: Attrs) -> Array:
    places, size = _places(args[0]), args[1]
    assert isinstance(size, tuple)
    (room,) = (n for n in size if isinstance(n, int))
    out = np.full((places.shape[0], room), int_attr(attrs, "fill_value"), np.int64)
    kept = places[:, :room]
    out[:, : kept.shape[1]] = kept
    return out


def _static_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    return [
        sample(_STATIC, (s.array((3, 4), "int32", -1, 1), (5,))),
        sample(_STATIC, (s.array((3, 2, 4)), (30,)), fill_value=7),
        sample(_STATIC, (s.array((9,), "bool"), (2,))),
        sample(_STATIC, (s.array((2, 0)), (3,))),
        sample(_STATIC, (s.array((5,), "bool"), (0,))),
    ]


def _where_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    shapes = (
        ((3, 4), (3, 4), (3, 4)),
        ((4,), (3, 1), ()),
        ((2, 1, 3), (4, 1), (3,)),
        ((0, 2), (1, 2), (2,)),
    )
    kinds = ("float32", "int64", "float16", "bool")
    return [
        sample(_WHERE, (s.array(c, "bool"), s.array(a, kind), s.array(b, kind)))
        for (c, a, b), kind in zip(shapes, kinds, strict=True)
    ]


def _nonzero_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    return [
        sample(_NONZERO, (s.array((3, 4), "int32", -1, 1),)),
        sample(_NONZERO, (s.array((5,), "bool"),), at_least_1d=True),
        sample(_NONZERO, (s.array((2, 0)),)),
        *(
            sample(_NONZERO, (np.array(value),), at_least_1d=flag)
            for value in (True, False)
            for flag in (True, False)
        ),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "where",
        _WHERE,
        _infer_where,
        _refer_where,
        "`x1` where `condition`, else `x2`; all three broadcast.",
        compute=_compute_where,
        pattern="broadcast",
        samples=_where_samples,
        onnx="Where",
    ),
    _arg(
        "argmax",
        te.max,
        np.argmax,
        "Where the largest element is, as int64: the first of equals, NaN above all; of nothing"
        " there is none, an error as in numpy (R.argmax).",
    ),
    _arg(
        "argmin",
        te.min,
        np.argmin,
        "Where the smallest element is, as int64: the first of equals, NaN below all; of nothing"
        " there is none, an error as in numpy (R.argmin).",
    ),
    OpDef(
        "nonzero",
        _NONZERO,
        _infer_nonzero,
        _refer_nonzero,
        "The indices of the elements that are not 0: (rank, count), in row-major order; the count"
        " is a fresh symbol. Of a tensor without axes (0, count), as ONNX NonZero has it; with"
        " `at_least_1d` (1, count), as TVM has it.",
        samples=_nonzero_samples,
    ),
    OpDef(
        "nonzero_static",
        _STATIC,
        _infer_static,
        _refer_static,
        "The indices of the first `size` elements that are not 0: (rank, size), in row-major order,"
        " int64; `fill_value` behind the last (torch.nonzero_static, transposed).",
        compute=_compute_static,
        samples=_static_samples,
    ),
)
