"""Work shared among threads: loops over a domain in chunks that are worth a thread's time.

`share` takes steps of a schedule; `parallel` writes the loops for rules that do so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from unity.arith import simplify
from unity.ir.prim_expr import Binary, PrimExpr, PrimVar, imm
from unity.ir.stmt import For, Let, Stmt
from unity.machine.machine import Work

from ..blocks.extents import ceildiv, number, product
from ..schedule.refs import LoopRef
from ..schedule.schedule import Schedule

TASKS = 8
"""Tasks for each thread, so that none has much more to do than another."""
UNEVEN = 1.1
"""How many times its fair part the thread that has most may have."""


def is_fair(length: int | None, threads: int) -> bool:
    """Whether a loop can be cut in a run for each thread, all of about the same length."""
    return length is not None and -(-length // threads) * threads <= UNEVEN * length


def enough_tasks(counts: Sequence[PrimExpr], threads: int) -> int:
    """How many loops over tasks, from the outermost, have work for all threads.

    No more of them are joined than need be: their index is divided in each iteration.
    """
    total = 1
    for k, count in enumerate(counts, 1):
        known = number(count)
        total *= known or 0
        if total >= TASKS * threads:
            return k
    return len(counts)


def share(
    sch: Schedule,
    loops: Sequence[LoopRef],
    points: PrimExpr,
    work: PrimExpr,
    grain: Work | int,
) -> LoopRef:
    """Loops shared among the threads, in chunks that are worth waking one of the machine's for.

    Args:
        sch: The schedule.
        loops: Neighbours, outermost first.
        points: How many iterations they have together.
        work: Units of work in one of them.
        grain: Units that are worth waking a thread for; the machine's of what is counted.

    Returns:
        The innermost of the loops as they are then.
    """
    assert sch.target is not None
    enough = grain if isinstance(grain, int) else sch.target.machine.grain(grain)
    each = number(work)
    chunk = 1 if each is None else -(-enough // max(each, 1))
    total = number(points)
    if total is not None and total <= chunk:
        return loops[-1]
    loop = inner = sch.fuse(*loops) if len(loops) > 1 else loops[0]
    if chunk > 1 and len(loops) == 1:  # else the pool makes tasks of several
        loop, inner = sch.split(loop, [None, chunk])
    sch.parallel(loop)
    return inner


def parallel(
    domain: Sequence[tuple[str, PrimExpr]],
    work: PrimExpr,
    grain: int,
    body: Callable[[Sequence[PrimExpr]], Stmt],
) -> Stmt:
    """A nest over a domain, the threads taking chunks of at least `grain` units of work.

    Args:
        domain: Names and extents, outermost first.
        work: Units of work at one point.
        grain: Units that are worth waking a thread for.
        body: The statement at a point.
    """
    points = product([extent for _, extent in domain])
    per_chunk = _points_per_chunk(work, grain)
    chunks = ceildiv(points, per_chunk)
    if number(chunks) in (0, 1) or not domain:
        return _serial(domain, body)
    chunk = PrimVar("chunk")
    if number(per_chunk) == 1:
        return For(chunk, imm(0), points, _at_point(chunk, domain, body), "parallel")
    at = PrimVar("_".join(name for name, _ in domain))
    begin = Binary("mul", chunk, per_chunk)
    count = Binary("min", per_chunk, Binary("sub", points, begin))
    inner = For(at, begin, simplify(count), _at_point(at, domain, body))
    return For(chunk, imm(0), chunks, inner, "parallel")


def _points_per_chunk(work: PrimExpr, grain: int) -> PrimExpr:
    cost = number(simplify(work))
    if cost is not None:
        return imm(max(1, -(-grain // max(cost, 1))))
    positive = Binary("max", work, imm(1))
    return simplify(Binary("add", Binary("floordiv", imm(grain), positive), imm(1)))


def _serial(
    domain: Sequence[tuple[str, PrimExpr]], body: Callable[[Sequence[PrimExpr]], Stmt]
) -> Stmt:
    variables = [PrimVar(name) for name, _ in domain]
    stmt = body(variables)
    for var, (_, extent) in zip(reversed(variables), reversed(domain), strict=True):
        stmt = For(var, imm(0), extent, stmt)
    return stmt


def _at_point(
    at: PrimVar,
    domain: Sequence[tuple[str, PrimExpr]],
    body: Callable[[Sequence[PrimExpr]], Stmt],
) -> Stmt:
    """The statement at the `at`-th point of a domain, its last coordinate running fastest."""
    if len(domain) == 1:
        return body([at])
    variables = [PrimVar(name) for name, _ in domain]
    stmt = body(variables)
    rest: PrimExpr = at
    values: list[PrimExpr] = []
    for _, extent in reversed(domain[1:]):
        values.append(simplify(Binary("floormod", rest, extent)))
        rest = simplify(Binary("floordiv", rest, extent))
    values.append(rest)
    for var, value in zip(reversed(variables), values, strict=True):
        stmt = Let(var, value, stmt)
    return stmt
