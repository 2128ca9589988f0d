"""Elements picked by index tensors: take, gather_elements, gather_nd.

Indices count from the end when negative, then are clamped to the extent: no index reads outside
(numpy and ONNX call such an index an error; a kernel has nobody to tell).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dims import always_ge, equal
from unity.ir.dtype import INT64, Array
from unity.ir.prim_expr import PrimExpr
from unity.ir.symbols.convert import to_dim
from unity.ir.types import Shape, TensorType, Type
from unity.op.argument import axis, broadcast_shapes, int_tensor, tensor, type_text
from unity.op.attribute import INT
from unity.op.reduction.reduce import known
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, attr, int_attr
from unity.op.sampling import Sampler, sample

_TAKE = (Param("x"), Param("indices"), attr("axis", INT, None))
_ELEMENTS = (Param("x"), Param("indices"), attr("axis", INT, 0))
_ND = (Param("x"), Param("indices"), attr("batch_dims", INT, 0))


def in_range(index: PrimExpr, extent: PrimExpr) -> PrimExpr:
    """An index from an index tensor made one that may be read: wrapped once, then clamped."""
    i = te.cast(index, INT64)
    wrapped = i if index.dtype.kind == "uint" else te.select(i < 0, i + extent, i)
    return te.min_(te.max_(wrapped, 0), extent - 1)


def safe_read(x: te.Tensor, at: Sequence[PrimExpr], guarded: Sequence[int]) -> PrimExpr:
    """The element at some indices, or 0 if one of the `guarded` axes may be and is empty."""
    conditions: list[PrimExpr] = []
    for d in guarded:
        extent = to_dim(x.shape[d])
        if extent is None or not always_ge(extent, 1):
            conditions.append(x.shape[d] > 0)
    value = x[tuple(at)]
    return te.select(te.all_true(*conditions), value, 0) if conditions else value


def clamped(indices: Array, extent: int) -> npt.NDArray[np.int64]:
    """The same of a whole array."""
    wide = indices.astype(np.int64)
    return np.minimum(np.maximum(np.where(wide < 0, wide + extent, wide), 0), extent - 1)


def _two(args: Sequence[ComputeArg]) -> tuple[te.Tensor, te.Tensor]:
    a, b = args
    assert isinstance(a, te.Tensor)
    assert isinstance(b, te.Tensor)
    return a, b


def _arrays(args: Sequence[RefArg]) -> list[Array]:
    return [a for a in args if isinstance(a, np.ndarray)]


def require_elements(call: OpCall, x: TensorType, over: Sequence[int], picked: Shape) -> None:
    """Check that nothing is picked from an axis known to be empty.

    Raises:
        UnityError: Something is.
    """
    if not isinstance(x.shape, tuple):
        return
    for d in over:
        if equal(x.shape[d], 0) and not any(equal(e, 0) for e in picked):
            raise call.error(f"axis {d} of {type_text(x)} is empty, nothing can be picked from it")


# take


def _take_infer(call: OpCall) -> Type:
    x, indices = tensor(call, 0), int_tensor(call, 1)
    if x.ndim is None or indices.ndim is None:
        return TensorType(None, x.dtype)
    if call.attrs["axis"] is None and x.ndim != 1:
        raise call.error(f"axis is needed to take from {type_text(x)}, whose rank is not 1")
    along = axis(call, 0 if call.attrs["axis"] is None else call.attrs["axis"], x.ndim)
    if not isinstance(x.shape, tuple) or not isinstance(indices.shape, tuple):
        return TensorType(x.ndim - 1 + indices.ndim, x.dtype)
    require_elements(call, x, (along,), indices.shape)
    return TensorType((*x.shape[:along], *indices.shape, *x.shape[along + 1 :]), x.dtype)


def _take_axis(attrs: Attrs, ndim: int) -> int:
    return 0 if attrs["axis"] is None else int_attr(attrs, "axis") % ndim


def _take_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x, indices = _two(args)
    dims, _ = known(result)
    along = _take_axis(attrs, x.ndim)
    after = along + indices.ndim

    def element(*i: PrimExpr) -> PrimExpr:
        picked = in_range(indices[i[along:after]], x.shape[along])
        return safe_read(x, (*i[:along], picked, *i[after:]), (along,))

    return te.compute(dims, element, "take")


def _take_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, indices = _arrays(args)
    along = _take_axis(attrs, x.ndim)
    return np.asarray(np.take(x, clamped(indices, x.shape[along]), axis=along))


def _take_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b, c = s.shape(3, 2, 5)
    table = s.array((a, b))
    return [
        sample(_TAKE, (table, s.array((c,), "int64", -a, a - 1)), axis=0),
        sample(_TAKE, (table, s.array((2, c), "int32", 0, b - 1)), axis=-1),
        sample(_TAKE, (s.array((a,), "int64"), s.array((), "int64", 0, a - 1))),
        sample(_TAKE, (s.array((a, b, c), "float16"), s.array((2,), "uint8", 0, b - 1)), axis=1),
        sample(_TAKE, (table, np.array([a, -a - 1, 1000, -1000])), axis=0),
        sample(_TAKE, (table, s.array((0, 2), "int64")), axis=0),
        sample(_TAKE, (s.array((a, 0)), s.array((2,), "int64", 0, a - 1)), axis=0),
    ]


# gather_elements


def _elements_infer(call: OpCall) -> Type:
    x, indices = tensor(call, 0), int_tensor(call, 1)
    if x.ndim is not None and indices.ndim is not None and x.ndim != indices.ndim:
        raise call.error(f"{type_text(x)} and {type_text(indices)} must have one rank")
    if x.ndim is not None:
        along = axis(call, call.attrs["axis"], x.ndim)
        if isinstance(x.shape, tuple) and isinstance(indices.shape, tuple):
            require_elements(call, x, (along,), indices.shape)
            for d, (extent, taken) in enumerate(zip(x.shape, indices.shape, strict=True)):
                if d != along and not always_ge(extent, taken):
                    raise call.error(
                        f"axis {d} of the indices {type_text(indices)} must not exceed that of "
                        f"{type_text(x)}"
                    )
    return TensorType(indices.shape, x.dtype)


def _elements_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x, indices = _two(args)
    along = int_attr(attrs, "axis") % x.ndim

    def element(*i: PrimExpr) -> PrimExpr:
        picked = in_range(indices[i], x.shape[along])
        return safe_read(x, (*i[:along], picked, *i[along + 1 :]), (along,))

    return te.compute(indices.shape, element, "gather_elements")


def _elements_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, indices = _arrays(args)
    along = int_attr(attrs, "axis") % x.ndim
    cut = tuple(slice(None) if d == along else slice(n) for d, n in enumerate(indices.shape))
    return np.take_along_axis(x[cut], clamped(indices, x.shape[along]), axis=along)


def _elements_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b = s.shape(2, 2, 5)
    return [
        sample(_ELEMENTS, (s.array((a, b)), s.array((a, b), "int64", -a, a - 1))),
        sample(_ELEMENTS, (s.array((a, b)), s.array((a, 7), "int32", 0, b - 1)), axis=1),
        sample(_ELEMENTS, (s.array((a, b), "int8"), s.array((a - 1, b), "int64", -9, 9)), axis=-1),
        sample(_ELEMENTS, (s.array((a, b)), s.array((0, b), "int64"))),
    ]


# gather_nd


def _nd_batch(call: OpCall) -> int:
    batch = call.attrs["batch_dims"]
    if not isinstance(batch, int) or batch < 0:
        raise call.error(f"batch_dims must be a non-negative int, got {batch!r}")
    return batch


def _nd_infer(call: OpCall) -> Type:
    x, indices, batch = tensor(call, 0), int_tensor(call, 1), _nd_batch(call)
    if not isinstance(x.shape, tuple) or not isinstance(indices.shape, tuple):
        return TensorType(None, x.dtype)
    if not indices.shape:
        raise call.error("'indices' must have rank 1 or more")
    length = indices.shape[-1]
    if not isinstance(length, int) or not batch + length <= len(x.shape):
        raise call.error(
            f"the last axis of {type_text(indices)} gives too many indices, or an unknown number, "
            f"for {type_text(x)} with batch_dims={batch}"
        )
    if len(indices.shape) <= batch:
        raise call.error(f"batch_dims={batch} needs more axes than {type_text(indices)} has")
    lead = broadcast_shapes(call, (x.shape[:batch], indices.shape[:batch]))
    for d, extent in enumerate(lead):
        if not equal(extent, x.shape[d]) or not equal(extent, indices.shape[d]):
            raise call.error(
                f"batch axis {d} differs between {type_text(x)} and {type_text(indices)}"
            )
    picked = indices.shape[batch:-1]
    require_elements(call, x, range(batch, batch + length), (*lead, *picked))
    return TensorType((*lead, *picked, *x.shape[batch + length :]), x.dtype)


def _nd_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x, indices = _two(args)
    dims, _ = known(result)
    batch, length = int_attr(attrs, "batch_dims"), to_dim(indices.shape[-1])
    assert isinstance(length, int)
    outer = indices.ndim - 1

    def element(*i: PrimExpr) -> PrimExpr:
        picked = [in_range(indices[(*i[:outer], n)], x.shape[batch + n]) for n in range(length)]
        at = (*i[:batch], *picked, *i[outer:])
        return safe_read(x, at, range(batch, batch + length))

    return te.compute(dims, element, "gather_nd")


def _nd_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, indices = _arrays(args)
    batch, outer = int_attr(attrs, "batch_dims"), indices.shape[:-1]
    length = indices.shape[-1]
    result = np.zeros((*outer, *x.shape[batch + length :]), x.dtype)
    for at in np.ndindex(*outer):
        picked = tuple(int(clamped(indices[(*at, n)], x.shape[batch + n])) for n in range(length))
        result[at] = x[(*at[:batch], *picked)]
    return result


def _nd_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b, c = s.shape(3, 2, 4)
    x = s.array((a, b, c))
    return [
        sample(_ND, (x, s.array((4, 2), "int64", -2, 1))),
        sample(_ND, (x, s.array((2, 4, 1), "int32", 0, a - 1))),
        sample(_ND, (x, s.array((3,), "int64", 0, 1))),
        sample(_ND, (x, s.array((a, 5, 1), "int64", -9, 9)), batch_dims=1),
        sample(_ND, (x, s.array((a, b, 1), "int64", 0, c - 1)), batch_dims=2),
        sample(_ND, (x, s.array((0, 2), "int64"))),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "take",
        _TAKE,
        _take_infer,
        _take_reference,
        """Slices of x at `indices` along `axis`, which then has the shape of the indices.

        Result: ``(*x.shape[:axis], *indices.shape, *x.shape[axis + 1:])``. A negative index counts
        from the end; one out of range takes the nearest in range, without an error unless compiled
        with ``check_bounds=True`` (R.take, ONNX Gather).
        """,
        compute=_take_compute,
        pattern="injective",
        samples=_take_samples,
    ),
    OpDef(
        "gather_elements",
        _ELEMENTS,
        _elements_infer,
        _elements_reference,
        """``x[i, indices[i, j], k]`` and the like: each index picks along `axis` in its own row.

        The result has the indices' shape. Indices wrap and clamp as in take, without an error
        unless compiled with ``check_bounds=True`` (R.gather_elements, ONNX GatherElements).
        """,
        compute=_elements_compute,
        pattern="injective",
        samples=_elements_samples,
    ),
    OpDef(
        "gather_nd",
        _ND,
        _nd_infer,
        _nd_reference,
        """Slices of x at index vectors, the last axis of `indices`, after `batch_dims` equal axes.

        Indices wrap and clamp as in take, without an error unless compiled with
        ``check_bounds=True`` (R.gather_nd, ONNX GatherND).
        """,
        compute=_nd_compute,
        pattern="injective",
        samples=_nd_samples,
    ),
)
