"""Products of bytes on targets that add up dot products of wider integers alone (AVX2: int16).

Comes in: a function whose integer products multiply bytes by constants. Goes out: the same products
of the wider integers. What makes an activation stores it wide, so that nothing is widened once for
each product; whoever reads it as a number, and what only moves it, reads that.
"""

from __future__ import annotations

from unity.ir.dtype import INT8, INT16, INT32, UINT8, DType, dtype
from unity.ir.graph import Call, Constant, Expr, Function, Op, Var
from unity.ir.lattice import atom_dtype
from unity.ir.module import IRModule
from unity.ir.visit import walk_bindings
from unity.op.call import call_op
from unity.op.registry import dtype_attr

from ..derived import derived
from ..rewriter import BodyRewriter
from .requantize import MOVES

_PRODUCTS = frozenset({"matmul", "nn.conv2d"})
_MOVES = MOVES | {"nn.pad"}


def widened_operands(module: IRModule, f: Function, to: DType) -> Function:
    """A function whose products of bytes by constants, summed in int32, multiply wider integers.

    Args:
        module: The module, for types.
        f: The function.
        to: The type of both operands, which holds all of int8 and uint8.
    """
    wanted = _wanted(f)
    return _Widener(module, wanted, to).function(f) if wanted else f


def _wanted(f: Function) -> frozenset[Var]:
    """What products read, what that is moved from, and what else that is moved to."""
    moves = dict[Var, Var]()
    found = set[Var]()
    for binding in walk_bindings(f):
        match binding.value:
            case Call(Op(name), (Var() as x, *_)) if name in _MOVES and _is_narrow(binding.var):
                moves[binding.var] = x
            case Call(_, (Var() as x, *_)) as call if _product(call) is not None:
                found.add(x)
            case _:
                pass
    for var in reversed(moves):
        if var in found:
            found.add(moves[var])
    for var, x in moves.items():
        if x in found:
            found.add(var)
    return frozenset(found)


class _Widener(BodyRewriter):
    """Carries what was stored wide, and the constants made wide, each once."""

    def __init__(self, module: IRModule, wanted: frozenset[Var], to: DType) -> None:
        super().__init__(module)
        self.wanted = wanted
        self.to = to
        self.wide: dict[Expr, Var] = {}
        self.constants: dict[int, Constant] = {}
        self._outer: list[dict[Expr, Var]] = []

    def enter(self) -> None:
        self._outer.append(dict(self.wide))

    def leave(self) -> None:
        self.wide = self._outer.pop()

    def rewrite(self, var: Var, value: Expr) -> Expr:
        """Products, what makes their operands, and what reads these."""
        if not isinstance(value, Call):
            return value
        weight = _product(value)
        if weight is not None:
            args = (self.operand(value.args[0]), self.constant(weight))
            return Call(value.callee, args, value.attrs, value.span)
        match value:
            case Call(Op("astype"), (x,)) if var in self.wanted and self.is_clipped(x, var):
                self.wide[var] = self.emit(call_op("astype", x, dtype=self.to), var.name, var.span)
            case Call(Op(name), (x, *rest)) if var in self.wanted and name in _MOVES:
                if x in self.wide:
                    moved = Call(value.callee, (self.wide[x], *rest), value.attrs, value.span)
                    self.wide[var] = self.emit(moved, var.name, var.span)
            case Call(Op("astype"), (x,)) if x in self.wide:
                return Call(value.callee, (self.wide[x],), value.attrs, value.span)
            case _:
                pass
        return value  # which nothing may read any more

    def is_clipped(self, x: Expr, to: Var) -> bool:
        """Whether what is cast to bytes is held within their limits before."""
        made = self.values.get(x) if isinstance(x, Var) else None
        match made:
            case Call(Op("clip"), _, attrs):
                low, high = (0, 255) if atom_dtype(to) == UINT8 else (-128, 127)
                least, most = attrs["min"], attrs["max"]
                assert isinstance(least, int | float)
                assert isinstance(most, int | float)
                return low <= least and most <= high
            case _:
                return False

    def operand(self, x: Expr) -> Var:
        """An activation stored wide; widened here where it comes as bytes."""
        if x not in self.wide:
            self.wide[x] = self.emit(call_op("astype", x, dtype=self.to), "wide")
        return self.wide[x]

    def constant(self, c: Constant) -> Constant:
        """Weights, wide."""
        key = id(c.data)
        if key not in self.constants:
            self.constants[key] = derived(c, c.data.astype(self.to.numpy), "wide")
        return self.constants[key]


def _product(call: Call) -> Constant | None:
    """The weights of a product of bytes with sums in int32."""
    match call:
        case Call(Op(name), (Var() as x, Constant() as w), attrs) if name in _PRODUCTS:
            sums = attrs["out_dtype"] is not None and dtype_attr(attrs, "out_dtype") == INT32
            held = dtype(w.data.dtype) in (INT8, INT16)
            return w if sums and _is_narrow(x) and held else None
        case _:
            return None


def _is_narrow(x: Var) -> bool:
    return atom_dtype(x) in (INT8, UINT8)
