"""prefetch: what a block reads in a later iteration is asked for, to be in the cache by then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unity.arith import Analyzer
from unity.ir.prim_expr import Binary, Compare, Imm, Intrinsic, Load, PrimExpr, PrimVar, Select, imm
from unity.ir.stmt import (
    Allocate,
    Block,
    BlockAxis,
    Buffer,
    Evaluate,
    For,
    PrimFunc,
    Range,
    Region,
    Stmt,
    Store,
)
from unity.ir.visit import substitute_prim, variables, walk_stmt
from unity.script.printer import text

from ....blocks.conditions import iterations
from ....blocks.dataflow import is_param
from ....blocks.lines import Lines, lines_of
from ....blocks.site import sites
from ....blocks.tree import (
    Outcome,
    Path,
    Values,
    all_blocks,
    block_path,
    conjunction,
    illegal,
    known_at,
    loop_path,
    loops_of,
    over_sizes,
    replaced,
    scope_path,
    sequence,
    unique,
)


def prefetch(
    func: PrimFunc,
    name: str,
    index: int,
    var: PrimVar,
    at: PrimVar,
    shared_by: PrimVar | None = None,
    distance: int = 1,
    when: PrimExpr | None = None,
    all_share: bool = False,
    sharers: int | None = None,
) -> Outcome:
    """In each iteration of `at`, lines are asked for that the block reads there later.

    Nothing is computed by that and nothing waits for it. Lines past the end of the buffer are its
    last one. After TVM's ``prefetch``, which it had before TensorIR.

    Args:
        func: The prim func.
        name: A block.
        index: Which of its reads: of a parameter, or a temporary that is made before `var`.
        var: The loop whose later iteration reads what is asked for now.
        at: A loop inside of it (or itself), around the block; or one beside the block, whose
            iterations share what an iteration of `var` reads.
        shared_by: A loop between the two whose iterations all read the same: each asks for a part.
            It is `at` where that is not around the block.
        distance: How many iterations of `var` later.
        when: A fact about sizes; where it does not hold, nothing is asked for.
        all_share: Whether iterations of `shared_by` in which the block does not run have their
            share, too, for which nobody asks then: how long a share is may be known by that.
        sharers: How many iterations of `shared_by` share at most, the first ones; None for all.
            The others ask for the last share again: a condition would stand where steps of sums
            do, and cost these more.

    Returns:
        The block that asks, in a loop over lines.

    Raises:
        UnityError: What is read is made in the loop, is no other in later iterations, or
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
    read = _read(block, index)
    buffer = read.buffer
    if distance < 1:
        raise illegal("prefetch, argument 6 'distance'", f"it must be positive, got {distance}")
    if sharers is not None and sharers < 1:
        raise illegal("prefetch, argument 9 'sharers'", f"it must be positive, got {sharers}")
    if when is not None and not over_sizes(when):
        raise illegal("prefetch, argument 7 'when'", f"{text(when)} is no fact about sizes")
    (above, ahead), (here, loop) = loop_path(func, var), loop_path(func, at)
    _refuse_made(func, buffer, ahead)
    beside = not any(s is loop for s in path) and shared_by is at
    _refuse_scope(path, above, here, beside=beside)
    lines = _lines(block, read, above if beside else here)
    places = [substitute_prim(i, {x.var: x.value for x in lines.axes}) for i in lines.indices]
    if not any(var in variables(p) for p in places):
        why = f"each iteration of {var.name!r} reads the same of {buffer.name!r}"
        raise illegal("prefetch, argument 3 'loop'", why)
    share = None if shared_by is None else _share(func, here, ahead, shared_by)
    if share is not None and any(share.var in variables(p) for p in places):
        why = f"what is read of {buffer.name!r} is not the same in each of its iterations"
        raise illegal("prefetch, argument 5 'shared_by'", why)
    line, known = PrimVar("line"), known_at(here)
    as_they_are = share is None or beside or all_share
    sharing = share if as_they_are or share is None else _sharers(share, here, block)
    nth, each, predicate = _part(line, lines.count, sharing, sharers, known)
    known = known.with_extent(line, imm(0), each)
    around = [x for x in loops_of(scope_path(path)) if any(x.var in variables(p) for p in places)]
    outside = [] if loop is ahead else _outside(ahead, around)  # asked once, not with each line
    then = _later(ahead, distance, next(iter(outside), None), known)
    which = PrimVar("which")
    later: Values = {**lines.at(which), **then}
    counted = known.with_extent(which, imm(0), imm(lines.count))
    axes: list[BlockAxis] = []
    own_axes: Values = {}
    for axis in lines.axes:
        place = counted.simplify(substitute_prim(axis.value, later))
        place = _clamped(place, axis.domain, counted)
        fresh = replace(axis, var=PrimVar(axis.var.name), kind="S")
        axes.append(replace(fresh, value=known.simplify(substitute_prim(place, {which: nth}))))
        own_axes[axis.var] = fresh.var
    load = Load(buffer, tuple(substitute_prim(i, own_axes) for i in lines.indices))
    own = unique(f"{buffer.name}_ahead", {b.name for b in all_blocks(func.body)})
    body = Evaluate(Intrinsic("prefetch", (load,), load.dtype))
    count = each
    if when is not None and isinstance(each, Imm):
        predicate = conjunction([when, *([] if predicate is None else [predicate])])
    elif when is not None:  # what divides is computed in any case: loops need not wait for it
        count = Binary("min", each, Select(when, imm(lines.count), imm(0)))
    asking = Block(own, tuple(axes), (), (), body, predicate=predicate)
    nest: Stmt = For(line, imm(0), count, asking)
    inner = replace(loop, body=_begun_by(nest, loop.body))
    return Outcome(replaced(func, [(loop, inner)]), blocks=(own,))


