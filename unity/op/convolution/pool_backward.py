"""What the gradient of a pool over images is of the images."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dtype import INT64, Array
from unity.ir.prim_expr import PrimExpr, imm
from unity.ir.symbols.convert import to_prim_expr
from unity.ir.types import TensorType, Type
from unity.op.accumulate import Real, real, rounded, working_dtype
from unity.op.argument import common_dtype, float_tensor, ranked, require_equal
from unity.op.attribute import FLAG
from unity.op.reduction.reduce import known
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, TypeRule, attr
from unity.op.sampling import Sampler, sample
from unity.op.window import (
    Window,
    all_taps,
    check_steps,
    dims_of,
    pad_reference,
    pad_spatial,
    position,
    tap_reference,
    taps,
)

from .pool import divisor, pool_params, pool_windows

_RANK = 2
_MAX = (Param("output_grad"), Param("data"), *pool_params(_RANK)[1:])
_AVG = (
    Param("output_grad"),
    Param("data"),
    *pool_params(_RANK, attr("count_include_pad", FLAG, False))[1:],
)


def _infer(call: OpCall) -> Type:
    grad, x = ranked(call, 0, 4), ranked(call, 1, 4)
    kind = common_dtype(call, (float_tensor(call, 0), float_tensor(call, 1)))
    if call.attrs["layout"] != "NCHW":
        raise call.error(
            f"layout must be 'NCHW', got {call.attrs['layout']!r}",
            hint="transpose with permute_dims",
        )
    windows = pool_windows(call, _RANK)
    if isinstance(x.shape, tuple):
        check_steps(call, windows, x.shape[2:])
        steps = (w.steps(e) for w, e in zip(windows, x.shape[2:], strict=True))
        if isinstance(grad.shape, tuple):
            wanted = (*x.shape[:2], *steps)
            for d, (a, b) in enumerate(zip(grad.shape, wanted, strict=True)):
                require_equal(call, a, b, f"'output_grad' along axis {d}")
    return TensorType(4 if x.shape is None else x.shape, kind)


def _gathered(
    grad: te.Tensor,
    result: Type,
    windows: Sequence[Window],
    part: Callable[[tuple[PrimExpr, ...], tuple[te.ReduceAxis, ...]], PrimExpr],
) -> te.Tensor:
    """Each pixel's sum of what the windows that it lies in have for it.

    Args:
        grad: What windows have, by their places.
        result: The type of the sum.
        windows: The geometry.
        part: What a window, of a place in `grad`, has for the pixel that is one of its taps.
    """
    dims, out = known(result)
    k, wide = taps(windows), working_dtype(out)

    def total(*i: PrimExpr) -> te.Reduce:
        at: list[PrimExpr] = []
        inside: list[PrimExpr] = []
        for d, (place, tap, w) in enumerate(zip(i[2:], k, windows, strict=True), 2):
            begin = place + w.before - tap.var * w.dilation
            step = begin // w.stride
            inside += [begin >= 0, step < grad.shape[d]]
            if w.stride > 1:
                inside.append(te.eq(begin % w.stride, 0))
            at.append(step)
        value = part((*i[:2], *at), k)
        return te.sum(te.select(te.all_true(*inside), value, imm(0.0, wide)), axis=k)

    made = te.compute(dims, total, "pool_backward")
    return made if made.dtype == out else te.compute(dims, lambda *i: te.cast(made[i], out), "cast")


def _two(args: Sequence[ComputeArg]) -> tuple[te.Tensor, te.Tensor]:
    grad, x = args
    assert isinstance(grad, te.Tensor)
    assert isinstance(x, te.Tensor)
    return grad, x


def _avg_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    grad, x = _two(args)
    windows, extents = pool_windows(attrs, _RANK), dims_of(x)[2:]
    wide = working_dtype(x.dtype)

    def share(*i: PrimExpr) -> PrimExpr:
        counted = attrs["count_include_pad"] is True
        size, varying = divisor(i[2:], windows, extents, counted, wide)
        value = te.cast(grad[i], wide) * (1 / size)
        return value if varying is None else value / varying

    shares = te.compute(grad.shape, share, "share")
    return _gathered(grad, result, windows, lambda at, _: shares[at])


def _max_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    grad, x = _two(args)
    windows, extents = pool_windows(attrs, _RANK), dims_of(x)[2:]
    wide = working_dtype(x.dtype)
    padded = pad_spatial(x, windows, extents, te.min_value(x.dtype))

    def place(i: Sequence[PrimExpr], k: Sequence[te.ReduceAxis]) -> tuple[PrimExpr, ...]:
        steps = zip(i[2:], k, windows, strict=True)
        return (*i[:2], *(position(s, t.var, w) for s, t, w in steps))

    def number(k: Sequence[te.ReduceAxis]) -> PrimExpr:
        """Which tap it is, row by row."""
        return k[0].var * to_prim_expr(windows[1].kernel) + k[1].var

    over = taps(windows)
    peak = te.compute(grad.shape, lambda *i: te.max(padded[place(i, over)], axis=over), "peak")
    again = taps(windows)

    def first(*i: PrimExpr) -> te.Reduce:
        at = place(i, again)
        value = padded[at]
        inside = [
            test
            for p, w, e in zip(at[2:], windows, extents, strict=True)
            for test in (p >= w.before, p < to_prim_expr(e + w.before))
        ]
        best = te.or_(te.eq(value, peak[i]), te.ne(value, value))
        here = te.and_(te.all_true(*inside), best)
        return te.min(te.select(here, number(again), te.max_value(INT64)), axis=again)

    best = te.compute(grad.shape, first, "first")

    def part(at: tuple[PrimExpr, ...], k: tuple[te.ReduceAxis, ...]) -> PrimExpr:
        return te.select(te.eq(best[at], number(k)), te.cast(grad[at], wide), imm(0.0, wide))

    return _gathered(grad, result, windows, part)


def _cropped(padded: Array, windows: Sequence[Window], x: Array) -> Array:
    inner = [slice(w.before, w.before + n) for w, n in zip(windows, x.shape[2:], strict=True)]
    return rounded(padded[(slice(None), slice(None), *inner)], x)


def _add(padded: Real, windows: Sequence[Window], tap: Sequence[int], part: Real) -> None:
    """Add to what one tap of all windows sees."""
    seen = tap_reference(padded, windows, tap)
    np.copyto(seen, real(seen) + part)


def _avg_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    grad, x = (a for a in args if isinstance(a, np.ndarray))
    windows = pool_windows(attrs, _RANK)
    inside = pad_reference(np.ones(x.shape), windows, 0)
    if attrs["count_include_pad"] is True:
        inner = [slice(e + w.before + w.after) for e, w in zip(x.shape[2:], windows, strict=True)]
        inside[(slice(None), slice(None), *inner)] = 1
    seen = np.stack([tap_reference(inside, windows, tap) for tap in all_taps(windows)])
    share = real(grad) / real(np.asarray(seen.sum(axis=0)))
    found = np.zeros_like(real(inside))
    for tap in all_taps(windows):
        _add(found, windows, tap, share)
    return _cropped(found, windows, x)


def _max_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    grad, x = (a for a in args if isinstance(a, np.ndarray))
    windows = pool_windows(attrs, _RANK)
    padded = pad_reference(real(x), windows, -np.inf)
    found, every = np.zeros(padded.shape), list(all_taps(windows))
    best = np.stack([tap_reference(padded, windows, tap) for tap in every]).argmax(axis=0)
    for k, tap in enumerate(every):
        _add(found, windows, tap, np.where(best == k, real(grad), 0.0))
    return _cropped(found, windows, x)


def _samples(params: tuple[Param, ...], **more: object) -> Callable[[int], Sequence[Sample]]:
    def rule(seed: int) -> Sequence[Sample]:
        s = Sampler.seeded(seed)
        n, c = s.shape(2, 1, 3)
        h, w = s.shape(2, 6, 9)

        def call(kind: str = "float32", **attrs: object) -> Sample:
            x = s.array((n, c, h, w), kind)
            made = sample(params, (), **more, **attrs)
            windows = pool_windows(made.attrs, _RANK)
            steps = [g.steps(e) for g, e in zip(windows, (h, w), strict=True)]
            grad = s.array((n, c, *(e for e in steps if isinstance(e, int))), kind)
            return Sample((grad, x), made.attrs)

        return [
            call(pool_size=2, strides=2),
            call(pool_size=(3, 2), strides=2, padding=(1, 0, 1, 1)),
            call(pool_size=3, strides=2, padding=1, ceil_mode=True),
            call("float64", pool_size=2, dilation=2),
            call("float16", pool_size=3, strides=(1, 3)),
        ]

    return rule


def _avg_samples(seed: int) -> Sequence[Sample]:
    return [
        *_samples(_AVG)(seed),
        *_samples(_AVG, count_include_pad=True)(seed),
    ]


def _row(kind: str, params: tuple[Param, ...], infer: TypeRule, doc: str) -> OpDef:
    mean = kind == "avg"
    return OpDef(
        f"grad.{kind}_pool2d_backward",
        params,
        infer,
        _avg_reference if mean else _max_reference,
        doc,
        compute=_avg_compute if mean else _max_compute,
        pattern="opaque",
        samples=_avg_samples if mean else _samples(_MAX),
    )


OPS: tuple[OpDef, ...] = (
    _row(
        "avg",
        _AVG,
        _infer,
        """The gradient of `data` of `nn.avg_pool2d`, whose result has `output_grad`.

        `data` is ``(n, c, h, w)``, of a float dtype, and only its shape counts; the attributes are
        those of `nn.avg_pool2d`. Gives the shape and the dtype of `data`
        (R.grad.avg_pool2d_backward).
        """,
    ),
    _row(
        "max",
        _MAX,
        _infer,
        """The gradient of `data` of `nn.max_pool2d`, whose result has `output_grad`.

        All of a window's gradient goes to the first of its largest pixels, row by row, NaN before
        any. `data` is ``(n, c, h, w)``, of a float dtype; the attributes are those of
        `nn.max_pool2d`. Gives the shape and the dtype of `data` (R.grad.max_pool2d_backward).
        """,
    ),
)
