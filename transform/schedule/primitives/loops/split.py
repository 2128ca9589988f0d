"""split: one loop becomes several, one in another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unity.arith import Analyzer
from unity.arith.polynomial import as_constant, from_expr, split_linear, to_expr
from unity.ir.dtype import INT64
from unity.ir.empty_reduction import conjuncts
from unity.ir.prim_expr import Binary, Compare, PrimExpr, PrimVar, imm
from unity.ir.stmt import For, PrimFunc
from unity.ir.visit import substitute_stmt, variables
from unity.script.printer import text

from ....blocks.dependence import loose_statement
from ....blocks.motion import shifting_bounds
from ....blocks.site import sites
from ....blocks.tree import (
    Outcome,
    Path,
    blocks_below,
    driven,
    guarded,
    illegal,
    known_above,
    loop_path,
    replaced,
)


def split(func: PrimFunc, var: PrimVar, factors: Sequence[int | None]) -> Outcome:
    """Nested loops in the place of one; where they reach past its end, nothing runs.

    No condition is added for that where those of the blocks fail there in any case.

    Args:
        func: The prim func.
        var: The loop, of any extent, symbolic ones too.
        factors: Extents of the new loops, outermost first; one may be None: as many as it takes.

    Raises:
        UnityError: The loop has a kind already; the factors don't cover the extent.

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
    >>> print(sch.func, end="")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.prim_func
    def main(a: f32[Buffer, n], c: f32[Buffer, n]) -> None:
        for i_0, i_1 in T.grid((n + 3) // 4, 4):
            with T.block("copy"):
                vi = T.axis.spatial(n, i_0 * 4 + i_1)
                T.where(i_0 * 4 + i_1 < n)
                c[vi] = a[vi]
    """
    path, loop = loop_path(func, var)
    if loop.kind != "serial":
        raise illegal("split, argument 1 'loop'", f"it is {loop.kind} already", "split it before")
    shifting = shifting_bounds([loop])
    if shifting is not None:
        raise illegal("split, argument 1 'loop'", shifting)
    where = "split, argument 2 'factors'"
    if not factors or sum(f is None for f in factors) > 1:
        raise illegal(where, f"one of them may be None, got {list(factors)}")
    if any(f is not None and f < 1 for f in factors):
        raise illegal(where, f"they must be positive, got {list(factors)}")
    known = known_above(path)
    given = 1
    for f in factors:
        given *= f or 1
    if None in factors:
        up = Binary("add", loop.extent, imm(given - 1))
        left = known.simplify(Binary("floordiv", up, imm(given)))
    else:
        left = imm(1)
        if not known.prove(Compare("ge", imm(given), loop.extent)):
            why = f"their product {given} is not known to reach {text(loop.extent)}"
            raise illegal(where, why, "one factor may be None: it becomes what is left")
        reduced = [b for b in blocks_below(loop) if b.init is not None and "R" in driven(b, var)]
        if reduced and not known.prove(Compare("ge", loop.extent, imm(1))):
            why = f"{var.name!r} may be empty: the init of block {reduced[0].name!r} would not run"
            raise illegal(where, why, "leave one factor None")
    extents: list[PrimExpr] = [left if f is None else imm(f) for f in factors]
    parts = [PrimVar(f"{var.name}_{k}", var.dtype) for k in range(len(extents))]
    value: PrimExpr = parts[0]
    for v, extent in zip(parts[1:], extents[1:], strict=True):
        value = Binary("add", Binary("mul", value, extent), v)
    body = substitute_stmt(loop.body, {var: known.simplify(Binary("add", value, loop.begin))})
    reach = Binary("mul", left, imm(given))
    if not known.equal(reach, loop.extent) and not _ends(loop, path):
        body = guarded(body, Compare("lt", value, loop.extent))
    for k, (v, extent) in reversed(list(enumerate(zip(parts, extents, strict=True)))):
        made = For(v, imm(0), extent, body, span=loop.span)
        body = replace(made, attrs=loop.attrs) if k == 0 else made
    return Outcome(replaced(func, [(loop, body)]), tuple(parts))


def _ends(loop: For, path: Path) -> bool:
    """Whether blocks below a loop run in none of the iterations that would follow its last."""
    end = Binary("add", loop.begin, loop.extent)
    found = sites(loop.body, path[:-1])
    if not found or loose_statement(loop.body) is not None:
        return False

    def fails(part: PrimExpr, known: Analyzer) -> bool:
        if not isinstance(part, Compare) or part.op != "lt" or part.a.dtype != INT64:
            return False
        room = from_expr(known.simplify(Binary("sub", part.b, part.a)))
        rest, by = split_linear(room, loop.var)
        step = None if by is None else as_constant(by)
        if step is None or step >= 0 or loop.var in variables(to_expr(rest)):
            return False
        last = Binary("add", to_expr(rest), Binary("mul", imm(step), end))
        return known.prove(Compare("le", last, imm(0)))

    return all(
        site.block.predicate is not None
        and any(fails(part, site.known) for part in conjuncts(site.block.predicate))
        for site in found
    )
