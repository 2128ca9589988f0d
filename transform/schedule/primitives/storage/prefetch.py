"""prefetch: what a block reads in a later iteration is asked for, to be in the cache by then."""

from __future__ import annotations

from dataclasses import replace

from unity.arith import Analyzer
from unity.ir.prim_expr import Binary, Compare, Intrinsic, Load, PrimExpr, PrimVar, imm
from unity.ir.stmt import Block, BlockAxis, Evaluate, For, PrimFunc, Range, Region, Stmt
from unity.ir.visit import substitute_prim

from ....blocks.dataflow import is_param
from ....blocks.lines import Lines, lines_of
from ....blocks.site import sites
from ....blocks.tree import (
    Outcome,
    Path,
    Values,
    all_blocks,
    block_path,
    illegal,
    known_at,
    loop_path,
    replaced,
    sequence,
    unique,
    variables,
)


def prefetch(
    func: PrimFunc,
    name: str,
    index: int,
    var: PrimVar,
    at: PrimVar,
    shared_by: PrimVar | None = None,
    distance: int = 1,
) -> Outcome:
    """In each iteration of `at`, lines are asked for that the block reads there later.

    Nothing is computed by that and nothing waits for it. Lines past the end of the buffer are its
    last one. After TVM's ``prefetch``, which it had before TensorIR.

    Args:
        func: The prim func.
        name: A block.
        index: Which of its reads: of a parameter.
        var: The loop whose later iteration reads what is asked for now.
        at: A loop inside of it (or itself), around the block.
        shared_by: A loop between the two whose iterations all read the same: each asks for a part.
        distance: How many iterations of `var` later.

    Returns:
        The block that asks, in a loop over lines.

    Raises:
        UnityError: What is read is made by the kernel itself, is no other in later iterations, or
            has no known size.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 64, 32], c: f32[Buffer, 64, 32]) -> None:
    ...     for i, j in T.grid(64, 32):
    ...         with T.block("copy"):
    ...             vi, vj = T.axis.remap("SS", i, j)
    ...             c[vi, vj] = a[vi, vj]
    ... ''').prim_funcs()["main"])
    >>> rows, _ = sch.get_loops("copy")
    >>> lines = sch.prefetch("copy", 0, rows, rows, distance=4)
    >>> sch.unroll(sch.get_loops(lines)[-1])
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 64, 32], c: f32[Buffer, 64, 32]) -> None:
        for i in range(64):
            for line in T.unroll(2):
                with T.block("a_ahead"):
                    vi = T.axis.spatial(64, T.min(63, i + 4))
                    vj = T.axis.spatial(32, line * 16 + 15)
                    T.evaluate(T.prefetch(a[vi, vj]))
            for j in range(32):
                with T.block("copy"):
                    vi, vj = T.axis.remap("SS", i, j)
                    c[vi, vj] = a[vi, vj]
    """
    path, block = block_path(func, name)
    read = _read(func, block, index)
    buffer = read.buffer
    if distance < 1:
        raise illegal("prefetch, argument 6 'distance'", f"it must be positive, got {distance}")
    (_, ahead), (here, loop) = loop_path(func, var), loop_path(func, at)
    _refuse_scope(path, ahead, here)
    lines = _lines(block, read, loop, here)
    places = [substitute_prim(i, {x.var: x.value for x in lines.axes}) for i in lines.indices]
    if not any(var in variables(p) for p in places):
        why = f"each iteration of {var.name!r} reads the same of {buffer.name!r}"
        raise illegal("prefetch, argument 3 'loop'", why)
    share = None if shared_by is None else _share(func, here, ahead, shared_by)
    if share is not None and any(share.var in variables(p) for p in places):
        why = f"what is read of {buffer.name!r} is not the same in each of its iterations"
        raise illegal("prefetch, argument 5 'shared_by'", why)
    line, known = PrimVar("line"), known_at(here)
    nth, each, predicate = _part(line, lines.count, share, known)
    known = known.with_extent(line, imm(0), each)
    later: Values = {**lines.at(nth), var: Binary("add", var, imm(distance))}
    axes: list[BlockAxis] = []
    own_axes: Values = {}
    for axis in lines.axes:
        place = known.simplify(substitute_prim(axis.value, later))
        fresh = replace(axis, var=PrimVar(axis.var.name), kind="S")
        axes.append(replace(fresh, value=_clamped(place, axis.domain, known)))
        own_axes[axis.var] = fresh.var
    load = Load(buffer, tuple(substitute_prim(i, own_axes) for i in lines.indices))
    own = unique(f"{buffer.name}_ahead", {b.name for b in all_blocks(func.body)})
    body = Evaluate(Intrinsic("prefetch", (load,), load.dtype))
    asking = Block(own, tuple(axes), (), (), body, predicate=predicate)
    nest: Stmt = For(line, imm(0), each, asking)
    inner = replace(loop, body=sequence([nest, loop.body]))
    return Outcome(replaced(func, [(loop, inner)]), blocks=(own,))


