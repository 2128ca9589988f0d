"""Convolutions of quantized lines as those of images: kernels that multiply integers are of these.

`Lines` says what stands between two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from unity.ir.graph import Call, Constant, Expr, Function, Op, Var, VarBinding
from unity.ir.lattice import atom_type
from unity.ir.module import IRModule
from unity.ir.types import TensorType, Type
from unity.ir.visit import walk_bindings

from ..derived import derived
from ..layout.blockable import POINTWISE
from ..layout.lines import Lines, convolution_of_image, image_shape
from .factors import Weights, activations, weights

Takes = Callable[[Call, Type, Weights], bool]
"""Whether a convolution of images, with such a result and such weights, becomes one of integers."""
_SCALED = frozenset({"quantize", "dequantize"})


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
        images.append(TensorType(image_shape(kind.shape), kind.dtype))
    weight = Constant(of.integers[:, :, None])
    return takes(convolution_of_image(call, Var("image", images[0]), weight), images[1], of)


class _Lines(Lines):
    """Lines of quantized tensors, and what is done to these before the first convolution, too."""

    follow = POINTWISE | _SCALED | {"astype", "nn.pad", "strided_slice"}

    def __init__(self, module: IRModule, found: Mapping[Var, Weights]) -> None:
        super().__init__(module, found)
        self.weights = found

    def weight(self, var: Var, w: Expr) -> Expr:
        """The weights of a convolution with an axis more."""
        of = self.weights[var]
        match self.values.get(w) if isinstance(w, Var) else None:
            case Call(Op("dequantize"), (Constant(data) as c, *rest)) as call:
                wide = derived(c, data[:, :, None], "of_images")
                again = Call(call.callee, (wide, *rest), call.attrs, call.span)
                return self.emit(again, "weight", call.span)
            case _:
                exact = of.integers[:, :, None].astype(np.int32)
                return derived(of.source, exact, "of_images")

    def follows(self, call: Call) -> bool:
        """Whatever may, with one scale for all."""
        scaled = isinstance(call.callee, Op) and call.callee.name in _SCALED
        return not scaled or all(_has_no_axes(a) for a in call.args[1:])


def _has_no_axes(x: Expr) -> bool:
    kind = atom_type(x)
    return isinstance(kind, TensorType) and kind.ndim == 0
