"""fuse: neighbouring loops become one."""

from __future__ import annotations

from collections.abc import Sequence

from unity.ir.prim_expr import Binary, Compare, PrimExpr, PrimVar, imm
from unity.ir.stmt import For, PrimFunc
from unity.ir.visit import substitute_stmt, variables

from ....blocks.motion import shifting_bounds
from ....blocks.tree import (
    Outcome,
    Values,
    blocks_below,
    driven,
    illegal,
    known_above,
    loop_path,
    replaced,
)


def fuse(func: PrimFunc, vars: Sequence[PrimVar]) -> Outcome:
    """One loop over all iterations of loops that stand directly in one another, in their order.

    Args:
        func: The prim func.
        vars: The loops, outermost first.

    Raises:
        UnityError: They are no such nest, a bound of an inner one depends on an outer one, one has
            a kind, or loops of a reduction that may be empty would be joined to spatial ones.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... n = dim("n")
    ...
    ... @script.prim_func
    ... def main(a: f32[Buffer, n, 8], c: f32[Buffer, n, 8]) -> None:
    ...     for i, j in T.grid(n, 8):
    ...         with T.block("copy"):
    ...             vi, vj = T.axis.remap("SS", i, j)
    ...             c[vi, vj] = a[vi, vj]
    ... ''').prim_funcs()["main"])
    >>> fused = sch.fuse(*sch.get_loops("copy"))
    >>> print(sch.func, end="")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.prim_func
    def main(a: f32[Buffer, n, 8], c: f32[Buffer, n, 8]) -> None:
        for i_j in range(n * 8):
            with T.block("copy"):
                vi = T.axis.spatial(n, i_j // 8)
                vj = T.axis.spatial(8, i_j % 8)
                c[vi, vj] = a[vi, vj]
    """
    where = "fuse, argument 1 'loops'"
    if not vars:
        raise illegal(where, "there must be one at least")
    path, outer = loop_path(func, vars[0])
    loops = [outer]
    for var in vars[1:]:
        inner = loops[-1].body
        if not isinstance(inner, For) or inner.var is not var:
            name = loops[-1].var.name
            raise illegal(where, f"{var.name!r} does not stand directly in {name!r}")
        loops.append(inner)
    shifting = shifting_bounds(loops)
    if shifting is not None:
        raise illegal(where, shifting)
    known = known_above(path)
    above: set[PrimVar] = set()
    for loop in loops:
        if loop.kind != "serial":
            raise illegal(where, f"{loop.var.name!r} is {loop.kind} already")
        if (variables(loop.begin) | variables(loop.extent)) & above:
            raise illegal(where, f"the bounds of {loop.var.name!r} depend on a loop around it")
        above.add(loop.var)
    for block in blocks_below(outer):
        kinds = [driven(block, loop.var) for loop in loops]
        joined = set[str]().union(*kinds)
        empty = [x for x in loops if not known.prove(Compare("ge", x.extent, imm(1)))]
        if "R" in joined and any(k != {"R"} for k in kinds) and empty:
            raise illegal(
                where,
                f"{empty[0].var.name!r} may be empty, and the loops drive reduce axes of block "
                f"{block.name!r} as well as others",
            )
    fused = PrimVar("_".join(loop.var.name for loop in loops), outer.var.dtype)
    values: Values = {}
    extent: PrimExpr = imm(1)
    for k, loop in reversed(list(enumerate(loops))):
        value: PrimExpr = Binary("floordiv", fused, extent) if k + 1 < len(loops) else fused
        if k:
            value = Binary("floormod", value, loop.extent)
        extent = known.simplify(Binary("mul", loop.extent, extent))
        values[loop.var] = Binary("add", value, loop.begin)
    inside = known.with_extent(fused, imm(0), extent)
    values = {v: inside.simplify(e) for v, e in values.items()}
    body = substitute_stmt(loops[-1].body, values)
    new = For(fused, imm(0), extent, body, attrs=outer.attrs, span=outer.span)
    return Outcome(replaced(func, [(outer, new)]), (fused,))
