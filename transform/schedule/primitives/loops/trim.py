"""trim: a loop without its last iterations, in which nothing is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unity.arith import Analyzer
from unity.arith.region import extremes, lesser
from unity.ir.empty_reduction import conjuncts
from unity.ir.prim_expr import Binary, Imm, PrimExpr, PrimVar, Select, imm
from unity.ir.stmt import Block, For, PrimFunc, Range, Stmt, Store
from unity.ir.visit import map_stmt, prim_loads, rewrite_stmt, walk_prim

from ....blocks.conditions import Condition, conditions_at, without_parts
from ....blocks.dependence import loose_statement
from ....blocks.motion import shifting_bounds
from ....blocks.nest import padded_choice
from ....blocks.site import Site, sites
from ....blocks.tree import (
    Outcome,
    Path,
    bound_to,
    conjunction,
    driven,
    illegal,
    known_above,
    loop_path,
    loops_of,
    replaced,
    with_regions,
)
from ..reduction.partial_results import reduction_of
from .shortened import shortened

WHERE = "trim, argument 1 'loop'"


def trim(func: PrimFunc, var: PrimVar) -> Outcome:
    """A loop ends where the predicates of all blocks in it begin to fail; these are then gone.

    What `split` leaves with a factor that does not divide an extent: the loop's extent is then what
    is left of it, and may depend on loops around. Steps of a reduction that take its neutral
    element (`rfactor` of such a loop) are nothing either; their choice is gone likewise.

    Args:
        func: The prim func.
        var: The loop.

    Raises:
        UnityError: The predicates of its blocks do not all fail from one iteration on, for they say
            something else, or nothing of this loop; it is vectorized, or on threads.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... n = dim("n")
    ...
    ... @script.prim_func
    ... def main(a: f32[Buffer, n], c: f32[Buffer, n]) -> None:
    ...     for i in range(n):
    ...         with T.block("copy"):
    ...             vi = T.axis.spatial(n, i)
    ...             c[vi] = a[vi]
    ... ''').prim_funcs()["main"])
    >>> outer, inner = sch.split(sch.get_loops("copy")[0], [None, 4])
    >>> sch.trim(inner)
    >>> print(sch.func, end="")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.prim_func
    def main(a: f32[Buffer, n], c: f32[Buffer, n]) -> None:
        for i_0 in range((n + 3) // 4):
            for i_1 in range(T.min(4, n - i_0 * 4)):
                with T.block("copy"):
                    vi = T.axis.spatial(n, i_0 * 4 + i_1)
                    c[vi] = a[vi]
    """
    path, loop = loop_path(func, var)
    if loop.kind != "serial":
        raise illegal(WHERE, f"it is {loop.kind} already")
    shifting = shifting_bounds([loop])
    if shifting is not None:
        raise illegal(WHERE, shifting)
    known = known_above(path)
    found = [[*conditions_at(loop, s), *_idle(loop, s)] for s in sites(loop.body, path)]
    if loose_statement(loop.body) is not None or not all(found):
        raise illegal(WHERE, "something in it runs to its end, by no predicate")
    ends = [[c.some for c in of if known.equal(c.some, c.whole)] for of in found]
    common = next(
        (e for e in ends[0] if all(any(known.equal(e, x) for x in o) for o in ends)), None
    )
    if common is None:
        raise illegal(WHERE, "the predicates of its blocks do not fail from one iteration on")
    left = known.simplify(Binary("sub", common, loop.begin))
    extent = lesser(loop.extent, left, known)
    if not _is_positive(left, path[:-1], known):
        extent = known.simplify(Binary("max", extent, imm(0)))
    gone = [(c.block, c.part) for of in found for c in of if known.equal(c.whole, common)]
    body = _without_choices(without_parts(loop.body, gone), [part for _, part in gone])
    return Outcome(replaced(func, [(loop, shortened(loop, body, extent))]))


def _idle(loop: For, site: Site) -> list[Condition]:
    """What a reduction's choice between an element and the neutral one says of a loop of it."""
    choice = _choice(site.block)
    if choice is None or driven(site.block, loop.var) != {"R"} or prim_loads(choice.condition):
        return []
    asking = replace(site.block, predicate=bound_to(choice.condition, site.block.axes))
    return [replace(c, block=site.block) for c in conditions_at(loop, replace(site, block=asking))]


def _choice(block: Block) -> Select | None:
    """The choice that a step of a reduction is, if the other side changes nothing."""
    match block:
        case Block(init=Store(), body=Store(value=Binary(_, _, Select() as choice))):
            reduction, _ = reduction_of(WHERE, block)
            return choice if reduction.value == choice == padded_choice(reduction) else None
        case _:
            return None


def _without_choices(s: Stmt, parts: Sequence[PrimExpr]) -> Stmt:
    """The statement, its reductions' choices without parts of conditions, as they hold."""
    if not isinstance(s, Block):
        return map_stmt(s, lambda x: _without_choices(x, parts), lambda e: e)
    choice = _choice(s)
    if choice is None:
        return s
    asked = [(p, bound_to(p, s.axes)) for p in conjuncts(choice.condition)]
    kept = conjunction([p for p, bound in asked if bound not in parts])
    taken = choice.then if kept is None else replace(choice, condition=kept)

    def chosen(e: PrimExpr) -> PrimExpr | None:
        return taken if e == choice else None

    return with_regions(replace(s, body=rewrite_stmt(s.body, None, chosen)))


def _is_positive(left: PrimExpr, above: Path, known: Analyzer) -> bool:
    """Whether loops around end before nothing is left: their extents are rounded up."""
    over = {x.var: Range(x.begin, x.extent) for x in loops_of(above)}
    over |= {a.var: a.domain for s in above if isinstance(s, Block) for a in s.axes}
    ends = extremes(left, over, known)
    if ends is None:
        return False
    least = ends[0]
    if (known.bounds(least)[0] or 0) >= 1:
        return True
    for e in walk_prim(least):
        match e:
            case Binary("floordiv", a, Imm(int() as by)) if by > 0:
                rounded = Binary("sub", a, Binary("mul", e, imm(by)))  # which is not negative
                beyond = known.bounds(Binary("sub", least, rounded))[0]
                if beyond is not None and beyond >= 1:
                    return True
            case _:
                pass
    return False
