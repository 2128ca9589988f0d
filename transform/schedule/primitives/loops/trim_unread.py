"""trim_unread: a loop without its last iterations, which fill what is never read."""

from __future__ import annotations

from collections.abc import Sequence

from unity.arith.polynomial import as_constant, from_expr, split_linear, to_expr
from unity.arith.region import end_if_any, greater
from unity.ir.prim_expr import Binary, Load, PrimExpr, PrimVar, imm
from unity.ir.stmt import Allocate, Block, PrimFunc, Stmt
from unity.ir.visit import stmt_loads, variables, walk_stmt

from ....blocks.dataflow import plain_store
from ....blocks.dependence import loose_statement
from ....blocks.legality import calls_foreign
from ....blocks.site import Site, sites
from ....blocks.tree import (
    Outcome,
    Path,
    block_path,
    blocks_below,
    bound_to,
    driven,
    illegal,
    known_above,
    loop_path,
    loops_of,
    replaced,
    scope_path,
)
from .shortened import shortened, up_to

WHERE = "trim_unread, argument 1 'loop'"


def trim_unread(func: PrimFunc, var: PrimVar) -> Outcome:
    """A loop ends where what it would still store to a temporary is read by no block.

    Args:
        func: The prim func.
        var: The loop: one block is in it, whose place in the temporary moves with it.

    Raises:
        UnityError: The block does more, or writes to something else; all of it may be read.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 8], c: f32[Buffer, 5]) -> None:
    ...     t = T.alloc((8,), "float32")
    ...     for i in range(8):
    ...         with T.block("exp"):
    ...             vi = T.axis.spatial(8, i)
    ...             t[vi] = T.exp(a[vi])
    ...     for i in range(5):
    ...         with T.block("copy"):
    ...             vi = T.axis.spatial(5, i)
    ...             c[vi] = t[vi]
    ... ''').prim_funcs()["main"])
    >>> sch.trim_unread(sch.get_loops("exp")[0])
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 8], c: f32[Buffer, 5]) -> None:
        t = T.alloc((8,), "float32")
        for i in range(5):
            with T.block("exp"):
                vi = T.axis.remap("S", i)
                t[vi] = T.exp(a[vi])
        for i in range(5):
            with T.block("copy"):
                vi = T.axis.remap("S", i)
                c[vi] = t[vi]
    """
    path, loop = loop_path(func, var)
    below = blocks_below(loop)
    if len(below) != 1 or loop.kind != "serial" or loose_statement(loop.body) is not None:
        raise illegal(WHERE, "it is no serial loop of one block")
    (block,) = below
    allocation, place, rest = _stored(block, var, scope_path(path))
    above = path[: next(k for k, s in enumerate(path) if s is allocation) + 1]
    known = known_above(path)
    if loose_statement(allocation.body) is not None:
        raise illegal(WHERE, f"something outside any block may read {allocation.buffer.name!r}")
    whole, _ = block_path(func, block.name)  # loops further in than this one, too
    inside = {x.var for x in loops_of(whole) if x not in above}
    end: PrimExpr = imm(0)
    for site in _later(block, sites(allocation.body, above)):
        if _reads(site, allocation):
            touched = site.touched(allocation.buffer, closely=True)
            assert touched is not None
            end = greater(end, end_if_any(touched[place]), known)
    end = known.simplify(Binary("sub", end, rest))
    if variables(end) & inside:
        raise illegal(WHERE, "where readers end, or what is stored, moves with loops around")
    extent = up_to(loop, end, known)
    return Outcome(replaced(func, [(loop, shortened(loop, loop.body, extent))]))


def _stored(block: Block, var: PrimVar, scope: Path) -> tuple[Allocate, int, PrimExpr]:
    """Where a block's temporary is allocated, its dimension along a loop, and what is added there.

    Raises:
        UnityError: It does not store one element of a temporary at a place that moves by one.
    """
    ranges = block.writes[0].ranges if len(block.writes) == 1 else ()
    single = bool(ranges) and all(r.extent == imm(1) for r in ranges)
    if not single or block.allocations or calls_foreign(block) is not None:
        raise illegal(WHERE, f"{block.name!r} does more than store an element")
    buffer = block.writes[0].buffer
    found = next((s for s in scope if isinstance(s, Allocate) and s.buffer is buffer), None)
    if found is None:
        raise illegal(WHERE, f"{buffer.name!r} is no temporary of the stages that it stands with")
    here = [r.begin for r in ranges]
    own = (x for s in (block.body, block.init) if s is not None for x in _loads(s))
    if any(x.buffer is buffer and list(x.indices) != here for x in own):
        raise illegal(WHERE, f"{block.name!r} reads what other iterations store")
    at = [bound_to(i, block.axes) for i in here]
    moving = [k for k, i in enumerate(at) if var in variables(i)]
    if driven(block, var) != {"S"} or len(moving) != 1:
        raise illegal(WHERE, f"it does not move {block.name!r} along one dimension")
    poly, by = split_linear(from_expr(at[moving[0]]), var)
    rest = to_expr(poly)
    if by is None or as_constant(by) != 1 or var in variables(rest):
        raise illegal(WHERE, f"it does not move {block.name!r} one by one")
    return found, moving[0], rest


def _loads(s: Stmt) -> list[Load]:
    return [x for each in walk_stmt(s) for x in stmt_loads(each)]


def _later(block: Block, around: Sequence[Site]) -> list[Site]:
    """The sites that run after a block has run: those behind it, or in a loop around it."""
    at = next(k for k, s in enumerate(around) if s.block is block)
    mine = set(around[at].loops)
    return [s for k, s in enumerate(around) if k > at or (k < at and mine & set(s.loops))]


def _reads(site: Site, allocation: Allocate) -> bool:
    """Whether a block needs what lies in a temporary."""
    buffer = allocation.buffer
    if not site.names(buffer):
        return False
    read = any(r.buffer is buffer for r in site.block.reads) or buffer in site.decides_by()
    return read or plain_store(site.block) is None
