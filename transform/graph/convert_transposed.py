"""ConvertTransposed: transposed convolutions by constants become convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unity.ir.dims import as_dim, equal
from unity.ir.dtype import Array
from unity.ir.graph import Call, Constant, Expr, Op, Var
from unity.ir.module import IRModule
from unity.ir.types import Shape, TensorType
from unity.op.call import call_op
from unity.op.registry import int_attr
from unity.op.window import Window, per_axis, spatial

from ..passes import Context, Pass, map_functions
from .derived import derived
from .rewriter import BodyRewriter

_CONVOLUTIONS = {f"nn.conv{rank}d_transpose": f"nn.conv{rank}d" for rank in (1, 2, 3)}


@dataclass(frozen=True, slots=True)
class ConvertTransposed(Pass):
    """``conv_transpose(x, w)`` becomes a convolution, its phases interleaved, the borders cropped.

    A phase of the stride is one small convolution; all of them are one with `stride` times as many
    channels along each axis, whose weights are made here, dilated by zeros. It is left as it is
    where the zeros would make more work of it than spreading the input out.

    >>> from unity.script import parse, print_module
    >>> weight = np.ones((3, 8, 4, 4), np.float32)
    >>> before = parse('''
    ... n = dim("n")
    ... @script.function
    ... def main(x: f32[Tensor, n, 3, 5, 5]) -> f32[Tensor, n, 8, 10, 10]:
    ...     return R.nn.conv2d_transpose(x, R.const("w"), strides=2, padding=1)
    ... ''', {"w": weight})
    >>> print(print_module(ConvertTransposed()(before, Context())), end="")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.function
    def main(x: f32[Tensor, n, 3, 5, 5]) -> f32[Tensor, n, 8, 10, 10]:
        phases = R.nn.conv2d(x, R.const("w_by_phase"), padding=(1, 1, 1, 1), dilation=(1, 1))
        interleaved = R.interleave_phases(phases, strides=(2, 2))
        conv2d_transpose = R.strided_slice(interleaved, axes=(2, 3), begin=(1, 1), end=(11, 11))
        return conv2d_transpose
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each function by itself."""
        return map_functions(module, lambda f: _Converter(module).function(f))


@dataclass(frozen=True, slots=True)
class _Phases:
    """An axis of a transposed convolution as one of a convolution.

    Element ``s * q + r`` of what is made before cropping sums ``x[q - j] * w[r + s * j]`` over j,
    where the taps of `w` have zeros between them if it is dilated.

    Attributes:
        stride: How many phases.
        turns: Taps of each.
        before: Zeros before the input.
        after: Zeros behind it.
        crop: Elements that are cut off at the begin.
        spread: Zeros and one between taps of the weight.
        dilation: That is left to the convolution.
    """

    stride: int
    turns: int
    before: int
    after: int
    crop: int
    spread: int
    dilation: int


def _phases(window: Window, extra: int) -> _Phases | None:
    """An axis by phases; None where that is not worthwhile."""
    s, kernel = window.stride, window.kernel
    assert isinstance(kernel, int)
    reach = window.dilation * (kernel - 1) + 1
    spread = window.dilation if s > 1 else 1
    dilation = 1 if s > 1 else window.dilation
    turns = -(-(spread * (kernel - 1) + 1) // s)
    skipped = window.before // s  # whole steps that are cropped are not computed
    before = dilation * (turns - 1) - skipped
    after = -(-(reach - window.after + extra) // s) - 1
    if before < 0 or after < 0 or turns > kernel:
        return None
    return _Phases(s, turns, before, after, window.before % s, spread, dilation)


class _Converter(BodyRewriter):
    """Replaces the calls."""

    def rewrite(self, var: Var, value: Expr) -> Expr:
        match value:
            case Call(Op(name), (x, Constant(data) as weight)) if name in _CONVOLUTIONS:
                pass
            case _:
                return value
        result, rank = var.type, data.ndim - 2
        if not isinstance(result, TensorType) or not isinstance(result.shape, tuple):
            return value
        extra = per_axis("output_padding", value.attrs["output_padding"], rank, 0)
        windows = spatial(value.attrs, data.shape[2:])
        found = [_phases(w, e) for w, e in zip(windows, extra, strict=True)]
        axes = [a for a in found if a is not None]
        if len(axes) < rank or not data.size:
            return value
        groups = int_attr(value.attrs, "groups")
        conv = call_op(
            _CONVOLUTIONS[name],
            x,
            derived(weight, _weights(data, axes, groups), "by_phase"),
            padding=tuple(a.before for a in axes) + tuple(a.after for a in axes),
            dilation=tuple(a.dilation for a in axes),
            groups=groups,
            out_dtype=value.attrs["out_dtype"],
            span=value.span,
        )
        return self.interleaved(conv, axes, result.shape)

    def interleaved(self, conv: Call, axes: Sequence[_Phases], made: Shape) -> Expr:
        """The phases, which a convolution gives as channels, one beside the other."""
        strides = [a.stride for a in axes]
        if all(s == 1 for s in strides):
            return conv
        phases = self.emit(conv, "phases", conv.span)
        whole = call_op("interleave_phases", phases, strides=tuple(strides), span=conv.span)
        x = self.emit(whole, "interleaved", conv.span)
        assert isinstance(x.type, TensorType)
        assert isinstance(x.type.shape, tuple)
        cut = [
            (2 + d, a.crop, as_dim(n + a.crop))
            for d, (n, m, a) in enumerate(zip(made[2:], x.type.shape[2:], axes, strict=True))
            if not equal(n, m)
        ]
        if not cut:
            return x
        over, begin, end = zip(*cut, strict=True)
        return call_op("strided_slice", x, axes=over, begin=begin, end=end, span=conv.span)


def _weights(data: Array, axes: Sequence[_Phases], groups: int) -> Array:
    """Weights ``(c, o / groups, ...)`` as those of the convolution: the phases are channels.

    The taps of a phase go backwards, as those of a convolution do.
    """
    c, made = data.shape[:2]
    spread = np.zeros((c, made, *(a.turns * a.stride for a in axes)), data.dtype)
    taps = (slice(0, a.spread * n, a.spread) for a, n in zip(axes, data.shape[2:], strict=True))
    spread[(slice(None), slice(None), *taps)] = data
    rank = len(axes)
    split = (n for a in axes for n in (a.turns, a.stride))
    parts = spread.reshape(groups, c // groups, made, *split)
    turns, phases = (range(first, 3 + 2 * rank, 2) for first in (3, 4))
    parts = np.flip(parts, tuple(turns)).transpose(0, 2, *phases, 1, *turns)
    return np.ascontiguousarray(parts).reshape(-1, c // groups, *(a.turns for a in axes))
