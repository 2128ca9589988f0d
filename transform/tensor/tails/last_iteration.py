"""The one iteration of a loop over tiles that lies inside in part, over what is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unity.arith import Analyzer
from unity.ir.empty_reduction import conjuncts
from unity.ir.prim_expr import Binary, Compare, Imm, PrimExpr, imm
from unity.ir.stmt import Block, For, IfThen, Stmt
from unity.ir.visit import map_stmts, substitute_prim, substitute_stmt

from ...blocks.conditions import Condition
from ...blocks.tree import conjunction


def at_end(
    loop: For, hot: Sequence[Condition], cut: PrimExpr, last: PrimExpr, known: Analyzer
) -> Stmt | None:
    """The iteration at which the predicates of a loop's tiles fail, where its number is unknown.

    They are asked of what is left of the extent: ``n // 8 * 8 + i < n`` is ``i < n % 8``.

    Args:
        loop: The loop.
        hot: What they say of it.
        cut: The iteration.
        last: The end of the loop.
        known: What is known around it.

    Returns:
        None where more than one iteration may be left, or tiles of rows (`tail_tiles`).
    """
    limits = {c.part.b for c in hot if isinstance(c.part, Compare)}
    step = hot[0].step
    if step is None or len(limits) > 1 or any(c.step != step for c in hot):
        return None
    if any(len(c.inner) == 1 and c.inner[0].kind == "unrolled" for c in hot):
        return None
    (limit,) = limits
    left = known.simplify(Binary("floormod", limit, imm(step)))
    end = Binary("floordiv", Binary("add", limit, imm(step - 1)), imm(step))
    whole = Binary("floordiv", limit, imm(step))
    if isinstance(limit, Imm) or not known.equal(last, end) or not known.equal(cut, whole):
        return None
    gone = {id(c.part) for c in hot}

    def asked(part: PrimExpr) -> PrimExpr:
        if id(part) not in gone or not isinstance(part, Compare):
            return part
        return Compare("lt", known.simplify(substitute_prim(part.a, {loop.var: imm(0)})), left)

    def over_rest(s: Stmt) -> Stmt:
        if not isinstance(s, Block):
            return map_stmts(s, over_rest)
        if s.predicate is None:
            return s
        return replace(s, predicate=conjunction([asked(p) for p in conjuncts(s.predicate)]))

    body = substitute_stmt(over_rest(loop.body), {loop.var: cut})
    return IfThen(Compare("gt", left, imm(0)), body)
