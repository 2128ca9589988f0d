"""Lines as images one line high: convolutions of them, and what stands between these.

Kernels and layouts are of images. A reshape at either end of a chain says the same of a line: what
is computed element by element, padded, cut, pooled or joined between two convolutions is of an
image, too, so that chains stay in blocks of channels.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

import numpy as np

from unity.ir.attrs import Attrs
from unity.ir.dims import Dim
from unity.ir.graph import Call, Constant, Expr, Op, Tuple, Var
from unity.ir.lattice import atom_type
from unity.ir.module import IRModule
from unity.ir.types import TensorType
from unity.op.call import call_op
from unity.op.registry import ints_attr
from unity.op.window import paddings, per_axis

from ..rewriter import BodyRewriter
from .blockable import POINTWISE

PIXELS = 2
"""The axis of a line that is an image's last one."""
POOLS = {"nn.max_pool1d": "nn.max_pool2d", "nn.avg_pool1d": "nn.avg_pool2d"}
"""What becomes of those of lines."""


def image_shape(shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """Of a line's shape, that of an image."""
    return (*shape[:-1], 1, *shape[-1:])


def convolution_of_image(call: Call, image: Expr, weight: Expr) -> Call:
    """A convolution of lines as one of images.

    Args:
        call: A call of `nn.conv1d`.
        image: Its input, as an image.
        weight: Its weights, with an axis more before their last.
    """
    (before,), (behind,) = paddings(call.attrs["padding"], 1)
    stride, step = (per_axis(k, call.attrs[k], 1, 1)[0] for k in ("strides", "dilation"))
    return call_op(
        "nn.conv2d",
        image,
        weight,
        strides=(1, stride),
        padding=(0, before, 0, behind),
        dilation=(1, step),
        groups=call.attrs["groups"],
        out_dtype=call.attrs["out_dtype"],
        span=call.span,
    )


class Lines(BodyRewriter):
    """Carries which variables there are as images.

    Attributes:
        found: The results of convolutions of lines that are to be of images.
        images: What stands for which line.
    """

    follow: ClassVar[Collection[str]] = (
        POINTWISE | POOLS.keys() | {"astype", "nn.pad", "strided_slice", "concat", "repeat", "mean"}
    )
    """The ops that are of images where what they read is."""

    def __init__(self, module: IRModule, found: Collection[Var]) -> None:
        super().__init__(module)
        self.found = found
        self.images: dict[Expr, Expr] = {}
        self._outer: list[dict[Expr, Expr]] = []

    def weight(self, var: Var, w: Expr) -> Expr:
        """The weights of a convolution, with result `var`, with an axis more; to override."""
        raise NotImplementedError

    def follows(self, call: Call) -> bool:
        """Whether a call, one that may be of images, is to be; to override.

        So it is where it reads one: else it would be brought there for nothing.
        """
        return any(a in self.images for a in _operands(call))

    def enter(self) -> None:
        """What is an image in a nested body is none behind it."""
        self._outer.append(dict(self.images))

    def leave(self) -> None:
        """Back to what there was."""
        self.images = self._outer.pop()

    def rewrite(self, var: Var, value: Expr) -> Expr:
        """A line as an image, from which what is not of images reads a line again."""
        kind = atom_type(var)
        if not isinstance(value, Call) or not isinstance(value.callee, Op):
            return value
        if not isinstance(kind, TensorType) or not isinstance(kind.shape, tuple):
            return value
        if len(kind.shape) != PIXELS + 1:
            return value
        if var in self.found:
            weight = self.weight(var, value.args[1])
            new: Call | None = convolution_of_image(value, self.image(value.args[0]), weight)
        else:
            asked = value.callee.name in self.follow and self.follows(value)
            new = self.followed(value) if asked else None
        if new is None:
            return value
        made = self.emit(new, var.name, var.span)
        self.images[var] = made
        return call_op("reshape", made, kind.shape, span=value.span)

    def image(self, x: Expr) -> Expr:
        """An operand with an axis more before its last, if it has two or three."""
        if isinstance(x, Constant):
            if x.data.ndim < PIXELS:
                return x
            return Constant(np.expand_dims(x.data, -2), x.name, x.span)
        kind = atom_type(x)
        if not isinstance(kind, TensorType) or not isinstance(kind.shape, tuple):
            return x
        if len(kind.shape) < PIXELS:
            return x
        if x not in self.images:
            self.images[x] = self.emit(call_op("reshape", x, image_shape(kind.shape)), "image")
        return self.images[x]

    def followed(self, call: Call) -> Call | None:
        """What is done to a line, of an image; None for what is of lines alone."""
        assert isinstance(call.callee, Op)
        name, operands = call.callee.name, _operands(call)
        if any(_rank(a) is None for a in operands):
            return None
        if all(isinstance(a, Constant) for a in operands):
            return None  # weights, which convolutions look for
        attrs = _attrs(name, call)
        if attrs is None:
            return None
        args = tuple(self.image(a) for a in operands)
        if name == "concat":
            args = (Tuple(args),)
        return Call(Op(POOLS.get(name, name)), args, attrs, call.span)


def _attrs(name: str, call: Call) -> Attrs | None:
    """The attributes of what is done to an image."""
    attrs = call.attrs
    match name:
        case "nn.pad":
            widths = attrs["pad_width"]
            if not isinstance(widths, tuple) or len(call.args) != 1:
                return None
            return attrs.with_(pad_width=(*widths[:4], 0, 0, *widths[4:]))
        case "strided_slice":
            if len(call.args) != 1 or attrs["axes"] is None:
                return None
            axes = (a % 3 for a in ints_attr(attrs, "axes"))
            return attrs.with_(axes=tuple(map(_axis, axes)))
        case "concat" | "repeat":
            axis = attrs["axis"]
            return attrs.with_(axis=_axis(axis % 3)) if isinstance(axis, int) else None
        case "mean":
            whole = attrs["axis"] in ((2,), (-1,), 2, -1) and attrs["keepdims"] is True
            return attrs.with_(axis=(2, 3)) if whole else None
        case "nn.max_pool1d" | "nn.avg_pool1d":
            (before,), (behind,) = paddings(attrs["padding"], 1)
            wide = {
                k: (1, *per_axis(k, attrs[k], 1, 1)) for k in ("pool_size", "strides", "dilation")
            }
            if attrs["layout"] != "NCW":
                return None
            return attrs.with_(**wide, padding=(0, before, 0, behind), layout="NCHW")
        case _:
            return attrs


def _axis(of_line: int) -> int:
    """An axis of a line in an image."""
    return of_line + (of_line == PIXELS)


def _operands(call: Call) -> tuple[Expr, ...]:
    """The tensors that are read, those of a tuple one by one."""
    return tuple(f for a in call.args for f in (a.fields if isinstance(a, Tuple) else (a,)))


def _rank(x: Expr) -> int | None:
    """How many axes a tensor has."""
    kind = atom_type(x)
    return kind.ndim if isinstance(kind, TensorType) else None
