"""What the stores of a kernel reach at most, each under the loops and the conditions around it.

Comes in: a statement and a buffer. Comes out: for each store the ends of its indices, how many
elements it may set, and what is needed to list these. A condition over loops and sizes narrows the
loops; one that loads is left out, unless it is told what the inputs hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from unity.arith import Analyzer
from unity.arith.polynomial import Poly, add, from_expr, scale, to_expr
from unity.arith.region import Ends, extremes, greater, lesser
from unity.errors import Span
from unity.ir.dtype import INT64
from unity.ir.empty_reduction import conjuncts
from unity.ir.prim_expr import (
    Binary,
    Compare,
    Imm,
    Intrinsic,
    Load,
    Not,
    PrimExpr,
    PrimVar,
    SizeVar,
    imm,
)
from unity.ir.stmt import Block, Buffer, For, IfThen, Let, Range, Stmt, Store
from unity.ir.visit import prim_loads, stmt_children, substitute_prim, variables, walk_prim

from .evaluate import Data, folded, values

Values: TypeAlias = dict[PrimVar | SizeVar, PrimExpr]
Indices: TypeAlias = tuple[npt.NDArray[np.int64], ...]
"""Of some elements: their indices along each axis."""
LISTED = 1 << 16
"""Iterations up to which what is stored is listed."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What holds where a statement runs.

    Attributes:
        known: Of the variables.
        loops: What those around run over at most.
        bound: The values of block axes and of what `Let` binds.
        conditions: What holds besides, over loops and sizes.
        data: What all elements of some inputs are.
        span: The nearest place in the source.
    """

    known: Analyzer
    loops: Mapping[PrimVar, Range]
    bound: Values
    conditions: tuple[PrimExpr, ...]
    data: Data
    span: Span | None

    def of(self, e: PrimExpr) -> PrimExpr:
        """An expression over loops only."""
        return substitute_prim(e, self.bound)

    def where(self, condition: PrimExpr | None) -> Scope | None:
        """Where a condition holds, too; None if that is nowhere."""
        if condition is None or condition.dtype.lanes > 1:
            return self
        holds = self.known.simplify(folded(self.of(condition), self.data))
        if isinstance(holds, Imm):
            return self if holds.value else None
        found: Scope | None = self
        for part in conjuncts(holds):
            found = found and found._narrowed(part)
        return found

    def _narrowed(self, part: PrimExpr) -> Scope | None:
        """Loops without the iterations that a condition leaves out at their ends."""
        match part:
            case Not(Binary("or", a, b)):
                left = self.where(Not(a))
                return left and left.where(Not(b))
            case _ if prim_loads(part):
                return self
            case _:
                pass
        scope = replace(self, conditions=(*self.conditions, part))
        for p in _not_negative(part):
            for var in scope.loops:
                over = _limited(var, p, scope)
                if over is None:
                    continue
                if scope.known.prove(Compare("le", over.extent, imm(0))):
                    return None
                known = scope.known.with_extent(var, over.begin, over.extent)
                scope = replace(scope, known=known, loops={**scope.loops, var: over})
        return scope


def _not_negative(condition: PrimExpr) -> list[Poly]:
    """What is not negative where a condition holds."""
    match condition:
        case Compare(op, a, b) if a.dtype == INT64 and op != "ne":
            up = add(from_expr(b), from_expr(a), -1)
            match op:
                case "le":
                    return [up]
                case "lt":
                    return [add(up, from_expr(imm(-1)))]
                case "ge":
                    return [scale(up, -1)]
                case "gt":
                    return [add(scale(up, -1), from_expr(imm(-1)))]
                case "eq":
                    return [up, scale(up, -1)]
        case _:
            return []


def _limited(var: PrimVar, p: Poly, scope: Scope) -> Range | None:
    """What a loop runs over where `p` is not negative; None where no other loop may move in it."""
    rest = to_expr({monomial: c for monomial, c in p.items() if monomial != (var,)})
    factor = p.get((var,), 0)
    if not factor or variables(rest):
        return None
    over, known = scope.loops[var], scope.known
    begin: PrimExpr = over.begin
    last: PrimExpr = Binary("add", over.begin, Binary("sub", over.extent, imm(1)))
    limit = Binary("floordiv", rest, imm(abs(factor)))
    if factor > 0:
        begin = greater(begin, Binary("sub", imm(0), limit), known)
    else:
        last = lesser(last, limit, known)
    return Range(begin, known.simplify(Binary("add", Binary("sub", last, begin), imm(1))))


@dataclass(frozen=True, slots=True)
class Stored:
    """What one statement stores at most.

    Attributes:
        indices: Of the element, over loops.
        loops: What the loops run over.
        conditions: Where it is stored.
        ends: The least and the greatest index of each axis; None where they are not known.
        count: How many elements; None where that is not known.
        known: Of the variables there.
        span: Its place.
    """

    indices: tuple[PrimExpr, ...]
    loops: Mapping[PrimVar, Range]
    conditions: tuple[PrimExpr, ...]
    ends: tuple[Ends | None, ...]
    count: int | None
    known: Analyzer
    span: Span | None

    def listed(self) -> Indices | None:
        """The indices that it stores to, those of each axis; None where they can't be listed."""
        seen = {x for e in (*self.indices, *self.conditions) for x in walk_prim(e)}
        loops = {v: r for v, r in self.loops.items() if v in seen}
        ranges: list[range] = []
        for r in loops.values():
            if not isinstance(r.begin, Imm) or not isinstance(r.extent, Imm):
                return None
            ranges.append(range(int(r.begin.value), int(r.begin.value) + int(r.extent.value)))
        if prod(map(len, ranges)) > LISTED:
            return None
        grid = np.meshgrid(*[np.asarray(r, np.int64) for r in ranges], indexing="ij")
        at = dict(zip(loops, grid, strict=True))
        shape = tuple(map(len, ranges))
        stored = np.ones(shape, np.bool_)
        for condition in self.conditions:
            holds = values(condition, at)
            if holds is not None:
                stored &= holds.astype(np.bool_)
        found = [values(i, at) for i in self.indices]
        known = [np.broadcast_to(f.astype(np.int64), shape)[stored] for f in found if f is not None]
        return tuple(known) if len(known) == len(found) else None


