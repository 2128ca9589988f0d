"""Elements repeated: tile, repeat, broadcast_to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, SymDim, as_dim, equal, product
from unity.ir.dtype import Array
from unity.ir.prim_expr import PrimExpr
from unity.ir.symbols.convert import to_prim_expr
from unity.ir.types import Shape, TensorType, Type
from unity.op.argument import axis, shape, shape_text, tensor, type_text
from unity.op.attribute import INT, SIZES
from unity.op.broadcast import read_broadcast
from unity.op.indexing.gather import safe_read
from unity.op.reduction.reduce import known
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, attr, int_attr
from unity.op.sampling import Sampler, sample
from unity.op.window import dims_of

from .arrange import Index, array_of, moved

_TILE = (Param("x"), attr("repeats", SIZES))
_REPEAT = (Param("x"), attr("repeats", SIZES), attr("axis", INT, None))
_BROADCAST = (Param("x"), Param("shape", "shape"))


def _dim_list(call: OpCall, name: str) -> Shape:
    """An attribute that is a tuple of dims.

    Raises:
        UnityError: It is none, or holds a negative number.
    """
    given = call.attrs[name]
    many = given if isinstance(given, tuple) else (given,)
    found: list[Dim] = []
    for value in many:
        if isinstance(value, bool) or not isinstance(value, int | SymDim):
            raise call.error(f"{name} must be dims, got {given!r}")
        if isinstance(value, int) and value < 0:
            raise call.error(f"{name} must not be negative, got {value}")
        found.append(value)
    return tuple(found)


def _tile_infer(call: OpCall) -> Type:
    x, repeats = tensor(call, 0), _dim_list(call, "repeats")
    if x.ndim is None:
        return TensorType(None, x.dtype)
    rank = max(x.ndim, len(repeats))
    if not isinstance(x.shape, tuple):
        return TensorType(rank, x.dtype)
    old = (1,) * (rank - x.ndim) + x.shape
    factors = (1,) * (rank - len(repeats)) + repeats
    return TensorType(tuple(as_dim(a * b) for a, b in zip(old, factors, strict=True)), x.dtype)


def _tile_index(x: te.Tensor, attrs: Attrs, i: Index) -> Index:
    own = i[len(i) - x.ndim :]
    return tuple(v % extent for v, extent in zip(own, x.shape, strict=True))


def _tile_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    given = attrs["repeats"]
    many = given if isinstance(given, tuple) else (given,)
    return np.tile(array_of(args), [n for n in many if isinstance(n, int)])


def _tile_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    return [
        sample(_TILE, (s.array(s.shape(2)),), repeats=(2, 3)),
        sample(_TILE, (s.array(s.shape(1), "int64"),), repeats=(2, 1, 2)),
        sample(_TILE, (s.array(s.shape(3)),), repeats=(2,)),
        sample(_TILE, (s.array(s.shape(2)),), repeats=(0, 1)),
        sample(_TILE, (s.array((0, 2)),), repeats=(2, 2)),
    ]


def _repeat_infer(call: OpCall) -> Type:
    x = tensor(call, 0)
    several = _dim_list(call, "repeats")
    if len(several) != 1:
        raise call.error(
            f"'repeats' must be one dim, got {len(several)}", hint="use concat for uneven repeats"
        )
    (times,) = several
    if call.attrs["axis"] is None:
        if not isinstance(x.shape, tuple):
            return TensorType(1, x.dtype)
        return TensorType((as_dim(product(x.shape) * times),), x.dtype)
    if x.ndim is None:
        return TensorType(None, x.dtype)
    along = axis(call, call.attrs["axis"], x.ndim)
    if not isinstance(x.shape, tuple):
        return x
    return TensorType(
        (*x.shape[:along], as_dim(x.shape[along] * times), *x.shape[along + 1 :]), x.dtype
    )


def _repeat_index(x: te.Tensor, attrs: Attrs, i: Index) -> Index:
    times = attrs["repeats"]
    assert isinstance(times, int | SymDim)
    count = to_prim_expr(times)
    if attrs["axis"] is not None:
        along = int_attr(attrs, "axis") % x.ndim
        return (*i[:along], i[along] // count, *i[along + 1 :])
    flat: PrimExpr = i[0] // count
    index: list[PrimExpr] = []
    for d in reversed(range(x.ndim)):
        index.append(flat % x.shape[d] if d else flat)
        flat = flat // x.shape[d]
    return tuple(reversed(index))


def _repeat_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    along = attrs["axis"]
    return np.repeat(
        array_of(args),
        int_attr(attrs, "repeats"),
        None if along is None else int_attr(attrs, "axis"),
    )


def _repeat_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    return [
        sample(_REPEAT, (s.array(s.shape(3)),), repeats=2, axis=1),
        sample(_REPEAT, (s.array(s.shape(2), "int32"),), repeats=3, axis=-1),
        sample(_REPEAT, (s.array(s.shape(2)),), repeats=2),
        sample(_REPEAT, (s.array((0, 2)),), repeats=2, axis=1),
    ]


def _broadcast_infer(call: OpCall) -> Type:
    x, wanted = tensor(call, 0), shape(call, 1)
    if not isinstance(wanted.dims, tuple) or not isinstance(x.shape, tuple):
        return TensorType(wanted.dims, x.dtype)
    tail = wanted.dims[len(wanted.dims) - len(x.shape) :]
    fits = len(x.shape) <= len(wanted.dims) and all(
        equal(have, 1) or equal(have, want) for have, want in zip(x.shape, tail, strict=True)
    )
    if not fits:
        raise call.error(
            f"{type_text(x)} does not broadcast to {shape_text(wanted.dims)}",
            hint="each dim must be 1 or equal the one it goes to, counted from the end",
        )
    return TensorType(wanted.dims, x.dtype)


def _broadcast_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    (x,) = args
    assert isinstance(x, te.Tensor)
    dims, _ = known(result)
    return te.compute(dims, lambda *i: read_broadcast(x, i), "broadcast_to")


def _broadcast_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    wanted = args[1]
    assert isinstance(wanted, tuple)
    dims = [n for n in wanted if isinstance(n, int)]
    return np.ascontiguousarray(np.broadcast_to(array_of(args), dims)).reshape(dims)


def _broadcast_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b = s.shape(2)
    return [
        sample(_BROADCAST, (s.array((1, b)), (a, b))),
        sample(_BROADCAST, (s.array((b,), "int64"), (2, a, b))),
        sample(_BROADCAST, (s.array(()), (a, b))),
        sample(_BROADCAST, (s.array((1, b)), (0, b))),
        sample(_BROADCAST, (s.array(()), ())),
    ]


def _stretch_infer(call: OpCall) -> Type:
    x, wanted = tensor(call, 0), shape(call, 1)
    if x.ndim is not None and wanted.ndim not in (x.ndim, None):
        raise call.error(f"{type_text(x)} can't be stretched to {shape_text(wanted.dims)}")
    return TensorType(wanted.dims, x.dtype)


def _stretch_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    (x,) = args
    assert isinstance(x, te.Tensor)
    dims, _ = known(result)
    unknown = [d for d, (a, b) in enumerate(zip(dims_of(x), dims, strict=True)) if not equal(a, b)]

    def element(*i: PrimExpr) -> PrimExpr:
        at = list(i)
        for d in unknown:
            at[d] = te.min_(i[d], x.shape[d] - 1)
        return safe_read(x, at, unknown)

    return te.compute(dims, element, "stretch")


def _stretch_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, wanted = args
    assert isinstance(x, np.ndarray)
    assert isinstance(wanted, tuple)
    return np.array(np.broadcast_to(x, [int(n) for n in wanted if isinstance(n, int)]))


def _stretch_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b = s.shape(2, 2, 5)
    return [
        sample(_BROADCAST, (s.array((a, 1)), (a, b))),
        sample(_BROADCAST, (s.array((1, b), "int64"), (a, b))),
        sample(_BROADCAST, (s.array((a, b)), (a, b))),
        sample(_BROADCAST, (s.array((1, 1), "float16"), (0, b))),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "tile",
        _TILE,
        _tile_infer,
        _tile_reference,
        "The whole repeated along each axis; the shorter of shape and `repeats` is led by ones "
        "(R.tile, numpy.tile).",
        compute=moved(_tile_index, "tile"),
        pattern="injective",
        samples=_tile_samples,
    ),
    OpDef(
        "repeat",
        _REPEAT,
        _repeat_infer,
        _repeat_reference,
        "Each element repeated in place along `axis`; of the flattened tensor by default "
        "(R.repeat, numpy.repeat).",
        compute=moved(_repeat_index, "repeat"),
        pattern="injective",
        samples=_repeat_samples,
    ),
    OpDef(
        "broadcast_to",
        _BROADCAST,
        _broadcast_infer,
        _broadcast_reference,
        "Repeated along axes of extent 1 and new leading axes (R.broadcast_to, numpy's rules).",
        compute=_broadcast_compute,
        pattern="broadcast",
        samples=_broadcast_samples,
    ),
    OpDef(
        "stretch",
        _BROADCAST,
        _stretch_infer,
        _stretch_reference,
        """Repeated along the axes whose extent turns out to be 1 at run time.

        The other axes must have the extents of `shape`, which is checked before (`R.match_cast`):
        broadcast_to where it is not known which dims are 1.
        """,
        compute=_stretch_compute,
        pattern="injective",
        samples=_stretch_samples,
    ),
)
