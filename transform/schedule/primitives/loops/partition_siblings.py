"""partition_siblings: all of several loops over a first interval, then all over what is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unity.arith import Analyzer
from unity.arith.region import greater, lesser
from unity.ir.prim_expr import Binary, Imm, PrimExpr, PrimVar, imm
from unity.ir.stmt import Allocate, Buffer, PrimFunc

from ....blocks.dataflow import checked
from ....blocks.private import is_private, own_temporaries
from ....blocks.tree import (
    Outcome,
    Path,
    all_blocks,
    blocks_below,
    copied,
    driven,
    illegal,
    known_above,
    loop_path,
    sequence,
)
from ....blocks.trust import is_trusted
from ..over_sizes import refuse_unknown
from .siblings import siblings_at

INTERVAL = "partition_siblings, argument 1 'at'"
WHERE = "partition_siblings, argument 2 'loops'"


def partition_siblings(func: PrimFunc, loops: Sequence[PrimVar], at: PrimExpr) -> Outcome:
    """What loops do in their first iterations, all of them, before what they do in the rest.

    Each interval has temporaries of its own, so that what is done in one can be laid out apart from
    the other: blocks of rows that are full, and the rows that are left. What a later loop takes in
    an iteration must be there by then, as if they were one loop (`fuse_siblings`).

    Args:
        func: The prim func.
        loops: Two or more of one extent, in the order in which they stand. Temporaries that only
            they use are allocated for each interval.
        at: How many iterations the first interval has; fewer where the loops end.

    Returns:
        The blocks of the second interval, in order; the first one keeps the names and loops.

    Raises:
        UnityError: The number is no arithmetic over sizes; they are no such loops; iterations of
            one need several of another; one drives a reduction; the intervals are not known to be
            independent of one another's temporaries.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... n = dim("n")
    ...
    ... @script.prim_func
    ... def main(a: f32[Buffer, n], c: f32[Buffer, n]) -> None:
    ...     t = T.alloc((n,), "float32")
    ...     for i in range(n):
    ...         with T.block("double"):
    ...             vi = T.axis.spatial(n, i)
    ...             t[vi] = a[vi] * 2.0
    ...     for i in range(n):
    ...         with T.block("next"):
    ...             vi = T.axis.spatial(n, i)
    ...             c[vi] = t[vi] + 1.0
    ... ''').prim_funcs()["main"])
    >>> loops = [sch.get_loops(block)[0] for block in ("double", "next")]
    >>> rest = sch.partition_siblings("n // 8 * 8", *loops)
    >>> print(sch.func, end="")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.prim_func
    def main(a: f32[Buffer, n], c: f32[Buffer, n]) -> None:
        t = T.alloc((n,), "float32")
        for i in range(n // 8 * 8):
            with T.block("double"):
                vi = T.axis.spatial(n, i)
                t[vi] = a[vi] * 2.0
        for i in range(n // 8 * 8):
            with T.block("next"):
                vi = T.axis.spatial(n, i)
                c[vi] = t[vi] + 1.0
        t_1 = T.alloc((n,), "float32")
        for i in range(n // 8 * 8, n // 8 * 8 + n % 8):
            with T.block("double_1"):
                vi = T.axis.spatial(n, i)
                t_1[vi] = a[vi] * 2.0
        for i in range(n // 8 * 8, n // 8 * 8 + n % 8):
            with T.block("next_1"):
                vi = T.axis.spatial(n, i)
                c[vi] = t_1[vi] + 1.0
    """
    refuse_unknown(INTERVAL, func, at)
    found = siblings_at(WHERE, func, loops)
    path, one = found.paths[0], found.loops[0]
    for loop in found.loops:
        for block in blocks_below(loop):
            if block.init is not None and driven(block, loop.var) - {"S"}:
                raise illegal(WHERE, f"{loop.var.name!r} drives the reduction {block.name!r}")
    own = own_temporaries(path[:-1], found.loops)
    if not is_trusted():
        _refuse_shared(loop_path(found.fused(), one.var)[0], own)
    known = known_above(path)
    first = greater(lesser(at, one.extent, known), imm(0), known)
    begin = known.simplify(Binary("add", one.begin, first))
    left = _left(one.extent, first, known)
    now = sequence([replace(loop, extent=first) for loop in found.loops])
    then = sequence([replace(loop, begin=begin, extent=left) for loop in found.loops])
    for buffer in reversed(own):
        then = Allocate(buffer, then)
    later = copied(then, found.func)
    done = found.with_(sequence([*found.before, now, later]))
    return Outcome(checked(done, WHERE), (), tuple(b.name for b in all_blocks(later)))


def _left(extent: PrimExpr, first: PrimExpr, known: Analyzer) -> PrimExpr:
    """What is left of an extent behind its first iterations: of whole multiples, the remainder."""
    match first:
        case Binary("mul", Binary("floordiv", _, by), Imm()) if known.equal(
            first, Binary("mul", Binary("floordiv", extent, by), by)
        ):
            return known.simplify(Binary("floormod", extent, by))
        case _:
            return known.simplify(Binary("sub", extent, first))


def _refuse_shared(path: Path, own: Sequence[Buffer]) -> None:
    """Refuse what one interval makes in a temporary, and the other takes."""
    for buffer in own:
        if not is_private(path, buffer):
            why = f"an iteration is not known to make all that it reads of {buffer.name!r}"
            raise illegal(WHERE, why)
