"""Accesses that surely stay within their buffers, wherever the loops around run: not checked.

Comes in: a lowered statement. Comes out: the identities of such loads and stores. What is known of
an index is what loops, sizes and bound values say; one that comes from memory is never proven.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeGuard

from unity.arith import Analyzer
from unity.ir.dtype import INT64
from unity.ir.prim_expr import DIVISIONS, Binary, Compare, Imm, Load, PrimExpr, imm
from unity.ir.stmt import Buffer, For, Let, Stmt, Store
from unity.ir.visiting.visit_prim import prim_children, walk_prim
from unity.ir.visiting.visit_stmt import stmt_children, stmt_exprs

from .affine import Affine, as_ramp


def proven(body: Stmt) -> frozenset[int]:
    """The identities of accesses that stay within their buffers at every place they stand at.

    >>> from unity.script import parse
    >>> func = parse('''
    ... @script.prim_func
    ... def shift(a: f32[Buffer, 8], at: i64[Buffer, 1], c: f32[Buffer, 8]) -> None:
    ...     for i in range(8):
    ...         c[i] = a[i + at[0]]
    ... ''').prim_funcs()["shift"]
    >>> store = func.body.body
    >>> found = proven(func.body)
    >>> id(store) in found, id(store.value) in found, id(store.value.indices[0].b) in found
    (True, False, True)
    """
    found = _Accesses()
    found.walk(body, Analyzer())
    return frozenset(found.inside - found.others)


@dataclass(frozen=True, slots=True)
class _Accesses:
    """Identities of what was seen: nodes may stand at several places, in other loops."""

    inside: set[int] = field(default_factory=set[int])
    others: set[int] = field(default_factory=set[int])

    def walk(self, s: Stmt, known: Analyzer) -> None:
        """See a statement and all that is in it."""
        while isinstance(s, Let):  # chains of them are long: no recursion
            self._exprs((s.value,), known)
            known = known.with_value(s.var, s.value)
            s = s.body
        self._exprs(stmt_exprs(s), known)
        if isinstance(s, Store):
            self._access(id(s), s.buffer, s.indices, known)
        elif isinstance(s, For):
            known = known.with_extent(s.var, s.begin, s.extent)
        for child in stmt_children(s):
            self.walk(child, known)

    def _exprs(self, exprs: tuple[PrimExpr, ...], known: Analyzer) -> None:
        left, seen = list(exprs), set[int]()
        while left:
            e = left.pop()
            if id(e) in seen:
                continue
            seen.add(id(e))
            left += prim_children(e)
            if isinstance(e, Load):
                self._access(id(e), e.buffer, e.indices, known)

    def _access(
        self, node: int, buffer: Buffer, indices: tuple[PrimExpr, ...], known: Analyzer
    ) -> None:
        sure = (
            node not in self.others and buffer.strides is None and _inside(buffer, indices, known)
        )
        (self.inside if sure else self.others).add(node)


def _divides(e: PrimExpr) -> TypeGuard[Binary]:
    return isinstance(e, Binary) and e.op in DIVISIONS


def _is_positive(e: PrimExpr, known: Analyzer) -> bool:
    low, _ = known.bounds(e)
    return low is not None and low > 0


def _inside(buffer: Buffer, indices: tuple[PrimExpr, ...], known: Analyzer) -> bool:
    if len(indices) != 1:
        return not indices
    (index,) = indices
    lanes = index.dtype.lanes
    run = as_ramp(index) if lanes > 1 else Affine(index, 0)
    if run is None or not isinstance(run.stride, int) or run.base.dtype != INT64:
        return False
    if not all(_is_positive(x.b, known) for x in walk_prim(run.base) if _divides(x)):
        return False  # what is known of quotients supposes so, and a division by 0 gives 0
    size: PrimExpr = imm(1)
    for extent in buffer.shape:
        size = Binary("mul", size, extent)
    ends = sorted((0, run.stride * (lanes - 1)))
    low, high = known.bounds(run.base)
    if low is None or low + ends[0] < 0:
        return False
    if all(isinstance(n, Imm) for n in buffer.shape):
        (most, _) = known.bounds(size)
        return high is not None and most is not None and high + ends[1] < most
    return known.prove(Compare("lt", run.base + ends[1], size))
