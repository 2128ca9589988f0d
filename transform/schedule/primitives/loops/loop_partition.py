"""loop_partition: a loop becomes several, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unity.arith.region import lesser
from unity.ir.dtype import INT64
from unity.ir.empty_reduction import conjuncts
from unity.ir.prim_expr import Binary, Compare, Not, PrimExpr, PrimVar, Select, imm
from unity.ir.stmt import Block, For, PrimFunc, Stmt
from unity.ir.visit import map_stmts, prim_loads, rewrite_stmt

from ....blocks.legality import late_init
from ....blocks.motion import shifting_bounds
from ....blocks.site import Site, sites
from ....blocks.tree import (
    Outcome,
    Path,
    bound_to,
    conjunction,
    copied,
    driven,
    illegal,
    known_above,
    loop_path,
    replaced,
    sequence,
    with_regions,
)


def loop_partition(func: PrimFunc, var: PrimVar, extents: Sequence[int]) -> Outcome:
    """Loops over consecutive intervals of a loop; the last takes what is left.

    The first keeps the blocks' names and loop variables, the others have copies. Choices that are
    the same in all of an interval are made (`T.select`, and `T.min` and `T.max` of indices), of
    conditions that are joined the parts that hold left out.

    Args:
        func: The prim func.
        var: The loop.
        extents: How many iterations each interval has but the last; fewer where the loop ends.

    Raises:
        UnityError: An extent is not positive; the loop has a kind; it drives a reduction and may
            be empty.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 10], c: f32[Buffer, 10]) -> None:
    ...     for i in range(10):
    ...         with T.block("copy"):
    ...             vi = T.axis.spatial(10, i)
    ...             c[vi] = a[vi]
    ... ''').prim_funcs()["main"])
    >>> body, tail = sch.loop_partition(sch.get_loops("copy")[0], [8])
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 10], c: f32[Buffer, 10]) -> None:
        for i in range(8):
            with T.block("copy"):
                vi = T.axis.spatial(10, i)
                c[vi] = a[vi]
        for i in range(8, 10):
            with T.block("copy_1"):
                vi = T.axis.spatial(10, i)
                c[vi] = a[vi]
    """
    path, loop = loop_path(func, var)
    if not extents or any(n < 1 for n in extents):
        why = f"they must be positive, got {list(extents)}"
        raise illegal("loop_partition, argument 2 'extents'", why)
    known = known_above(path)
    ends: list[PrimExpr] = []
    done: PrimExpr = imm(0)
    for count in extents:
        done = lesser(Binary("add", done, imm(count)), loop.extent, known)
        ends.append(done)
    return intervals("loop_partition, argument 1 'loop'", func, path, ends)


def intervals(where: str, func: PrimFunc, path: Path, ends: Sequence[PrimExpr]) -> Outcome:
    """Loops over consecutive intervals of a loop.

    Args:
        where: The argument that names the loop.
        func: The prim func.
        path: The way to it.
        ends: How many iterations have passed at the end of each interval but the last.
    """
    loop, known = path[-1], known_above(path)
    assert isinstance(loop, For)
    if loop.kind != "serial":
        raise illegal(where, f"it is {loop.kind} already")
    shifting = shifting_bounds([loop])
    if shifting is not None:
        raise illegal(where, shifting)
    inside = [s for s in sites(loop, path[:-1]) if s.block.init is not None]
    reduces = [s.block for s in inside if driven(s.block, loop.var) - {"S"}]
    if reduces and not known.prove(Compare("ge", ends[0], imm(1))):
        raise illegal(where, f"it may be empty, and drives the reduction {reduces[0].name!r}")
    mixed = [b for b in reduces if driven(b, loop.var) != {"R"}]
    if mixed:
        raise illegal(where, f"it drives other axes of the reduction {mixed[0].name!r} as well")
    for site in inside:
        late = late_init(site) if site.block in reduces else None
        if late is not None:
            raise illegal(where, late)
    parts: list[For] = []
    begin: PrimExpr = imm(0)
    total = func
    for end in (*ends, loop.extent):
        extent = known.simplify(Binary("sub", end, begin))
        part = replace(loop, begin=known.simplify(Binary("add", loop.begin, begin)), extent=extent)
        if parts:
            made = copied(replace(part, body=_later(part.body, loop.var)), total)
            assert isinstance(made, For)
            total = replace(total, body=sequence([total.body, made]))
            parts.append(made)
        else:
            parts.append(part)
        begin = end
    settled = [_settled(part, path[:-1]) for part in parts]
    return Outcome(replaced(func, [(loop, sequence(settled))]), tuple(p.var for p in parts))


def _later(s: Stmt, var: PrimVar) -> Stmt:
    """The body of an interval that is not the first: what it reduces was begun before."""
    if isinstance(s, Block):
        if s.init is None or "R" not in driven(s, var):
            return s
        return with_regions(replace(s, init=None))
    return map_stmts(s, lambda x: _later(x, var))


def _settled(part: For, above: Path) -> Stmt:
    """An interval without the choices that are the same in all of it."""
    changes: list[tuple[Stmt, Stmt]] = []
    for site in sites(part, above):
        new = _chosen(site)
        if new is not site.block:
            changes.append((site.block, new))
    return replaced(PrimFunc((), part), changes).body if changes else part


def _chosen(site: Site) -> Block:
    """A block without the choices that its loops decide."""

    def on_expr(e: PrimExpr) -> PrimExpr | None:
        if isinstance(e, Binary) and e.op in ("min", "max"):
            return _one_side(e, site)
        if not isinstance(e, Select) or prim_loads(e.condition):
            return None
        parts = {part: bound_to(part, site.block.axes) for part in conjuncts(e.condition)}
        if any(site.known.prove(Not(bound)) for bound in parts.values()):
            return e.orelse
        rest = conjunction([x for x, bound in parts.items() if not site.known.prove(bound)])
        if rest is None:
            return e.then
        return None if rest == e.condition else replace(e, condition=rest)

    body = rewrite_stmt(site.block.body, None, on_expr)
    return site.block if body is site.block.body else with_regions(replace(site.block, body=body))


def _one_side(e: Binary, site: Site) -> PrimExpr | None:
    """The side of a `min` or `max` of indices that it always is; None where that is neither."""
    if e.dtype != INT64 or prim_loads(e):
        return None
    a, b = (bound_to(side, site.block.axes) for side in (e.a, e.b))
    if site.known.prove(Compare("le", a, b)):
        return e.a if e.op == "min" else e.b
    if site.known.prove(Compare("ge", a, b)):
        return e.b if e.op == "min" else e.a
    return None
