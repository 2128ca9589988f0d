"""Sliding windows: the geometry that convolution and pooling share, over some spatial axes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from unity import te
from unity.errors import UnityError
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, always_ge, ceildiv, dim_min, floordiv
from unity.ir.dtype import Array
from unity.ir.prim_expr import Imm, PrimExpr
from unity.ir.symbols.convert import to_dim, to_prim_expr

from .registry import OpCall

ErrorMaker: TypeAlias = Callable[[str, str | None], UnityError]


@dataclass(frozen=True, slots=True)
class Window:
    """The geometry along one axis: a kernel that is shifted over a padded extent."""

    kernel: Dim
    stride: int = 1
    before: int = 0
    after: int = 0
    dilation: int = 1
    ceil: bool = False

    @property
    def reach(self) -> Dim:
        """From a window's first element to behind its last."""
        return self.dilation * (self.kernel - 1) + 1

    def steps(self, extent: Dim) -> Dim:
        """How many windows an extent has.

        With `ceil` a last window may stick out at the end, but none starts behind the input
        (torch's and ONNX's rule).
        """
        room = extent + self.before + self.after - self.reach
        if not self.ceil:
            return floordiv(room, self.stride) + 1
        starts_inside = floordiv(extent + self.before - 1, self.stride) + 1
        return dim_min(ceildiv(room, self.stride) + 1, starts_inside)

    def padded(self, extent: Dim) -> Dim:
        """The extent with padding, as far as windows need it where the last may stick out."""
        if not self.ceil:
            return extent + self.before + self.after
        return (self.steps(extent) - 1) * self.stride + self.reach


def _fail(message: str, hint: str | None = None) -> UnityError:
    return UnityError(message, None, hint)


def spatial(
    attrs: Attrs, kernel: Sequence[Dim], *, ceil: bool = False, error: ErrorMaker = _fail
) -> tuple[Window, ...]:
    """The windows that ``strides``, ``padding`` and ``dilation`` describe.

    Args:
        attrs: Where those are.
        kernel: The kernel's spatial extents.
        ceil: Whether a last window may stick out at the end.
        error: Makes an error of a message and a hint; a type rule gives `OpCall.error`.

    Raises:
        UnityError: One of them has the wrong length or a value out of range.
    """
    rank = len(kernel)
    strides = per_axis("strides", attrs["strides"], rank, 1, error)
    dilation = per_axis("dilation", attrs["dilation"], rank, 1, error)
    before, after = paddings(attrs["padding"], rank, error)
    return tuple(
        Window(kernel[d], strides[d], before[d], after[d], dilation[d], ceil) for d in range(rank)
    )


def per_axis(
    name: str, value: object, rank: int, least: int, error: ErrorMaker = _fail
) -> tuple[int, ...]:
    """An attribute that is one int for all spatial axes or one for each.

    Raises:
        UnityError: It is neither.
    """
    given = value if isinstance(value, tuple) else (value,)
    numbers = tuple(v for v in given if isinstance(v, int) and v >= least)
    if len(numbers) != len(given) or len(given) not in (1, rank):
        raise error(
            f"{name} must be an int or {rank} ints, each at least {least}, got {value!r}", None
        )
    return numbers * rank if len(numbers) == 1 else numbers


