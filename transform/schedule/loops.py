"""Loops laid out by the rules: parallel ones in chunks worth a thread's time, tiles with tails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from unity.arith import simplify
from unity.ir.prim_expr import Binary, Compare, Imm, PrimExpr, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import For, IfThen, Let, Seq, Stmt
from unity.ir.visit import substitute_stmt


def number(e: PrimExpr) -> int | None:
    """The integer an expression is, if it is one."""
    return e.value if isinstance(e, Imm) and isinstance(e.value, int) else None


def ceildiv(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """``a / b`` rounded up."""
    return simplify(Binary("floordiv", Binary("sub", Binary("add", a, b), imm(1)), b))


def product(factors: Sequence[PrimExpr]) -> PrimExpr:
    """The product, simplified."""
    total: PrimExpr = imm(1)
    for factor in factors:
        total = Binary("mul", total, factor)
    return simplify(total)


def sequence(stmts: Sequence[Stmt]) -> Stmt:
    """The statements in order."""
    return stmts[0] if len(stmts) == 1 else Seq(tuple(stmts))


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


@dataclass(frozen=True, slots=True)
class Tier:
    """Tiles of one size: `count` of them from `begin`; in the last one, only `limit` may be full.

    Attributes:
        begin: The first index.
        count: How many tiles there are.
        size: Indices in a tile.
        masked: Whether a tile may reach past the end.
    """

    begin: PrimExpr
    count: PrimExpr
    size: int
    masked: bool = False


def row_tiers(extent: PrimExpr, largest: int) -> list[Tier]:
    """An extent cut in tiles of at most `largest`; no tile reaches past the end."""
    known = number(extent)
    if known is None:
        if largest == 1:
            return [Tier(imm(0), extent, 1)]
        whole = simplify(extent // largest)
        return [
            Tier(imm(0), whole, largest),
            Tier(simplify(whole * largest), simplify(extent % largest), 1),
        ]
    size = _even_size(known, largest)
    tiers = [Tier(imm(0), imm(known // size), size)]
    if known % size:
        tiers.append(Tier(imm(known - known % size), imm(1), known % size))
    return tiers


def tile_tiers(extent: PrimExpr, largest: int, columns: int) -> list[Tier]:
    """An axis of rows cut in tiles of at most `largest`, so that all steps together cost least.

    An unknown extent gets whole tiles, and what is left of it a tile of each power of two.
    """
    known = number(extent)
    if known is not None:
        if known == 0:
            return [Tier(imm(0), imm(0), 1)]

        def total(size: int) -> float:
            rest = known % size
            return known // size * _cost(size, columns) + (_cost(rest, columns) if rest else 0)

        size = min(range(min(largest, known), 0, -1), key=total)
        tiers = [Tier(imm(0), imm(known // size), size)]
        if known % size:
            tiers.append(Tier(imm(known - known % size), imm(1), known % size))
        return tiers
    tiers = [Tier(imm(0), simplify(extent // largest), largest)]
    size, rest = 1 << (largest - 1).bit_length() - 1, simplify(extent % largest)
    while size and largest > 1:
        begin = simplify(extent - rest)
        tiers.append(Tier(begin, simplify(rest // size), size))
        rest = simplify(rest % size)
        size //= 2
    return tiers


def _cost(rows: int, columns: int) -> float:
    """Cycles of a step: two multiplications or loads a cycle, four of latency, one for the loop.

    Columns come from the second cache, at some 48 bytes a cycle.
    """
    return max(rows * columns / 2, (rows + columns) / 2, 4, 4 / 3 * columns) + 0.5


def _even_size(extent: int, largest: int) -> int:
    """A tile size that divides the extent if one is not much smaller, else the most even one."""
    if extent == 0:
        return 1
    for size in range(min(largest, extent), max(1, largest * 3 // 5) - 1, -1):
        if extent % size == 0:
            return size
    tiles = -(-extent // largest)
    return -(-extent // tiles)


def column_tiers(extent: PrimExpr, lanes: int, largest: int) -> list[Tier]:
    """An extent cut in tiles of at most `largest` vectors; only the last vector is masked."""
    known = number(extent)
    if known is None:
        whole = simplify(extent // (lanes * largest))
        done = simplify(whole * (lanes * largest))
        rest = ceildiv(simplify(extent - done), imm(lanes))
        return [Tier(imm(0), whole, largest), Tier(done, rest, 1, masked=True)]
    vectors = -(-known // lanes)
    tiles = -(-vectors // largest)
    size = -(-vectors // max(tiles, 1))
    full = known // (size * lanes)
    tiers = [Tier(imm(0), imm(full), size)] if full else []
    left = known - full * size * lanes
    if left:
        begin = imm(full * size * lanes)
        tiers.append(Tier(begin, imm(1), -(-left // lanes), masked=left % lanes != 0))
    return tiers


def tile_size(extent: PrimExpr, largest: int) -> int:
    """The size of a tile that cuts an extent in as many parts as `largest`, the most evenly."""
    known = number(extent)
    if not known:
        return largest
    return -(-known // -(-known // largest))


def lanes_for(bits: int, vector_bits: int, extent: PrimExpr) -> int:
    """How many lanes to give an axis: a vector register's, or a power of two that holds it all."""
    lanes = max(2, min(64, vector_bits // max(bits, 8)))
    known = number(extent)
    if known is not None and known < lanes:
        return max(2, 1 << (known - 1).bit_length())
    return lanes


def vectors(s: Stmt, var: PrimVar, begin: PrimExpr, extent: PrimExpr, lanes: int) -> Stmt:
    """A statement for each value of a variable: whole vectors, then a masked one of the rest."""
    known = number(extent)
    parts: list[Stmt] = []
    whole = extent // lanes if known is None else imm(known // lanes)
    if known is None or known >= lanes:
        at, lane = PrimVar(f"{var.name}_at"), PrimVar("lane")
        index = add(add(begin, multiply(at, imm(lanes))), lane)
        vector = For(lane, imm(0), imm(lanes), substitute_stmt(s, {var: index}), "vectorized")
        parts.append(For(at, imm(0), whole, vector))
    if known is None or known % lanes:
        lane = PrimVar("lane")
        left = extent % lanes if known is None else imm(known % lanes)
        done = add(begin, multiply(whole, imm(lanes)))
        tail = substitute_stmt(s, {var: add(done, lane)})
        masked = IfThen(Compare("lt", lane, left), tail)
        loop: Stmt = For(lane, imm(0), imm(lanes), masked, "vectorized")
        parts.append(loop if known is not None else IfThen(Compare("gt", left, imm(0)), loop))
    return sequence(parts)
