"""ConvertTransposed: transposed convolutions by constants become convolutions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from unity.errors import Span
from unity.ir.dims import as_dim, equal
from unity.ir.dtype import Array
from unity.ir.graph import Call, Constant, Expr, Function, Op, Tuple, Var
from unity.ir.module import IRModule
from unity.ir.types import Shape, TensorType
from unity.op.call import call_op
from unity.op.registry import int_attr
from unity.op.table import OPS
from unity.op.window import Window, per_axis, spatial

from ...passes import Context, Pass, map_functions
from ..derived import derived
from ..rewriter import BodyRewriter
from ..uses import count_uses

_CONVOLUTIONS = {f"nn.conv{rank}d_transpose": f"nn.conv{rank}d" for rank in (1, 2, 3)}


@dataclass(frozen=True, slots=True)
class ConvertTransposed(Pass):
    """``conv_transpose(x, w)`` becomes a convolution, its phases interleaved, the borders cropped.

    A phase of the stride is one small convolution; all of them are one with `stride` times as many
    channels along each axis, whose weights are made here, dilated by zeros; or each is one of its
    own, where these would be many. What is done to each
    element afterwards is done to the phases, whose lanes are neighbours in memory. It is left as it
    is where the zeros would make more work of it than spreading the input out.

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

        def convert(f: Function) -> Function:
            return _Converter(module, count_uses(f.body)).function(f)

        return map_functions(module, convert)


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


@dataclass(frozen=True, slots=True)
class _Interleaved:
    """A result used once, as what it was interleaved from.

    Attributes:
        phases: Which are channels.
        axes: Of space.
        shape: Of the result.
    """

    phases: Var
    axes: tuple[_Phases, ...]
    shape: Shape

    def constant(self, c: Expr) -> Constant | None:
        """A number for all elements, or one for each channel, as the phases take it."""
        if not isinstance(c, Constant) or c.data.size == 1:
            return c if isinstance(c, Constant) and c.data.ndim <= len(self.shape) else None
        shape = (1,) * (len(self.shape) - c.data.ndim) + c.data.shape
        if shape != (1, self.shape[1], *(1,) * len(self.axes)):
            return None
        data = np.repeat(c.data.reshape(shape), math.prod(a.stride for a in self.axes), axis=1)
        return derived(c, data, "by_phase")


