"""Inputs of classic models: rows of numbers."""

from __future__ import annotations

from unity.errors import UnityError
from unity.ir.dims import always_ge, dim
from unity.ir.dtype import FLOAT32, FLOAT64, DType
from unity.ir.graph import Expr

from ..node import Node


def working(kind: DType) -> DType:
    """What numbers of a dtype are computed in: float64 stays, all others become float32."""
    return FLOAT64 if kind == FLOAT64 else FLOAT32


def rows_of(node: Node, index: int = 0, width: int | None = None) -> Expr:
    """An input as rows, ``[rows, columns]``, of float32 or float64; a vector is one row.

    Args:
        node: The node.
        index: Of the input.
        width: How many columns there must be at least.

    Raises:
        UnityError: It has fewer, or more than two axes.
    """
    x = node.tensor(index)
    x = node.cast(x, working(node.dtype_of(x)))
    if node.rank(index) == 1:
        x = node.op("expand_dims", x, axis=0)
    shape = node.shape_of(x)
    if len(shape) != 2:
        raise UnityError(f"takes rows, an input of rank 1 or 2, got rank {len(shape)}")
    if width is None or always_ge(shape[1], max(width, 1)):
        return x
    if isinstance(shape[1], int):
        raise UnityError(f"looks at column {width - 1} of rows that have {shape[1]}")
    columns = dim(node.graph.builder.fresh(f"{node.label}_columns").name, min=max(width, 1))
    return node.assert_shape(x, (shape[0], columns))
