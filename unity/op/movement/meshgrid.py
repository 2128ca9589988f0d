"""Tensors spread over a grid or flattened, by other movements: meshgrid, batch_flatten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from unity.ir.attrs import Attrs
from unity.ir.dims import product
from unity.ir.dtype import Array
from unity.ir.graph import Expr, Tuple
from unity.ir.types import TensorType, TupleType, Type
from unity.op.argument import (
    common_dtype,
    tensor,
    tensors,
    type_text,
)
from unity.op.attribute import TEXT
from unity.op.registry import (
    OpCall,
    OpDef,
    Param,
    RefArg,
    Sample,
    array_arg,
    attr,
)
from unity.op.sampling import Sampler, sample

if TYPE_CHECKING:
    from unity.op.emitter import Emitter

_MESHGRID = (Param("tensors", "tensors"), attr("indexing", TEXT, "ij"))
_FLAT = (Param("x"),)


# meshgrid


def _meshgrid_infer(call: OpCall) -> Type:
    rows = tensors(call, 0)
    if call.attrs["indexing"] not in ("ij", "xy"):
        raise call.error(f"'indexing' must be 'ij' or 'xy', got {call.attrs['indexing']!r}")
    kind = common_dtype(call, rows)
    for t in rows:
        if t.ndim not in (None, 1):
            raise call.error(f"'tensors' must hold vectors, got {type_text(t)}")
    dims = [t.shape[0] for t in rows if isinstance(t.shape, tuple)]
    if len(dims) < len(rows):
        return TupleType((TensorType(len(rows), kind),) * len(rows))
    if call.attrs["indexing"] == "xy" and len(dims) > 1:
        dims[:2] = dims[1], dims[0]
    return TupleType((TensorType(tuple(dims), kind),) * len(rows))


def _meshgrid_expand(e: Emitter, args: Sequence[Expr], attrs: Attrs, result: Type) -> Expr:
    (rows,) = args
    assert isinstance(rows, Tuple)
    assert isinstance(result, TupleType)
    (first, *_) = result.fields
    assert isinstance(first, TensorType)
    if not isinstance(first.shape, tuple):
        raise e.gap("vectors of unknown length")
    shape = first.shape
    made: list[Expr] = []
    for k, row in enumerate(rows.fields):
        place = 1 - k if attrs["indexing"] == "xy" and len(shape) > 1 and k < 2 else k
        own = tuple(shape[d] if d == place else 1 for d in range(len(shape)))
        made.append(e.op("broadcast_to", e.op("reshape", row, own), shape))
    return Tuple(tuple(made))


def _meshgrid_reference(args: Sequence[RefArg], attrs: Attrs) -> RefArg:
    (rows,) = args
    arrays = [a for a in rows if isinstance(a, np.ndarray)]
    xy = attrs["indexing"] == "xy"
    return tuple(np.meshgrid(*arrays, indexing="xy" if xy else "ij"))


def _meshgrid_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b, c = s.shape(3, 2, 5)
    return [
        sample(_MESHGRID, ((s.array((a,)), s.array((b,))),)),
        sample(_MESHGRID, ((s.array((a,), "int64"), s.array((b,), "int64")),), indexing="xy"),
        sample(_MESHGRID, ((s.array((a,)), s.array((b,)), s.array((c,))),), indexing="xy"),
        sample(_MESHGRID, ((s.array((a,)),),)),
    ]


# batch_flatten


def _flat_infer(call: OpCall) -> Type:
    x = tensor(call, 0)
    if x.ndim == 0:
        raise call.error("'x' must have an axis, got a scalar")
    if not isinstance(x.shape, tuple):
        return TensorType(2, x.dtype)
    return TensorType((x.shape[0], product(x.shape[1:])), x.dtype)


def _flat_expand(e: Emitter, args: Sequence[Expr], attrs: Attrs, result: Type) -> Expr:
    first, *rest = e.shape_of(args[0])
    return e.op("reshape", args[0], (first, product(rest)))


def _flat_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x = array_arg(args)
    return x.reshape(x.shape[0], int(np.prod(x.shape[1:], dtype=np.int64)))


OPS: tuple[OpDef, ...] = (
    OpDef(
        "meshgrid",
        _MESHGRID,
        _meshgrid_infer,
        _meshgrid_reference,
        """Coordinates of a grid: of vectors of n and m, two tensors ``(n, m)``, each repeating one.

        With `indexing` "xy" the first two axes change places (R.meshgrid, numpy, torch).
        """,
        expand=_meshgrid_expand,
        samples=_meshgrid_samples,
    ),
    OpDef(
        "nn.batch_flatten",
        _FLAT,
        _flat_infer,
        _flat_reference,
        "All axes but the first as one (R.nn.batch_flatten).",
        expand=_flat_expand,
        samples=lambda seed: [
            sample(_FLAT, (Sampler.seeded(seed).array(dims),)) for dims in ((2, 3, 4), (3, 5), (4,))
        ],
    ),
)
