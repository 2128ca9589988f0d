"""What writes an operator's calls as ONNX nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from unity.errors import UnityError

from .writer import Arg, OpNode

NodeRule: TypeAlias = Callable[[OpNode], Arg]
"""Writes the nodes and gives the result's name, or names; raises `UnityError` for what it can't."""


def plain(op: str) -> NodeRule:
    """One node of the same operands, without attributes."""
    return lambda n: n.w.node(op, n.inputs)


def same_dtype(n: OpNode) -> None:
    """Check that the result has the operand's dtype: a mean of integers has another here.

    Raises:
        UnityError: It has not.
    """
    if n.out.dtype != n.tensor(0).dtype:
        raise UnityError("the result has another dtype")
