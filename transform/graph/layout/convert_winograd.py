"""ConvertWinograd: convolutions in blocks by fewer multiplications, where that is faster."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unity.ir.arrays.aligned import paged_empty
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim
from unity.ir.dtype import FLOAT32, Array
from unity.ir.graph import Call, Constant, Expr, Op, Var
from unity.ir.lattice import atom_type
from unity.ir.module import IRModule
from unity.ir.types import TensorType
from unity.machine.target import Target
from unity.op.convolution.conv_winograd import sampled_error, transformed_weights
from unity.op.window import per_axis

from ...passes import Context, Pass, map_functions
from ..derived import derived
from ..rewriter import BodyRewriter
from .blockable import CONVOLUTIONS
from .winograd_estimate import TILES, taps_of, winograd_cycles, worth

_BECOMES = {blocked: f"{name}_winograd" for name, blocked in CONVOLUTIONS.items()}
_SAID: Mapping[str, Sequence[int]] = {
    "direct": (),
    "gemm": (),
    "winograd.4": (4, 2),
    "winograd.2": (2,),
}
"""The tiles that a call's attribute `algorithm` means; the first whose errors are small enough."""


@dataclass(frozen=True, slots=True)
class ConvertWinograd(Pass):
    """Turns `nn.conv2d_blocked` of 3x3 to 7x7 taps and stride 1 into `nn.conv2d_winograd`.

    So it does with `nn.conv3d_blocked`, of any number of taps over frames: each frame is an image.
    Of 3x3 taps, tiles of 4 take a quarter of the multiplications but four times the memory for
    weights; tiles of 2 take 1 / 2.25 and 1.8 times. Of 5x5 they take 1 / 6.25 and 2.6 times,
    1 / 2.8 and 1.4 times. A call's attribute `algorithm` says which; where it says nothing,
    an estimate of cycles chooses between them and the convolution as it is. Rounding errors grow:
    those of the actual weights are sampled, and a tile whose error is above `tolerance` is not
    used. A NaN or an infinity in the input spreads over its tile.
    Unknown sizes are estimated as `unity.ir.symbols.representative` says: images of several heights
    and widths, the mean counts, unless their symbols say what is typical.
    ``pipeline().without(ConvertWinograd)`` leaves all convolutions as they are.

    >>> from unity.script import parse, print_module
    >>> weight = np.ones((4, 4, 3, 3, 4, 4), np.float32)
    >>> before = parse('''
    ... @script.function
    ... def main(x: f32[Tensor, 1, 4, 32, 32, 4]) -> f32[Tensor, 1, 4, 32, 32, 4]:
    ...     return R.nn.conv2d_blocked(x, R.const("weight"), padding=1)
    ... ''', {"weight": weight})
    >>> print(print_module(ConvertWinograd()(before, Context())), end="")
    @script.function
    def main(x: f32[Tensor, 1, 4, 32, 32, 4]) -> f32[Tensor, 1, 4, 32, 32, 4]:
        conv2d_blocked = R.nn.conv2d_winograd(x, R.const("weight_winograd"), tile=4, padding=1)
        return conv2d_blocked

    Attributes:
        largest: The largest tile: 4, 2, or 0 for none.
        tolerance: The largest error, relative to the largest output.
    """

    largest: int = 4
    tolerance: float = 1e-4

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each function by itself, with one table of weights."""
        return map_functions(module, _Converter(module, ctx.target, self).function)


class _Converter(BodyRewriter):
    """Carries the weights transformed, by the identity of the array and the tile."""

    def __init__(self, module: IRModule, target: Target, options: ConvertWinograd) -> None:
        super().__init__(module)
        self.target = target
        self.options = options
        self.made: dict[tuple[int, int], Constant | None] = {}

    def rewrite(self, var: Var, value: Expr) -> Expr:
        match value:
            case Call(Op(name), (x, Constant() as weight)) if name in _BECOMES:
                pass
            case _:
                return value
        if not self.fits(value, weight):
            return value
        match atom_type(var):
            case TensorType((n, _, *sizes, _), dtype) if dtype == FLOAT32:
                said = _SAID.get(str(value.attrs.get("algorithm")))
                known = TILES[weight.data.shape[-3]]
            case _:
                return value
        if said is None:
            said = self.tiles(weight.data.shape, n, sizes)
        for tile in (t for t in said if t in known):
            made = self.transformed(weight, tile)
            if made is not None:
                attrs = Attrs(tile=tile, padding=value.attrs["padding"])
                return Call(Op(_BECOMES[name]), (x, made), attrs, value.span)
        return value

    def fits(self, call: Call, weight: Constant) -> bool:
        """Whether it is a convolution of the kind, in blocks of a register."""
        rank = weight.data.ndim - 4
        steps = per_axis("strides", call.attrs["strides"], rank, 1)
        dilation = per_axis("dilation", call.attrs["dilation"], rank, 1)
        lanes = self.target.vector_bits // FLOAT32.bits
        return (
            {*steps, *dilation} == {1}
            and call.attrs["depthwise"] is False
            and weight.data.shape[-2:] == (lanes, lanes)
            and taps_of(weight.data.shape[2:-2]) is not None
            and weight.data.dtype == np.float32
        )

    def tiles(self, shape: tuple[int, ...], batch: Dim, sizes: Sequence[Dim]) -> Sequence[int]:
        """The tiles worth trying, the fastest first."""
        outputs, inputs, *frames, taps, _, lanes, _ = shape
        channels = outputs, inputs * math.prod(frames)
        cycles = winograd_cycles(*channels, batch, sizes, lanes, self.target, taps)
        return [t for t in worth(cycles) if t <= self.options.largest]

    def transformed(self, weight: Constant, tile: int) -> Constant | None:
        """The weights for a tile; None where its errors are too large."""
        key = (id(weight.data), tile)
        if key not in self.made:
            self.made[key] = self.transform(weight, tile)
        return self.made[key]

    def transform(self, weight: Constant, tile: int) -> Constant | None:
        error = sampled_error(_plain(weight.data), tile)
        if not error <= self.options.tolerance:
            return None
        images = _of_images(weight.data)
        o, c, k, _, b, d = images.shape
        size = tile + k - 1
        laid_out = paged_empty((size, size, o, c, b, d), np.float32)
        for i in range(o):  # one block at a time: they are computed in float64
            taps = images[i].reshape(c, k, k, b * d)
            block = transformed_weights(taps, tile)
            laid_out[:, :, i] = block.swapaxes(0, 1).reshape(size, size, c, b, d)
        return derived(weight, laid_out, "winograd")


def _of_images(weight: Array) -> Array:
    """Weights in blocks as those of images: taps over frames before blocks of channels, as one."""
    if weight.ndim == 6:
        return weight
    o, c, frames, *others = weight.shape
    return weight.swapaxes(1, 2).reshape(o, frames * c, *others)


def _plain(weight: Array) -> Array:
    """Weights in blocks as ``(o, c, kh, kw)``."""
    o, c, kh, kw, b, d = _of_images(weight).shape
    return _of_images(weight).transpose(0, 5, 1, 4, 2, 3).reshape(o * d, c * b, kh, kw)
