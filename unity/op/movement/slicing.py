"""Slices with static or symbolic bounds, read and written; parts by index, as numpy has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import EllipsisType
from typing import TypeAlias, TypeVar

import numpy as np

from unity import te
from unity.errors import UnityError
from unity.ir.attrs import Attrs, AttrValue
from unity.ir.dims import (
    Dim,
    SymDim,
    always_ge,
    as_dim,
    ceildiv,
    dim_max,
    dim_min,
    dim_text,
    equal,
)
from unity.ir.dtype import Array
from unity.ir.prim_expr import PrimExpr
from unity.ir.symbols.convert import to_prim_expr
from unity.ir.types import Shape, TensorType, Type
from unity.op.argument import axes, axis, common_dtype, require_equal, tensor
from unity.op.attribute import BOUNDS, INT, INTS, SIZE, optional
from unity.op.reduction.reduce import known
from unity.op.registry import (
    ComputeArg,
    OpCall,
    OpDef,
    Param,
    RefArg,
    Sample,
    attr,
    int_attr,
    ints_attr,
)
from unity.op.sampling import Sampler, sample
from unity.op.window import dims_of

Index: TypeAlias = "int | SymDim | slice | EllipsisType | None"
V = TypeVar("V")
_SLICE = (
    Param("x"),
    attr("axes", INTS),
    attr("begin", BOUNDS),
    attr("end", BOUNDS),
    attr("strides", INTS, None),
)
_SCATTER = (
    Param("x"),
    Param("update"),
    attr("begin", optional(SIZE)),
    attr("end", optional(SIZE)),
    attr("stride", INT, 1),
    attr("axis", INT, 0),
)
_FAR = 2**31 - 1
"""A bound as large as this means the end: exporters write INT32_MAX or INT64_MAX for it."""


def resolve(bound: Dim, extent: Dim) -> Dim:
    """A bound counted from the front: a negative one counts from the end (it may be either)."""
    if always_ge(bound, 0):
        return bound
    if always_ge(-1, bound):
        return as_dim(bound + extent)
    is_negative = -dim_max(dim_min(bound, 0), -1)
    return as_dim(bound + extent * is_negative)


def at_least(value: Dim, low: Dim) -> Dim:
    """The larger of two dims, decided where the facts allow."""
    if always_ge(value, low):
        return value
    return low if always_ge(low, value) else dim_max(value, low)


def at_most(value: Dim, high: Dim) -> Dim:
    """The smaller of two dims, decided where the facts allow."""
    if always_ge(high, value):
        return value
    return high if always_ge(value, high) else dim_min(value, high)


def bounds_of(begin: Dim | None, end: Dim | None, stride: int, extent: Dim) -> tuple[Dim, Dim]:
    """Where a slice begins and how long it is, by Python's rules; None is the far end of a side."""
    if stride == 1 and isinstance(begin, int) and -_FAR < begin < 0 and _is_far(end):
        length = at_most(-begin, extent)  # the last few: shorter than what the clamps below give
        return as_dim(extent - length), length
    first, last = (0, extent) if stride > 0 else (as_dim(extent - 1), -1)
    start = _clamped(first if begin is None else begin, first, begin is None, stride, extent)
    stop = _clamped(last if end is None else end, last, end is None, stride, extent)
    if stride == 1 and begin is not None and stop == extent and start != extent:
        low = at_least(resolve(begin, extent), 0)  # nothing is left behind the end
        return start, at_least(as_dim(extent - low), 0)
    distance = stop - start if stride > 0 else start - stop
    return start, at_least(ceildiv(as_dim(distance), abs(stride)), 0)


def _is_far(end: Dim | None) -> bool:
    return end is None or (isinstance(end, int) and end >= _FAR)


def _clamped(bound: Dim, given: Dim, is_default: bool, stride: int, extent: Dim) -> Dim:
    if is_default:
        return given
    low, high = (0, extent) if stride > 0 else (-1, as_dim(extent - 1))
    if isinstance(bound, int) and abs(bound) >= _FAR:
        return high if bound > 0 else low
    return at_most(at_least(resolve(bound, extent), low), high)


def _dim_or_none(value: AttrValue) -> Dim | None:
    assert value is None or isinstance(value, int | SymDim), value
    return value


