"""Scalars that differ from site to site: operands of a kernel, so that sites can share it.

A literal costs nothing and may be folded. But a quantized network has other scales at each of its
layers, which are alike else: with literals each layer would be compiled by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TypeGuard

from unity.ir.dtype import FLOAT32, dtype
from unity.ir.graph import Call, Constant, Expr, Function, Op
from unity.ir.visit import walk_bindings

MANY = 8
"""Values of an operator's scalars from which on none of them is a literal."""
ARITHMETIC = frozenset({"add", "subtract", "multiply", "maximum", "minimum"})
"""What is as fast by a number in memory as by a literal."""


def varied_scalars(functions: Iterable[Function]) -> frozenset[str]:
    """The operators whose float32 scalars are to be operands of their kernels."""
    seen: defaultdict[str, set[bytes]] = defaultdict(set)
    for f in functions:
        for binding in walk_bindings(f):
            match binding.value:
                case Call(Op(name), args) if name in ARITHMETIC:
                    seen[name].update(a.data.tobytes() for a in args if _is_number(a))
                case _:
                    pass
    return frozenset(name for name, values in seen.items() if len(values) >= MANY)


def _is_number(e: Expr) -> TypeGuard[Constant]:
    """Whether something is a float32 constant of one element."""
    return isinstance(e, Constant) and e.data.size == 1 and dtype(e.data.dtype) == FLOAT32
