"""ConvertFrames: convolutions of a signal by long filters become products of its frames."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unity.ir.dtype import FLOAT32
from unity.ir.graph import Call, Constant, Expr, Op, Var
from unity.ir.lattice import atom_type
from unity.ir.module import IRModule
from unity.ir.types import TensorType
from unity.op.call import call_op
from unity.op.window import paddings, per_axis

from ...passes import Context, Pass, map_functions
from ..derived import derived
from ..rewriter import BodyRewriter

_LEAST_TAPS = 64
"""Of filters: the result is turned once more, which is little beside so many products of each."""


@dataclass(frozen=True, slots=True)
class ConvertFrames(Pass):
    """``conv1d(x, w)`` of one channel by constant filters becomes ``frames(x) @ w``.

    Spectra are written so (a filter for each frequency): the filters are then a matrix of weights
    that `PackWeights` lays out, and the frames are read where they lie in the signal.

    >>> from unity.script import parse, print_module
    >>> weight = np.ones((20, 1, 64), np.float32)
    >>> before = parse('''
    ... @script.function
    ... def main(x: f32[Tensor, 2, 1, 400]) -> f32[Tensor, 2, 20, 11]:
    ...     return R.nn.conv1d(x, R.const("w"), strides=32, padding=0)
    ... ''', {"w": weight})
    >>> for line in print_module(ConvertFrames()(before, Context())).splitlines()[-5:-1]:
    ...     print(line.strip())
    signal = R.reshape(x, (2, 400))
    frames = R.frames(signal, length=64, step=32)
    spectra = R.matmul(frames, R.const("w_by_taps"))
    conv1d = R.permute_dims(spectra, axes=(0, 2, 1))
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each function by itself."""
        return map_functions(module, _Converter(module).function)


class _Converter(BodyRewriter):
    """Rewrites one function."""

    def rewrite(self, var: Var, value: Expr) -> Expr:
        match value:
            case Call(Op("nn.conv1d"), (x, Constant() as weight)):
                return self.product(value, x, weight) or value
            case _:
                return value

    def product(self, call: Call, x: Expr, weight: Constant) -> Call | None:
        """A convolution as a product; None where it is better as it is."""
        kind, shape = atom_type(x), weight.data.shape
        if not isinstance(kind, TensorType) or kind.dtype != FLOAT32 or weight.data.ndim != 3:
            return None
        if not isinstance(kind.shape, tuple) or kind.shape[1] != 1 or shape[2] < _LEAST_TAPS:
            return None
        attrs = call.attrs
        if attrs["groups"] != 1 or attrs["data_layout"] != "NCW" or shape[0] == 1:
            return None
        if attrs["out_dtype"] not in (None, FLOAT32) or weight.data.dtype != np.float32:
            return None
        ((before,), (after,)) = paddings(attrs["padding"], 1)
        (step,), (dilation,) = (per_axis(n, attrs[n], 1, 1) for n in ("strides", "dilation"))
        if before or after:
            x = self.emit(call_op("nn.pad", x, pad_width=(0, 0, 0, 0, before, after)), "padded")
        extents = atom_type(x)
        assert isinstance(extents, TensorType)
        assert isinstance(extents.shape, tuple)
        batch, _, length = extents.shape
        signal = self.emit(call_op("reshape", x, (batch, length)), "signal", call.span)
        made = call_op("frames", signal, length=shape[2], step=step, dilation=dilation)
        frames = self.emit(made, "frames", call.span)
        data = np.ascontiguousarray(weight.data.reshape(shape[0], shape[2]).T)
        taps = derived(weight, data, "by_taps")
        spectra = self.emit(call_op("matmul", frames, taps), "spectra", call.span)
        return call_op("permute_dims", spectra, axes=(0, 2, 1), span=call.span)