def paddings(
    value: object, rank: int, error: ErrorMaker = _fail
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Padding before and after each spatial axis, from 1, `rank` or ``2 * rank`` ints.

    Raises:
        UnityError: It is anything else.
    """
    given = value if isinstance(value, tuple) else (value,)
    numbers = tuple(v for v in given if isinstance(v, int) and v >= 0)
    if len(numbers) != len(given) or len(given) not in (1, rank, 2 * rank):
        raise error(
            f"padding must be 1, {rank} or {2 * rank} non-negative ints, got {value!r}",
            "the order is all begins, then all ends: (top, left, bottom, right)",
        )
    if len(numbers) == 1:
        numbers = numbers * (2 * rank)
    elif len(numbers) == rank:
        numbers = numbers * 2
    return numbers[:rank], numbers[rank:]


def check_steps(call: OpCall, windows: Sequence[Window], extents: Sequence[Dim]) -> None:
    """Check that at least one window fits where that is known.

    Raises:
        UnityError: A kernel is larger than the padded input, or empty.
    """
    for window, extent in zip(windows, extents, strict=True):
        room = extent + window.before + window.after
        if isinstance(window.kernel, int) and window.kernel < 1:
            raise call.error(f"the kernel has extent {window.kernel}")
        # A last window that sticks out may be the first, if it begins inside.
        least = window.reach - (window.stride - 1 if window.ceil else 0)
        if isinstance(room, int) and isinstance(least, int) and room < least:
            raise call.error(
                f"the kernel reaches over {window.reach} elements, the padded input has {room}",
                hint="pad more, or use a smaller kernel or dilation",
            )


def pad_spatial(
    x: te.Tensor, windows: Sequence[Window], extents: Sequence[Dim], fill: Imm
) -> te.Tensor:
    """The input with its trailing axes padded by `fill`; itself where nothing is to pad."""
    pairs = list(zip(windows, extents, strict=True))
    if all(w.before == 0 and always_ge(e, w.padded(e)) for w, e in pairs):
        return x
    lead = x.ndim - len(windows)
    shape = [*x.shape[:lead]]
    shape += [to_prim_expr(w.padded(e)) for w, e in pairs]

    def element(*i: PrimExpr) -> PrimExpr:
        inside: list[PrimExpr] = []
        index = list(i)
        for d, (w, e) in enumerate(pairs, lead):
            if w.before:
                inside.append(i[d] >= w.before)
                index[d] = i[d] - w.before
            if not always_ge(e + w.before, w.padded(e)):
                inside.append(i[d] < to_prim_expr(e + w.before))
        return te.select(te.all_true(*inside), x[tuple(index)], fill)

    return te.compute(shape, element, "pad")


def position(step: PrimExpr, tap: PrimExpr, window: Window) -> PrimExpr:
    """Where in the padded extent a window's tap lies."""
    start = step if window.stride == 1 else step * window.stride
    return start + (tap if window.dilation == 1 else tap * window.dilation)


def taps(windows: Sequence[Window]) -> tuple[te.ReduceAxis, ...]:
    """The axes over the kernel; a fourth is that of lanes."""
    names = ("kd", "kh", "kw", "lane")
    end = max(3, len(windows))
    named = zip(windows, names[end - len(windows) : end], strict=True)
    return tuple(te.reduce_axis(w.kernel, n) for w, n in named)


def pad_reference(x: Array, windows: Sequence[Window], fill: float) -> Array:
    """The numpy array with its trailing axes padded."""
    extents = x.shape[x.ndim - len(windows) :]
    widths = [(0, 0)] * (x.ndim - len(windows))
    for w, e in zip(windows, extents, strict=True):
        padded = w.padded(e)
        assert isinstance(padded, int)
        widths.append((w.before, max(0, padded - e - w.before)))
    return np.pad(x, widths, constant_values=np.asarray(fill).astype(x.dtype))


def all_taps(windows: Sequence[Window]) -> Iterator[tuple[int, ...]]:
    """Every position in a kernel of known extents."""
    extents: list[int] = []
    for w in windows:
        assert isinstance(w.kernel, int)
        extents.append(w.kernel)
    return itertools.product(*(range(n) for n in extents))


def tap_reference(padded: Array, windows: Sequence[Window], tap: Sequence[int]) -> Array:
    """What one tap of all windows sees: a strided slice of a padded array."""
    lead = padded.ndim - len(windows)
    slices: list[slice] = [slice(None)] * lead
    for d, (w, at) in enumerate(zip(windows, tap, strict=True)):
        reach = w.reach
        assert isinstance(reach, int)
        steps = (padded.shape[lead + d] - reach) // w.stride + 1
        begin = at * w.dilation
        slices.append(slice(begin, begin + (steps - 1) * w.stride + 1, w.stride))
    return padded[tuple(slices)]


def dims_of(t: te.Tensor) -> tuple[Dim, ...]:
    """A tensor's extents as dims."""
    found = [to_dim(e) for e in t.shape]
    dims = tuple(d for d in found if d is not None)
    assert len(dims) == len(found), t.shape
    return dims