def _begun_by(nest: Stmt, body: Stmt) -> Stmt:
    """A statement before others, beside the first of them: where their temporaries are there."""
    if isinstance(body, Allocate):
        return replace(body, body=_begun_by(nest, body.body))
    return sequence([nest, body])


def _read(block: Block, index: int) -> Region:
    if not 0 <= index < len(block.reads):
        where = "prefetch, argument 2 'index'"
        raise illegal(where, f"{block.name!r} has {len(block.reads)} reads, got {index}")
    return block.reads[index]


def _refuse_made(func: PrimFunc, buffer: Buffer, loop: Stmt) -> None:
    """Refuse what is not all there when a loop begins: a temporary that is made in it."""
    inside = [s for s in walk_stmt(loop) if isinstance(s, Store | Allocate)]
    if not is_param(func, buffer) and any(s.buffer is buffer for s in inside):
        why = f"{buffer.name!r} is no parameter: the kernel makes it when it is needed"
        raise illegal("prefetch, argument 2 'index'", why)


def _refuse_scope(path: Path, ahead: Path, here: Path, *, beside: bool) -> None:
    """Refuse loops that do not stand around the block, the first outside the second."""
    if not beside and not any(s is here[-1] for s in path):
        why = "it is not around the block"
        hint = "beside it, its iterations share what is read: it is argument 5, too"
        raise illegal("prefetch, argument 4 'at'", why, hint)
    loop = ahead[-1]
    if not any(s is loop for s in here) or not any(s is loop for s in path):
        raise illegal("prefetch, argument 3 'loop'", "it is not around 'at'")
    inner = path[next(k for k, s in enumerate(path) if s is loop) : -1]
    if any(isinstance(s, Block) for s in inner):
        raise illegal("prefetch, argument 3 'loop'", "it is in another scope than the block")


def _lines(block: Block, read: Region, path: Path) -> Lines:
    loop = path[-1]
    assert isinstance(loop, For)
    (site,) = (s for s in sites(loop.body, path) if s.block is block)
    found = lines_of(site, read)
    if found is None:
        raise illegal(
            "prefetch, argument 4 'at'",
            f"how much of {read.buffer.name!r} is read in an iteration is not known",
            "a loop further in reads less",
        )
    return found


def _outside(loop: For, around: Sequence[For]) -> Sequence[For]:
    """The loops around a loop, innermost first."""
    return around[: next(k for k, x in enumerate(around) if x is loop)][::-1]


def _later(loop: For, distance: int, around: For | None, known: Analyzer) -> Values:
    """What loops stand at so many iterations later: behind a loop's last, those of the next round.

    Args:
        loop: The loop.
        distance: How many.
        around: The loop whose next iteration begins it anew.
        known: What is known of them.
    """
    there = Binary("add", Binary("sub", loop.var, loop.begin), imm(distance))
    if around is None or not isinstance(loop.extent, Imm):
        last = known.simplify(Binary("min", there, Binary("sub", loop.extent, imm(1))))
        return {loop.var: known.simplify(Binary("add", loop.begin, last))}
    again = Binary("floormod", there, loop.extent)
    round_ = Binary("add", around.var, Binary("floordiv", there, loop.extent))
    last = Binary("sub", Binary("add", around.begin, around.extent), imm(1))
    return {
        loop.var: known.simplify(Binary("add", loop.begin, again)),
        around.var: known.simplify(Binary("min", round_, last)),
    }


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


def _sharers(share: For, here: Path, block: Block) -> For:
    """The loop over those that share, without iterations in which the block does not run."""
    above = here[: next(k for k, s in enumerate(here) if s is share)]
    count, known = iterations(share, above, block), known_at(above)
    if not known.prove(Compare("ge", count, imm(1))):
        count = Binary("max", count, imm(1))
    return replace(share, extent=known.simplify(count))


def _part(
    line: PrimVar, total: int, share: For | None, sharers: int | None, known: Analyzer
) -> tuple[PrimExpr, PrimExpr, PrimExpr | None]:
    """Which line of all is meant, how many there are to ask for, and the condition for that."""
    if share is None:
        return line, imm(total), None
    count = share.extent
    if sharers is not None:
        count = known.simplify(Binary("min", count, imm(sharers)))
    each = known.simplify(Binary("floordiv", Binary("add", imm(total - 1), count), count))
    sharer = Binary("sub", share.var, share.begin)
    last = Binary("sub", imm(total), each)
    nth = Binary("add", Binary("min", Binary("mul", sharer, each), last), line)
    clamped = known.with_extent(line, imm(0), each).simplify(nth)
    if not isinstance(count, Imm) or sharers is not None:
        return clamped, each, None  # what is asked for twice costs less than a condition
    asking = Binary("floordiv", Binary("add", imm(total - 1), each), each)
    busy = known.simplify(Binary("add", share.begin, asking))
    all_are = known.prove(Compare("lt", share.var, busy))
    return clamped, each, None if all_are else Compare("lt", share.var, busy)
