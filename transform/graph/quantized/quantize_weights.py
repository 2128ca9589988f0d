"""QuantizeWeights: large matrices that products take, in few bits with a scale for each block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unity.errors import UnityError
from unity.ir.attrs import Attrs
from unity.ir.dtype import FLOAT32, Array, dtype
from unity.ir.graph import Call, Constant, Expr, Op, Var
from unity.ir.module import IRModule
from unity.options import WeightBits

from ...passes import Context, Pass, map_functions
from ..derived import derived
from ..rewriter import BodyRewriter


def bits_called(name: WeightBits) -> int:
    """How many bits integers called so have.

    Raises:
        UnityError: There are no such.
    """
    bits = {"int4": 4, "int8": 8}.get(name)
    if bits is None:
        raise UnityError(f"weights={name!r}", hint='weights="int4" or weights="int8"')
    return bits


@dataclass(frozen=True, slots=True)
class QuantizeWeights(Pass):
    """Products read their constant matrices as integers, a quarter or an eighth of the bytes.

    Each block of rows of a column has its own scale and zero point, from the least to the largest
    of its weights and zero. Results change: an element of a product by about
    ``2 ** -bits / sqrt(12)`` of its weights' range for each of them.

    >>> from unity.script import parse, print_module
    >>> weight = np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64)
    >>> before = parse('''
    ... @script.function
    ... def main(x: f32[Tensor, 1, 64]) -> f32[Tensor, 1, 64]:
    ...     return R.matmul(x, R.const("w"))
    ... ''', {"w": weight})
    >>> after = QuantizeWeights(least=0)(before, Context())
    >>> print(print_module(after).splitlines()[-3].partition(" = ")[2])
    R.dequantize(R.const("w_integers"), R.const("w_scales"), R.const("w_zeros"), axis=0, block=32)

    Attributes:
        bits: Of an integer: 4 or 8.
        block: Rows that share a scale.
        least: Elements of a matrix from which on it is quantized.
    """

    bits: int = 4
    block: int = 32
    least: int = 1 << 14

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each function by itself, with one table of matrices."""
        return map_functions(module, _Quantizer(module, self).function)


class _Quantizer(BodyRewriter):
    """Carries the matrices quantized, by what they are from and the axis that sums go along."""

    def __init__(self, module: IRModule, how: QuantizeWeights) -> None:
        super().__init__(module)
        self.how = how
        self.made: dict[tuple[int, int], tuple[Constant, Constant, Constant]] = {}

    def rewrite(self, var: Var, value: Expr) -> Expr:
        """A product by a matrix, or by one whose axes are exchanged."""
        match value:
            case Call(Op("matmul"), (x, Constant() as w), attrs) if self.fits(w, 0):
                return Call(value.callee, (x, self.dequantized(w, 0)), attrs, value.span)
            case Call(Op("matmul"), (x, Var() as w), attrs):
                pass
            case _:
                return value
        match self.values.get(w):
            case Call(Op("permute_dims"), (Constant() as c,), turn) if self.fits(c, 1):
                if turn["axes"] != (1, 0):
                    return value
                turned = Call(Op("permute_dims"), (self.dequantized(c, 1),), turn, value.span)
                plain = self.emit(turned, w.name, value.span)
                return Call(value.callee, (x, plain), attrs, value.span)
            case _:
                return value

    def fits(self, weight: Constant, depth: int) -> bool:
        """Whether a constant is a large matrix of finite numbers in whole blocks."""
        data = weight.data
        if data.ndim != 2 or dtype(data.dtype) != FLOAT32 or data.size < self.how.least:
            return False
        return int(data.shape[depth]) % self.how.block == 0 and bool(np.isfinite(data).all())

    def dequantized(self, weight: Constant, depth: int) -> Var:
        """A matrix in few bits, as reals again."""
        key = id(weight.data), depth
        if key not in self.made:
            parts = quantized(weight.data, depth, self.how.bits, self.how.block)
            names = ("integers", "scales", "zeros")
            whole, scale, zero = (derived(weight, a, n) for a, n in zip(parts, names, strict=True))
            self.made[key] = whole, scale, zero
        attrs = Attrs(axis=depth, out_dtype=FLOAT32, block=self.how.block)
        return self.emit(Call(Op("dequantize"), self.made[key], attrs), weight.name or "weight")


def quantized(weight: Array, depth: int, bits: int, block: int) -> tuple[Array, Array, Array]:
    """A matrix as integers from 0 on, a scale and a zero point for each block along an axis.

    >>> whole, scale, zero = quantized(np.array([[-1.0], [0.0], [2.0], [1.0]], np.float32), 0, 4, 2)
    >>> whole.ravel().tolist(), zero.ravel().tolist()
    ([0, 15, 15, 7], [15, 0])
    """
    most = (1 << bits) - 1
    blocks = weight.astype(np.float32)
    shape = (*weight.shape[:depth], -1, block, *weight.shape[depth + 1 :])
    parts = blocks.reshape(shape)
    low = np.minimum(parts.min(depth + 1, keepdims=True), np.float32(0))
    high = np.maximum(parts.max(depth + 1, keepdims=True), np.float32(0))
    scale = np.maximum((high - low) / np.float32(most), np.float32(np.finfo(np.float32).tiny))
    zero = np.clip(np.rint(-low / scale), 0, most)
    whole = np.clip(np.rint(parts / scale) + zero, 0, most).astype(np.uint8)
    found = whole.reshape(weight.shape)
    return found, scale.squeeze(depth + 1), zero.astype(np.uint8).squeeze(depth + 1)
