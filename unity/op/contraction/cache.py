"""Caches that grow: rows written behind those that a buffer of larger capacity already holds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity import te
from unity.errors import UnityError
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, SymDim, always_ge, as_dim, dim_text
from unity.ir.dtype import Array
from unity.ir.prim_expr import Load, PrimExpr, PrimVar, imm
from unity.ir.regions import add, block_regions
from unity.ir.stmt import Block, BlockAxis, Buffer, For, Range, Stmt, Store
from unity.ir.symbols.convert import to_prim_expr
from unity.ir.types import TensorType, Type
from unity.op.argument import axis, common_dtype, require_equal, tensor, type_text
from unity.op.attribute import INT, SIZE
from unity.op.reduction.reduce import known
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, attr, int_attr
from unity.op.sampling import Sampler, sample

_PARAMS = (Param("cache"), Param("new"), attr("length", SIZE), attr("axis", INT, 0))


def _length(attrs: Attrs) -> Dim:
    value = attrs["length"]
    assert isinstance(value, int | SymDim)
    return value


def _infer(call: OpCall) -> Type:
    cache, new = tensor(call, 0), tensor(call, 1)
    dtype = common_dtype(call, (cache, new))
    length = call.attrs["length"]
    if isinstance(length, bool) or not isinstance(length, int | SymDim):
        raise call.error(f"'length' must be a dim, got {length!r}")
    if not isinstance(cache.shape, tuple) or not isinstance(new.shape, tuple):
        raise call.error(f"the shapes must be known, got {type_text(cache)} and {type_text(new)}")
    if len(cache.shape) != len(new.shape):
        raise call.error(f"the ranks differ: {type_text(cache)} and {type_text(new)}")
    along = axis(call, call.attrs["axis"], len(cache.shape))
    for d, (had, got) in enumerate(zip(cache.shape, new.shape, strict=True)):
        if d != along:
            require_equal(call, got, had, f"'new' along axis {d}")
    end, capacity = as_dim(length + new.shape[along]), cache.shape[along]
    if not always_ge(length, 0) or not always_ge(capacity, end):
        raise call.error(
            f"can't prove that rows {dim_text(length)} to {dim_text(end)} lie within "
            f"{dim_text(capacity)}",
            hint="declare the cache with an axis of length + new rows + room, room a symbol",
        )
    return TensorType(cache.shape, dtype)


def _compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    cache, new = args
    assert isinstance(cache, te.Tensor)
    assert isinstance(new, te.Tensor)
    dims, _ = known(result)
    along, length = int_attr(attrs, "axis") % len(dims), to_prim_expr(_length(attrs))
    end = add(length, new.shape[along])

    def element(*i: PrimExpr) -> PrimExpr:
        at = (*i[:along], i[along] - length, *i[along + 1 :])
        kept = te.select(i[along] < length, cache[i], new[at])
        return te.select(i[along] < end, kept, cache[i])

    return te.compute(dims, element, "cache_append")


def _in_place(buffers: Sequence[Buffer], attrs: Attrs) -> Stmt:
    """Only the new rows are written."""
    cache, new = buffers
    along = int_attr(attrs, "axis") % len(new.shape)
    length = to_prim_expr(_length(attrs))
    axes = tuple(
        BlockAxis(PrimVar(f"vi{d}"), "S", Range(imm(0), extent), PrimVar(f"i{d}"))
        for d, extent in enumerate(new.shape)
    )
    at: tuple[PrimExpr, ...] = tuple(a.var for a in axes)
    to = (*at[:along], add(length, at[along]), *at[along + 1 :])
    store = Store(cache, to, Load(new, at))
    reads, writes = block_regions(store, None, [a.var for a in axes])
    stmt: Stmt = Block("cache_append", axes, reads, writes, store)
    for a in reversed(axes):
        assert isinstance(a.value, PrimVar)
        stmt = For(a.value, a.domain.begin, a.domain.extent, stmt)
    return stmt


def _reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    cache, new = args
    assert isinstance(cache, np.ndarray)
    assert isinstance(new, np.ndarray)
    along, length = int_attr(attrs, "axis") % cache.ndim, _length(attrs)
    assert isinstance(length, int)
    end = length + new.shape[along]
    if length < 0 or end > cache.shape[along]:
        raise UnityError(f"nn.cache_append: rows {length} to {end} of {cache.shape[along]}")
    result = cache.copy()
    result[(slice(None),) * along + (slice(length, end),)] = new
    return result


def _samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    b, h, d = s.shape(3)
    cache = s.array((b, h, 9, d))
    return [
        sample(_PARAMS, (cache, s.array((b, h, 1, d))), length=5, axis=2),
        sample(_PARAMS, (cache, s.array((b, h, 4, d))), length=5, axis=-2),
        sample(_PARAMS, (cache, s.array((b, h, 9, d))), length=0, axis=2),
        sample(_PARAMS, (cache, s.array((b, h, 0, d))), length=9, axis=2),
        sample(_PARAMS, (s.array((7,), "int64"), s.array((3,), "int64")), length=2),
        sample(
            _PARAMS, (s.array((4, 33), "float16"), s.array((4, 17), "float16")), length=8, axis=1
        ),
        sample(_PARAMS, (s.array((0, 5)), s.array((0, 2))), length=1, axis=1),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "nn.cache_append",
        _PARAMS,
        _infer,
        _reference,
        """`cache` with `new` in the place of its rows from `length` on, along `axis`.

        The other axes agree, and ``length + new rows <= cache rows`` must follow from the types: a
        cache of length + new rows + room rows has space. What lies behind the new rows stays.

        A cache that nothing else uses, and that the function's caller gave away (the function's
        attribute ``aliases``), is written in place: only the new rows are touched. XLA's
        dynamic_update_slice along one axis.
        """,
        compute=_compute,
        in_place=_in_place,
        pattern="injective",
        samples=_samples,
        precision="never",
    ),
)
