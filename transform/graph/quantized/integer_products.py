"""IntegerProducts: products and convolutions of quantized tensors, in integers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unity.errors import Span
from unity.ir.dims import Dim
from unity.ir.dtype import BOOL, FLOAT32, INT8, INT32, UINT8, Array
from unity.ir.graph import Call, Constant, Expr, Function, Op, Var
from unity.ir.lattice import atom_type
from unity.ir.module import IRModule
from unity.ir.symbols.representative import IMAGE, representative
from unity.ir.types import TensorType, Type
from unity.machine.dot_units import integer_dots
from unity.machine.target import Target
from unity.op.call import call_op
from unity.op.elementwise.quantize import limits
from unity.op.registry import dtype_attr
from unity.op.window import paddings, per_axis

from ...passes import Context, Pass, map_functions
from ..derived import derived
from ..layout.blockable import is_depthwise
from ..layout.interleave import interleave_for
from ..layout.narrow_products import prod_of
from ..layout.pack_weights import worth_packing
from ..layout.winograd_estimate import taps_of, winograd_cycles
from ..rewriter import BodyRewriter
from .factors import Activations, Weights, activations, weights, widened
from .lines_as_images import lines_as_images
from .products_of_two import products_of_two
from .requantize import MOVES, Requantizer
from .unsigned import OFFSET, unsigned
from .wide_operands import widened_operands

_LEAST_PIXELS = 16
"""Pixels of a result from which on convolutions are laid out in blocks."""
_WASTE = 1.5
_FEW_ROWS = 2
"""Rows of a product up to which its weights are read no faster than they come from memory."""
_GAIN_OF_TWO = 2.0
"""The same of two convolutions of bytes."""
_WIDE_GAIN = 1.4
"""How many times faster products of int16 are than float32's (by AVX2 on Zen 3: 1.2 to 1.6)."""


