"""Products of two matrices of 8 bits, neither of them known, on targets with dot products of int16.

Comes in: a function with products of int32 that were widened from 8 bits, off their zero points or
not. Goes out: products of int16, which holds all of these, by panels that are laid out when the
program runs: the matrix is moved once, and each row of the other then reads it in order.
"""

from __future__ import annotations

import math

import numpy as np

from unity.ir.attrs import Attrs
from unity.ir.dtype import INT16, INT32
from unity.ir.graph import Call, Constant, Expr, Function, Op, Var
from unity.ir.lattice import atom_type
from unity.ir.module import IRModule
from unity.ir.symbols.representative import representative
from unity.ir.types import TensorType
from unity.machine.dot_units import group_of, integer_dots
from unity.machine.target import Target
from unity.op.call import call_op

from ..layout.pack_weights import in_whole_groups, panel_vectors, worth_packing
from ..rewriter import BodyRewriter
from .factors import widened

ROWS = 32
"""Rows of a product that repay the panels."""
_LIMIT = 1 << 8
"""Constant zero points are less than this, so that int16 holds differences from them."""


def products_of_two(module: IRModule, f: Function, target: Target) -> Function:
    """A function whose products of two matrices of 8 bits are dot products of int16.

    Args:
        module: The module, for types.
        f: The function.
        target: What it is for; the function stays as it is where it has no such dot products.
    """
    form = integer_dots(target)
    return _Products(module, target).function(f) if form == ("lanes", INT16, INT16) else f


class _Products(BodyRewriter):
    """Carries operands in int16, and the panels of right ones, each once."""

    def __init__(self, module: IRModule, target: Target) -> None:
        super().__init__(module)
        self.target = target
        self.made: dict[tuple[Var, bool], Var] = {}
        self._outer: list[dict[tuple[Var, bool], Var]] = []

    def enter(self) -> None:
        self._outer.append(dict(self.made))

    def leave(self) -> None:
        self.made = self._outer.pop()

    def rewrite(self, var: Var, value: Expr) -> Expr:
        """A product, where the panels are repaid."""
        match value:
            case Call(Op("matmul"), (Var() as x, Var() as w), attrs):
                if attrs["out_dtype"] not in (None, INT32) or attrs.get("algorithm") is not None:
                    return value
            case _:
                return value
        left, right = (self.narrow(e) for e in (x, w))
        matrix = _matrix(w)
        if left is None or right is None or matrix is None:
            return value
        depth, columns = matrix
        if _rows(x, depth) < ROWS:
            return value
        lanes = self.target.vector_bits // INT32.bits
        if not worth_packing(depth, columns, lanes):
            return value
        width = lanes * min(panel_vectors(self.target), -(-columns // lanes))
        rows = in_whole_groups(self, self.short(x, left))
        operands = rows, self.panels(w, right, matrix, width)
        attrs = Attrs(columns=columns, out_dtype=INT32)
        return Call(Op("matmul_interleaved"), operands, attrs, value.span)

    def narrow(self, e: Var) -> Expr | None:
        """What an operand in int32 is widened from, or itself off its zero point; None of others.

        Either is in int16 what it is in int32.
        """
        made = self.values.get(e)
        match made:
            case Call(Op("subtract"), (Var() as wide, zero)):
                within = widened(self.values.get(wide)) is not None and self.is_point(zero)
                return e if within else None
            case _:
                return widened(made)

    def is_point(self, zero: Expr) -> bool:
        """Whether a zero point is of 8 bits."""
        if isinstance(zero, Constant):
            return bool(np.all(np.abs(zero.data.astype(np.int64)) < _LIMIT))
        return isinstance(zero, Var) and widened(self.values.get(zero)) is not None

    def short(self, operand: Var, narrow: Expr) -> Var:
        """An operand in int16."""
        if (operand, False) not in self.made:
            made = call_op("astype", narrow, dtype=INT16)
            self.made[operand, False] = self.emit(made, "short", operand.span)
        return self.made[operand, False]

    def panels(self, operand: Var, narrow: Expr, matrix: tuple[int, int], width: int) -> Var:
        """A matrix ``(k, n)`` as ``(n / width, k / group, width, group)``, filled up by zeros."""
        if (operand, True) not in self.made:
            (depth, columns), group = matrix, group_of(INT16)
            more = -depth % group, -columns % width
            whole = self.short(operand, narrow)
            if any(more):
                padded = call_op("nn.pad", whole, pad_width=(0, more[0], 0, more[1]))
                whole = self.emit(padded, "padded", operand.span)
            steps, count = (depth + more[0]) // group, (columns + more[1]) // width
            parts = call_op("reshape", whole, (steps, group, count, width))
            moved = call_op("permute_dims", self.emit(parts, "parts"), axes=(2, 0, 3, 1))
            self.made[operand, True] = self.emit(moved, "panels", operand.span)
        return self.made[operand, True]


def _matrix(w: Var) -> tuple[int, int] | None:
    """The extents of a matrix of known ones."""
    match atom_type(w):
        case TensorType((int(depth), int(columns))):
            return depth, columns
        case _:
            return None


def _rows(x: Var, depth: int) -> int:
    """How many rows of so many numbers a tensor has, as many as is usual where that is unknown."""
    match atom_type(x):
        case TensorType((*before, int(last))) if last == depth:
            return math.prod(representative(e) for e in before)
        case _:
            return 0
