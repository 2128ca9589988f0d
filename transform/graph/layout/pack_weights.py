"""PackWeights: constant matrices that products are taken by, laid out in panels at compile time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from unity.ir.attrs import Attrs
from unity.ir.dtype import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT32,
    DType,
    dtype,
)
from unity.ir.graph import Call, Constant, Expr, Function, Op, Var
from unity.ir.lattice import atom_type
from unity.ir.module import IRModule
from unity.ir.types import TensorType
from unity.machine.dot_units import INTEGER_OPERANDS, SIDE, group_of, has_dot, integer_dots
from unity.machine.target import Target
from unity.op.call import call_op
from unity.op.contraction.matmul_interleaved import interleaved
from unity.op.contraction.matmul_packed import panels
from unity.op.registry import int_attr

from ...passes import Context, Pass, map_functions
from ..derived import derived
from ..rewriter import BodyRewriter
from .column_chunks import column_chunks
from .narrow_weights import bits_of, blocks_of_rows, centred, is_narrow

DEPTH = 4
"""Rows of a matrix from which on a product by it is more than a broadcast."""

MOST_CHUNKS = 4
"""Chunks whose vectors a register tile has side by side, at most."""

PACKED: tuple[DType, ...] = (FLOAT32, FLOAT64, BFLOAT16, FLOAT16)
"""Dtypes of matrices that are laid out anew; narrow ones where sums are in float32."""


@dataclass(frozen=True, slots=True)
class PackWeights(Pass):
    """A product by a constant matrix becomes one by panels of as many columns as a tile has.

    A kernel then reads weights in order, from the first to the last, whatever the number of rows.
    Matrices of few columns stay: most of a panel would be padding; so does what a call's attribute
    ``algorithm="unpacked"`` says. Where the target multiplies
    narrow floats in groups of neighbours in depth, a panel holds such groups
    (`matmul_interleaved`). Columns that are only read in chunks, element by element, lie so that a
    panel has a part of each chunk (`column_chunks.py`). Weights that `FoldQuantization` left as
    integers of 8 bits are packed as such, and what they are scaled by is multiplied to the sums;
    those whose scales belong to blocks of rows lie in words (`matmul_words`).

    >>> from unity.script import parse, print_module
    >>> import numpy as np
    >>> weight = np.arange(30.0, dtype=np.float32).reshape(5, 6)
    >>> before = parse('''
    ... @script.function
    ... def main(x: f32[Tensor, 2, 5]) -> f32[Tensor, 2, 6]:
    ...     return R.matmul(x, R.const("weight"))
    ... ''', {"weight": weight})
    >>> print(print_module(PackWeights()(before, Context())), end="")
    @script.function
    def main(x: f32[Tensor, 2, 5]) -> f32[Tensor, 2, 6]:
        matmul = R.matmul_packed(x, R.const("weight_packed"), columns=6)
        return matmul
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each function by itself, with one table of panels."""
        packer = _Packer(module, ctx.target)
        return map_functions(module, packer.function)


class _Packer(BodyRewriter):
    """Carries the constants packed, each once: by the array's identity, width and chunks.

    Chunks are 0 where the depth is in groups.
    """

    def __init__(self, module: IRModule, target: Target) -> None:
        super().__init__(module)
        self.target = target
        self.packed: dict[tuple[int, int, int], Constant] = {}
        self.chunks: Mapping[Var, int] = {}

    def function(self, f: Function) -> Function:
        self.chunks = column_chunks(f, MOST_CHUNKS)
        return super().function(f)

    def rewrite(self, var: Var, value: Expr) -> Expr:
        match value:
            case Call(Op("matmul"), (x, Constant(data) as weight)) if data.ndim > 1:
                kind, of = atom_type(x), dtype(data.dtype)
            case Call(Op("matmul"), (_, Var() as w)) if w in self.values:
                made = self.values[w]
                few = isinstance(made, Call) and made.callee == Op("dequantize")
                if isinstance(made, Call) and few and bits_of(made) is not None:
                    return self.words(value, made) or value
                if isinstance(made, Call) and few and is_narrow(made):
                    return self.narrow(value, made) or value
                return value
            case _:
                return value
        given = value.attrs["out_dtype"]
        if isinstance(kind, TensorType) and (kind.dtype, of) in INTEGER_OPERANDS:
            return self.integers(value, weight) or value
        if value.attrs.get("algorithm") == "unpacked":
            return value
        if of not in PACKED or given not in (None, of, FLOAT32):
            return value
        if not isinstance(kind, TensorType) or kind.ndim is None:
            return value
        if 2 < data.ndim > kind.ndim:
            return value  # the result would have the weight's batch axes
        *batch, k, columns = data.shape
        lanes = self.target.vector_bits // max(of.bits, 32)
        if not worth_packing(k, columns, lanes):
            return value
        attrs = Attrs(columns=columns, out_dtype=given)
        alone = all(e == 1 for e in batch) and isinstance(kind.shape, tuple)
        if alone and has_dots(self.target, of):
            groups = self.groups(weight, lanes * min(2, -(-columns // lanes)))
            return Call(Op("matmul_interleaved"), (x, groups), attrs, value.span)
        if of in (BFLOAT16, FLOAT16) and given != FLOAT32:
            return value
        chunks = self.chunks.get(var, 1)
        width = panel_width(columns, lanes, self.target, chunks)
        attrs = attrs.with_(chunks=chunks)
        return Call(Op("matmul_packed"), (x, self.panels(weight, width, chunks)), attrs, value.span)

    def integers(self, call: Call, weight: Constant) -> Call | None:
        """A product with sums in int32, where the target adds up dot products of its operands."""
        found = integer_dots(self.target)
        if found is None or weight.data.ndim != 2 or call.attrs["out_dtype"] != INT32:
            return None
        form, _, right = found
        if dtype(weight.data.dtype) != right:
            return None
        depth, columns = weight.data.shape
        lanes = self.target.vector_bits // INT32.bits
        if not worth_packing(depth, columns, lanes):
            return None
        vectors = 2 if form == "tile" else panel_vectors(self.target)
        groups = self.groups(weight, lanes * min(vectors, -(-columns // lanes)), form == "tile")
        attrs = Attrs(columns=columns, out_dtype=INT32)
        x = in_whole_groups(self, call.args[0])
        return Call(Op("matmul_interleaved"), (x, groups), attrs, call.span)

    def narrow(self, call: Call, made: Call) -> Call | None:
        """A product by integers, its columns scaled behind it; None for other weights."""
        weight, scale, zero = made.args
        assert isinstance(weight, Constant)
        assert isinstance(scale, Constant)
        assert isinstance(zero, Constant)
        whole = centred(weight.data, zero.data, int_attr(made.attrs, "axis"))
        kind, columns = atom_type(call.args[0]), weight.data.shape[1]
        if whole is None or not isinstance(kind, TensorType) or kind.dtype != FLOAT32:
            return None
        lanes = self.target.vector_bits // FLOAT32.bits
        width = panel_width(columns, lanes, self.target)
        packed = derived(weight, panels(whole, width), "packed")
        attrs = Attrs(columns=columns, out_dtype=None, chunks=1)
        product = Call(Op("matmul_packed"), (call.args[0], packed), attrs, call.span)
        sums = self.emit(product, "sums", call.span)
        return Call(Op("multiply"), (sums, scale), span=call.span)

    def words(self, call: Call, made: Call) -> Call | None:
        """A product by integers in words, which are scaled by blocks as they are read."""
        matrix = blocks_of_rows(made)
        kind = atom_type(call.args[0])
        if matrix is None or not isinstance(kind, TensorType) or kind.dtype != FLOAT32:
            return None
        if not isinstance(kind.shape, tuple):
            return None
        weight, *_ = made.args
        assert isinstance(weight, Constant)
        columns, lanes = matrix.integers.shape[1], self.target.vector_bits // FLOAT32.bits
        width = panel_width(columns, lanes, self.target)
        given = matrix.packed(width)
        names = ("words", "scales", "shifts")
        operands = [derived(weight, a, name) for a, name in zip(given, names, strict=True)]
        attrs = Attrs(columns=columns, bits=matrix.bits)
        return Call(Op("matmul_words"), (call.args[0], *operands), attrs, call.span)

    def panels(self, weight: Constant, width: int, chunks: int) -> Constant:
        """The panels of a constant."""
        key = (id(weight.data), width, chunks)
        if key not in self.packed:
            *batch, k, columns = weight.data.shape
            alone = all(e == 1 for e in batch)
            data = weight.data.reshape(k, columns) if alone else weight.data
            self.packed[key] = derived(weight, panels(data, width, chunks), "packed")
        return self.packed[key]

    def groups(self, weight: Constant, width: int, tiles: bool = True) -> Constant:
        """The panels of a constant with the depth in groups, filled up to a tile's or not."""
        key = (id(weight.data), width, 0)
        if key not in self.packed:
            data = weight.data.reshape(weight.data.shape[-2:])
            group = group_of(dtype(data.dtype))
            groups = interleaved(data, width, group, SIDE if tiles else 1)
            self.packed[key] = derived(weight, groups, "interleaved")
        return self.packed[key]