class _Converter(BodyRewriter):
    """Carries what interleaved results were made of, those used once."""

    def __init__(self, module: IRModule, uses: Counter[Var]) -> None:
        super().__init__(module)
        self.uses = uses
        self.made: dict[Var, _Interleaved] = {}

    def rewrite(self, var: Var, value: Expr) -> Expr:
        match value:
            case Call(Op(name), (x, Constant(data) as weight)) if name in _CONVOLUTIONS:
                pass
            case Call():
                return self.after(var, value)
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
        weights = _weights(data, axes, groups)
        if groups == 1 and _saves_enough(weights, axes):
            apart = self.apart(name, value, weights, axes)
            return self.beside(var, _Interleaved(apart, tuple(axes), result.shape))
        conv = call_op(
            _CONVOLUTIONS[name],
            x,
            derived(weight, weights, "by_phase"),
            padding=tuple(a.before for a in axes) + tuple(a.after for a in axes),
            dilation=tuple(a.dilation for a in axes),
            groups=groups,
            out_dtype=value.attrs["out_dtype"],
            span=value.span,
        )
        if all(a.stride == 1 for a in axes):
            return conv
        phases = self.emit(conv, "phases", conv.span)
        return self.beside(var, _Interleaved(phases, tuple(axes), result.shape))

    def apart(self, name: str, call: Call, weights: Array, axes: Sequence[_Phases]) -> Var:
        """The phases, each by a convolution of the taps that it has, as channels of one image."""
        x, weight = call.args
        assert isinstance(weight, Constant)
        parts: list[Var] = []
        count = math.prod(a.stride for a in axes)
        for k in range(count):
            mine = weights[k::count]
            taps, before, after = _own_taps(mine, axes)
            conv = call_op(
                _CONVOLUTIONS[name],
                x,
                derived(
                    weight,
                    np.ascontiguousarray(mine[(slice(None), slice(None), *taps)]),
                    f"phase_{k}",
                ),
                padding=(*before, *after),
                dilation=tuple(a.dilation for a in axes),
                out_dtype=call.attrs["out_dtype"],
                span=call.span,
            )
            part = self.emit(conv, "phase", call.span)
            assert isinstance(part.type, TensorType)
            assert isinstance(part.type.shape, tuple)
            n, made, *space = part.type.shape
            parts.append(self.emit(call_op("reshape", part, (n, made, 1, *space)), "phase"))
        joined = self.emit(call_op("concat", Tuple(tuple(parts)), axis=2), "phases", call.span)
        assert isinstance(joined.type, TensorType)
        assert isinstance(joined.type.shape, tuple)
        images, channels, _, *outer = joined.type.shape
        whole = (images, as_dim(channels * count), *outer)
        return self.emit(call_op("reshape", joined, whole), "phases")

    def after(self, var: Var, call: Call) -> Expr:
        """What is done to each element of an interleaved result is done to the phases."""
        inner = [a for a in call.args if isinstance(a, Var)]
        found = self.made.get(inner[0]) if len(inner) == 1 else None
        if found is None or not isinstance(call.callee, Op):
            return call
        row = OPS.get(call.callee.name)
        if row is None or row.pattern not in ("elementwise", "broadcast"):
            return call
        args = [found.phases if a is inner[0] else found.constant(a) for a in call.args]
        known = tuple(a for a in args if a is not None)
        if len(known) < len(args):
            return call
        done = self.emit(Call(call.callee, known, call.attrs, call.span), "phases", call.span)
        return self.beside(var, replace(found, phases=done))

    def beside(self, var: Var, found: _Interleaved) -> Var:
        """The phases, which are channels, one beside the other."""
        axes, made, span = found.axes, found.shape, var.span
        strides = tuple(a.stride for a in axes)
        if strides[-1] & (strides[-1] - 1):
            whole = self.transposed(found.phases, strides, made, span)
        else:
            whole = call_op("interleave_phases", found.phases, strides=strides, span=span)
        x = self.emit(whole, "interleaved", span)
        assert isinstance(x.type, TensorType)
        assert isinstance(x.type.shape, tuple)
        cut = [
            (2 + d, a.crop, as_dim(n + a.crop))
            for d, (n, m, a) in enumerate(zip(made[2:], x.type.shape[2:], axes, strict=True))
            if not equal(n, m)
        ]
        if cut:
            over, begin, end = zip(*cut, strict=True)
            part = call_op("strided_slice", x, axes=over, begin=begin, end=end, span=span)
            x = self.emit(part, var.name, span)
        if self.uses[var] == 1:
            self.made[x] = found
        return x

    def transposed(
        self, phases: Var, strides: tuple[int, ...], made: Shape, span: Span | None
    ) -> Call:
        """The same by a transpose, where lanes would have to be divided by no power of two.

        Five images of 3 channels of 50x50, stride 3: 28 us so, 74 by the lanes of one formula.
        """
        kind, rank = phases.type, len(strides)
        assert isinstance(kind, TensorType)
        assert isinstance(kind.shape, tuple)
        steps = kind.shape[2:]
        parts = call_op("reshape", phases, (*made[:2], *strides, *steps), span=span)
        order = (0, 1, *(d for a in range(rank) for d in (2 + rank + a, 2 + a)))
        x = self.emit(parts, "parts", span)
        x = self.emit(call_op("permute_dims", x, axes=order, span=span), "beside", span)
        extents = (as_dim(n * s) for n, s in zip(steps, strides, strict=True))
        return call_op("reshape", x, (*made[:2], *extents), span=span)


MOST_TAPS = 0.7
"""Of all taps of the phases together, zeros included, those that they have: more are one
convolution, whose phases' joining costs nothing."""
LEAST_MADE = 32
"""Output channels from which on a phase is worth a convolution of its own."""


def _saves_enough(weights: Array, axes: Sequence[_Phases]) -> bool:
    """Whether phases have so many zeros for taps that each should have its own convolution."""
    count = math.prod(a.stride for a in axes)
    if count == 1 or len(weights) < LEAST_MADE * count:
        return False
    taken = [_own_taps(weights[k::count], axes)[0] for k in range(count)]
    sizes = [math.prod(int(t.stop) - int(t.start) for t in taps) for taps in taken]
    return sum(sizes) <= MOST_TAPS * count * math.prod(a.turns for a in axes)


def _own_taps(
    weights: Array, axes: Sequence[_Phases]
) -> tuple[tuple[slice, ...], tuple[int, ...], tuple[int, ...]]:
    """The taps of a phase without zeros at their ends, and the padding that is left for them."""
    taps: list[slice] = []
    before: list[int] = []
    after: list[int] = []
    for d, a in enumerate(axes, 2):
        others = tuple(k for k in range(weights.ndim) if k != d)
        some = np.flatnonzero(np.any(weights, axis=others))
        first, last = (int(some[0]), int(some[-1])) if some.size else (0, a.turns - 1)
        first = min(first, a.before // a.dilation)
        rest = min(a.turns - 1 - last, a.after // a.dilation)
        taps.append(slice(first, a.turns - rest))
        before.append(a.before - first * a.dilation)
        after.append(a.after - rest * a.dilation)
    return tuple(taps), tuple(before), tuple(after)


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
