"""loop_partition: a loop becomes several, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unity.arith.region import lesser
from unity.ir.prim_expr import Binary, Compare, PrimExpr, PrimVar, imm
from unity.ir.stmt import Block, For, PrimFunc, Stmt
from unity.ir.visit import map_stmt

from ....blocks.legality import late_init
from ....blocks.motion import shifting_bounds
from ....blocks.site import sites
from ....blocks.tree import (
    Outcome,
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
    """Loops over consecutive stretches of a loop; the last takes what is left.

    The first keeps the blocks' names and loop variables, the others have copies.

    Args:
        func: The prim func.
        var: The loop.
        extents: How many iterations each stretch has but the last; fewer where the loop ends.

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
    if loop.kind != "serial":
        raise illegal("loop_partition, argument 1 'loop'", f"it is {loop.kind} already")
    shifting = shifting_bounds([loop])
    if shifting is not None:
        raise illegal("loop_partition, argument 1 'loop'", shifting)
    if not extents or any(n < 1 for n in extents):
        why = f"they must be positive, got {list(extents)}"
        raise illegal("loop_partition, argument 2 'extents'", why)
    known = known_above(path)
    inside = [s for s in sites(loop, path[:-1]) if s.block.init is not None]
    reduces = [s.block for s in inside if driven(s.block, var) - {"S"}]
    if reduces and not known.prove(Compare("ge", loop.extent, imm(1))):
        raise illegal(
            "loop_partition, argument 1 'loop'",
            f"it may be empty, and drives the reduction {reduces[0].name!r}",
        )
    mixed = [b for b in reduces if driven(b, var) != {"R"}]
    if mixed:
        raise illegal(
            "loop_partition, argument 1 'loop'",
            f"it drives other axes of the reduction {mixed[0].name!r} as well",
        )
    for site in inside:
        late = late_init(site) if site.block in reduces else None
        if late is not None:
            raise illegal("loop_partition, argument 1 'loop'", late)
    parts: list[Stmt] = []
    made_vars: list[PrimVar] = []
    begin: PrimExpr = imm(0)
    total = func
    for count in (*extents, None):
        last = loop.extent
        if count is not None:
            last = lesser(Binary("add", begin, imm(count)), loop.extent, known)
        extent = known.simplify(Binary("sub", last, begin))
        part = replace(loop, begin=known.simplify(Binary("add", loop.begin, begin)), extent=extent)
        if parts:
            made = copied(replace(part, body=_later(part.body, var)), total)
            total = replace(total, body=sequence([total.body, made]))
        else:
            made = part
        assert isinstance(made, For)
        parts.append(made)
        made_vars.append(made.var)
        begin = last
    return Outcome(replaced(func, [(loop, sequence(parts))]), tuple(made_vars))


def _later(s: Stmt, var: PrimVar) -> Stmt:
    """The body of a stretch that is not the first: what it reduces was begun before."""
    if isinstance(s, Block):
        if s.init is None or "R" not in driven(s, var):
            return s
        return with_regions(replace(s, init=None))
    return map_stmt(s, lambda x: _later(x, var), lambda e: e)