def _bounds(attrs: Attrs, over: Sequence[int], shape: Shape) -> list[tuple[Dim, Dim, int]]:
    """(begin, length, stride) of each sliced axis."""
    begins, ends = attrs["begin"], attrs["end"]
    assert isinstance(begins, tuple)
    assert isinstance(ends, tuple)
    strides = (1,) * len(over) if attrs["strides"] is None else ints_attr(attrs, "strides")
    found: list[tuple[Dim, Dim, int]] = []
    for d, begin, end, stride in zip(over, begins, ends, strides, strict=True):
        start, length = bounds_of(_dim_or_none(begin), _dim_or_none(end), stride, shape[d])
        found.append((start, length, stride))
    return found


def _infer(call: OpCall) -> Type:
    x = tensor(call, 0)
    if x.ndim is None:
        return x
    over = axes(call, call.attrs["axes"], x.ndim)
    for name in ("begin", "end", "strides"):
        value = call.attrs[name]
        if name == "strides" and value is None:
            continue
        if not isinstance(value, tuple) or len(value) != len(over):
            raise call.error(f"{name} must be a tuple, one for each of the axes {over}: {value!r}")
        for v in value:
            fits = isinstance(v, int) and not isinstance(v, bool)
            if name == "strides":
                fits = fits and v != 0
            elif v is None or isinstance(v, SymDim):
                fits = True
            if not fits:
                kind = "an int other than 0" if name == "strides" else "a dim or None"
                raise call.error(f"each of {name} must be {kind}, got {v!r}")
    if not isinstance(x.shape, tuple):
        return x
    dims = list(x.shape)
    for d, (_, length, _) in zip(over, _bounds(call.attrs, over, x.shape), strict=True):
        dims[d] = length
    return TensorType(tuple(dims), x.dtype)


def _normalized_axes(attrs: Attrs, ndim: int) -> list[int]:
    given = attrs["axes"]
    many = range(ndim) if given is None else ints_attr(attrs, "axes")
    return [a % ndim for a in many]


def _compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    (x,) = args
    assert isinstance(x, te.Tensor)
    dims, _ = known(result)
    over = _normalized_axes(attrs, x.ndim)
    found = dict(zip(over, _bounds(attrs, over, dims_of(x)), strict=True))

    def element(*i: PrimExpr) -> PrimExpr:
        at = list(i)
        for d, (begin, _, stride) in found.items():
            step = i[d] if stride == 1 else i[d] * stride
            at[d] = step if equal(begin, 0) else step + to_prim_expr(begin)
        return x[tuple(at)]

    return te.compute(dims, element, "strided_slice")


def _slices(attrs: Attrs, ndim: int) -> tuple[slice, ...]:
    begins, ends = attrs["begin"], attrs["end"]
    assert isinstance(begins, tuple)
    assert isinstance(ends, tuple)
    over = _normalized_axes(attrs, ndim)
    strides = (1,) * len(over) if attrs["strides"] is None else ints_attr(attrs, "strides")
    found = [slice(None)] * ndim
    for d, b, e, s in zip(over, begins, ends, strides, strict=True):
        assert isinstance(b, int | None)
        assert isinstance(e, int | None)
        found[d] = slice(b, e, s)
    return tuple(found)


def _reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    (x,) = args
    assert isinstance(x, np.ndarray)
    return np.ascontiguousarray(x[_slices(attrs, x.ndim)])


def _samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    x, y = s.array((6, 7, 5)), s.array((4, 9), "int64")

    def call(
        of: Array,
        over: tuple[int, ...],
        begin: tuple[int | None, ...],
        end: tuple[int | None, ...],
        strides: tuple[int, ...] | None = None,
    ) -> Sample:
        return sample(_SLICE, (of,), axes=over, begin=begin, end=end, strides=strides)

    return [
        call(x, (0,), (1,), (4,)),
        call(x, (1, 2), (-3, 0), (2**63 - 1, -1)),
        call(x, (0, 2), (None, 1), (None, None), (2, 3)),
        call(x, (-1,), (None,), (None,), (-1,)),
        call(y, (1, 0), (-2, 3), (-(2**63), 0), (-3, -1)),
        call(y, (1,), (5,), (2,)),
        call(y, (0,), (-100,), (100,)),
        call(s.array((0, 3)), (0, 1), (0, 1), (2, 3)),
    ]


# slice_scatter


