"""Tensors put together and taken apart along an axis: concat, stack, split."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, SymDim, always_ge, as_dim, dim_text, equal, floordiv, floormod
from unity.ir.dtype import Array
from unity.ir.prim_expr import PrimExpr
from unity.ir.symbols.convert import to_prim_expr
from unity.ir.types import TensorType, TupleType, Type
from unity.op.argument import axis, common_dtype, require_equal, tensor, tensors, type_text
from unity.op.attribute import INT, SIZES
from unity.op.reduction.reduce import known
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, attr, int_attr
from unity.op.sampling import Sampler, sample
from unity.op.window import dims_of

_CONCAT = (Param("tensors", "tensors"), attr("axis", INT, 0))
_SPLIT = (Param("x"), attr("indices_or_sections", SIZES), attr("axis", INT, 0))


def _all_tensors(args: Sequence[ComputeArg]) -> tuple[te.Tensor, ...]:
    (found,) = args
    assert isinstance(found, tuple)
    return found


def _all_arrays(args: Sequence[RefArg]) -> list[Array]:
    (given,) = args
    return [a for a in given if isinstance(a, np.ndarray)]


def _rank(call: OpCall, fields: Sequence[TensorType]) -> int | None:
    ranks = {f.ndim for f in fields if f.ndim is not None}
    if len(ranks) > 1:
        shown = ", ".join(type_text(f) for f in fields)
        raise call.error(f"the tensors must have one rank, got {shown}")
    return next(iter(ranks), None)


def _concat_infer(call: OpCall) -> Type:
    fields = tensors(call, 0)
    kind, rank = common_dtype(call, fields), _rank(call, fields)
    if rank is None:
        return TensorType(None, kind)
    if rank == 0:
        raise call.error("scalars can't be concatenated", hint="use stack")
    along = axis(call, call.attrs["axis"], rank)
    shapes = [f.shape for f in fields if isinstance(f.shape, tuple)]
    for n, other in enumerate(shapes):
        for d in range(rank):
            if d != along:
                require_equal(call, other[d], shapes[0][d], f"tensor {n} along axis {d}")
    if len(shapes) < len(fields):
        return TensorType(rank, kind)
    total: Dim = 0
    for other in shapes:
        total = total + other[along]
    return TensorType((*shapes[0][:along], as_dim(total), *shapes[0][along + 1 :]), kind)


def _concat_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    parts = _all_tensors(args)
    dims, _ = known(result)
    along = int_attr(attrs, "axis") % len(dims)
    begins: list[Dim] = [0]
    for part in parts:
        begins.append(as_dim(begins[-1] + dims_of(part)[along]))

    def element(*i: PrimExpr) -> PrimExpr:
        def part(n: int) -> PrimExpr:
            begin = begins[n]
            own = i[along] if equal(begin, 0) else i[along] - to_prim_expr(begin)
            return parts[n][(*i[:along], own, *i[along + 1 :])]

        return te.one_of(len(parts), part, lambda n: i[along] < to_prim_expr(begins[n]))

    return te.compute(dims, element, "concat")


def _stack_infer(call: OpCall) -> Type:
    fields = tensors(call, 0)
    kind, rank = common_dtype(call, fields), _rank(call, fields)
    if rank is None:
        return TensorType(None, kind)
    along = axis(call, call.attrs["axis"], rank + 1)
    shapes = [f.shape for f in fields if isinstance(f.shape, tuple)]
    for n, other in enumerate(shapes):
        for d in range(rank):
            require_equal(call, other[d], shapes[0][d], f"tensor {n} along axis {d}")
    if not shapes:
        return TensorType(rank + 1, kind)
    return TensorType((*shapes[0][:along], len(fields), *shapes[0][along:]), kind)


def _stack_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    parts = _all_tensors(args)
    dims, _ = known(result)
    along = int_attr(attrs, "axis") % len(dims)

    def element(*i: PrimExpr) -> PrimExpr:
        own = (*i[:along], *i[along + 1 :])
        return te.one_of(len(parts), lambda n: parts[n][own], lambda n: i[along] < n)

    return te.compute(dims, element, "stack")


def _ends(value: object, extent: Dim) -> tuple[Dim, ...] | str:
    """Where each part ends, or what is wrong."""
    if isinstance(value, int):
        if value < 1:
            return f"a number of sections must be positive, got {value}"
        if not equal(floormod(extent, value), 0):
            return f"{dim_text(extent)} does not provably divide into {value} sections"
        size = floordiv(extent, value)
        return tuple(as_dim(size * (n + 1)) for n in range(value))
    if not isinstance(value, tuple):
        return f"indices_or_sections must be an int or a tuple, got {value!r}"
    ends: list[Dim] = []
    for v in value:
        if isinstance(v, bool) or not isinstance(v, int | SymDim):
            return f"an index to split at must be a dim, got {v!r}"
        before = ends[-1] if ends else 0
        if isinstance(v, int) and isinstance(before, int) and v < before:
            return f"the indices must ascend, got {value}"
        if isinstance(v, int) and isinstance(extent, int) and v > extent:
            return f"the index {v} lies behind the extent {extent}"
        if not always_ge(v, before) or not always_ge(extent, v):
            return (
                f"can't prove that the index {dim_text(v)} lies between {dim_text(before)} and "
                f"{dim_text(extent)}"
            )
        ends.append(v)
    return (*ends, extent)


def _split_infer(call: OpCall) -> Type:
    x = tensor(call, 0)
    given = call.attrs["indices_or_sections"]
    if not isinstance(x.shape, tuple):
        parts = (
            given if isinstance(given, int) else len(given) + 1 if isinstance(given, tuple) else 0
        )
        return TupleType((TensorType(x.ndim, x.dtype),) * parts)
    along = axis(call, call.attrs["axis"], len(x.shape))
    ends = _ends(given, x.shape[along])
    if isinstance(ends, str):
        raise call.error(
            f"{ends}, splitting {type_text(x)} along axis {along}",
            "parts by slices (x[:k] and x[k:], R.strided_slice) are cut to what is there",
        )
    fields: list[TensorType] = []
    begin: Dim = 0
    for end in ends:
        fields.append(
            TensorType((*x.shape[:along], as_dim(end - begin), *x.shape[along + 1 :]), x.dtype)
        )
        begin = end
    return TupleType(tuple(fields))


def _split_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> tuple[te.Tensor, ...]:
    (x,) = args
    assert isinstance(x, te.Tensor)
    assert isinstance(result, TupleType)
    along = int_attr(attrs, "axis") % x.ndim
    ends = _ends(attrs["indices_or_sections"], dims_of(x)[along])
    assert isinstance(ends, tuple), ends
    begins: list[Dim] = [0, *ends[:-1]]

    def part(begin: Dim, kind: Type) -> te.Tensor:
        dims, _ = known(kind)

        def element(*i: PrimExpr) -> PrimExpr:
            at = i[along] if equal(begin, 0) else i[along] + to_prim_expr(begin)
            return x[(*i[:along], at, *i[along + 1 :])]

        return te.compute(dims, element, "split")

    return tuple(part(b, k) for b, k in zip(begins, result.fields, strict=True))


def _split_reference(args: Sequence[RefArg], attrs: Attrs) -> tuple[Array, ...]:
    (x,) = args
    assert isinstance(x, np.ndarray)
    given = attrs["indices_or_sections"]
    where = given if isinstance(given, int) else [n for n in _dims(given) if isinstance(n, int)]
    return tuple(np.split(x, where, axis=int_attr(attrs, "axis")))


def _dims(value: object) -> tuple[object, ...]:
    assert isinstance(value, tuple)
    return value


def _concat_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b, c, d = s.shape(4)
    return [
        sample(_CONCAT, ((s.array((a, c)), s.array((b, c))),)),
        sample(_CONCAT, ((s.array((a, b)), s.array((a, c)), s.array((a, d))),), axis=1),
        sample(_CONCAT, ((s.array((a, b, c), "int64"), s.array((a, d, c), "int64")),), axis=-2),
        sample(_CONCAT, ((s.array((a,), "float16"),),)),
        sample(_CONCAT, ((s.array((0, c)), s.array((b, c)), s.array((0, c))),)),
    ]


def _stack_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b = s.shape(2)
    return [
        sample(_CONCAT, ((s.array((a, b)), s.array((a, b)), s.array((a, b))),)),
        sample(_CONCAT, ((s.array((a, b), "int32"), s.array((a, b), "int32")),), axis=-1),
        sample(_CONCAT, ((s.array(()), s.array(())),)),
        sample(_CONCAT, ((s.array((0, b)), s.array((0, b))),), axis=1),
    ]


def _split_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b = s.shape(2)
    return [
        sample(_SPLIT, (s.array((3 * a, b)),), indices_or_sections=3),
        sample(_SPLIT, (s.array((a, 2 * b), "int64"),), indices_or_sections=2, axis=-1),
        sample(_SPLIT, (s.array((b, 7)),), indices_or_sections=(2, 3, 3), axis=1),
        sample(_SPLIT, (s.array((a, b), "float16"),), indices_or_sections=1),
        sample(_SPLIT, (s.array((0, 4)),), indices_or_sections=2, axis=1),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "concat",
        _CONCAT,
        _concat_infer,
        lambda args, attrs: np.concatenate(_all_arrays(args), axis=int_attr(attrs, "axis")),
        "Tensors one behind the other along `axis` (R.concat, ONNX Concat).",
        compute=_concat_compute,
        pattern="injective",
        samples=_concat_samples,
    ),
    OpDef(
        "stack",
        _CONCAT,
        _stack_infer,
        lambda args, attrs: np.stack(_all_arrays(args), axis=int_attr(attrs, "axis")),
        "Tensors of one shape along a new axis (R.stack).",
        compute=_stack_compute,
        pattern="injective",
        samples=_stack_samples,
    ),
    OpDef(
        "split",
        _SPLIT,
        _split_infer,
        _split_reference,
        """A tuple of parts along `axis`: a number of equal ones, or cut at ascending indices.

        The indices may be dims; each must provably lie within the extent (R.split, ONNX Split).
        """,
        compute=_split_compute,
        pattern="injective",
        samples=_split_samples,
    ),
)
