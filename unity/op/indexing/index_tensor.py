"""Indexing by several tensors that broadcast, as numpy does it: reading, and writing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dims import equal
from unity.ir.dtype import INT64, Array
from unity.ir.graph import Expr, Tuple
from unity.ir.prim_expr import PrimExpr
from unity.ir.types import Shape, TensorType, Type
from unity.op.argument import broadcast_shapes, common_dtype, tensor, tensors, type_text
from unity.op.attribute import FLAG
from unity.op.broadcast import read_broadcast
from unity.op.reduction.reduce import known
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, attr
from unity.op.sampling import Sampler, sample

from .gather import clamped, in_range, require_elements, safe_read

if TYPE_CHECKING:
    from unity.op.emitter import Emitter

_READ = (Param("x"), Param("indices", "tensors"))
_WRITE = (*_READ, Param("values"), attr("accumulate", FLAG, False))


def _indices(call: OpCall, x: TensorType) -> tuple[TensorType, ...]:
    found = tensors(call, 1)
    for t in found:
        if t.dtype is not None and not t.dtype.is_int:
            raise call.error(
                f"'indices' must be integers, got {type_text(t)}",
                hint="of a mask, R.nonzero gives the indices",
            )
    if x.ndim is not None and len(found) > x.ndim:
        raise call.error(f"{len(found)} indices are too many for {type_text(x)}")
    return found


def _joined(call: OpCall, indices: Sequence[TensorType]) -> Shape | int | None:
    """What the indices broadcast to."""
    if any(t.ndim is None for t in indices):
        return None
    shapes = [t.shape for t in indices if isinstance(t.shape, tuple)]
    if len(shapes) < len(indices):
        return max(t.ndim or 0 for t in indices)
    return broadcast_shapes(call, shapes)


def _read_infer(call: OpCall) -> Type:
    x = tensor(call, 0)
    indices = _indices(call, x)
    shape = _joined(call, indices)
    if shape is None or x.ndim is None:
        return TensorType(None, x.dtype)
    if isinstance(shape, int) or not isinstance(x.shape, tuple):
        rank = shape if isinstance(shape, int) else len(shape)
        return TensorType(rank + x.ndim - len(indices), x.dtype)
    require_elements(call, x, range(len(indices)), shape)
    return TensorType((*shape, *x.shape[len(indices) :]), x.dtype)


def _read_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x, indices = args
    assert isinstance(x, te.Tensor)
    assert isinstance(indices, tuple)
    dims, _ = known(result)
    outer = len(dims) - (x.ndim - len(indices))

    def element(*i: PrimExpr) -> PrimExpr:
        at = [in_range(read_broadcast(t, i[:outer]), x.shape[d]) for d, t in enumerate(indices)]
        return safe_read(x, (*at, *i[outer:]), range(len(indices)))

    return te.compute(dims, element, "index_tensor")


def _parts(args: Sequence[RefArg]) -> tuple[Array, tuple[Array, ...]]:
    x, indices = args[:2]
    assert isinstance(x, np.ndarray)
    return x, tuple(a for a in indices if isinstance(a, np.ndarray))


def _read_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, indices = _parts(args)
    if 0 in x.shape[: len(indices)]:
        joined = np.broadcast_shapes(*(a.shape for a in indices))
        return np.zeros((*joined, *x.shape[len(indices) :]), x.dtype)
    return np.asarray(x[tuple(clamped(a, x.shape[d]) for d, a in enumerate(indices))])


def _read_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b, c = s.shape(3, 2, 5)
    x = s.array((a, b, c))
    return [
        sample(_READ, (x, (s.array((2, 1), "int64", -a, a - 1), s.array((3,), "int64", 0, b - 1)))),
        sample(_READ, (x, (s.array((4,), "int32", -9, 9),))),
        sample(_READ, (s.array((a, b), "int8"), tuple(s.array((5,), "int64", 0, 1) for _ in "ab"))),
    ]


def _write_infer(call: OpCall) -> Type:
    x, values = tensor(call, 0), tensor(call, 2)
    common_dtype(call, (x, values))
    indices = _indices(call, x)
    shape = _joined(call, indices)
    if isinstance(shape, tuple) and isinstance(x.shape, tuple) and isinstance(values.shape, tuple):
        wanted = (*shape, *x.shape[len(indices) :])
        if broadcast_shapes(call, (wanted, values.shape)) != wanted:
            raise call.error(
                f"'values' {type_text(values)} do not broadcast to what is written, {wanted}"
            )
    return x


def broadcast_dims(a: Shape, b: Shape) -> Shape:
    """What two shapes broadcast to, which the type rule found that they do."""
    rank = max(len(a), len(b))
    one, two = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    return tuple(n if equal(m, 1) else m for m, n in zip(one, two, strict=True))


def _spread(e: Emitter, x: Expr, shape: Shape) -> Expr:
    return x if e.shape_of(x) == shape else e.op("broadcast_to", x, shape)


def _write_expand(e: Emitter, args: Sequence[Expr], attrs: Attrs, result: Type) -> Expr:
    x, given, values = args
    assert isinstance(given, Tuple)
    rest = e.shape_of(x)[len(given.fields) :]
    shape: Shape = ()
    for index in given.fields:
        shape = broadcast_dims(shape, e.shape_of(index))
    whole = [_spread(e, e.cast(i, INT64), shape) for i in given.fields]
    places = e.op("stack", tuple(whole), axis=-1)
    how = "add" if attrs["accumulate"] is True else "update"
    return e.op("scatter_nd", x, places, _spread(e, values, (*shape, *rest)), reduction=how)


def _write_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, indices = _parts(args)
    values = args[2]
    assert isinstance(values, np.ndarray)
    made = x.copy()
    whole = np.broadcast_arrays(*(a.astype(np.int64) for a in indices))
    shape = (*whole[0].shape, *x.shape[len(indices) :])
    rows = np.broadcast_to(values, shape)
    for i in np.ndindex(*whole[0].shape):
        at = tuple(int(a[i]) + (x.shape[d] if a[i] < 0 else 0) for d, a in enumerate(whole))
        if all(0 <= p < n for p, n in zip(at, x.shape, strict=False)):
            made[at] = made[at] + rows[i] if attrs["accumulate"] is True else rows[i]
    return made


def _write_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b, c = s.shape(3, 2, 5)
    x = s.array((a, b, c))
    pair = (s.array((2, 1), "int64", -a, a - 1), s.array((3,), "int64", 0, b - 1))
    return [
        sample(_WRITE, (x, pair, s.array((2, 3, c))), accumulate=True),
        sample(_WRITE, (x, (s.array((4,), "int32", -9, 9),), s.array((1, c)))),
        sample(_WRITE, (s.array((a,), "int32"), (np.array([0, 0, 1]),), s.array((3,), "int32"))),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "index_tensor",
        _READ,
        _read_infer,
        _read_reference,
        """``x[indices[0], indices[1], ...]``: index tensors broadcast together, axes behind stay.

        Indices are taken as in `R.take` (R.index_tensor, numpy's and torch's indexing).
        """,
        compute=_read_compute,
        pattern="injective",
        samples=_read_samples,
    ),
    OpDef(
        "index_put",
        _WRITE,
        _write_infer,
        _write_reference,
        """x with ``x[indices[0], indices[1], ...] = values``, or added to with `accumulate`.

        The indices are integers that broadcast, and so do `values`, of the dtype of x, with them.
        Of several values for one place the last one stays. Indices are taken as in
        `R.scatter_nd` (R.index_put, torch's index_put).
        """,
        expand=_write_expand,
        samples=_write_samples,
    ),
)
