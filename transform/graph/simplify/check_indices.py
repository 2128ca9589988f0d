"""Assertions of what kernels have nobody to tell, for programs compiled with checks.

Operators that pick by index clamp, those that scatter leave out what is out of range, and integers
divided by 0 give 0. Asked to check, a program finds such indices and divisors beside each call and
asserts that there are none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unity.ir.attrs import Attrs
from unity.ir.dims import Dim
from unity.ir.dtype import INT64
from unity.ir.graph import Call, Constant, Expr, Op, Var
from unity.ir.module import IRModule
from unity.ir.types import Shape, TensorType
from unity.op.call import call_op

from ...passes import Context, Pass, map_functions
from ..rewriter import BodyRewriter


@dataclass(frozen=True, slots=True)
class CheckIndices(Pass):
    """Puts an assertion beside each gather, scatter and division of integers.

    >>> from unity.script import parse, print_module
    >>> from unity.transform import Context
    >>> from unity.transform.graph.simplify.check_indices import CheckIndices
    >>> before = parse('''
    ... @script.function
    ... def main(x: f32[Tensor, 9], i: i64[Tensor, 4]) -> f32[Tensor, 4]:
    ...     return R.take(x, i, axis=0)
    ... ''')
    >>> print(print_module(CheckIndices()(before, Context())), end="")
    nonzero = dim("nonzero")
    <BLANKLINE>
    <BLANKLINE>
    @script.function
    def main(x: f32[Tensor, 9], i: i64[Tensor, 4]) -> f32[Tensor, 4]:
        take_index = R.astype(i, dtype="int64")
        take_index_1 = R.dims(values=9)
        take_index_2 = R.negative(take_index_1)
        take_index_3 = R.less(take_index, take_index_2)
        take_index_4 = R.greater_equal(take_index, take_index_1)
        take_index_5 = R.logical_or(take_index_3, take_index_4)
        take_index_6: i64[Tensor, 1, nonzero] = R.nonzero(take_index_5)
        take_index_out_of_range = R.match_cast(take_index_6, i64[Tensor, 1, 0])
        take = R.take(x, i, axis=0)
        return take
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """The module with its graph functions' indices and divisors checked."""
        return map_functions(module, lambda f: _Checking(module).function(f))


class _Checking(BodyRewriter):
    def rewrite(self, var: Var, value: Expr) -> Expr:
        if isinstance(value, Call) and isinstance(value.callee, Op) and len(value.args) >= 2:
            name = value.callee.name
            x, other = (self.infer(a) for a in value.args[:2])
            if isinstance(x, TensorType) and isinstance(other, TensorType):
                extents = _extents(name, value.attrs, x.shape, other.shape)
                if extents is not None and isinstance(other.shape, tuple):
                    self._require_inside(var, value.args[1], len(other.shape), extents)
                elif name in _DIVISIONS and other.dtype is not None and other.dtype.is_int:
                    self._require_divisors(var, value.args[1], other)
        return value

    def _require_inside(self, var: Var, indices: Expr, rank: int, extents: Dim | Shape) -> None:
        """Assert that nothing of the indices is below the extents negated, or not below them."""
        what = "index"
        wide = self._made(var, what, "astype", indices, dtype=INT64)
        extent = self._made(var, what, "dims", extents, dtype=INT64)
        low = self._made(var, what, "less", wide, self._made(var, what, "negative", extent))
        high = self._made(var, what, "greater_equal", wide, extent)
        wrong = self._made(var, what, "logical_or", low, high)
        self._require_none(var, wrong, rank, what, "index_out_of_range")

    def _require_divisors(self, var: Var, divisor: Expr, of: TensorType) -> None:
        """Assert that nothing of a divisor is 0."""
        assert of.dtype is not None
        if isinstance(divisor, Constant) and divisor.data.all():
            return
        if of.ndim is None:
            return
        zero = Constant(np.zeros((), of.dtype.numpy))
        wrong = self._made(var, "divisor", "equal", divisor, zero)
        self._require_none(var, wrong, of.ndim, "divisor", "divides_by_zero")

    def _require_none(self, var: Var, wrong: Var, rank: int, what: str, name: str) -> None:
        """Assert that a tensor of bools holds no true one."""
        flat = wrong if rank else self._made(var, what, "reshape", wrong, (1,))
        places = self._made(var, what, "nonzero", flat)
        none = TensorType((max(rank, 1), 0), INT64)
        self.match_cast(places, none, f"{var.name}_{name}", var.span)

    def _made(self, var: Var, what: str, name: str, *args: object, **attrs: object) -> Var:
        call = call_op(name, *args, span=var.span, signatures=self.signatures, **attrs)
        return self.emit(call, f"{var.name}_{what}", var.span)


_DIVISIONS = ("divide", "floor_divide", "mod", "floor_mod")


def _extents(
    op: str, attrs: Attrs, x: Shape | int | None, indices: Shape | int | None
) -> Dim | Shape | None:
    """What indices are to be below: one extent, or one for each place of their last axis."""
    if not isinstance(x, tuple) or not isinstance(indices, tuple):
        return None
    match op:
        case "take" | "gather_elements" | "scatter_elements":
            axis = attrs["axis"]
            return x[axis if isinstance(axis, int) else 0]
        case "gather_nd" | "scatter_nd":
            batch, length = attrs.get("batch_dims", 0), indices[-1]
            if isinstance(batch, int) and isinstance(length, int) and length:
                return tuple(x[batch : batch + length])
    return None
