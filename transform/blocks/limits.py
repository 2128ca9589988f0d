"""Loops under a predicate: what several of them count, up to a limit, is one loop of so many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unity.arith import Analyzer
from unity.arith.iter_map import detect
from unity.ir.empty_reduction import conjuncts
from unity.ir.prim_expr import Binary, Compare, PrimExpr, PrimVar, imm
from unity.ir.stmt import For
from unity.ir.visit import leaves, rewrite_prim, variables

from .tree import NOTHING, is_zero


@dataclass(frozen=True, slots=True)
class Limited:
    """Values over loops.

    Attributes:
        values: The values.
        loops: What they are over.
        known: What is known of variables.
        left: What else limits them.
    """

    values: tuple[PrimExpr, ...]
    loops: tuple[For, ...]
    known: Analyzer
    left: tuple[PrimExpr, ...]


def limited(
    values: Sequence[PrimExpr], loops: Sequence[For], predicate: PrimExpr | None, known: Analyzer
) -> Limited:
    """Values over fewer loops: those that a predicate limits together are one.

    What `split` leaves with a factor that does not divide (``i * 5 + j < 14``) takes no number
    twice, though ``k * 14 + i * 5 + j`` would without the limit.

    Args:
        values: Over the loops.
        loops: In any order.
        predicate: Under which the values are looked at.
        known: What is known of variables.
    """
    parts = () if predicate is None else conjuncts(predicate)
    now = Limited(tuple(values), tuple(loops), known, ())
    if parts:
        now = _digits(replace(now, values=(*values, *parts)))
        parts = now.values[len(values) :]
        now = replace(now, values=now.values[: len(values)])
    for part in parts:
        joined = _joined(now, part)
        now = replace(now, left=(*now.left, part)) if joined is None else joined
    return now


def _digits(now: Limited) -> Limited:
    """With two loops for one of which all look at the quotient and the rest by one number.

    Or by multiples of one: ``f // 12``, ``f // 4 % 3`` and ``f % 4`` are three loops.
    """
    todo = list(now.loops)
    while todo:
        loop = todo.pop(0)
        parted = _parted(now, loop)
        if parted is not None:
            now, outer = parted
            todo.append(outer)
    return now


def _parted(now: Limited, loop: For) -> tuple[Limited, For] | None:
    """With two loops for one, and the outer of them; None if it is looked at otherwise."""
    var = loop.var
    using = [e for e in now.values if var in variables(e)]
    by = list(dict.fromkeys(d.b for e in using for d in leaves(e).divisions if d.a is var))
    if not is_zero(loop.begin) or any(variables(d) & {x.var for x in now.loops} for d in by):
        return None
    for divisor in by:
        times = [_times(d, divisor, now.known) for d in (*by, loop.extent)]
        known_times = [n for n in times if n is not None]
        if len(known_times) < len(times):
            continue
        *each, count = known_times
        outer = For(PrimVar(f"{var.name}_0"), imm(0), count, NOTHING)
        inner = For(PrimVar(f"{var.name}_1"), imm(0), divisor, NOTHING)
        at: dict[PrimExpr, PrimExpr] = {}
        for d, n in zip(by, each, strict=True):
            rest = Binary("mul", Binary("floormod", outer.var, n), divisor)
            at[Binary("floordiv", var, d)] = Binary("floordiv", outer.var, n)
            at[Binary("floormod", var, d)] = Binary("add", rest, inner.var)
        at[Binary("floordiv", var, divisor)] = outer.var
        at[Binary("floormod", var, divisor)] = inner.var
        values = tuple(rewrite_prim(e, at.get) for e in now.values)
        if any(var in variables(e) for e in values):
            continue
        known = now.known
        for made in (outer, inner):
            known = known.with_extent(made.var, made.begin, made.extent)
        others = (x for x in now.loops if x is not loop)
        return replace(now, values=values, loops=(*others, outer, inner), known=known), outer
    return None


def _times(e: PrimExpr, divisor: PrimExpr, known: Analyzer) -> PrimExpr | None:
    """How many times as much a size is; None where it is no multiple."""
    count = known.simplify(Binary("floordiv", e, divisor))
    return count if known.equal(Binary("mul", count, divisor), e) else None


def _joined(now: Limited, part: PrimExpr) -> Limited | None:
    """With the loops that a part of a predicate limits as one; None if they are not."""
    counted = [x for x in now.loops if x.var in variables(part)]
    if not isinstance(part, Compare) or part.op != "lt" or len(counted) < 2:
        return None
    gone = {x.var for x in counted}
    if variables(part.b) & gone or not _counts(part, counted, now.known):
        return None
    one = For(PrimVar("counted"), imm(0), part.b, NOTHING)
    known = now.known.with_extent(one.var, imm(0), part.b)
    moved = [_in_terms(e, part.a, one.var, gone, known) for e in now.values]
    values = tuple(e for e in moved if e is not None)
    if len(values) < len(moved):
        return None
    return Limited(values, (*(x for x in now.loops if x.var not in gone), one), known, now.left)


def _counts(part: Compare, loops: Sequence[For], known: Analyzer) -> bool:
    """Whether what is limited takes every number from 0 on once, up to the limit at least."""
    if any(not is_zero(x.begin) or variables(x.extent) & {y.var for y in loops} for x in loops):
        return False
    m = detect([part.a], {x.var: x.extent for x in loops}, known)
    if m is None or not m.is_bijective() or m.sums[0].base != imm(0):
        return False
    extent = m.compact_extent(m.sums[0])
    return extent is not None and known.prove(Compare("le", part.b, extent))


def _in_terms(
    e: PrimExpr, counted: PrimExpr, var: PrimVar, gone: set[PrimVar], known: Analyzer
) -> PrimExpr | None:
    """A value in terms of what several loops count; None if it moves with them otherwise."""
    if not variables(e) & gone:
        return e
    rest = known.simplify(Binary("sub", e, counted))
    if not variables(rest) & gone:
        return Binary("add", rest, var)
    if not isinstance(e, Binary):
        return None
    a, b = (_in_terms(x, counted, var, gone, known) for x in (e.a, e.b))
    return None if a is None or b is None else Binary(e.op, a, b)
