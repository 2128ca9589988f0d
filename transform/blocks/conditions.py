"""What the predicates of blocks say of a loop around them: from which iteration on they fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unity.arith import Analyzer
from unity.arith.polynomial import as_constant, from_expr, split_linear, to_expr
from unity.arith.region import extremes, lesser
from unity.ir.empty_reduction import conjuncts
from unity.ir.foreign import symbols_in
from unity.ir.marks import TAIL
from unity.ir.prim_expr import Binary, Compare, Intrinsic, PrimExpr, imm
from unity.ir.stmt import Allocate, Block, Buffer, Evaluate, For, Range, Stmt
from unity.ir.visit import map_stmts, prim_loads, variables, walk_stmt

from .dependence import loose_statement
from .site import Site, sites
from .tree import Path, all_blocks, blocks_below, conjunction, known_at

TILE = ("vectorized", "unrolled")
"""Loops that are written out: a condition in them is met in each step of what is around."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A part ``e < limit`` of a block's predicate, where `e` grows with a loop's variable.

    Attributes:
        block: The block.
        part: The part.
        whole: The first value of the variable at which it does not hold all through an iteration.
        some: The first at which it holds nowhere.
        is_hot: Whether it is met in loops that are written out, and decides what is computed.
        inner: The loops between the loop and the block that it depends on.
        step: What an iteration of the loop adds to `e`, where the loops within take every point of
            that, and none beyond; else None.
    """

    block: Block
    part: PrimExpr
    whole: PrimExpr
    some: PrimExpr
    is_hot: bool
    inner: tuple[For, ...]
    step: int | None


def computing(s: Stmt) -> list[Block]:
    """The blocks below a statement, without those that only ask for what others will read.

    To ask more or less often changes nothing that is computed.
    """
    return [b for b in all_blocks(s) if not _asks(b)]


def lasting(s: Stmt) -> list[Block]:
    """Those of them that leave something behind: not those that fill what is gone by then."""
    own = {x.buffer for x in walk_stmt(s) if isinstance(x, Allocate)}
    return [b for b in computing(s) if not _stays(b, own)]


def _stays(block: Block, own: set[Buffer]) -> bool:
    """Whether all that a block does is to fill some of these temporaries."""
    written = {r.buffer for r in block.writes}
    return bool(written) and written <= own and not symbols_in(block)


def _asks(block: Block) -> bool:
    match block.body:
        case Evaluate(Intrinsic("prefetch")):
            return block.init is None
        case _:
            return False


def conditions_of(loop: For, above: Path) -> list[Condition]:
    """What predicates below a loop say of it; nothing where a block there has an init."""
    found: list[Condition] = []
    blocks = blocks_below(loop.body)
    one = _is_one_tile(loop, known_at((*above, loop)))

    def asks(b: Block) -> bool:
        return b.predicate is not None and (one or depends_on(b, loop))

    if any(b.init is not None for b in blocks) or not any(asks(b) for b in blocks):
        return found
    if loose_statement(loop.body) is not None:
        return found
    for site in sites(loop.body, (*above, loop), asks):
        found += conditions_at(loop, site)
    return found


def depends_on(block: Block, loop: For) -> bool:
    """Whether a loop's variable has a say in whether a block runs."""
    return block.predicate is not None and loop.var in variables(block.predicate)


def _is_one_tile(loop: For, known: Analyzer) -> bool:
    """Whether a loop over tiles has one at most, of which its variable need not tell the place."""
    return TAIL in loop.attrs and known.bounds(loop.extent)[1] == 1


def iterations(loop: For, above: Path, block: Block) -> PrimExpr:
    """How many iterations of a loop a block below runs in at most, by its predicate."""
    (site,) = (s for s in sites(loop.body, (*above, loop)) if s.block is block)
    known, count = known_at(above), loop.extent
    for condition in conditions_at(loop, site):
        count = lesser(count, known.simplify(condition.some - loop.begin), known)
    return count


