"""WidenProducts: contractions of narrow floats that nothing multiplies become those of float32."""

from __future__ import annotations

from dataclasses import dataclass, replace

from unity.ir.attrs import Attrs
from unity.ir.dtype import BFLOAT16, FLOAT16, FLOAT32, DType, dtype
from unity.ir.graph import Call, Constant, Expr, Op, Var
from unity.ir.lattice import atom_dtype, atom_type
from unity.ir.module import IRModule
from unity.ir.types import TensorType
from unity.machine.dot_units import DotForm, has_dot
from unity.machine.target import Target
from unity.op.call import call_op
from unity.op.table import OPS

from ...passes import Context, Pass, map_functions
from ..derived import derived
from ..rewriter import BodyRewriter
from .narrow_products import narrow_pays, prod_of

_MOVES = frozenset({"reshape", "permute_dims", "strided_slice", "squeeze", "expand_dims"})
"""What only moves numbers: it moves those that are wide already."""


@dataclass(frozen=True, slots=True)
class WidenProducts(Pass):
    """Contractions of float16, and of bfloat16 where the target has no dot products of it.

    Their sums are in float32 anyway, and a register tile would widen what it multiplies at each
    step, numbers that all columns share one by one: a third of the speed. Here operands are widened
    once, by the kernels that make them, weights while the program is compiled; a result is rounded
    as it was. Products of one row, which wait for what it is multiplied by, read that as it is (by
    two they took twice as long), and attention does, whose kernels widen what they copy: keys are
    often read for one query alone.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... @script.function
    ... def main(x: f16[Tensor, 64, 4], w: f16[Tensor, 4, 2]) -> f16[Tensor, 64, 2]:
    ...     y = R.exp(x)
    ...     return R.matmul(y, w)
    ... ''')
    >>> print(print_module(WidenProducts()(before, Context())), end="")
    @script.function
    def main(x: f16[Tensor, 64, 4], w: f16[Tensor, 4, 2]) -> f16[Tensor, 64, 2]:
        y = R.exp(x)
        y_wide = R.astype(y, dtype="float32")
        w_wide = R.astype(w, dtype="float32")
        matmul_wide = R.matmul(y_wide, w_wide)
        matmul = R.astype(matmul_wide, dtype="float16")
        return matmul
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each function by itself, with one table of widened constants."""
        constants: dict[int, tuple[Constant, Constant]] = {}
        return map_functions(module, lambda f: _Widener(module, ctx.target, constants).function(f))


class _Widener(BodyRewriter):
    """Carries the wide form of each operand, and of each constant."""

    def __init__(
        self, module: IRModule, target: Target, constants: dict[int, tuple[Constant, Constant]]
    ) -> None:
        super().__init__(module)
        self.target = target
        self.narrow = {t for t in (FLOAT16, BFLOAT16) if not _multiplies(target, t)}
        self.constants = constants
        self.made: dict[Expr, Var] = {}
        self._outer: list[dict[Expr, Var]] = []

    def enter(self) -> None:
        self._outer.append(dict(self.made))

    def leave(self) -> None:
        self.made = self._outer.pop()

    def rewrite(self, var: Var, value: Expr) -> Expr:
        """A contraction of narrow floats as one of float32, its result rounded."""
        if not isinstance(value, Call) or not self.contracts(value) or self.waits(value):
            return value
        args = tuple(self.wide(a) if atom_dtype(a) in self.narrow else a for a in value.args)
        attrs = value.attrs
        if "out_dtype" in attrs:
            attrs = Attrs({**dict(attrs.items()), "out_dtype": None})  # that of the operands
        call = replace(value, args=args, attrs=attrs)
        if atom_dtype(var) not in self.narrow:
            return call
        sums = self.emit(call, f"{var.name}_wide", value.span)
        return call_op("astype", sums, dtype=atom_dtype(var))

    def contracts(self, call: Call) -> bool:
        """Whether a call adds up products of narrow floats."""
        row = OPS.get(call.callee.name) if isinstance(call.callee, Op) else None
        if row is None or row.precision != "always":
            return False
        of = {atom_dtype(a) for a in call.args[:2]}
        given = call.attrs.get("out_dtype")
        sums = dtype(given) if isinstance(given, str | DType) else None
        return len(of) == 1 and of <= self.narrow and sums in (None, FLOAT32, *of)

    def waits(self, call: Call) -> bool:
        """Whether a product of one row takes as long as reading what it is multiplied by."""
        if call.callee != Op("matmul"):
            return False
        x, weight = call.args
        match atom_type(x), atom_type(weight):
            case TensorType(tuple(dims)), TensorType(tuple(matrix)):
                rows = prod_of(dims[:-1] if len(matrix) == 2 else dims[-2:-1])
            case _:
                return False
        if rows != 1 or weight in self.made:
            return False
        if not isinstance(weight, Constant):
            return True
        match matrix:
            case (int(k), int(n)):
                return narrow_pays(1, k, n, self.target, float(FLOAT16.bytes))
            case _:
                return False

    def wide(self, x: Expr) -> Expr:
        """An operand in float32: of what only moves numbers, those before it."""
        if isinstance(x, Constant):
            return self.constant(x)
        if x not in self.made:
            name = f"{x.name}_wide" if isinstance(x, Var) else "wide"
            self.made[x] = self.emit(self.widened(x), name)
        return self.made[x]

    def widened(self, x: Expr) -> Call:
        """What gives an operand in float32."""
        match self.values.get(x) if isinstance(x, Var) else None:
            case Call(Op(name), (Var() as first, *rest)) as call if name in _MOVES:
                return replace(call, args=(self.wide(first), *rest))
            case _:
                return call_op("astype", x, dtype=FLOAT32)

    def constant(self, c: Constant) -> Constant:
        """Weights in float32."""
        found = self.constants.get(id(c.data))
        if found is None:  # with the constant itself, so that its array keeps its place
            found = c, derived(c, c.data.astype(FLOAT32.numpy), "wide")
            self.constants[id(c.data)] = found
        return found[1]


def _multiplies(target: Target, narrow: DType) -> bool:
    """Whether a target has dot products of a narrow float."""
    forms: tuple[DotForm, ...] = ("tile", "lanes")
    return any(has_dot(target, form, narrow, narrow, FLOAT32) for form in forms)
