"""SimplifyOps: algebra on operators that never changes a result's bits, as a table of rules."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from unity.ir.attrs import Attrs, AttrValue
from unity.ir.dims import equal
from unity.ir.graph import Call, Constant, Expr, Function, Op, ShapeValue, Tuple, TupleGet, Var
from unity.ir.lattice import atom_type
from unity.ir.module import IRModule
from unity.ir.types import Shape, TensorType, Type
from unity.ir.visit import walk_bindings

from ...passes import Context, Pass, map_functions
from ..rewriter import BodyRewriter
from ..slices import begin_of, part_of_split, slice_of, view_in_front
from ..uses import count_uses


@dataclass(frozen=True, slots=True)
class SimplifyOps(Pass):
    """Removes ops that do nothing and joins pairs that do less together.

    Views of views become one view, and products of views that merge batch axes views of products.
    A transposition of a transposition becomes one or none; one that only moves axes of extent 1 a
    view. Casts to the same dtype, slices of everything, broadcasts and views to the same shape, and
    operations with a neutral constant are dropped, and so is a number taken out of a tensor and put
    into one again. Dividing by a power of two becomes a
    multiplication, squaring by `power` a square.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... @script.function
    ... def main(x: f32[Tensor, 2, 4]) -> f32[Tensor, 8]:
    ...     y = R.reshape(R.reshape(R.astype(x, "float32"), (4, 2)), (8,))
    ...     return R.divide(R.power(y, 2.0), 8.0)
    ... ''')
    >>> print(print_module(SimplifyOps()(before, Context())), end="")
    @script.function
    def main(x: f32[Tensor, 2, 4]) -> f32[Tensor, 8]:
        reshape = R.reshape(x, (4, 2))
        y = R.reshape(x, (8,))
        power = R.square(y)
        divide = R.multiply(power, 0.125)
        return divide
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each function by itself."""
        return map_functions(module, lambda f: _Simplifier(module).function(f))


@dataclass(frozen=True, slots=True)
class SimplifyParts(Pass):
    """`SimplifyOps` for what passes that join ops leave: slices of larger results, views of them.

    A pass of its own, so that a pipeline has one place that is after `SimplifyOps`.
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """As `SimplifyOps` does."""
        return SimplifyOps()(module, ctx)


class _Simplifier(BodyRewriter):
    """Carries what variables are bound to, which the rules look up, and who looks at products."""

    uses: Counter[Var]
    views: dict[Var, list[Var]]

    def function(self, f: Function) -> Function:
        """The function simplified."""
        self.uses = count_uses(f.body)
        self.views = _views_of(f)
        return super().function(f)

    def rewrite(self, var: Var, value: Expr) -> Expr:
        if isinstance(value, TupleGet):
            value = self.part(value)
        while isinstance(value, Call) and isinstance(value.callee, Op):
            rule = RULES.get(value.callee.name)
            instead = None if rule is None else rule(RuleCall(value, var.type, self.values))
            if instead is None and value.callee.name in _VIEWS:
                instead = self.stretch_of_view(value, var.type)
            if instead is None and value.callee.name == "matmul":
                instead = self.product_of_merged(var, value)
            if instead is None:
                return value
            value = instead
        return value

    def product_of_merged(self, var: Var, value: Call) -> Call | None:
        """matmul(reshape(x), reshape(y)) -> reshape(matmul(x, y)), where batch axes were merged.

        And where all that reads the product parts them again. So a product of three axes, all that
        Relay's `nn.batch_matmul` and torch's `bmm` have, is the one of batches and heads that it
        was written for.
        """
        shape = _shape(var.type)
        if shape is None or len(shape) != 3 or not self.views.get(var):
            return None
        left, right = (self.unmerged(arg) for arg in value.args[:2])
        if left is None or right is None or not _same_dims(left.batch, right.batch):
            return None
        parted = (*left.batch, *shape[1:])
        readers = [_shape(v.type) for v in self.views[var]]
        if len(readers) < self.uses[var] or not all(_same_dims(r, parted) for r in readers):
            return None
        operands = tuple(
            self.emit(side.turn(), "turned", value.span) if side.turned else side.x
            for side in (left, right)
        )
        made = Call(Op("matmul"), operands, value.attrs, value.span)
        return _reshape(self.emit(made, "product", value.span), shape, value)

    def unmerged(self, x: Expr, turned: bool = False) -> _Unmerged | None:
        """What a tensor of three axes was before its batch axes were merged to one."""
        made = self.values.get(x) if isinstance(x, Var) else None
        merged = _shape(atom_type(x)) if isinstance(x, Var) else None
        if not isinstance(made, Call) or not isinstance(made.callee, Op):
            return None
        if merged is None or len(merged) != 3:
            return None
        if made.callee.name == "permute_dims" and _axes(made, 3) == (0, 2, 1) and not turned:
            return self.unmerged(made.args[0], True)
        whole = _shape(atom_type(made.args[0])) if made.callee.name in _VIEWS else None
        if whole is None or len(whole) < 4 or not _same_dims(whole[-2:], merged[1:]):
            return None
        return _Unmerged(made.args[0], whole[:-2], turned)

    def part(self, value: TupleGet) -> Expr:
        """A part of a split by itself: a slice, which may join what uses it."""
        split = self.values.get(value.value) if isinstance(value.value, Var) else None
        if not isinstance(split, Call) or split.callee != Op("split"):
            return value
        shape = _shape(atom_type(split.args[0]))
        bounds = None if shape is None else part_of_split(split, shape, value.index)
        return value if bounds is None else slice_of(split.args[0], *bounds, split)

    def stretch_of_view(self, value: Call, type: Type) -> Call | None:
        """reshape(slice(x)) -> slice(reshape(x)), so that nothing parts a slice from its use."""
        made = self.values.get(value.args[0]) if isinstance(value.args[0], Var) else None
        view = _shape(type)
        if not isinstance(made, Call) or made.callee != Op("strided_slice") or view is None:
            return None
        whole, cut = _shape(atom_type(made.args[0])), _shape(atom_type(value.args[0]))
        if not whole or cut is None or not isinstance(cut[-1], int):
            return None
        begin = begin_of(made, len(whole) - 1, whole)
        found = None if begin is None else view_in_front(whole, begin, cut[-1], view)
        if found is None:
            return None
        shape, axis, begin, end = found
        viewed = self.emit(_reshape(made.args[0], shape, value), "viewed", value.span)
        return slice_of(viewed, axis, begin, end, value)


@dataclass(frozen=True, slots=True)
class _Unmerged:
    """A tensor with its batch axes, and whether its last two axes are to be exchanged."""

    x: Expr
    batch: Shape
    turned: bool

    def turn(self) -> Call:
        """It with its last two axes exchanged."""
        rank = len(self.batch) + 2
        axes = (*range(rank - 2), rank - 1, rank - 2)
        return Call(Op("permute_dims"), (self.x,), Attrs(axes=axes))


@dataclass(frozen=True, slots=True)
class RuleCall:
    """A call as a rule sees it: its result's type and what variables are bound to."""

    call: Call
    type: Type
    values: Mapping[Var, Expr]

    def producer(self, *names: str) -> Call | None:
        """The call that made the first argument, if it is of one of these ops."""
        arg = self.call.args[0]
        made = self.values.get(arg) if isinstance(arg, Var) else None
        fits = isinstance(made, Call) and isinstance(made.callee, Op) and made.callee.name in names
        return made if fits and isinstance(made, Call) else None

    @property
    def shape(self) -> Shape | None:
        """The dims of the result, if known."""
        return _shape(self.type)

    def same_type(self) -> Expr | None:
        """The first argument, if the result has its type."""
        x = self.call.args[0]
        return x if atom_type(x) == self.type else None


def _views_of(f: Function) -> dict[Var, list[Var]]:
    """For each variable those that are views of it."""
    found: dict[Var, list[Var]] = {}
    for binding in walk_bindings(f):
        match binding.value:
            case Call(Op(name), (Var() as x, *_)) if name in _VIEWS:
                found.setdefault(x, []).append(binding.var)
            case _:
                pass
    return found


SimplifyRule: TypeAlias = Callable[[RuleCall], Expr | None]
_VIEWS = ("reshape", "flatten", "expand_dims", "squeeze")


def _shape(t: Type | None) -> Shape | None:
    return t.shape if isinstance(t, TensorType) and isinstance(t.shape, tuple) else None


def _same_type(m: RuleCall) -> Expr | None:
    return m.same_type()


def _view(m: RuleCall) -> Expr | None:
    """reshape(reshape(x)) -> reshape(x); reshape(x) to its own shape -> x."""
    if m.shape is None:
        return None
    made = m.producer(*_VIEWS)
    source = m.call.args[0] if made is None else made.args[0]
    if _same_dims(_shape(atom_type(source)), m.shape):
        return source
    return None if made is None else _reshape(source, m.shape, m.call)


def _same_dims(a: Shape | None, b: Shape) -> bool:
    return a is not None and len(a) == len(b) and all(map(equal, a, b))


def _reshape(x: Expr, shape: Shape, call: Call) -> Call:
    return Call(Op("reshape"), (x, ShapeValue(shape)), span=call.span)


def _transpose(m: RuleCall) -> Expr | None:
    """permute(permute(x)) -> permute(x); by identity -> x; of axes of extent 1 -> reshape."""
    x = m.call.args[0]
    dims = _shape(atom_type(x))
    if dims is None or m.shape is None:
        return None
    axes = _axes(m.call, len(dims))
    if axes == tuple(range(len(axes))):
        return x
    wide = [a for a in axes if dims[a] != 1]
    if wide == sorted(wide):
        return _reshape(x, m.shape, m.call)
    made = m.producer("permute_dims")
    if made is None:
        return None
    first = _axes(made, len(dims))
    both = Attrs(axes=tuple(first[a] for a in axes))
    return Call(Op("permute_dims"), (made.args[0],), both, m.call.span)


def _axes(call: Call, ndim: int) -> tuple[int, ...]:
    given = call.attrs["axes"]
    if given is None:
        return tuple(reversed(range(ndim)))
    assert isinstance(given, tuple)
    return tuple(a % ndim for a in given if isinstance(a, int))


def _alone(m: RuleCall) -> Expr | None:
    """concat((x,)) -> x."""
    tensors = m.call.args[0]
    return tensors.fields[0] if isinstance(tensors, Tuple) and len(tensors.fields) == 1 else None


def _slice(m: RuleCall) -> Expr | None:
    """A slice of everything, in order -> x."""
    strides = m.call.attrs["strides"]
    forward = strides is None or all(s == 1 for s in _items(strides))
    return m.same_type() if forward else None


def _pad(m: RuleCall) -> Expr | None:
    """A pad by nothing -> x."""
    nothing = all(w == 0 for w in _items(m.call.attrs["pad_width"]))
    return m.same_type() if nothing else None


def _items(value: AttrValue) -> Sequence[AttrValue]:
    return value if isinstance(value, tuple) else (value,)


def _number(e: Expr) -> float | None:
    """The value of a constant whose elements are all the same."""
    if not isinstance(e, Constant) or e.data.size == 0 or e.data.size > 64:
        return None
    if e.data.dtype.kind not in "fiu":
        return None
    values = np.unique(e.data.astype(np.float64))
    return float(values[0]) if values.size == 1 else None


def _subtract(m: RuleCall) -> Expr | None:
    """X - 0 -> x; not of -0.0, which makes a 0.0 of -0.0, as adding 0.0 does."""
    by = m.call.args[1]
    if _number(by) != 0.0 or not isinstance(by, Constant) or np.signbit(by.data).any():
        return None
    return m.same_type()


def _multiply(m: RuleCall) -> Expr | None:
    """X * 1 -> x and 1 * x -> x."""
    a, b = m.call.args
    if _number(b) == 1.0 and atom_type(a) == m.type:
        return a
    return b if _number(a) == 1.0 and atom_type(b) == m.type else None


def _divide(m: RuleCall) -> Expr | None:
    """X / 2**k -> x * 2**-k, which is exact where the dtype has 2**-k as a normal number."""
    x, by = m.call.args
    value = _number(by)
    if value == 1.0:
        return m.same_type()
    if value is None or not isinstance(by, Constant) or by.data.dtype.kind != "f" or value == 0.0:
        return None
    if not math.isfinite(value) or abs(math.frexp(value)[0]) != 0.5:
        return None
    limits = np.finfo(by.data.dtype.name)
    if not 1 / float(limits.max) < abs(value) <= 1 / float(limits.tiny):
        return None
    inverse = np.asarray(1.0 / by.data.astype(np.float64), by.data.dtype)
    return Call(Op("multiply"), (x, Constant(inverse)), span=m.call.span)


def _power(m: RuleCall) -> Expr | None:
    """power(x, 2) -> square(x), power(x, 1) -> x."""
    x, by = m.call.args
    if _number(by) == 1.0:
        return m.same_type()
    if _number(by) == 2.0 and atom_type(x) == m.type:
        return Call(Op("square"), (x,), span=m.call.span)
    return None


def _tensor_of(m: RuleCall) -> Expr | None:
    """scalar_tensor(item(x)) -> x."""
    made = m.producer("item")
    return None if made is None else made.args[0]


def _number_in(m: RuleCall) -> Expr | None:
    """item(scalar_tensor(s)) -> s."""
    made = m.producer("scalar_tensor")
    return None if made is None else made.args[0]


RULES: dict[str, SimplifyRule] = {
    "astype": _same_type,
    "broadcast_to": _same_type,
    "concat": _alone,
    "divide": _divide,
    "expand_dims": _view,
    "flatten": _view,
    "item": _number_in,
    "multiply": _multiply,
    "nn.pad": _pad,
    "permute_dims": _transpose,
    "power": _power,
    "reshape": _view,
    "scalar_tensor": _tensor_of,
    "squeeze": _view,
    "strided_slice": _slice,
    "subtract": _subtract,
    "tile": _same_type,
}
"""By operator: what a call of it may be replaced by; None keeps it."""
