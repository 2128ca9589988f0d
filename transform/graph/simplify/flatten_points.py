"""FlattenPoints: pixels are sampled at a line of points, however these are arranged."""

from __future__ import annotations

from dataclasses import dataclass, replace

from unity.ir.dims import equal
from unity.ir.graph import Call, Expr, Op, Var
from unity.ir.lattice import atom_type
from unity.ir.module import IRModule
from unity.ir.types import TensorType
from unity.op.call import call_op

from ...passes import Context, Pass, map_functions
from ..rewriter import BodyRewriter


@dataclass(frozen=True, slots=True)
class FlattenPoints(Pass):
    """``grid_sample(x, grid)`` of rows of points becomes that of one row, which costs nothing.

    A row's points share vectors: of a few points of each of many queries, as deformable attention
    has them, most lanes would be empty.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... @script.function
    ... def main(
    ...     x: f32[Tensor, 2, 8, 5, 5], grid: f32[Tensor, 2, 2, 300, 4]
    ... ) -> f32[Tensor, 2, 8, 300, 4]:
    ...     return R.image.grid_sample(x, grid)
    ... ''')
    >>> for line in print_module(FlattenPoints()(before, Context())).splitlines()[2:5]:
    ...     print(line.strip())
    points = R.reshape(grid, (2, 2, 1, 1200))
    pixels = R.image.grid_sample(x, points)
    grid_sample = R.reshape(pixels, (2, 8, 300, 4))
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each function by itself."""
        return map_functions(module, _Flattener(module).function)


class _Flattener(BodyRewriter):
    """Rewrites one function."""

    def rewrite(self, var: Var, value: Expr) -> Expr:
        match value:
            case Call(Op("image.grid_sample"), (x, grid)):
                return self._flat(value, x, grid)
            case _:
                return value

    def _flat(self, call: Call, x: Expr, grid: Expr) -> Expr:
        """The call over one row of points; itself if it is, or ranks are not told."""
        image, points = atom_type(x), atom_type(grid)
        if not isinstance(image, TensorType) or not isinstance(image.shape, tuple):
            return call
        if not isinstance(points, TensorType) or not isinstance(points.shape, tuple):
            return call
        batch, axes, rows, columns = points.shape
        if equal(rows, 1):
            return call
        line = self.emit(
            call_op("reshape", grid, (batch, axes, 1, rows * columns)), "points", call.span
        )
        pixels = self.emit(replace(call, args=(x, line)), "pixels", call.span)
        shape = (batch, image.shape[1], rows, columns)
        return call_op("reshape", pixels, shape, span=call.span)
