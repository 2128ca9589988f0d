"""Convolutions of quantized lines as those of images one line high, and what stands between them.

Kernels that multiply integers are of images. A reshape at either end of a chain says the same of a
line: what is computed element by element, padded or cut between two convolutions is of an image,
too, so that chains stay in blocks of channels.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unity.ir.dims import Dim
from unity.ir.graph import Call, Constant, Expr, Function, Op, Var, VarBinding
from unity.ir.lattice import atom_type
from unity.ir.module import IRModule
from unity.ir.types import TensorType, Type
from unity.ir.visit import walk_bindings
from unity.op.call import call_op
from unity.op.registry import ints_attr
from unity.op.window import paddings, per_axis

from ..derived import derived
from ..layout.blockable import POINTWISE
from ..rewriter import BodyRewriter
from .factors import Weights, activations, weights

Takes = Callable[[Call, Type, Weights], bool]
"""Whether a convolution of images, with such a result and such weights, becomes one of integers."""
_SCALED = frozenset({"quantize", "dequantize"})
_FOLLOW = POINTWISE | _SCALED | {"astype", "nn.pad", "strided_slice"}


def lines_as_images(module: IRModule, f: Function, takes: Takes) -> Function:
    """A function whose convolutions of quantized lines are of images, where integers gain by it."""
    values = {b.var: b.value for b in walk_bindings(f) if isinstance(b, VarBinding)}
    found: dict[Var, Weights] = {}
    for var, value in values.items():
        match value:
            case Call(Op("nn.conv1d"), (x, w)):
                of = weights(w, values, 0)
                if of is None or activations(x, values) is None or of.offset is not None:
                    continue
                if _of_image(value, var, x, of, takes):
                    found[var] = of
            case _:
                pass
    return _Lines(module, found).function(f) if found else f


def _of_image(call: Call, out: Var, x: Expr, of: Weights, takes: Takes) -> bool:
    """Whether the same convolution of an image is taken."""
    if call.attrs["groups"] != 1 or call.attrs["data_layout"] != "NCW":
        return False
    kinds = atom_type(x), atom_type(out)
    images: list[TensorType] = []
    for kind in kinds:
        if not isinstance(kind, TensorType) or not isinstance(kind.shape, tuple):
            return False
        images.append(TensorType(_image(kind.shape), kind.dtype))
    weight = Constant(of.integers[:, :, None])
    return takes(_convolution(call, Var("image", images[0]), weight), images[1], of)


def _convolution(call: Call, image: Expr, weight: Expr) -> Call:
    """A convolution of lines as one of images."""
    (before,), (behind,) = paddings(call.attrs["padding"], 1)
    stride, step = (per_axis(k, call.attrs[k], 1, 1)[0] for k in ("strides", "dilation"))
    return call_op(
        "nn.conv2d",
        image,
        weight,
        strides=(1, stride),
        padding=(0, before, 0, behind),
        dilation=(1, step),
        out_dtype=call.attrs["out_dtype"],
        span=call.span,
    )


def _image(shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """Of a line's shape, that of an image."""
    return (*shape[:-1], 1, *shape[-1:])


class _Lines(BodyRewriter):
    """Carries which variables there are as images."""

    def __init__(self, module: IRModule, found: dict[Var, Weights]) -> None:
        super().__init__(module)
        self.found = found
        self.images: dict[Expr, Expr] = {}
        self._outer: list[dict[Expr, Expr]] = []

    def enter(self) -> None:
        self._outer.append(dict(self.images))

    def leave(self) -> None:
        self.images = self._outer.pop()

    def rewrite(self, var: Var, value: Expr) -> Expr:
        """A line as an image, from which what is not of images reads a line again."""
        kind = atom_type(var)
        if not isinstance(value, Call) or not isinstance(value.callee, Op):
            return value
        if not isinstance(kind, TensorType) or not isinstance(kind.shape, tuple):
            return value
        if len(kind.shape) != 3:
            return value
        if var in self.found:
            weight = self.weight(value.args[1], self.found[var])
            new: Call | None = _convolution(value, self.image(value.args[0]), weight)
        else:
            new = self.followed(value) if value.callee.name in _FOLLOW else None
        if new is None:
            return value
        made = self.emit(new, var.name, var.span)
        self.images[var] = made
        return call_op("reshape", made, kind.shape, span=value.span)

    def weight(self, w: Expr, of: Weights) -> Expr:
        """The weights of a convolution with an axis more."""
        match self.values.get(w) if isinstance(w, Var) else None:
            case Call(Op("dequantize"), (Constant(data) as c, *rest)) as call:
                wide = derived(c, data[:, :, None], "of_images")
                again = Call(call.callee, (wide, *rest), call.attrs, call.span)
                return self.emit(again, "weight", call.span)
            case _:
                exact = of.integers[:, :, None].astype(np.int32)
                return derived(of.source, exact, "of_images")

    def image(self, x: Expr) -> Expr:
        """An operand with an axis more before its last, if it has two or three."""
        if isinstance(x, Constant):
            if x.data.ndim < 2:
                return x
            return Constant(np.expand_dims(x.data, -2), x.name, x.span)
        kind = atom_type(x)
        if not isinstance(kind, TensorType) or not isinstance(kind.shape, tuple):
            return x
        if len(kind.shape) < 2:
            return x
        if x not in self.images:
            self.images[x] = self.emit(call_op("reshape", x, _image(kind.shape)), "image")
        return self.images[x]

    def followed(self, call: Call) -> Call | None:
        """What is done element by element, or to a line's ends, of an image."""
        assert isinstance(call.callee, Op)
        name, attrs = call.callee.name, call.attrs
        if name in _SCALED and any(_rank(a) != 0 for a in call.args[1:]):
            return None
        if name == "nn.pad":
            widths = attrs["pad_width"]
            if not isinstance(widths, tuple) or len(call.args) != 1:
                return None
            attrs = attrs.with_(pad_width=(*widths[:4], 0, 0, *widths[4:]))
        elif name == "strided_slice":
            if len(call.args) != 1 or attrs["axes"] is None:
                return None
            axes = tuple(a % 3 for a in ints_attr(attrs, "axes"))
            attrs = attrs.with_(axes=tuple(a + (a == 2) for a in axes))
        if any(_rank(a) is None for a in call.args):
            return None
        if all(isinstance(a, Constant) for a in call.args):
            return None  # weights, which convolutions look for
        args = tuple(self.image(a) for a in call.args)
        return Call(call.callee, args, attrs, call.span)


def _rank(x: Expr) -> int | None:
    """How many axes a tensor has."""
    kind = atom_type(x)
    return kind.ndim if isinstance(kind, TensorType) else None