def stores(s: Stmt, buffer: Buffer, scope: Scope) -> Iterator[Stored]:
    """What statements store to a buffer, if all that may run does."""
    scope = replace(scope, span=getattr(s, "span", None) or scope.span)
    inner: Scope | None = scope
    match s:
        case Store():
            inner = scope.where(s.predicate)
            if s.buffer is buffer and inner is not None:
                yield _stored([inner.of(i) for i in s.indices], inner)
            return
        case For():
            over = Range(scope.of(s.begin), scope.of(s.extent))
            known = scope.known.with_extent(s.var, over.begin, over.extent)
            inner = replace(scope, known=known, loops={**scope.loops, s.var: over})
        case Let():
            inner = replace(scope, bound={**scope.bound, s.var: scope.of(s.value)})
        case Block():
            inner = scope.where(s.predicate)
            if inner is not None:
                axes: Values = {a.var: inner.of(a.value) for a in s.axes}
                inner = replace(inner, bound={**inner.bound, **axes})
        case IfThen():
            for condition, branch in ((s.condition, s.then), (Not(s.condition), s.orelse)):
                there = None if branch is None else scope.where(condition)
                if branch is not None and there is not None:
                    yield from stores(branch, buffer, there)
            return
        case _:
            pass
    for child in stmt_children(s):
        if inner is not None:
            yield from stores(child, buffer, inner)


def _stored(indices: Sequence[PrimExpr], scope: Scope) -> Stored:
    simple = tuple(scope.known.simplify(i) for i in indices)
    used = {x for i in simple for x in variables(i)} & set(scope.loops)
    loops = {v: scope.loops[v] for v in used}
    ends: tuple[Ends | None, ...] = (None,) * len(simple)
    count = None
    if not any(_moves(r) for r in loops.values()):
        extents = [r.extent.value for r in loops.values() if isinstance(r.extent, Imm)]
        ends = tuple(None if _unsteady(i) else _ends(i, loops, scope) for i in simple)
        if len(extents) == len(loops) and not any(_unsteady(i) for i in simple):
            count = prod(int(n) for n in extents)
    return Stored(simple, scope.loops, scope.conditions, ends, count, scope.known, scope.span)


def _ends(index: PrimExpr, loops: Mapping[PrimVar, Range], scope: Scope) -> Ends | None:
    """The ends of an index, also by conditions on sums such as ``io * 16 + ii < n``."""
    ends = extremes(index, loops, scope.known)
    if ends is None:
        return None
    low, high = ends
    mine = from_expr(index)
    for p in (p for c in scope.conditions for p in _not_negative(c)):
        for var in loops:
            ours, theirs = mine.get((var,), 0), p.get((var,), 0)
            if not ours or not theirs or ours % theirs:
                continue
            left = to_expr(add(mine, p, -(ours // theirs)))
            inside = set(walk_prim(left))
            moving = {v: r for v, r in scope.loops.items() if v in inside}
            if any(_moves(r) for r in moving.values()):
                continue
            rest = extremes(left, moving, scope.known)
            if rest is None:
                continue
            if ours // theirs < 0:  # the index and a multiple of what is not negative: at most that
                high = lesser(high, rest[1], scope.known)
            else:
                low = greater(low, rest[0], scope.known)
    return low, high


def _moves(r: Range) -> bool:
    """Whether a loop's range may be another at each time that it runs."""
    inside = [x for e in (r.begin, r.extent) for x in walk_prim(e)]
    return any(isinstance(x, PrimVar | Load | Intrinsic) for x in inside)


def _unsteady(index: PrimExpr) -> bool:
    """Whether an index may take several values in one iteration of the loops, or in lanes."""
    return index.dtype.lanes > 1 or any(
        isinstance(x, Load | Intrinsic) or x.dtype.lanes > 1 for x in walk_prim(index)
    )