def _scatter_infer(call: OpCall) -> Type:
    x, update = tensor(call, 0), tensor(call, 1)
    common_dtype(call, (x, update))
    for name in ("begin", "end"):
        v = call.attrs[name]
        if v is not None and (isinstance(v, bool) or not isinstance(v, int | SymDim)):
            raise call.error(f"{name} must be a dim or None, got {v!r}")
    stride = call.attrs["stride"]
    if not isinstance(stride, int) or stride < 1:
        raise call.error(f"stride must be a positive int, got {stride!r}")
    if not isinstance(x.shape, tuple):
        return x
    along = axis(call, call.attrs["axis"], len(x.shape))
    if update.ndim not in (None, len(x.shape)):
        raise call.error(f"'update' must have rank {len(x.shape)}, got {update.ndim}")
    if isinstance(update.shape, tuple):
        _, length = _scatter_bounds(call.attrs, x.shape[along])
        for d, extent in enumerate(update.shape):
            wanted = length if d == along else x.shape[d]
            require_equal(call, extent, wanted, f"'update' along axis {d}")
    return x


def _scatter_bounds(attrs: Attrs, extent: Dim) -> tuple[Dim, Dim]:
    begin, end = _dim_or_none(attrs["begin"]), _dim_or_none(attrs["end"])
    return bounds_of(begin, end, int_attr(attrs, "stride"), extent)


def _scatter_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x, update = args
    assert isinstance(x, te.Tensor)
    assert isinstance(update, te.Tensor)
    along, stride = int_attr(attrs, "axis") % x.ndim, int_attr(attrs, "stride")
    begin, length = (to_prim_expr(d) for d in _scatter_bounds(attrs, dims_of(x)[along]))

    def element(*i: PrimExpr) -> PrimExpr:
        offset = i[along] - begin
        step = offset if stride == 1 else offset // stride
        inside = [offset >= 0, step < length]
        if stride != 1:
            inside.append(te.eq(offset % stride, 0))
        value = update[(*i[:along], step, *i[along + 1 :])]
        return te.select(te.all_true(*inside), value, x[i])

    return te.compute(x.shape, element, "slice_scatter")


def _scatter_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, update = args
    assert isinstance(x, np.ndarray)
    assert isinstance(update, np.ndarray)
    begin, end = attrs["begin"], attrs["end"]
    assert isinstance(begin, int | None)
    assert isinstance(end, int | None)
    result = x.copy()
    at = [slice(None)] * x.ndim
    at[int_attr(attrs, "axis")] = slice(begin, end, int_attr(attrs, "stride"))
    result[tuple(at)] = update
    return result


def _scatter_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a = s.shape(1)[0]
    return [
        sample(_SCATTER, (s.array((6, a)), s.array((3, a))), begin=1, end=4),
        sample(_SCATTER, (s.array((a, 7)), s.array((a, 2))), begin=-5, end=-1, stride=2, axis=1),
        sample(
            _SCATTER,
            (s.array((a, 7), "int8"), s.array((a, 7), "int8")),
            begin=None,
            end=None,
            axis=-1,
        ),
        sample(_SCATTER, (s.array((4, a)), s.array((0, a))), begin=2, end=2),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "strided_slice",
        _SLICE,
        _infer,
        _reference,
        """``x[begin:end:strides]`` along `axes`, by Python's rules (R.strided_slice, ONNX Slice).

        Bounds are ints, dims or None (the far end); negative ones count from the end, and all are
        clamped, so nothing outside is read. An int of ``2**31 - 1`` or more means the end. A dim
        that may be of either sign costs a wordy result shape; name that with match_cast.
        """,
        compute=_compute,
        pattern="injective",
        samples=_samples,
    ),
    OpDef(
        "slice_scatter",
        _SCATTER,
        _scatter_infer,
        _scatter_reference,
        """x with ``x[begin:end:stride]`` along `axis` replaced by `update` (R.slice_scatter).

        Bounds as in strided_slice; `update` must have exactly the slice's shape.
        """,
        compute=_scatter_compute,
        pattern="injective",
        samples=_scatter_samples,
    ),
)


