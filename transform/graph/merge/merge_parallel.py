"""MergeParallel: products of one input by several constants become one product and its parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unity.ir.arrays.mapped import evict
from unity.ir.attrs import Attrs
from unity.ir.dtype import Array
from unity.ir.graph import Body, Call, Constant, Expr, Function, Op, Var, VarBinding
from unity.ir.module import IRModule
from unity.ir.types import TensorType

from ...passes import Context, Pass, map_functions
from ..rewriter import BodyRewriter
from ..uses import count_uses, variables
from ..views import is_view


@dataclass(frozen=True, slots=True)
class MergeParallel(Pass):
    """``x @ a`` and ``x @ b`` become slices of ``x @ [a b]``, biases included.

    A larger product keeps the threads busier and reads its input once. It pays only where parts of
    the result are read in place: where each is only viewed under another shape, as queries, keys
    and values of attention are. A part that is worked on element by element would lose more by no
    longer being done in its product's write-back.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... n = dim("n")
    ... @script.function
    ... def main(x: f32[Tensor, n, 2]) -> R.Tuple(f32[Tensor, n, 2, 1], f32[Tensor, n, 1, 1]):
    ...     a = R.reshape(R.matmul(x, R.const([[1.0, 2.0], [3.0, 4.0]], "float32")), (n, 2, 1))
    ...     b = R.reshape(R.matmul(x, R.const([[5.0], [6.0]], "float32")), (n, 1, 1))
    ...     return (a, b)
    ... ''')
    >>> from unity.transform.graph import EliminateDeadCode
    >>> after = EliminateDeadCode()(MergeParallel()(before, Context()), Context())
    >>> print(print_module(after), end="")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.function
    def main(x: f32[Tensor, n, 2]) -> R.Tuple(f32[Tensor, n, 2, 1], f32[Tensor, n, 1, 1]):
        merged = R.matmul(x, R.const([[1.0, 2.0, 5.0], [3.0, 4.0, 6.0]], "float32"))
        matmul = R.strided_slice(merged, axes=(1,), begin=(0,), end=(2,))
        a = R.reshape(matmul, (n, 2, 1))
        matmul_1 = R.strided_slice(merged, axes=(1,), begin=(2,), end=(3,))
        b = R.reshape(matmul_1, (n, 1, 1))
        pair = (a, b)
        return pair
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each function by itself."""

        def merge(f: Function) -> Function:
            groups = _groups(f)
            return _Merger(module, groups).function(f) if groups else f

        return map_functions(module, merge)


@dataclass(frozen=True, slots=True)
class _Product:
    """A product by a constant, and the constant added to it, if any.

    Attributes:
        result: The variable that has the sum, or the product.
        x: The common factor.
        weight: The constant matrix.
        bias: A constant for each column.
    """

    result: Var
    x: Var
    weight: Constant
    bias: Constant | None


@dataclass(frozen=True, slots=True)
class _Part:
    """Where a product is within the merged one."""

    group: tuple[_Product, ...]
    begin: int
    end: int


def _groups(f: Function) -> dict[Var, _Part]:
    """Each result that becomes a part of a merged product."""
    uses = count_uses(f.body)
    users = _users(f.body)
    by_factor: dict[tuple[Var, bool, object], list[_Product]] = {}
    for block in f.body.blocks:
        for binding in block.bindings:
            found = (
                _product(binding.var, binding.value, uses, users)
                if isinstance(binding, VarBinding)
                else None
            )
            if found is not None:
                key = (found.x, found.bias is None, found.weight.data.dtype.str)
                by_factor.setdefault(key, []).append(found)
    parts: dict[Var, _Part] = {}
    for group in by_factor.values():
        if len(group) < 2:
            continue
        begin = 0
        for each in group:
            end = begin + each.weight.data.shape[1]
            parts[each.result] = _Part(tuple(group), begin, end)
            begin = end
    return parts


def _users(body: Body) -> dict[Var, list[VarBinding]]:
    """The bindings that use each variable, those within nested bodies left out."""
    found: dict[Var, list[VarBinding]] = {}
    for block in body.blocks:
        for binding in block.bindings:
            if isinstance(binding, VarBinding):
                for var in variables(binding.value):
                    found.setdefault(var, []).append(binding)
    return found


def _product(
    var: Var, value: Expr, uses: Counter[Var], users: dict[Var, list[VarBinding]]
) -> _Product | None:
    """The product that a binding is, with what is added to it; None where merging won't pay."""
    match value:
        case Call(Op("matmul"), (Var() as x, Constant() as weight)) if weight.data.ndim == 2:
            pass
        case _:
            return None
    kind = x.type
    if value.attrs.get("algorithm") == "unpacked":
        return None  # as it was asked for
    if value.attrs["out_dtype"] is not None or not isinstance(kind, TensorType):
        return None
    if kind.ndim is None or kind.ndim < 2:
        return None
    bias: Constant | None = None
    mine = users.get(var, [])
    if len(mine) == 1 and uses[var] == 1:
        match mine[0].value:
            case Call(Op("add"), (Constant() as c, Var()) | (Var(), Constant() as c)):
                if _per_column(c, weight.data.shape[1]):
                    bias, var = c, mine[0].var
            case _:
                pass
    mine = users.get(var, [])
    viewed = bool(mine) and uses[var] == len(mine) and all(is_view(b.value) for b in mine)
    return _Product(var, x, weight, bias) if viewed else None


def _per_column(c: Constant, columns: int) -> bool:
    return c.data.shape == (1,) * (c.data.ndim - 1) + (columns,) and c.data.ndim <= 2


class _Merger(BodyRewriter):
    """Carries the merged products made so far."""

    def __init__(self, module: IRModule, parts: dict[Var, _Part]) -> None:
        super().__init__(module)
        self.parts = parts
        self.made: dict[tuple[_Product, ...], Var] = {}

    def rewrite(self, var: Var, value: Expr) -> Expr:
        part = self.parts.get(var)
        if part is None or not isinstance(var.type, TensorType) or var.type.ndim is None:
            return value
        if part.group not in self.made:
            self.made[part.group] = self.merged(part.group)
        axis = var.type.ndim - 1
        bounds = Attrs(axes=(axis,), begin=(part.begin,), end=(part.end,), strides=None)
        return Call(Op("strided_slice"), (self.made[part.group],), bounds, value.span)

    def merged(self, group: Sequence[_Product]) -> Var:
        """The product by all constants side by side, all biases added."""
        first = group[0]
        name = "_".join(p.weight.name or "weight" for p in group)
        weight = Constant(np.concatenate([p.weight.data for p in group], axis=1), name)
        for p in group:
            evict(p.weight.data)
        x = self.atom(first.x)
        y = self.emit(
            Call(Op("matmul"), (x, weight), Attrs(out_dtype=None, algorithm=None)), "merged"
        )
        biases: list[Array] = [p.bias.data.reshape(-1) for p in group if p.bias is not None]
        if not biases:
            return y
        bias = Constant(np.concatenate(biases), f"{name}_bias")
        return self.emit(Call(Op("add"), (y, bias)), "merged_sum")
