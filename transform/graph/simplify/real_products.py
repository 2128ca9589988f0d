"""RealProducts: products of small integers whose sums are rounded to float32 anyway, in float32."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from unity.ir.attrs import Attrs
from unity.ir.dtype import FLOAT32, INT32, Array
from unity.ir.graph import Call, Constant, Expr, Op, Var
from unity.ir.lattice import atom_dtype, atom_type
from unity.ir.module import IRModule
from unity.ir.types import TensorType
from unity.op.registry import dtype_attr

from ...passes import Context, Pass, map_functions
from ..rewriter import BodyRewriter
from ..uses import count_uses

PRODUCTS = ("matmul", "nn.conv1d", "nn.conv2d", "nn.conv3d")
_BITS = 8


@dataclass(frozen=True, slots=True)
class RealProducts(Pass):
    """Products and convolutions of 8-bit integers without their zero points become float32's.

    That is, where their int32 sums are only cast to float32 (MatMulInteger, ConvInteger,
    QLinearConv ...): no instruction multiplies int32 as fast. Products are exact, and so are sums
    up to 2**24; larger ones are rounded as float32's are, which the cast does, too.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... @script.function
    ... def main(x: u8[Tensor, 2, 3], w: i8[Tensor, 3, 4], z: u8[Tensor, ()]) -> f32[Tensor, 2, 4]:
    ...     a = R.subtract(R.astype(x, "int32"), R.astype(z, "int32"))
    ...     return R.astype(R.matmul(a, R.astype(w, "int32")), "float32")
    ... ''')
    >>> after = RealProducts()(before, Context())
    >>> print(*print_module(after).splitlines()[-4:], sep=chr(10))
        a_1 = R.dequantize(x, 1.0, z)
        astype_3 = R.dequantize(w, 1.0, 0)
        astype_4 = R.matmul(a_1, astype_3)
        return astype_4
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each function by itself."""
        return map_functions(module, lambda f: _Products(module, count_uses(f.body)).function(f))


class _Products(BodyRewriter):
    """Carries how often variables are used, and operands as reals."""

    def __init__(self, module: IRModule, uses: Counter[Var]) -> None:
        super().__init__(module)
        self.uses = uses
        self.reals: dict[Var, Var] = {}

    def enter(self) -> None:
        self.reals = {}

    def leave(self) -> None:
        self.reals = {}

    def rewrite(self, var: Var, value: Expr) -> Expr:
        match value:
            case Call(Op("astype"), (Var() as sums,)) if self.uses[sums] == 1:
                made = self.values.get(sums)
            case _:
                return value
        if dtype_attr(value.attrs, "dtype") != FLOAT32 or not isinstance(made, Call):
            return value
        match made:
            case Call(Op("add"), (Var() as product, Constant(data) as bias)) if (
                self.uses[product] == 1 and data.dtype == np.int32
            ):
                found = self.product(self.values.get(product))
                if found is None:
                    return value
                plain = self.emit(found, product.name, value.span)
                added = Constant(np.asarray(data.astype(np.float32)), bias.name, bias.span)
                return Call(Op("add"), (plain, added), span=value.span)
            case _:
                return self.product(made) or value

    def product(self, call: Expr | None) -> Call | None:
        """A product of integers as one of reals."""
        if not isinstance(call, Call) or not isinstance(call.callee, Op):
            return None
        if call.callee.name not in PRODUCTS or call.attrs["out_dtype"] not in (None, INT32):
            return None
        operands = [self.operand(a) for a in call.args]
        if any(o is None for o in operands):
            return None
        reals = tuple(self.real(*o) for o in operands if o is not None)
        return Call(call.callee, reals, call.attrs.with_(out_dtype=None), call.span)

    def operand(self, e: Expr) -> tuple[Expr, Expr, Expr] | None:
        """An operand in int32, the integers of 8 bits it is made of, and their zero point."""
        match e:
            case Constant(data) if data.dtype == np.int32 and _is_small(data):
                return e, e, Constant(np.zeros((), np.int32))
            case Var():
                made = self.values.get(e)
            case _:
                return None
        match made:
            case Call(Op("subtract"), (Var() as wide, zero)):
                narrow, point = self.narrow(self.values.get(wide)), self.point(zero)
            case _:
                narrow, point = self.narrow(made), Constant(np.zeros((), np.int32))
        return None if narrow is None or point is None else (e, narrow, point)

    def narrow(self, made: Expr | None) -> Expr | None:
        """Integers of 8 bits that were cast to int32."""
        match made:
            case Call(Op("astype"), (x,), attrs) if dtype_attr(attrs, "dtype") == INT32:
                of = atom_dtype(x)
            case _:
                return None
        return x if of is not None and of.is_int and of.bits == _BITS else None

    def point(self, zero: Expr) -> Expr | None:
        """A zero point of 8 bits: one, or one for each place of the last axis."""
        if isinstance(zero, Constant):
            data = zero.data
            if not _is_small(data):
                return None
            if data.size and np.all(data == data.flat[0]):
                return Constant(np.asarray(data.flat[0]))
            return zero if data.ndim == 1 else None
        narrow = self.narrow(self.values.get(zero)) if isinstance(zero, Var) else None
        kind = None if narrow is None else atom_type(narrow)
        return narrow if isinstance(kind, TensorType) and kind.ndim in (0, 1) else None

    def real(self, whole: Expr, narrow: Expr, zero: Expr) -> Expr:
        """An operand in float32."""
        if isinstance(whole, Constant):
            return Constant(whole.data.astype(np.float32), whole.name, whole.span)
        assert isinstance(whole, Var)
        if whole not in self.reals:
            one = Constant(np.ones((), np.float32))
            attrs = Attrs(axis=-1, out_dtype=FLOAT32, block=0)
            made = Call(Op("dequantize"), (narrow, one, zero), attrs, whole.span)
            self.reals[whole] = self.emit(made, whole.name, whole.span)
        return self.reals[whole]


def _is_small(data: Array) -> bool:
    """Whether integers are what differences of two of 8 bits may be."""
    wide = data.astype(np.int64)
    return bool(np.all(np.abs(wide) < 1 << _BITS))