def conditions_at(loop: For, site: Site) -> list[Condition]:
    """What the predicate of a block below a loop says of it."""
    parts = () if site.block.predicate is None else conjuncts(site.block.predicate)
    found = (_condition(loop, site.block, site.loops, part, site.known) for part in parts)
    return [condition for condition in found if condition is not None]


def _condition(
    loop: For, block: Block, inner: Sequence[For], part: PrimExpr, known: Analyzer
) -> Condition | None:
    if not isinstance(part, Compare) or part.op != "lt":
        return None
    if prim_loads(part):
        return None  # the loop may write what is compared with
    gone = {x.var for x in inner}
    value = known.simplify(part.a)
    one = loop.var not in variables(value) and _is_one_tile(loop, known)
    if one:
        value = Binary("add", value - loop.begin, loop.var)  # as if another tile were behind it
    poly, by = split_linear(from_expr(value), loop.var)
    step = None if by is None else as_constant(by)
    rest = to_expr(poly)
    if step is None or step <= 0 or variables(part.b) & {loop.var, *gone}:
        return None
    moving = [x for x in inner if x.var in variables(rest)]
    if one and not moving:
        return None
    if any(variables(x.begin) | variables(x.extent) for x in moving):
        return None
    ends = extremes(rest, {x.var: Range(x.begin, x.extent) for x in moving}, known)
    if ends is None or loop.var in variables(rest):
        return None

    def first(at: PrimExpr) -> PrimExpr:
        room = Binary("add", Binary("sub", part.b, at), imm(step - 1))
        return known.simplify(Binary("floordiv", room, imm(step)))

    hot = all(x.kind in TILE for x in moving) if moving else any(x.kind == "serial" for x in inner)
    hot = hot and not _asks(block)  # the rest of the loop is not written twice for it
    hot = hot and not any(TAIL in x.attrs for x in inner)  # which is parted itself
    even = ends == (imm(0), imm(step - 1))
    return Condition(
        block, part, first(ends[1]), first(ends[0]), hot, tuple(moving), step if even else None
    )


def asked_in(loop: For, above: Path) -> list[tuple[Block, PrimExpr, PrimExpr]]:
    """Parts of predicates that hold all through an iteration of a loop or not, as its variable is.

    Those that do not grow evenly with it, and are met in loops that are written out: the loop is
    one made of several (`fuse`).

    Returns:
        The block, the part, and the condition on the loop's variable that makes it hold.
    """
    found: list[tuple[Block, PrimExpr, PrimExpr]] = []
    if loose_statement(loop.body) is not None:
        return found
    for site in sites(loop.body, (*above, loop)):
        if site.block.init is not None:
            return []
        if _asks(site.block):
            continue
        for part in () if site.block.predicate is None else conjuncts(site.block.predicate):
            if (
                not isinstance(part, Compare)
                or part.op != "lt"
                or loop.var not in variables(part.a)
            ):
                continue
            moving = [x for x in site.loops if x.var in variables(part.a)]
            bounds = {v for x in moving for e in (x.begin, x.extent) for v in variables(e)}
            if not moving or bounds or any(x.kind not in TILE for x in moving):
                continue
            over = {x.var: Range(x.begin, x.extent) for x in moving}
            ends = extremes(part.a, over, site.known)
            if ends is not None and not variables(part.b) & set(over):
                found.append((site.block, part, Compare("lt", ends[1], part.b)))
    return found


def without_parts(s: Stmt, parts: Sequence[tuple[Block, PrimExpr]]) -> Stmt:
    """The statement with parts of predicates taken away, as they hold."""
    if isinstance(s, Block):
        gone = [p for block, p in parts if block is s]
        if s.predicate is None or not gone:
            return s
        kept = [p for p in conjuncts(s.predicate) if not any(p is x for x in gone)]
        return replace(s, predicate=conjunction(kept))
    return map_stmts(s, lambda x: without_parts(x, parts))
