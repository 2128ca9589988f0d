"""trim_neutral: a reduction's loop without its last steps, which take neutral elements only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from unity.arith import Analyzer
from unity.arith.polynomial import as_constant, from_expr, split_linear, to_expr
from unity.arith.region import covers, extremes, lesser
from unity.ir.empty_reduction import conjuncts
from unity.ir.prim_expr import Binary, Compare, Imm, Load, PrimExpr, PrimVar, Select, imm
from unity.ir.stmt import Allocate, Block, Buffer, PrimFunc, Range
from unity.ir.visit import prim_loads, rewrite_prim, substitute_prim, variables

from ....blocks.dataflow import axes_of_index, plain_store
from ....blocks.dependence import loose_statement
from ....blocks.nest import padded_choice
from ....blocks.site import Site, sites
from ....blocks.tree import (
    Outcome,
    Path,
    Values,
    bound_to,
    illegal,
    known_above,
    loops_of,
    replaced,
    scope_path,
)
from ..reduction.partial_results import reduced_by, reduction_of
from .shortened import shortened, up_to

WHERE = "trim_neutral, argument 1 'loop'"


def trim_neutral(func: PrimFunc, var: PrimVar) -> Outcome:
    """A reduction's loop ends where all that it would still take is the neutral element.

    That is what a choice by indices says, ``T.select(condition, element, neutral)``: the
    reduction's own, or the one by which a stage before filled a temporary that it reads (a causal
    mask). The end is the same for all iterations of the loops beside: the condition fails there in
    each of them. It may depend on what is around the block that holds the nest. What zeros are
    multiplied by is taken to be finite.

    Args:
        func: The prim func.
        var: The loop: it drives reduce axes of one block.

    Raises:
        UnityError: It is no such loop; the block makes no such choice, or its condition does not
            fail from some iteration on.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 8, 8], c: f32[Buffer, 8]) -> None:
    ...     for i in range(8):
    ...         with T.block("row"):
    ...             vi = T.axis.spatial(8, i)
    ...             t = T.alloc((8,), "float32")
    ...             for j in range(8):
    ...                 with T.block("lower"):
    ...                     vj = T.axis.spatial(8, j)
    ...                     t[vj] = T.select(vj <= vi, a[vi, vj], 0.0)
    ...             for j in range(8):
    ...                 with T.block("sum"):
    ...                     vj = T.axis.reduce(8, j)
    ...                     with T.init():
    ...                         c[vi] = 0.0
    ...                     c[vi] += t[vj]
    ... ''').prim_funcs()["main"])
    >>> sch.trim_neutral(sch.get_loops("sum")[-1])
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 8, 8], c: f32[Buffer, 8]) -> None:
        for i in range(8):
            with T.block("row"):
                vi = T.axis.remap("S", i)
                t = T.alloc((8,), "float32")
                for j in range(8):
                    with T.block("lower"):
                        vj = T.axis.remap("S", j)
                        t[vj] = T.select(vj <= vi, a[vi, vj], 0.0)
                for j in range(vi + 1):
                    with T.block("sum"):
                        vj = T.axis.remap("R", j)
                        with T.init():
                            c[vi] = 0.0
                        c[vi] += t[vj]
    """
    path, loop = reduced_by(WHERE, func, var)
    block = path[-1]
    assert isinstance(block, Block)
    reduction, _ = reduction_of(WHERE, block)

    def seen_through(e: PrimExpr) -> PrimExpr | None:
        return _chosen(e, path) if isinstance(e, Load) else None

    choice = padded_choice(replace(reduction, value=rewrite_prim(reduction.value, seen_through)))
    if choice is None or prim_loads(choice.condition):
        raise illegal(WHERE, f"{block.name!r} takes no neutral element by a choice of indices")
    known = known_above(path)
    beside = {x.var: Range(x.begin, x.extent) for x in loops_of(scope_path(path)) if x is not loop}
    parts = conjuncts(bound_to(choice.condition, block.axes))
    ends = [e for e in (_end(part, var, beside, known) for part in parts) if e is not None]
    if not ends:
        raise illegal(WHERE, "the choice does not fail from some iteration on, wherever others are")
    extent = loop.extent
    for end in ends:
        extent = lesser(extent, up_to(loop, end, known), known)
    return Outcome(replaced(func, [(loop, shortened(loop, loop.body, extent))]))


def _chosen(load: Load, path: Path) -> Select | None:
    """The choice that filled what a block at the end of a path loads of a temporary."""
    scope = scope_path(path)
    at = next((k for k, s in enumerate(scope) if _allocates(s, load.buffer)), None)
    if at is None:
        return None
    allocation = scope[at]
    assert isinstance(allocation, Allocate)
    site = _last_store(allocation, path[: len(path) - len(scope) + at + 1], path[-1])
    store = None if site is None else plain_store(site.block)
    if site is None or store is None or not isinstance(store.value, Select):
        return None
    axes = axes_of_index(store.indices, site.block)
    if axes is None or not isinstance(store.value.orelse, Imm):
        return None
    here: Values = {a.var: i for a, i in zip(axes, load.indices, strict=True)}
    condition = substitute_prim(store.value.condition, here)
    return Select(condition, load, store.value.orelse)


def _allocates(s: object, buffer: Buffer) -> bool:
    return isinstance(s, Allocate) and s.buffer is buffer


def _last_store(allocation: Allocate, above: Path, reader: object) -> Site | None:
    """The block that filled all that another one reads of a temporary, before this one's nest."""
    if loose_statement(allocation.body) is not None:
        return None
    buffer = allocation.buffer
    around = [s for s in sites(allocation.body, above) if s.names(buffer)]
    at = next(k for k, s in enumerate(around) if s.block is reader)
    mine = set(around[at].loops)
    stores = [k for k, s in enumerate(around) if s.names(buffer, writes_only=True)]
    if any(mine & set(around[k].loops) for k in stores) or not any(k < at for k in stores):
        return None
    last = around[max(k for k in stores if k < at)]
    filled, read = last.fills(buffer), around[at].touched(buffer)
    whole = filled is not None and read is not None and covers(filled, read, last.known)
    return last if whole and last.block.predicate is None else None


def _end(
    part: PrimExpr, var: PrimVar, beside: Mapping[PrimVar, Range], known: Analyzer
) -> PrimExpr | None:
    """The first value of a variable from which on a comparison fails wherever other loops are."""
    match part:
        case Compare("lt", a, b) | Compare("gt", b, a):
            below = Binary("sub", a, b)
        case Compare("le", a, b) | Compare("ge", b, a):
            below = Binary("sub", Binary("sub", a, b), imm(1))
        case _:
            return None
    poly, by = split_linear(from_expr(known.simplify(below)), var)
    step = None if by is None else as_constant(by)
    if step is None or step <= 0:
        return None
    rest = to_expr(poly)
    ends = extremes(rest, {v: r for v, r in beside.items() if v in variables(rest)}, known)
    if ends is None or variables(ends[0]) & {var, *beside}:
        return None
    room = Binary("sub", imm(step - 1), ends[0])
    return known.simplify(Binary("floordiv", room, imm(step)))
