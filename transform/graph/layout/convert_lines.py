"""ConvertLines: convolutions of lines become those of images, which lie in blocks of channels."""

from __future__ import annotations

from dataclasses import dataclass

from unity.ir.dtype import FLOAT32
from unity.ir.graph import Call, Constant, Expr, Function, Op, Var, VarBinding
from unity.ir.lattice import atom_type
from unity.ir.module import IRModule
from unity.ir.types import TensorType
from unity.ir.visit import walk_bindings

from ...passes import Context, Pass, map_functions
from ..derived import derived
from .blockable import image_of, is_blockable, is_depthwise
from .lines import Lines, convolution_of_image, image_shape
from .lone_convolutions import company


@dataclass(frozen=True, slots=True)
class ConvertLines(Pass):
    """``conv1d`` by constants becomes ``conv2d`` of an image one line high, as does its company.

    `ConvertLayout` brings images into blocks of channels. Tiles of a plain line copy their columns
    from as many places as there are channels, each in a page of its own where lines are long; in
    blocks pixels follow one another. Lines stay where a convolution has no company, which would pay
    for going there and back, where it has strides, and where channels fill no block.

    >>> import numpy as np
    >>> from unity.script import parse, print_module
    >>> from unity.transform.graph import EliminateDeadCode
    >>> before = parse('''
    ... @script.function
    ... def main(x: f32[Tensor, 1, 16, 99]) -> f32[Tensor, 1, 32, 95]:
    ...     a = R.nn.relu(R.nn.conv1d(x, R.const("w")))
    ...     return R.nn.conv1d(a, R.const("v"))
    ... ''', {"w": np.ones((32, 16, 3), np.float32), "v": np.ones((32, 32, 3), np.float32)})
    >>> ctx = Context()
    >>> after = EliminateDeadCode()(ConvertLines()(before, ctx), ctx)
    >>> print(print_module(after).replace(", strides=(1, 1), padding=(0, 0, 0, 0)", ""), end="")
    @script.function
    def main(x: f32[Tensor, 1, 16, 99]) -> f32[Tensor, 1, 32, 95]:
        image = R.reshape(x, (1, 16, 1, 99))
        conv1d = R.nn.conv2d(image, R.const("w_of_images"), dilation=(1, 1))
        a = R.nn.relu(conv1d)
        conv1d_1 = R.nn.conv2d(a, R.const("v_of_images"), dilation=(1, 1))
        conv1d_2 = R.reshape(conv1d_1, (1, 32, 95))
        return conv1d_2
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each function by itself, where registers hold 4 lanes or more."""
        lanes = ctx.target.vector_bits // FLOAT32.bits

        def converted(f: Function) -> Function:
            found = _gaining(f, lanes)
            return _Lines(module, found).function(f) if found else f

        return map_functions(module, converted) if lanes >= 4 else module


def _gaining(f: Function, lanes: int) -> frozenset[Var]:
    """The results of convolutions of lines that gain by blocks: those that have company in them."""
    found = frozenset(
        b.var
        for b in walk_bindings(f)
        if isinstance(b, VarBinding)
        and isinstance(b.value, Call)
        and b.value.callee == Op("nn.conv1d")
        and _is_blockable(b.value, b.var, lanes)
    )
    beside = {*Lines.follow, "nn.batch_norm"}
    return frozenset(v for v, near in company(f, found, beside).items() if near > 1)


def _is_blockable(call: Call, var: Var, lanes: int) -> bool:
    """Whether a convolution may take blocks, as one of an image."""
    x, weight = call.args
    kinds = [_image_type(e) for e in (x, var)]
    if not isinstance(weight, Constant) or weight.data.ndim != 3:
        return False
    if call.attrs["data_layout"] != "NCW" or None in kinds:
        return False
    image, out = (Var("image", kind) for kind in kinds if kind is not None)
    seen, made = image_of(image), image_of(out)
    if seen is None or made is None:
        return False
    new = convolution_of_image(call, image, Constant(weight.data[:, :, None]))
    if is_depthwise(new) or new.attrs["strides"] != (1, 1) or seen.channels < lanes:
        return False
    return is_blockable(new, seen, made, lanes)


def _image_type(x: Expr) -> TensorType | None:
    """That of a line of floats, as an image."""
    match atom_type(x):
        case TensorType((_, int(), _) as shape, dtype) if dtype == FLOAT32:
            return TensorType(image_shape(shape), dtype)
        case _:
            return None


class _Lines(Lines):
    """Lines of floats."""

    def weight(self, var: Var, w: Expr) -> Expr:
        """The constant with an axis more."""
        assert isinstance(w, Constant)
        return derived(w, w.data[:, :, None], "of_images")
