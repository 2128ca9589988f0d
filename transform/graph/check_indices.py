"""Assertions that indices known only at run time are in range, for programs compiled with checks.

Operators that pick by index clamp: a kernel has nobody to tell. Asked to check, a program finds the
indices out of range beside each such call and asserts that there are none.
"""

from __future__ import annotations

from dataclasses import dataclass

from unity.ir.attrs import Attrs
from unity.ir.dims import Dim
from unity.ir.dtype import INT64
from unity.ir.graph import Call, Expr, MatchCast, Op, Var
from unity.ir.module import IRModule
from unity.ir.types import Shape, TensorType
from unity.op.call import call_op

from ..passes import Context, Pass, map_functions
from .rewriter import BodyRewriter


@dataclass(frozen=True, slots=True)
class CheckIndices(Pass):
    """Puts an assertion beside each take, gather_elements and gather_nd.

    >>> from unity.script import parse, print_module
    >>> from unity.transform import Context
    >>> from unity.transform.graph.check_indices import CheckIndices
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
        """The module with its graph functions' indices checked."""
        return map_functions(module, lambda f: _Checking(module).function(f))


class _Checking(BodyRewriter):
    def rewrite(self, var: Var, value: Expr) -> Expr:
        if isinstance(value, Call) and isinstance(value.callee, Op) and len(value.args) == 2:
            x, indices = (self.infer(a) for a in value.args)
            if isinstance(x, TensorType) and isinstance(indices, TensorType):
                extents = _extents(value.callee.name, value.attrs, x.shape, indices.shape)
                if extents is not None and isinstance(indices.shape, tuple):
                    self._require(var, value.args[1], len(indices.shape), extents)
        return value

    def _require(self, var: Var, indices: Expr, rank: int, extents: Dim | Shape) -> None:
        """Assert that nothing of the indices is below the extents negated, or not below them."""

        def made(name: str, *args: object, **attrs: object) -> Var:
            call = call_op(name, *args, span=var.span, signatures=self.signatures, **attrs)
            return self.emit(call, f"{var.name}_index", var.span)

        wide = made("astype", indices, dtype=INT64)
        extent = made("dims", extents, dtype=INT64)
        low = made("less", wide, made("negative", extent))
        wrong = made("logical_or", low, made("greater_equal", wide, extent))
        places = made("nonzero", wrong if rank else made("reshape", wrong, (1,)))
        none = TensorType((max(rank, 1), 0), INT64)
        self._add(MatchCast(Var(f"{var.name}_index_out_of_range", none), places, none, var.span))


def _extents(
    op: str, attrs: Attrs, x: Shape | int | None, indices: Shape | int | None
) -> Dim | Shape | None:
    """What indices are to be below: one extent, or one for each place of their last axis."""
    if not isinstance(x, tuple) or not isinstance(indices, tuple):
        return None
    match op:
        case "take" | "gather_elements":
            axis = attrs["axis"]
            return x[axis if isinstance(axis, int) else 0]
        case "gather_nd":
            batch, length = attrs["batch_dims"], indices[-1]
            if isinstance(batch, int) and isinstance(length, int) and length:
                return tuple(x[batch : batch + length])
    return None