@dataclass(frozen=True, slots=True)
class IntegerProducts(Pass):
    """Where the target adds up dot products of integers, products of quantized tensors are such.

    Those of bytes where it has them, else of int16 (`wide_operands.py`). uint8 (int8 by an offset)
    is multiplied by constant weights in int8 and summed in int32. Convolutions by weights that int8
    does not hold without their zero points are the sum of two; those of each channel by itself
    widen both operands. Those of lines are of images (`lines_as_images.py`). Where they are of
    int16, so are products of matrices neither of which is constant (`products_of_two.py`).
    The activations' zero point times the sum of an output's weights is known and added to the sums;
    scales are multiplied in float32 behind them. What such products read is stored in 8 bits
    (`requantize.py`), and what only moves between two quantized tensors moves as integers.

    >>> from unity.script import parse, print_module
    >>> weight = np.tile(np.arange(-8, 8, dtype=np.int8), (4, 1))
    >>> before = parse('''
    ... @script.function
    ... def main(x: u8[Tensor, 2, 4]) -> f32[Tensor, 2, 16]:
    ...     a = R.dequantize(x, 0.5, R.const(3, "uint8"))
    ...     w = R.dequantize(R.const("weight"), 0.25, R.const(0, "int8"))
    ...     return R.matmul(a, w)
    ... ''', {"weight": weight})
    >>> features = ("avx512f", "avx512vl", "avx512vnni")
    >>> target = Target("cpu", "x86_64-unknown-linux-gnu", "icelake-server", features, 512, 32)
    >>> after = IntegerProducts()(before, Context(target=target))
    >>> for line in print_module(after).splitlines()[-5:]:
    ...     print(line.partition(", R.const([")[0])
        sums = R.matmul(x, R.const("weight_integers"), out_dtype="int32")
        sums_1 = R.add(sums
        reals_1 = R.astype(sums_1, dtype="float32")
        matmul = R.multiply(reals_1, 0.125)
        return matmul

    Attributes:
        winograd: Whether convolutions may be left in float32 where Winograd's tiles are faster than
            products of int16.
    """

    winograd: bool = True

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each function by itself."""
        if integer_dots(ctx.target) is None:
            return module
        return map_functions(module, lambda f: _rewritten(module, f, ctx.target, self.winograd))


def _rewritten(module: IRModule, f: Function, target: Target, winograd: bool) -> Function:
    return products_of_two(module, _by_constants(module, f, target, winograd), target)


def _by_constants(module: IRModule, f: Function, target: Target, winograd: bool) -> Function:
    products = _Products(module, target, winograd)
    new = products.function(lines_as_images(module, unsigned(module, f), products.lies_in_blocks))
    if not products.read:
        return f
    done = Requantizer(module, frozenset(products.sources()), new).function(new)
    dots = integer_dots(target)
    assert dots is not None
    _, left, right = dots
    return widened_operands(module, done, right) if left == right else done


class _Products(BodyRewriter):
    """Carries which integers products read."""

    def __init__(self, module: IRModule, target: Target, winograd: bool) -> None:
        super().__init__(module)
        self.target = target
        self.winograd = winograd
        self.read: set[Var] = set()
        self.signless: dict[Var, Var] = {}

    def enter(self) -> None:
        self.signless = {}

    def leave(self) -> None:
        self.signless = {}

    def rewrite(self, var: Var, value: Expr) -> Expr:
        """A product, or what is quantized, where it can be had in integers."""
        match value:
            case Call(Op("matmul"), (x, w)):
                return self.matmul(value, x, w) or value
            case Call(Op("nn.conv2d"), (x, w)):
                return self.convolution(value, var.type, x, w) or value
            case Call(Op("quantize"), (Var() as x, Constant(), Constant())):
                return self.moved(value, x) or value
            case _:
                return value

    def sources(self) -> set[Var]:
        """What products read, and what that was moved from."""
        found: set[Var] = set()
        todo = list(self.read)
        while todo:
            var = todo.pop()
            match self.values.get(var):
                case Call(Op(name), (Var() as source, *_)) if name in MOVES:
                    todo.append(source)
                case _:
                    pass
            found.add(var)
        return found

    def matmul(self, call: Call, x: Expr, w: Expr) -> Call | None:
        """A product of matrices of integers; None where there is none to be had."""
        left, right = activations(x, self.values), weights(w, self.values, 1)
        if left is None or right is None or right.integers.ndim != 2:
            return None
        if not _is_summed_alike(call, left, right, (0,)):
            return None
        depth, columns = right.integers.shape
        if not worth_packing(depth, columns, self.target.vector_bits // INT32.bits):
            return None
        if left.scale is not None and self.reads_bytes_once(call):
            return None
        left = self.without_sign(left)
        sums = right.integers.sum(0, dtype=np.int32)
        if right.offset is not None:
            sums = (sums + depth * right.offset).astype(np.int32)
        return self.scaled(call, left.integers, left, right, sums, ())

    def reads_bytes_once(self, call: Call) -> bool:
        """Whether a product has so few rows that reading bytes counts, which wider integers double.

        It is one of float32 by weights of bytes then (`layout/narrow_products.py`).
        """
        match integer_dots(self.target), atom_type(call.args[0]):
            case (_, left, _), TensorType(tuple(dims)) if left != UINT8:
                rows = prod_of(dims[:-1])
                return isinstance(rows, int) and rows <= _FEW_ROWS
            case _:
                return False

    def convolution(self, call: Call, out: Type, x: Expr, w: Expr) -> Call | None:
        """The same of a convolution that will lie in blocks."""
        left, right = activations(x, self.values), weights(w, self.values, 0)
        if left is None or right is None or not self.lies_in_blocks(call, out, right):
            return None
        if not _is_summed_alike(call, left, right, (1, 2, 3)):
            return None
        begin, end = paddings(call.attrs["padding"], 2)
        padded = any((*begin, *end))
        if padded and not self.is_held(left):
            return None
        if padded and not isinstance(left.zero, Constant) and is_depthwise(call):
            return None  # it would not repay the padded copy
        left = self.without_sign(left)
        q: Expr = left.integers
        if padded and not (isinstance(left.zero, Constant) and not np.any(left.zero.data)):
            sizes = [n for pair in zip(begin, end, strict=True) for n in pair]
            q = self.padded(left, (0, 0, 0, 0, *sizes), call.span)
            call = Call(call.callee, call.args, call.attrs.with_(padding=(0, 0, 0, 0)), call.span)
        sums = right.integers.sum((1, 2, 3), dtype=np.int32)
        return self.scaled(call, q, left, right, sums, (1, 1))

    def is_held(self, left: Activations) -> bool:
        """Whether the integers hold their zero point, which padding is of."""
        kind = left.integers.type
        assert isinstance(kind, TensorType)
        assert kind.dtype is not None
        if isinstance(left.zero, Constant):
            low, high = limits(kind.dtype)
            return low <= int(left.zero.data) <= high
        point = widened(self.values.get(left.zero)) if isinstance(left.zero, Var) else None
        of = None if point is None else atom_type(point)
        return isinstance(of, TensorType) and of.dtype == kind.dtype

    def padded(self, left: Activations, widths: tuple[Dim, ...], span: Span | None) -> Var:
        """Integers with their zero point around them, which may be known only at run time."""
        q, zero, kind = left.integers, left.zero, left.integers.type
        if isinstance(zero, Constant):
            value = float(zero.data)
            whole = call_op("nn.pad", q, pad_width=widths, pad_value=value)
            return self.emit(whole, "padded", span)
        assert isinstance(kind, TensorType)
        assert isinstance(kind.shape, tuple)
        image = call_op("ones", (1, 1, *kind.shape[2:]), dtype=BOOL)
        inside = call_op("nn.pad", self.emit(image, "image", span), pad_width=widths)
        where = self.emit(inside, "inside", span)
        held = self.emit(call_op("nn.pad", q, pad_width=widths), "held", span)
        point = self.emit(call_op("astype", zero, dtype=kind.dtype), "point", span)
        return self.emit(call_op("where", where, held, point), "padded", span)

    def lies_in_blocks(self, call: Call, out: Type, right: Weights) -> bool:
        """Whether `ConvertLayout` takes a convolution, and float32's is no faster."""
        dots = integer_dots(self.target)
        assert dots is not None
        depthwise = is_depthwise(call)
        if interleave_for(*dots[1:], INT32, self.target) is None:
            return False
        if call.attrs["groups"] != 1 and not (depthwise and dots[1] == UINT8):
            return False  # of int16, depthwise ones are no faster than float32's
        if call.attrs.get("algorithm") is not None or call.attrs["data_layout"] != "NCHW":
            return False
        match atom_type(call.args[0]), out:
            case TensorType((_, int(c), _, _)), TensorType((n, int(o), lines, pixels)):
                lanes = self.target.vector_bits // INT32.bits
                h, w = (representative(e, IMAGE) for e in (lines, pixels))
                if h * w < _LEAST_PIXELS or -(-o // lanes) * lanes > _WASTE * o:
                    return False
                gain = _WIDE_GAIN
                if dots[1] == UINT8:
                    if depthwise or right.scale is None or not self.takes_two(call, right):
                        return True
                    gain = _GAIN_OF_TWO
                return not self.is_best_by_winograd(call, (c, o), n, (lines, pixels), gain)
            case _:
                return False

    def takes_two(self, call: Call, right: Weights) -> bool:
        """Whether a convolution is the sum of two: of bytes that weights are the sum of."""
        dots = integer_dots(self.target)
        if right.integers.dtype == np.int8 or dots is None or dots[2] != INT8:
            return False
        return not is_depthwise(call)

    def is_best_by_winograd(
        self, call: Call, channels: tuple[int, int], batch: Dim, sizes: tuple[Dim, Dim], gain: float
    ) -> bool:
        """Whether Winograd's tiles in float32 save more than integers do, so many times as fast."""
        (c, o), lanes = channels, self.target.vector_bits // INT32.bits
        kind = atom_type(call.args[1])
        shape = kind.shape if isinstance(kind, TensorType) else None
        known = [e for e in shape[2:] if isinstance(e, int)] if isinstance(shape, tuple) else []
        taps = taps_of(known) if len(known) == 2 else None
        steps = (call.attrs["strides"], call.attrs["dilation"])
        plain = all(per_axis("steps", s, 2, 1) == (1, 1) for s in steps)
        if not self.winograd or taps is None or not plain or c % lanes or o % lanes:
            return False
        blocks = o // lanes, c // lanes
        cycles = winograd_cycles(*blocks, batch, sizes, lanes, self.target, taps)
        return min(cycles.values()) * gain < cycles[0]

    def without_sign(self, left: Activations) -> Activations:
        """Activations in uint8."""
        q, kind = left.integers, left.integers.type
        assert isinstance(kind, TensorType)
        if kind.dtype == UINT8:
            return left
        if q not in self.signless:
            wide = self.emit(call_op("astype", q, dtype=INT32), "wide", q.span)
            moved = self.emit(call_op("add", wide, Constant(np.array(OFFSET, np.int32))), "moved")
            self.signless[q] = self.emit(call_op("astype", moved, dtype=UINT8), q.name, q.span)
        if isinstance(left.zero, Constant):
            zero: Expr = Constant(np.array(int(left.zero.data) + OFFSET, np.int32))
        else:
            own = self.emit(call_op("astype", left.zero, dtype=INT32), "zero", q.span)
            zero = self.emit(call_op("add", own, Constant(np.array(OFFSET, np.int32))), "zero")
        return Activations(self.signless[q], zero, left.scale)

    def scaled(
        self,
        call: Call,
        q: Expr,
        left: Activations,
        right: Weights,
        sums: Array,
        behind: tuple[int, ...],
    ) -> Call:
        """The sums without the zero point's part; in reals, if the product was.

        Args:
            call: The product.
            q: The integers to multiply.
            left: The activations that these are, maybe padded.
            right: The weights.
            sums: Those of each output's weights.
            behind: Extents of the axes behind that of the outputs.
        """
        self.read.add(left.integers)
        data = derived(right.source, right.integers, "integers")
        attrs = call.attrs.with_(out_dtype=INT32)
        total: Expr = Call(call.callee, (q, data), attrs, call.span)
        if self.takes_two(call, right):
            whole = right.integers.astype(np.int16)
            half = whole >> 1  # what is left of it differs by 1 at most
            first, second = (
                Call(call.callee, (q, derived(right.source, x.astype(np.int8), name)), attrs)
                for x, name in ((half, "half"), (whole - half, "rest"))
            )
            total = call_op("add", self.emit(first, "half"), self.emit(second, "rest"))
        if right.offset is not None:
            wide = self.emit(call_op("astype", q, dtype=INT32), "wide", call.span)
            rows = self.emit(call_op("sum", wide, axis=(-1,), keepdims=True), "rows", call.span)
            part = Constant(right.offset.astype(np.int32))
            moved = self.emit(call_op("multiply", rows, part), "moved", call.span)
            total = call_op("add", self.emit(total, "sums", call.span), moved, span=call.span)
        if not isinstance(left.zero, Constant):
            part = Constant(np.negative(sums, dtype=np.int32).reshape(-1, *behind))
            wide = self.emit(call_op("astype", left.zero, dtype=INT32), "zero", call.span)
            shift: Expr | None = self.emit(call_op("multiply", wide, part), "shift", call.span)
        elif np.any(left.zero.data):
            shift = Constant((-int(left.zero.data) * sums.astype(np.int32)).reshape(-1, *behind))
        else:
            shift = None
        if shift is not None:
            total = call_op("add", self.emit(total, "sums", call.span), shift, span=call.span)
        if left.scale is None or right.scale is None:
            assert isinstance(total, Call)
            return total
        exact = self.emit(total, "sums", call.span)
        real = self.emit(call_op("astype", exact, dtype=FLOAT32), "reals", call.span)
        scale = np.asarray(np.multiply(left.scale, right.scale, dtype=np.float32))
        factor = scale.reshape(-1, *behind) if scale.ndim else scale
        return call_op("multiply", real, Constant(factor), span=call.span)

    def moved(self, call: Call, x: Var) -> Expr | None:
        """What is dequantized, moved and quantized by the same scale: integers that move."""
        move = self.values.get(x)
        if (
            not isinstance(move, Call)
            or not isinstance(move.callee, Op)
            or move.callee.name not in MOVES
        ):
            return None
        source = move.args[0]
        match self.values.get(source) if isinstance(source, Var) else None:
            case Call(Op("dequantize"), (Var() as q, Constant(scale), Constant(zero))):
                pass
            case _:
                return None
        _, by, at = call.args
        assert isinstance(by, Constant)
        assert isinstance(at, Constant)
        alone = scale.ndim == 0 and zero.ndim == 0  # vectors are along axes, which move
        same = alone and np.array_equal(by.data, scale) and np.array_equal(at.data, zero)
        kind = q.type
        if not same or not isinstance(kind, TensorType) or float(scale) <= 0:
            return None
        if kind.dtype != dtype_attr(call.attrs, "out_dtype"):
            return None
        return Call(move.callee, (q, *move.args[1:]), move.attrs, call.span)


def _is_summed_alike(call: Call, left: Activations, right: Weights, axes: tuple[int, ...]) -> bool:
    """Whether sums in int32 are those of a product: integers' wrap as well, reals must fit.

    Args:
        call: The product.
        left: The activations, which take any value of 8 bits.
        right: The weights.
        axes: Of the weights, those that are summed over.
    """
    out = call.attrs["out_dtype"]
    if left.scale is None or right.scale is None:
        return out == INT32 or out is None
    exact = right.integers.astype(np.int64)
    if right.offset is not None:
        exact = exact + right.offset.astype(np.int64)
    most = np.abs(exact).sum(axes).max(initial=0) * limits(UINT8)[1]
    return out in (None, FLOAT32) and int(most) <= limits(INT32)[1]
