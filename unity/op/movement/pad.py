"""Padding: elements added around a tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, cast

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, SymDim, always_ge, as_dim, dim_text, equal
from unity.ir.dtype import Array
from unity.ir.prim_expr import PrimExpr, as_prim_expr
from unity.ir.symbols.convert import to_prim_expr
from unity.ir.types import TensorType, Type
from unity.op.argument import tensor, type_text
from unity.op.attribute import NUMBER, SIZES, TEXT
from unity.op.reduction.reduce import known
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, attr
from unity.op.sampling import Sampler, sample
from unity.op.window import dims_of

_PARAMS = (
    Param("x"),
    attr("pad_width", SIZES),
    attr("pad_mode", TEXT, "constant"),
    attr("pad_value", NUMBER, 0.0),
)
_MODES = ("constant", "edge", "reflect", "wrap")


def _widths(attrs: Attrs, ndim: int) -> list[tuple[Dim, Dim]] | None:
    """(before, after) of each axis; None if the attribute is ill-formed."""
    given = attrs["pad_width"]
    if not isinstance(given, tuple) or len(given) != 2 * ndim:
        return None
    found = [v for v in given if isinstance(v, int | SymDim) and not isinstance(v, bool)]
    if len(found) != len(given):
        return None
    return [(found[2 * d], found[2 * d + 1]) for d in range(ndim)]


def _infer(call: OpCall) -> Type:
    x = tensor(call, 0)
    if x.ndim is None:
        return x
    widths = _widths(call.attrs, x.ndim)
    if widths is None:
        raise call.error(
            f"pad_width must be {2 * x.ndim} dims, got {call.attrs['pad_width']!r}",
            hint="for each axis: how many before, how many after",
        )
    mode = call.attrs["pad_mode"]
    if mode not in _MODES:
        raise call.error(f"pad_mode must be one of {', '.join(_MODES)}, got {mode!r}")
    if not isinstance(call.attrs["pad_value"], int | float):
        raise call.error(f"pad_value must be a number, got {call.attrs['pad_value']!r}")
    if not isinstance(x.shape, tuple):
        return x
    dims: list[Dim] = []
    for d, (extent, (before, after)) in enumerate(zip(x.shape, widths, strict=True)):
        total = as_dim(extent + before + after)
        if isinstance(total, int) and total < 0:
            raise call.error(f"axis {d} of {type_text(x)} can't lose {-before - after} elements")
        for width in (before, after):
            if equal(width, 0):
                continue
            least = {"constant": None, "edge": 0, "reflect": width, "wrap": width - 1}[str(mode)]
            # Reading past the far end, or from an empty axis, has no meaning.
            if least is not None and not always_ge(extent, as_dim(least + 1)):
                raise call.error(
                    f"{mode} padding by {dim_text(width)} needs an extent of at least "
                    f"{dim_text(as_dim(least + 1))}, axis {d} of {type_text(x)} may have less"
                )
        dims.append(total)
    return TensorType(tuple(dims), x.dtype)


def _compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    (x,) = args
    assert isinstance(x, te.Tensor)
    dims, of = known(result)
    widths, extents = _widths(attrs, x.ndim), dims_of(x)
    assert widths is not None
    value, mode = attrs["pad_value"], attrs["pad_mode"]
    assert isinstance(value, int | float)
    moved = _SOURCES.get(str(mode))

    def element(*i: PrimExpr) -> PrimExpr:
        at: list[PrimExpr] = []
        inside: list[PrimExpr] = []
        for v, extent, (before, after) in zip(i, extents, widths, strict=True):
            own = v if equal(before, 0) else v - to_prim_expr(before)
            if not always_ge(0, before):
                inside.append(own >= 0)
            if not always_ge(0, after):
                inside.append(own < to_prim_expr(extent))
            padded = not (always_ge(0, before) and always_ge(0, after))
            at.append(moved(own, to_prim_expr(extent)) if moved and padded else own)
        read = x[tuple(at)]
        if moved or not inside:
            return read
        return te.select(te.all_true(*inside), read, as_prim_expr(value, of))

    return te.compute(dims, element, "pad")


_SOURCES: dict[str, Callable[[PrimExpr, PrimExpr], PrimExpr]] = {
    "edge": lambda i, n: te.min_(te.max_(i, 0), n - 1),
    "reflect": lambda i, n: te.select(i < 0, -i, te.select(i < n, i, n * 2 - 2 - i)),
    "wrap": lambda i, n: te.select(i < 0, i + n, te.select(i < n, i, i - n)),
}
"""From a position outside ``0 <= i < n`` (by less than the extent, but for edge) to one inside."""


def _reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    (x,) = args
    assert isinstance(x, np.ndarray)
    widths = _widths(attrs, x.ndim)
    assert widths is not None
    if x.ndim == 0:
        return x.copy()
    pairs = [(int(as_int(b)), int(as_int(a))) for b, a in widths]
    cut = tuple(slice(max(0, -b), n - max(0, -a)) for n, (b, a) in zip(x.shape, pairs, strict=True))
    grown = [(max(0, b), max(0, a)) for b, a in pairs]
    mode = cast("Literal['constant', 'edge', 'reflect', 'wrap']", attrs["pad_mode"])
    if mode == "constant":
        value = np.asarray(attrs["pad_value"]).astype(x.dtype)
        return np.pad(x[cut], grown, constant_values=value)
    return np.pad(x[cut], grown, mode)


def as_int(value: Dim) -> int:
    """A dim known by now."""
    assert isinstance(value, int), value
    return value


def _samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b = s.shape(2, 3, 5)
    return [
        sample(_PARAMS, (s.array((a, b)),), pad_width=(1, 2, 0, 3), pad_value=1.5),
        sample(_PARAMS, (s.array((a, b), "int64"),), pad_width=(0, 0, 2, 0), pad_value=-1),
        sample(_PARAMS, (s.array((2, a, b), "float16"),), pad_width=(0, 0, 1, 1, 1, 1)),
        sample(_PARAMS, (s.array((a, b)),), pad_width=(-1, 2, 1, -2)),
        sample(_PARAMS, (s.array((a, b)),), pad_width=(2, 6, 0, 1), pad_mode="edge"),
        sample(_PARAMS, (s.array((a, b)),), pad_width=(2, 1, 0, 2), pad_mode="reflect"),
        sample(_PARAMS, (s.array((a, b)),), pad_width=(1, 2, 3, 0), pad_mode="wrap"),
        sample(_PARAMS, (s.array((0, b)),), pad_width=(1, 1, 0, 0)),
        sample(_PARAMS, (s.array(()),), pad_width=()),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "nn.pad",
        _PARAMS,
        _infer,
        _reference,
        """Elements added around: `pad_width` is (before, after) of each axis in turn, in one tuple.

        The widths may be dims, and negative ones cut. `pad_mode` is constant (of `pad_value`),
        edge, reflect or wrap (R.nn.pad, ONNX Pad, numpy.pad); reflect and wrap reach the far end at
        most.
        """,
        compute=_compute,
        pattern="injective",
        samples=_samples,
    ),
)