def _read(func: PrimFunc, block: Block, index: int) -> Region:
    where = "prefetch, argument 2 'index'"
    if not 0 <= index < len(block.reads):
        raise illegal(where, f"{block.name!r} has {len(block.reads)} reads, got {index}")
    buffer = block.reads[index].buffer
    if not is_param(func, buffer):
        why = f"{buffer.name!r} is no parameter: the kernel makes it when it is needed"
        raise illegal(where, why)
    return block.reads[index]


def _refuse_scope(path: Path, ahead: For, here: Path) -> None:
    """Refuse loops that do not stand around the block, the first outside the second."""
    places = [k for s in (here[-1], ahead) for k, x in enumerate(path) if x is s]
    if len(places) < 1 or not any(s is here[-1] for s in path):
        raise illegal("prefetch, argument 4 'at'", "it is not around the block")
    if len(places) < 2 or places[1] > places[0]:
        raise illegal("prefetch, argument 3 'loop'", "it is not around 'at'")
    if any(isinstance(s, Block) for s in path[places[1] : -1]):
        raise illegal("prefetch, argument 3 'loop'", "it is in another scope than the block")


def _lines(block: Block, read: Region, loop: For, here: Path) -> Lines:
    (site,) = (s for s in sites(loop.body, here) if s.block is block)
    found = lines_of(site, read)
    if found is None:
        raise illegal(
            "prefetch, argument 4 'at'",
            f"how much of {read.buffer.name!r} is read in an iteration is not known",
            "a loop further in reads less",
        )
    return found


def _share(func: PrimFunc, here: Path, ahead: For, var: PrimVar) -> For:
    _, loop = loop_path(func, var)
    order = [s for s in here if s is loop or s is ahead]
    if loop is ahead or len(order) < 2 or order[0] is loop:
        why = f"it is not between {ahead.var.name!r} and 'at'"
        raise illegal("prefetch, argument 5 'shared_by'", why)
    return loop


def _clamped(e: PrimExpr, domain: Range, known: Analyzer) -> PrimExpr:
    """A place within an axis."""
    last = Binary("sub", Binary("add", domain.begin, domain.extent), imm(1))
    if not known.prove(Compare("ge", e, domain.begin)):
        e = Binary("max", e, domain.begin)
    return e if known.prove(Compare("le", e, last)) else known.simplify(Binary("min", e, last))


def _part(
    line: PrimVar, total: int, share: For | None, known: Analyzer
) -> tuple[PrimExpr, PrimExpr, PrimExpr | None]:
    """Which line of all is meant, how many there are to ask for, and the condition for that."""
    if share is None:
        return line, imm(total), None
    each = known.simplify(
        Binary("floordiv", Binary("add", imm(total - 1), share.extent), share.extent)
    )
    sharer = Binary("sub", share.var, share.begin)
    nth = Binary("add", Binary("mul", sharer, each), line)
    sharers = Binary("floordiv", Binary("add", imm(total - 1), each), each)
    busy = known.simplify(Binary("add", share.begin, sharers))
    all_are = known.prove(Compare("lt", share.var, busy))
    clamped = known.with_extent(line, imm(0), each).simplify(Binary("min", nth, imm(total - 1)))
    return clamped, each, None if all_are else Compare("lt", share.var, busy)