@dataclass(slots=True)
class Part:
    """What an index comes to: a strided slice, then axes dropped, then new ones.

    Attributes:
        axes: Those that are cut.
        begins: Where each begins; None is the far end of a slice backward.
        ends: Where each ends; likewise.
        steps: By how much each goes on.
        dropped: Axes that an integer stood for.
        new: Axes of size 1 in the result.
    """

    axes: list[int] = field(default_factory=list[int])
    begins: list[Dim | None] = field(default_factory=list["Dim | None"])
    ends: list[Dim | None] = field(default_factory=list["Dim | None"])
    steps: list[int] = field(default_factory=list[int])
    dropped: list[int] = field(default_factory=list[int])
    new: tuple[int, ...] = ()

    def of(self, x: V, op: Callable[..., V]) -> V:
        """This part of a value.

        Args:
            x: The value.
            op: Calls an operator: its name, the value, and attributes.
        """
        if self.axes:
            cut = (tuple(self.axes), tuple(self.begins), tuple(self.ends), tuple(self.steps))
            x = op("strided_slice", x, *cut)
        if self.dropped:
            x = op("squeeze", x, tuple(self.dropped))
        return op("expand_dims", x, self.new) if self.new else x


def part_of(shape: Sequence[Dim], index: object, take: str = "R.take") -> Part:
    """What an index of a tensor means.

    Args:
        shape: The tensor's.
        index: Integers, slices, ``...`` and None, or a tuple of them. Negative integers
            count from the end, as numpy's do; sizes never do.
        take: What the operator is called that takes rows by a tensor, for messages.

    Raises:
        UnityError: It is something else, or has more axes than the tensor.

    >>> part = part_of((4, 6), (slice(1, None), None, -1))
    >>> part.axes, part.begins, part.ends, part.dropped, part.new
    ([0, 1], [1, 5], [4, 6], [1], (1,))
    """
    given = index if isinstance(index, tuple) else (index,)
    found = Part()
    spread = whole_index(given, len(shape))
    axis = 0
    for i in spread:
        if i is None:
            continue
        size = shape[axis]
        if isinstance(i, slice):
            begin, end, step = _range(i, size, take)
            if (begin, end, step) != (0, size, 1):
                _cut(found, axis, begin, end, step)
        else:
            begin = _place(i, size, take)
            if not (always_ge(begin, 0) and always_ge(size, as_dim(begin + 1))):
                raise UnityError(
                    f"index {dim_text(as_dim(i))} of axis {axis}, which has {dim_text(size)}: "
                    "it is not known to be there",
                    hint='dim("n", min=1) says how many there are at least',
                )
            _cut(found, axis, begin, as_dim(begin + 1), 1)
            found.dropped.append(axis)
        axis += 1
    kept = [i for i in spread if i is None or isinstance(i, slice)]
    found.new = tuple(k for k, i in enumerate(kept) if i is None)
    return found


def whole_index(given: Sequence[object], rank: int) -> list[object]:
    """An index with a slice for each axis that it does not name."""
    named = sum(i is not None and i is not ... for i in given)
    if sum(i is ... for i in given) > 1 or named > rank:
        raise UnityError(
            f"an index of {named} axes for a tensor of {rank}", hint="... stands at one place"
        )
    spread: list[object] = []
    for i in given:
        spread += [slice(None)] * (rank - named) if i is ... else [i]
    return spread + [slice(None)] * (rank - sum(i is not None for i in spread))


def _cut(part: Part, axis: int, begin: Dim | None, end: Dim | None, step: int) -> None:
    part.axes.append(axis)
    part.begins.append(begin)
    part.ends.append(end)
    part.steps.append(step)


def _range(i: slice, size: Dim, take: str) -> tuple[Dim | None, Dim | None, int]:
    step: object = 1 if i.step is None else i.step
    if not isinstance(step, int) or step == 0:
        raise UnityError(f"a slice with a step of {step!r}", hint="an integer other than 0")
    if step < 0:
        ends = (None if v is None else _bound(v, size, take) for v in (i.start, i.stop))
        begin, end = ends
        return begin, end, step
    begin = 0 if i.start is None else _bound(i.start, size, take)
    return begin, size if i.stop is None else _bound(i.stop, size, take), step


def _bound(value: object, size: Dim, take: str) -> Dim:
    """A begin or an end of a slice: one before the first stays negative, for the operator to cut.

    ``n - 3`` would count from the end once more where n is 2.
    """
    place = _place(value, size, take)
    if isinstance(value, int | np.integer) and value < 0 and not always_ge(place, 0):
        return int(value)
    return place


def _place(value: object, size: Dim, take: str) -> Dim:
    """A begin or an end; negative numbers count from the end."""
    if isinstance(value, np.integer):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | SymDim):
        raise UnityError(
            f"an index holds {value!r}",
            hint=f"integers, sizes, slices, ... and None; {take} takes rows by a tensor",
        )
    place = as_dim(value)
    return as_dim(size + place) if isinstance(place, int) and place < 0 else place