def in_whole_groups(rewriter: BodyRewriter, x: Expr) -> Expr:
    """Integers whose rows are whole groups of a dot product, filled up by zeros.

    Rows that end within a group are copied number by number: of 255 a product takes four times as
    long as of 256 (64 rows, 256 columns, AMD Zen 3).
    """
    match atom_type(x):
        case TensorType((*before, int(depth)), dtype=DType() as of) if depth % group_of(of):
            more = -depth % group_of(of)
            widths = (*(0 for _ in before), *(0 for _ in before), 0, more)
            return rewriter.emit(call_op("nn.pad", x, pad_width=widths), "filled", x.span)
        case _:
            return x


def worth_packing(depth: int, columns: int, lanes: int) -> bool:
    """Whether a matrix is more than a broadcast, and its panels more than padding."""
    return depth >= DEPTH and columns * 2 >= lanes


def has_dots(target: Target, of: DType) -> bool:
    """Whether a target multiplies numbers of a narrow float in groups, with float32 sums."""
    operands = (of, of, FLOAT32)
    return has_dot(target, "tile", *operands) or has_dot(target, "lanes", *operands)


def panel_width(columns: int, lanes: int, target: Target, chunks: int = 1) -> int:
    """Columns of a panel: those of a register tile, or as many vectors as hold them all.

    Chunks have as many vectors each, one at least.
    """
    most = max(1, panel_vectors(target) // chunks)
    return chunks * lanes * min(most, -(-columns // chunks // lanes))


def panel_vectors(target: Target) -> int:
    """Registers of a register tile's columns."""
    return 4 if target.many_registers else 2
