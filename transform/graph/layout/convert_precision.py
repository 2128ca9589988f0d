"""ConvertPrecision: contractions in a narrow float, everything else in float32 as before."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from unity.arguments import REQUIRED
from unity.errors import UnityError
from unity.ir.attrs import Attrs
from unity.ir.dtype import BFLOAT16, FLOAT32, DType, dtype
from unity.ir.graph import Call, Constant, Expr, Function, Op, Tuple, Var, VarBinding
from unity.ir.lattice import atom_type
from unity.ir.module import IRModule
from unity.ir.types import TensorType, Type
from unity.ir.visit import walk_bindings
from unity.machine.dot_units import DOT_UNITS, has_dot
from unity.machine.target import Target
from unity.op.registry import OpDef
from unity.op.table import OPS

from ...passes import Context, Pass, map_functions
from ..derived import derived
from ..rewriter import BodyRewriter
from .stored_anyway import stored_anyway

NATIVE: dict[str, tuple[str, ...]] = {
    "bfloat16": tuple(u.features[0] for u in DOT_UNITS if u.left == u.right == BFLOAT16),
    "float16": ("f16c", "fullfp16"),
}
"""For each dtype, the features of a target any of which makes it native."""
MUCH = 16
"""Elements of an operand, for one of the result, from which on reading it is most of the work."""


@dataclass(frozen=True, slots=True)
class ConvertPrecision(Pass):
    """Mixed precision: by each op's row (`OpDef.precision`) in a narrow float or in float32.

    Ops that are ``always`` narrow (matrix products, convolutions) take operands rounded to nearest
    even and give float32, in which they add up. What they read is kept in memory in the narrow type
    alone: whoever else needs it widens it again. Ops that ``follow`` and only move or pick values
    do so in the narrow type where their result is wanted in it; all others compute in float32,
    between a widening and a rounding that fusion puts in their kernels. Functions take and give
    what they did before.

    Ops whose ``operands`` are narrow (attention) take those that they can't do without in bfloat16
    and give it, on targets with matrix tiles; they stay in float32 where sizes are unknown, which
    is not done on tiles yet, or where results are few beside operands that had to be rounded first.

    Of convolutions over blocked channels only depthwise ones are narrow, and those laid out for dot
    products: there is no schedule by which narrow operands would make the others faster. The second
    of two contractions that are added is kept in bfloat16, since only one can take the sum into its
    kernel.

    float16 is a form of storage: it is widened by instructions and summed in float32, since sums in
    half precision lose too much. bfloat16 has dot product instructions with float32 sums.

    Attributes:
        dtype: The narrow type, bfloat16 or float16.

    Raises:
        UnityError: The target has no instructions for the type.

    >>> from dataclasses import replace
    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... @script.function
    ... def main(x: f32[Tensor, 2, 4], v: f32[Tensor, 8, 2]) -> f32[Tensor, 2, 2]:
    ...     y = R.nn.relu(R.matmul(x, R.const("w")))
    ...     return R.matmul(y, v)
    ... ''', {"w": np.ones((4, 8), np.float32)})
    >>> ctx = Context()
    >>> ctx = replace(ctx, target=replace(ctx.target, features=("avx512bf16",)))
    >>> print(print_module(ConvertPrecision()(before, ctx)), end="")
    @script.function
    def main(x: f32[Tensor, 2, 4], v: f32[Tensor, 8, 2]) -> f32[Tensor, 2, 2]:
        x_bfloat16 = R.astype(x, dtype="bfloat16")
        matmul = R.matmul(x_bfloat16, R.const("w_bfloat16"), out_dtype="float32")
        y_float32 = R.nn.relu(matmul)
        y_bfloat16 = R.astype(y_float32, dtype="bfloat16")
        y = R.astype(y_bfloat16, dtype="float32")
        v_bfloat16 = R.astype(v, dtype="bfloat16")
        matmul_1 = R.matmul(y_bfloat16, v_bfloat16, out_dtype="float32")
        return matmul_1
    """

    dtype: DType = BFLOAT16

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each function by itself, with one table of rounded constants."""
        require_native(ctx.target, self.dtype)
        rounded: dict[Constant, Constant] = {}

        tiles = self.dtype == BFLOAT16 and has_dot(
            ctx.target, "tile", self.dtype, self.dtype, FLOAT32
        )

        def convert(f: Function) -> Function:
            wanted = _wanted(f, tiles)
            if self.dtype == BFLOAT16:
                wanted |= stored_anyway(f)
            return _Converter(module, self.dtype, wanted, rounded, tiles).function(f)

        return map_functions(module, convert)


def require_native(target: Target, narrow: DType) -> None:
    """Check that a target computes with a narrow type itself.

    Raises:
        UnityError: It does not.
    """
    needed = NATIVE.get(narrow.name)
    if needed is None:
        known = ", ".join(NATIVE)
        raise UnityError(f"no mixed precision with {narrow}", hint=f"there is: {known}")
    if narrow.name == "float16" and target.triple.startswith(("aarch64", "arm64")):
        return
    if not any(target.has(f) for f in needed):
        raise UnityError(
            f"this cpu has no instructions for {narrow} (none of {', '.join(needed)})",
            hint='compile with precision="f32": emulated, it would only be slower',
        )


def _wanted(f: Function, tiles: bool) -> set[Var]:
    """The variables read by narrow ops, or by ops that only move values for these."""
    found: set[Var] = set()
    for binding in reversed(list(walk_bindings(f))):
        value = binding.value
        if not isinstance(binding, VarBinding) or not isinstance(value, Call):
            continue
        row = _row(value)
        if row is not None and (contracts(row, value) or (binding.var in found and moves(row))):
            found.update(a for a in _tensors(value.args) if isinstance(a, Var))
        elif row is not None and tiles and chains(row, value, binding.var):
            found.update(a for a in value.args[: _needed(row)] if isinstance(a, Var))
    return {v for v in found if _is_float32(v.type)}


def _row(call: Call) -> OpDef | None:
    return OPS.get(call.callee.name) if isinstance(call.callee, Op) else None


def contracts(row: OpDef, call: Call) -> bool:
    """Whether a call adds up products of float32 numbers."""
    if row.precision != "always" or "out_dtype" not in call.attrs:
        return False
    if call.attrs.get("depthwise") is False:
        return False
    given = call.attrs["out_dtype"]
    types = [atom_type(a) for a in _tensors(call.args)]
    return all(map(_is_float32, types)) and (given is None or given == FLOAT32)


def chains(row: OpDef, call: Call, var: Var) -> bool:
    """Whether a call takes and gives bfloat16 on tiles, operands not much more than results."""
    if row.precision != "operands":
        return False
    types = [atom_type(a) for a in call.args[: _needed(row)]]
    if not all(map(_is_float32, [*types, var.type])):
        return False
    result = _elements(var.type)
    if result is None:
        return False  # only known extents have a schedule by which narrow operands are faster
    return all((_elements(t) or MUCH * result + 1) <= MUCH * result for t in types)


def _needed(row: OpDef) -> int:
    """How many operands a call can't do without."""
    return sum(p.default is REQUIRED for p in row.params)


def _elements(t: Type | None) -> int | None:
    """How many there are, if that is known."""
    if not isinstance(t, TensorType) or not isinstance(t.shape, tuple):
        return None
    known = [e for e in t.shape if isinstance(e, int)]
    return math.prod(known) if len(known) == len(t.shape) else None


def moves(row: OpDef) -> bool:
    """Whether an op's results are values that it read, none of them computed."""
    return row.precision == "follow" and (row.pattern == "injective" or "max_pool" in row.name)


def _tensors(args: Iterable[Expr]) -> list[Expr]:
    """The operands, those in tuples as well."""
    return [x for a in args for x in (a.fields if isinstance(a, Tuple) else (a,))]


def _is_float32(t: Type | None) -> bool:
    return isinstance(t, TensorType) and t.dtype == FLOAT32


class _Converter(BodyRewriter):
    """Carries the narrow form of each variable that has one, and whether there are tiles for it."""

    def __init__(
        self,
        module: IRModule,
        to: DType,
        wanted: set[Var],
        rounded: dict[Constant, Constant],
        tiles: bool,
    ) -> None:
        super().__init__(module)
        self.dtype = to
        self.tiles = tiles
        self.wanted = wanted
        self.rounded = rounded
        self.narrow: dict[Expr, Var] = {}
        self.kept: set[Expr] = set()
        self._outer: list[dict[Expr, Var]] = []

    def enter(self) -> None:
        self._outer.append(dict(self.narrow))

    def leave(self) -> None:
        self.narrow = self._outer.pop()

    def rewrite(self, var: Var, value: Expr) -> Expr:
        row = _row(value) if isinstance(value, Call) else None
        if row is None or not isinstance(value, Call):
            return value
        if var in self.wanted and moves(row):
            name = f"{var.name}_{self.dtype}"
            return self.keep(var, self.emit(self.narrowed(value), name, value.span))
        if self.tiles and chains(row, value, var):
            call = self.mixed(value, _needed(row))
            return self.keep(var, self.emit(call, f"{var.name}_{self.dtype}", value.span))
        if contracts(row, value):
            attrs = Attrs({**dict(value.attrs.items()), "out_dtype": FLOAT32})
            new = replace(self.narrowed(value), attrs=attrs)
        else:
            new = self.widened(value)
        if var not in self.wanted:
            return new
        wide = self.emit(new, f"{var.name}_{FLOAT32}", value.span)
        return self.keep(var, self.rounding(wide, var.name))

    def keep(self, var: Var, narrow: Var) -> Expr:
        """The variable's new right side, now that its narrow form is what memory holds."""
        self.narrow[var] = narrow
        self.kept.add(var)
        return _astype(narrow, FLOAT32)

    def narrowed(self, call: Call) -> Call:
        """A call on the narrow forms of its float32 operands."""
        return self.mapped(call, self.to_narrow)

    def widened(self, call: Call) -> Call:
        """A call that widens, by itself, what memory holds in the narrow type."""
        return self.mapped(call, self.to_wide)

    def mixed(self, call: Call, count: int) -> Call:
        """A call on the narrow forms of its first operands, others in float32."""
        narrow, wide = call.args[:count], call.args[count:]
        return replace(call, args=(*map(self.to_narrow, narrow), *map(self.to_wide, wide)))

    def mapped(self, call: Call, operand: Callable[[Expr], Expr]) -> Call:
        args = tuple(
            replace(a, fields=tuple(operand(x) for x in a.fields))
            if isinstance(a, Tuple)
            else operand(a)
            for a in call.args
        )
        same = all(a is b for a, b in zip(_tensors(args), _tensors(call.args), strict=True))
        return call if same else replace(call, args=args)

    def to_narrow(self, a: Expr) -> Expr:
        if isinstance(a, Constant) and dtype(a.data.dtype) == FLOAT32:
            return self.constant(a)
        if not isinstance(a, Var) or not _is_float32(a.type):
            return a
        if a not in self.narrow:
            self.narrow[a] = self.rounding(a, a.name)
        return self.narrow[a]

    def to_wide(self, a: Expr) -> Expr:
        if a not in self.kept or a not in self.narrow or not isinstance(a, Var):
            return a
        return self.emit(_astype(self.narrow[a], FLOAT32), a.name)

    def rounding(self, x: Var, name: str) -> Var:
        return self.emit(_astype(x, self.dtype), f"{name}_{self.dtype}")

    def constant(self, c: Constant) -> Constant:
        """A constant rounded to nearest even, once."""
        if c not in self.rounded:
            with np.errstate(over="ignore"):
                data = c.data.astype(self.dtype.numpy)
            self.rounded[c] = derived(c, data, str(self.dtype))
        return self.rounded[c]


def _astype(x: Var, to: DType) -> Call:
    return Call(Op("astype"), (x,), Attrs({"dtype": to}))
