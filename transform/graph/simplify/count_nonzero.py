"""CountNonzero: where tensors are not 0, as kernels: how often first, then the places."""

from __future__ import annotations

from dataclasses import dataclass

from unity.ir.dims import Symbol
from unity.ir.dtype import BOOL, INT64
from unity.ir.graph import Call, Expr, Op, Var
from unity.ir.lattice import atom_type
from unity.ir.module import IRModule
from unity.ir.types import ShapeType, TensorType
from unity.op.call import call_op

from ...passes import Context, Pass, map_functions
from ..rewriter import BodyRewriter


@dataclass(frozen=True, slots=True)
class CountNonzero(Pass):
    """`R.nonzero` becomes a sum that is read as a size, and `R.nonzero_static` of that size.

    So a function that has one can be native code: no operator gives a tensor of a size that only it
    knows. Tensors of unknown shape and those without axes stay.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... k = dim("k")
    ... @script.function
    ... def main(x: f32[Tensor, 9]) -> i64[Tensor, 1, k]:
    ...     places: i64[Tensor, 1, k] = R.nonzero(x)
    ...     return places
    ... ''')
    >>> print(*print_module(CountNonzero()(before, Context())).splitlines()[5:], sep=chr(10))
        places_there = R.not_equal(x, 0.0)
        places_ones = R.astype(places_there, dtype="int64")
        places_sum = R.sum(places_ones)
        places_count = R.reshape(places_sum, (1,))
        places_size = R.tensor_to_shape(places_count)
        places_size_1 = R.match_cast(places_size, R.Shape(k))
        places = R.nonzero_static(places_there, (k,))
        return places
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each function by itself."""
        return map_functions(module, lambda f: _Counting(module).function(f))


class _Counting(BodyRewriter):
    def rewrite(self, var: Var, value: Expr) -> Expr:
        if not isinstance(value, Call) or value.callee != Op("nonzero"):
            return value
        (x,) = value.args
        match atom_type(x), atom_type(var):
            case TensorType(tuple(dims), kind), TensorType((_, Symbol() as size)):
                if not dims or kind is None:
                    return value
            case _:
                return value
        there = x if kind == BOOL else self._made(var, "there", "not_equal", x, 0)
        ones = self._made(var, "ones", "astype", there, dtype=INT64)
        total = self._made(var, "sum", "sum", ones)
        count = self._made(var, "count", "reshape", total, (1,))
        said = self._made(var, "size", "tensor_to_shape", count)
        known = ShapeType((size,))
        self.match_cast(said, known, f"{var.name}_size", var.span)
        return call_op("nonzero_static", there, (size,), span=value.span)

    def _made(self, var: Var, what: str, name: str, *args: object, **attrs: object) -> Var:
        call = call_op(name, *args, span=var.span, signatures=self.signatures, **attrs)
        return self.emit(call, f"{var.name}_{what}", var.span)
