"""ConvertLayout: convolutions and what stands between them, on channels in blocks of a register."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unity.ir.arrays.aligned import paged_copy
from unity.ir.attrs import Attrs
from unity.ir.dtype import FLOAT32, INT32, Array, DType
from unity.ir.graph import (
    Call,
    Constant,
    Expr,
    Function,
    MatchCast,
    Op,
    ShapeValue,
    Tuple,
    Var,
)
from unity.ir.module import IRModule
from unity.ir.types import TensorType
from unity.machine.dot_units import integer_dots
from unity.machine.target import Target
from unity.op.call import call_op
from unity.op.convolution.pool import BLOCKED
from unity.op.window import paddings, per_axis

from ...passes import Context, Pass, map_functions
from ..derived import derived
from ..origins import LAID_OUT
from ..rewriter import BodyRewriter
from ..slices import begin_of, slice_of
from .blockable import (
    CONVOLUTIONS,
    POINTWISE,
    POOLS,
    WASTE,
    WASTE_TILES,
    Image,
    fill_blocks,
    image_of,
    is_blockable,
    is_of_integers,
    plain_products,
)
from .interleave import Interleave, interleave_for, interleave_for_tiles
from .lone_depthwise import repays_blocks


@dataclass(frozen=True, slots=True)
class ConvertLayout(Pass):
    """Convolutions by constants take and give ``(n, c / b, h, w, b)``, `b` lanes of a register.

    Those over frames have ``(n, c / b, d, h, w, b)``.

    Elementwise ops, pooling, means, resizing, slices and concatenation follow, so that transposes
    stay only at the borders of such a region (`EliminateDeadCode` removes the others). Weights are
    laid out here.
    A product of single pixels that stands alone stays as it is (`lone_products`), or where a call's
    attribute `algorithm` says so: ``"gemm"``; so does a depthwise convolution of a plain
    image whose lines are long (`lone_depthwise.py`).
    Channels that fill no block are padded by zeros. Channels are known; batch sizes, heights and
    widths may be symbols (heights and widths not with `narrow`). A finite result stays as it is, as
    far as its inputs are finite.

    Attributes:
        narrow: The type that convolutions will compute in, if it is narrower: where the target has
            dot products of it, blocks are twice as long and weights in their groups
            (`interleave.py`). Where matrix tiles multiply bytes and all convolutions of a function
            are of channels that fill their rows, blocks have as many.

    >>> from dataclasses import replace
    >>> from unity.script import parse, print_module
    >>> from unity.transform.graph import EliminateDeadCode
    >>> weight = np.ones((16, 3, 3, 3), np.float32)
    >>> before = parse('''
    ... @script.function
    ... def main(x: f32[Tensor, 1, 3, 6, 6]) -> f32[Tensor, 1, 16, 4, 4]:
    ...     return R.nn.relu(R.nn.conv2d(x, R.const("weight")))
    ... ''', {"weight": weight})
    >>> ctx = Context()
    >>> ctx = replace(ctx, target=replace(ctx.target, vector_bits=256))
    >>> after = EliminateDeadCode()(ConvertLayout()(before, ctx), ctx)
    >>> print(print_module(after), end="")
    @script.function
    def main(x: f32[Tensor, 1, 3, 6, 6]) -> f32[Tensor, 1, 16, 4, 4]:
        image = R.reshape(x, (1, 3, 6, 6, 1))
        conv2d_blocked = R.nn.conv2d_blocked(image, R.const("weight_blocked"))
        relu_blocked = R.nn.relu(conv2d_blocked)
        parts = R.permute_dims(relu_blocked, axes=(0, 1, 4, 2, 3))
        relu = R.reshape(parts, (1, 16, 4, 4))
        return relu
    """

    narrow: DType | None = None

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each function by itself, where registers hold 4 lanes or more."""
        narrow = self.narrow
        interleave = None
        if narrow is not None:
            interleave = interleave_for(narrow, narrow, FLOAT32, ctx.target)
        lanes = ctx.target.vector_bits // FLOAT32.bits
        if interleave is not None:
            lanes = interleave.block
        if lanes < 4:
            return module
        dots, of_integers, in_tiles = integer_dots(ctx.target), None, None
        if interleave is None and dots is not None:
            of_integers = interleave_for(*dots[1:], INT32, ctx.target)
            in_tiles = interleave_for_tiles(*dots[1:], INT32, ctx.target)

        def converted(f: Function) -> Function:
            alone = plain_products(f, ctx.target)
            if interleave is not None:
                alone = frozenset()  # tiles pay for the transposes
            block, bytes_by = lanes, of_integers
            if in_tiles is not None and fill_blocks(f, in_tiles.block):
                block, bytes_by = in_tiles.block, in_tiles
            return _Converter(module, ctx.target, block, alone, interleave, bytes_by).function(f)

        return map_functions(module, converted)


class _Converter(BodyRewriter):
    """Carries which variables there are in blocks, and the constants laid out."""

    def __init__(
        self,
        module: IRModule,
        target: Target,
        lanes: int,
        alone: frozenset[Var],
        interleave: Interleave | None,
        narrow: Interleave | None,
    ) -> None:
        super().__init__(module)
        self.target = target
        self.lanes = lanes
        self.alone = alone
        self.interleave = interleave
        self.narrow = narrow
        self.blocked: dict[Expr, Var] = {}
        self.packed: dict[tuple[Constant, bool, int], Constant] = {}
        self._outer: list[dict[Expr, Var]] = []

    def enter(self) -> None:
        self._outer.append(dict(self.blocked))

    def leave(self) -> None:
        self.blocked = self._outer.pop()

    def cast(self, binding: MatchCast) -> Expr | None:
        """An image's sizes are asserted where it lies in blocks, which goes on."""
        var, known, out = binding.var, self.blocked.get(binding.value), image_of(binding.var)
        seen = image_of(binding.value)
        if known is None or out is None or seen is None or seen.channels != out.channels:
            return None
        assert isinstance(known.type, TensorType)
        assert isinstance(known.type.shape, tuple)
        _, blocks, *_, lanes = known.type.shape
        of = TensorType((out.batch, blocks, *out.sizes, lanes), known.type.dtype)
        made = Var(var.name, of, var.span)  # which errors name
        self._add(MatchCast(made, known, of, binding.span))
        plain = self.emit(self.plain(made, out), var.name, var.span)
        self.blocked[plain] = made
        return plain

    def rewrite(self, var: Var, value: Expr) -> Expr:
        out = image_of(var)
        if out is None or not isinstance(value, Call) or not isinstance(value.callee, Op):
            return value
        name = value.callee.name
        if var in self.alone and not is_of_integers(value):
            return value
        if name in CONVOLUTIONS:
            new = self.convolution(value, out)
        elif name in POINTWISE or (name == "astype" and image_of(value.args[0]) is not None):
            new = self.pointwise(value, out)
        elif name in POOLS:
            new = self.pool(value, POOLS[name], len(out.sizes))
        elif name == "nn.pad":
            new = self.pad(value)
        elif name == "mean":
            new = self.mean(value, len(out.shape))
        elif name == "concat":
            new = self.concat(value, len(out.shape))
        elif name == "repeat":
            new = self.repeat(value, len(out.shape))
        elif name == "strided_slice":
            new = self.slice(value, out)
        elif name == "take":
            new = self.take(value, len(out.shape))
        else:
            return value
        if new is None:
            return value
        made = self.emit(new, f"{var.name}{LAID_OUT}", value.span)
        self.blocked[var] = made
        return self.plain(made, out)

    # What follows in blocks; None for what stays as it is

    def convolution(self, call: Call, out: Image) -> Call | None:
        x, weight = call.args
        image = image_of(x)
        of_integers, depthwise = is_of_integers(call), call.attrs["groups"] != 1
        if of_integers and not depthwise:
            return self.of_integers(call, out, image)
        if self.interleave is not None and (
            image is None or image.pixels is None or len(image.sizes) != 2
        ):
            return None
        waste = WASTE if self.interleave is None else WASTE_TILES
        if image is None or not is_blockable(call, image, out, self.lanes, waste):
            return None
        assert isinstance(weight, Constant)
        seen: Expr | None = self.blocked.get(x)
        lanes = self.lanes
        if seen is None and depthwise:
            if of_integers or self.interleave is not None:
                return None
            if not repays_blocks(call, image, out, self.target):
                return None
        by_tiles = str(call.attrs.get("algorithm")).startswith("winograd")  # needs whole blocks
        if seen is None and (image.channels % lanes == 0 or by_tiles):
            seen = self.in_blocks(x, image)
        if self.interleave is not None and not depthwise:
            return self.interleaved(call, seen, image, self.interleave)
        if seen is None:  # few channels: blocks of one, which is no change
            lanes = 1
            shape = ShapeValue((*image.shape, 1))
            seen = self.emit(Call(Op("reshape"), (x, shape), span=call.span), "image")
        attrs = {k: call.attrs[k] for k in ("strides", "padding", "dilation")}
        attrs |= {"depthwise": depthwise, "out_dtype": call.attrs["out_dtype"]}
        attrs |= {"algorithm": call.attrs.get("algorithm")}
        weights = self.weights(weight, depthwise, lanes)
        assert isinstance(call.callee, Op)
        name = CONVOLUTIONS[call.callee.name]
        return Call(Op(name), (seen, weights), Attrs(attrs), call.span)

    def of_integers(self, call: Call, out: Image, image: Image | None) -> Call | None:
        """A convolution of narrow integers, whose weights lie as dot products want them."""
        by = self.narrow
        if by is None or image is None:
            return None
        if not is_blockable(call, image, out, self.lanes):
            return None
        seen: Expr | None = self.blocked.get(call.args[0])
        if seen is None and image.channels % self.lanes == 0:
            seen = self.in_blocks(call.args[0], image)
        return self.interleaved(call, seen, image, by)

    def interleaved(
        self, call: Call, seen: Expr | None, image: Image, interleave: Interleave
    ) -> Call | None:
        """A convolution whose weights lie as dot products want them."""
        x, weight = call.args
        assert isinstance(weight, Constant)
        line = None
        if seen is None:
            if per_axis("dilation", call.attrs["dilation"], 2, 1)[1] != 1:
                return None
            line = weight.data.shape[3]
            pixels = self.emit(call_op("permute_dims", x, axes=(0, 2, 3, 1)), "pixels")
            shape = (image.batch, 1, *image.sizes, image.channels)
            seen = self.emit(call_op("reshape", pixels, shape), "image")
        attrs = {k: call.attrs[k] for k in ("strides", "padding", "dilation", "out_dtype")}
        key = (weight, False, 0 if line else self.lanes)
        if key not in self.packed:
            self.packed[key] = _laid_out(weight, interleave.weights(weight.data, line is not None))
        args = (seen, self.packed[key])
        return Call(Op("nn.conv2d_interleaved"), args, Attrs({**attrs, "line": line}), call.span)

    def pointwise(self, call: Call, out: Image) -> Call | None:
        args: list[Expr] = []
        if not any(a in self.blocked for a in call.args):
            return None
        if call.callee == Op("divide") and not self.divides(call.args[1], out):
            return None
        for a in call.args:
            found = self.operand(a, out)
            if found is None:
                return None
            args.append(found)
        return Call(call.callee, tuple(args), call.attrs, call.span)

    def divides(self, by: Expr, out: Image) -> bool:
        """Whether a division leaves what pads a block finite."""
        whole = out.channels % self.lanes == 0
        return isinstance(by, Constant) and bool(np.all(by.data)) and (by.data.size == 1 or whole)

    def operand(self, a: Expr, out: Image) -> Expr | None:
        """An operand of an elementwise op in blocks: the same shape, or a constant."""
        if isinstance(a, Constant):
            return self.constant(a, out)
        image, known = image_of(a), self.blocked.get(a)
        if image is None or image.channels != out.channels:
            return None
        if len(image.sizes) != len(out.sizes):
            return None  # its channels meet another axis
        if known is not None:
            return known
        small = image.pixels == 1 and image.channels % self.lanes == 0
        return self.in_blocks(a, image) if small else None

    def constant(self, c: Constant, out: Image) -> Constant | None:
        """A constant that is the same for all pixels, or for all channels, in blocks."""
        if c.data.size == 1:
            return Constant(c.data.reshape(()), c.name, c.span)
        ones, channels = (1,) * len(out.sizes), out.channels
        shape = (1,) * (len(out.shape) - c.data.ndim) + c.data.shape
        if shape[:2] == (1, 1):
            return Constant(c.data.reshape(*shape, 1), c.name, c.span)
        if shape != (1, channels, *ones):
            return None
        padding = self.padded(channels) - channels
        data = np.pad(c.data.reshape(-1), (0, padding)).reshape(1, -1, *ones, self.lanes)
        return _laid_out(c, data)

    def pool(self, call: Call, name: str, rank: int) -> Call | None:
        x = self.blocked.get(call.args[0])
        if x is None:
            return None
        attrs = call.attrs
        if rank == 3:
            return Call(Op(name), (x,), attrs.with_(layout=BLOCKED), call.span)
        begin, end = paddings(attrs["padding"], 2)
        return Call(
            Op(name),
            (x,),
            Attrs(
                {
                    **dict(attrs.items()),
                    "layout": "NCDHW",
                    "pool_size": (*per_axis("pool_size", attrs["pool_size"], 2, 1), 1),
                    "strides": (*per_axis("strides", attrs["strides"], 2, 1), 1),
                    "dilation": (*per_axis("dilation", attrs["dilation"], 2, 1), 1),
                    "padding": (*begin, 0, *end, 0),
                }
            ),
            call.span,
        )

    def mean(self, call: Call, ndim: int) -> Call | None:
        x = self.blocked.get(call.args[0])
        axes = call.attrs["axis"]
        if x is None or not isinstance(axes, tuple) or call.attrs["keepdims"] is not True:
            return None
        pixels = tuple(range(2, ndim))
        if sorted(int(a) % ndim for a in axes if isinstance(a, int)) != list(pixels):
            return None
        return Call(call.callee, (x,), call.attrs.with_(axis=pixels), call.span)

    def pad(self, call: Call) -> Call | None:
        """Lines and pixels around an image."""
        x, widths = self.blocked.get(call.args[0]), call.attrs["pad_width"]
        if x is None or not isinstance(widths, tuple) or any(w != 0 for w in widths[:4]):
            return None
        return Call(call.callee, (x,), call.attrs.with_(pad_width=(*widths, 0, 0)), call.span)

    def repeat(self, call: Call, ndim: int) -> Call | None:
        """Pixels repeated: images made larger by the nearest pixel."""
        x, axis = self.blocked.get(call.args[0]), call.attrs["axis"]
        if x is None or not isinstance(axis, int) or axis % ndim < 2:
            return None
        return Call(call.callee, (x,), call.attrs.with_(axis=axis % ndim), call.span)

    def take(self, call: Call, ndim: int) -> Call | None:
        """Lines or pixels by constant numbers: images resized."""
        (image, indices), axis = call.args, call.attrs["axis"]
        x = self.blocked.get(image)
        if x is None or not isinstance(indices, Constant) or indices.data.ndim != 1:
            return None
        if not isinstance(axis, int) or axis % ndim < 2:
            return None
        return Call(call.callee, (x, indices), call.attrs.with_(axis=axis % ndim), call.span)

    def slice(self, call: Call, out: Image) -> Call | None:
        """Channels from the first of a block on; those behind them in the last are others."""
        x, image = self.blocked.get(call.args[0]), image_of(call.args[0])
        begin = None if image is None else begin_of(call, 1, image.shape)
        if x is None or image is None or begin is None:
            return None
        if begin % self.lanes:
            return None
        first, count = begin // self.lanes, self.padded(out.channels) // self.lanes
        return slice_of(x, 1, first, first + count, call)

    def concat(self, call: Call, ndim: int) -> Call | None:
        (parts,) = call.args
        fields = parts.fields if isinstance(parts, Tuple) else ()
        blocked = [self.blocked.get(a) for a in fields]
        images = [image_of(a) for a in fields]
        whole = all(i is not None and i.channels % self.lanes == 0 for i in images)
        found = tuple(b for b in blocked if b is not None)
        if not found or len(found) < len(blocked) or not whole:
            return None
        if call.attrs["axis"] not in (1, 1 - ndim):
            return None
        return Call(call.callee, (Tuple(found),), call.attrs.with_(axis=1), call.span)

    # From one layout to the other

    def padded(self, channels: int) -> int:
        """Channels in whole blocks."""
        return -(-channels // self.lanes) * self.lanes

    def in_blocks(self, x: Expr, image: Image) -> Var:
        """A variable's value in blocks, computed once."""
        known = self.blocked.get(x)
        if known is not None:
            return known
        b = self.lanes
        n, c, sizes = image.batch, self.padded(image.channels) // b, image.sizes
        whole = x
        if c * b > image.channels:
            pads = (0, 0, 0, c * b - image.channels, *(0,) * (2 * len(sizes)))
            whole = self.emit(call_op("nn.pad", x, pad_width=pads), "whole")
        if image.pixels == 1:
            split = self.emit(call_op("reshape", whole, (n, c, *sizes, b)), "blocks")
        else:
            parts = self.emit(call_op("reshape", whole, (n, c, b, *sizes)), "parts")
            axes = (0, 1, *range(3, 3 + len(sizes)), 2)
            split = self.emit(call_op("permute_dims", parts, axes=axes), "blocks")
        self.blocked[x] = split
        return split

    def plain(self, x: Var, image: Image) -> Call:
        """A value in blocks as it was; nobody may want it."""
        whole, rank = self.padded(image.channels), len(image.sizes)
        if image.pixels != 1:
            axes = (0, 1, 2 + rank, *range(2, 2 + rank))
            x = self.emit(call_op("permute_dims", x, axes=axes), "parts")
        joined = call_op("reshape", x, (image.batch, whole, *image.sizes))
        if whole == image.channels:
            return joined
        cut = self.emit(joined, "joined")
        return call_op("strided_slice", cut, axes=(1,), begin=(0,), end=(image.channels,))

    def weights(self, weight: Constant, depthwise: bool, lanes: int) -> Constant:
        """Weights as `nn.conv2d_blocked` takes them, for inputs in blocks of `lanes`."""
        key = (weight, depthwise, lanes)
        if key not in self.packed:
            b, (o, c, *taps) = self.lanes, weight.data.shape
            taken = 1 if depthwise else lanes
            missing = ((0, -o % b), (0, -c % taken), *((0, 0) for _ in taps))
            data = np.pad(weight.data, missing) if np.any(missing) else weight.data
            data = data.reshape(-1, b, data.shape[1] // taken, taken, *taps)
            order = (0, 2, *range(4, data.ndim), 3, 1)
            self.packed[key] = _laid_out(weight, data.transpose(order))
        return self.packed[key]


def _laid_out(c: Constant, data: Array) -> Constant:
    return derived(c, paged_copy(data), "blocked")
