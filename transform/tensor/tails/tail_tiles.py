"""What is left of an unknown extent in smaller tiles, each of which knows its size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from unity.arith import Analyzer
from unity.arith.polynomial import as_constant, from_expr, split_linear
from unity.ir.empty_reduction import conjuncts
from unity.ir.marks import ACCUMULATORS, COMPACT, FITTING, TAIL
from unity.ir.prim_expr import Binary, Compare, Load, PrimExpr, PrimVar, Select, imm
from unity.ir.stmt import Allocate, Block, Buffer, For, IfThen, Let, Stmt, Store
from unity.ir.visit import (
    bound_in,
    map_prim,
    map_stmt,
    rewrite_prim,
    rewrite_stmt,
    stmt_loads,
    substitute_prim,
    substitute_stmt,
    variables,
    walk_stmt,
)

from ...blocks.conditions import Condition, computing, conditions_of
from ...blocks.extents import divisors, number
from ...blocks.tree import (
    Path,
    Values,
    all_blocks,
    conjunction,
    driven,
    renewed,
    sequence,
    with_regions,
)

ALL_SIZES = 8
"""Rows of the largest tile that has a tail of each size; half of these are enough work for two."""
FEW_STEPS = 4
"""Steps of sums that a compact tile writes out: two cost 3 % where every tile is one (Zen 3)."""


@dataclass(frozen=True, slots=True)
class Tail:
    """The loops that are written out in a tile of which only a part lies inside.

    Attributes:
        loops: Their variables: one around each block.
        size: How many iterations each has.
        count: How many of those lie inside.
        parts: The parts of predicates that say so.
        is_sum: Whether they are steps of a sum: these go one by one.
        exact: How many lie inside where that is the same for every such tile, else None.
    """

    loops: frozenset[PrimVar]
    size: int
    count: PrimExpr
    parts: tuple[PrimExpr, ...]
    is_sum: bool
    exact: int | None


def tiered(loop: For, above: Path, known: Analyzer) -> Stmt | None:
    """The body of a loop over tiles in whose iterations only some rows lie inside.

    A condition on each row of a tile would be asked at every step. Instead, all of them are done
    together where their number is known, else four where there are so many, then two, then one; or
    as many as there are, or half of them twice, in one of a tile for each number of them, where the
    loop asks for that (`unity.ir.marks.TAIL`), all of them with loops over steps of their sums if
    it is to be compact.

    Args:
        loop: The loop.
        above: What is around it.
        known: What is known inside.

    Returns:
        None where the tile is no such.
    """
    tail = _tail_of(loop, above, known)
    registers = None if tail is None else registers_of(loop.body, tail)
    if tail is None or registers is None:
        return None
    sizes = halves(tail.size)
    if tail.is_sum:
        sizes = [1]
    elif tail.exact:
        sizes = [tail.exact]
    elif loop.attrs.get(TAIL) in (FITTING, COMPACT):
        return _fitting(loop, tail, registers)
    smaller = SmallerTiles(loop.body, tail, registers, known)
    return sequence(smaller.of(imm(0), tail.count, sizes))


def halves(size: int) -> list[int]:
    """The sizes of tiles that make up fewer rows than `size`: powers of two, down to 1."""
    return [1 << k for k in reversed(range((size - 1).bit_length()))]


class SmallerTiles:
    """Rows of a tile in smaller ones. It carries the names that are taken."""

    def __init__(
        self, body: Stmt, tail: Tail, registers: frozenset[Buffer], known: Analyzer
    ) -> None:
        self.body, self.tail, self.registers, self.known = body, tail, registers, known
        self.names, self.bound = {b.name for b in all_blocks(body)}, bound_in(body)

    def at(
        self, place: PrimExpr, size: int, holding: Sequence[PrimExpr], *, named: bool = False
    ) -> Stmt:
        """A tile from a row on, where the given parts of predicates hold."""
        begin = PrimVar("done")
        tail = replace(self.tail, parts=tuple(holding))
        part = Part(tail, size, begin, self.registers).stmt(self.body)
        if named:
            part = Let(begin, place, part)
        else:
            part = substitute_stmt(part, {begin: self.known.simplify(place)})
        return renewed(part, self.names, self.bound)

    def of(
        self,
        first: PrimExpr,
        end: PrimExpr,
        sizes: Sequence[int],
        inside: Sequence[PrimExpr] | None = None,
        alike: Sequence[PrimExpr] = (),
    ) -> list[Stmt]:
        """Tiles of each size, so many of them as there are rows left for.

        Args:
            first: The first row.
            end: The one behind the last.
            sizes: Of tiles, the largest first.
            inside: The parts of predicates that hold in these rows; those of the tail. Where they
                are given, the place of a tile gets no name: of it, addresses in loops over taps
                take LLVM more registers than of sizes and counters.
            alike: Those that hold for all of these rows or for none.
        """
        known, parts = self.known, list[Stmt]()
        tail = self.tail if inside is None else replace(self.tail, parts=tuple(inside))
        left = known.simplify(Binary("sub", end, first))
        for size in sizes:
            begin, nth = PrimVar("done"), PrimVar("tile")
            done = known.simplify(Binary("sub", end, left))
            many = known.simplify(Binary("floordiv", left, imm(size)))
            place = Binary("add", done, Binary("mul", nth, imm(size)))
            part = Part(tail, size, begin, self.registers, tuple(alike), first).stmt(self.body)
            if inside is None:
                part = Let(begin, place, part)
            else:
                part = substitute_stmt(part, {begin: known.simplify(place)})
            parts.append(renewed(For(nth, imm(0), many, part), self.names, self.bound))
            left = known.simplify(Binary("floormod", left, imm(size)))
        return parts


def _fitting(loop: For, tail: Tail, registers: frozenset[Buffer]) -> Stmt:
    """One tile of as many rows as there are; two of about half as many where they are many.

    There is a tile of each size up to `largest`: the fewer there are, the less code.
    """
    names, bound = {b.name for b in all_blocks(loop.body)}, bound_in(loop.body)
    rows, begin = PrimVar("rows"), PrimVar("done")
    largest = tail.size - 1 if tail.size <= ALL_SIZES else tail.size // 2
    tiles: Stmt | None = None
    for size in reversed(range(1, largest + 1)):
        part = Part(tail, size, begin, registers).stmt(loop.body)
        if loop.attrs[TAIL] == COMPACT:
            part = _with_steps(part, registers)
        tiles = IfThen(Compare("eq", rows, imm(size)), renewed(part, names, bound), tiles)
    assert tiles is not None
    if largest == tail.size - 1:
        return Let(rows, tail.count, Let(begin, imm(0), tiles))
    left, nth = PrimVar("left"), PrimVar("tile")
    many = Binary("floordiv", Binary("add", left, imm(largest - 1)), imm(largest))
    half = Binary("floordiv", Binary("add", left, imm(1)), imm(2))
    first = Select(Compare("gt", left, imm(largest)), half, left)
    here = Binary("min", first, Binary("sub", left, begin))
    one = Let(begin, Binary("mul", nth, first), Let(rows, here, tiles))
    return Let(left, tail.count, For(nth, imm(0), many, one))


def _with_steps(body: Stmt, registers: frozenset[Buffer]) -> Stmt:
    """A tile whose loops are written out only where they tell which register is meant.

    Others over what is done to registers go through four steps at a time, which hide a loop's own
    work; as many as sums are to have copies (`unity.ir.marks.ACCUMULATORS`) where these are more.
    """
    needed: set[PrimVar] = set()
    steps: set[PrimVar] = set()
    for block in all_blocks(body):
        values = _values(block)
        for access in accesses_in(block):
            if access.buffer in registers:
                needed |= {v for i in access.indices for v in variables(substitute_prim(i, values))}
                steps |= {v for value in values.values() for v in variables(value)}

    def on_stmt(s: Stmt) -> Stmt | None:
        count = number(s.extent) if isinstance(s, For) else None
        if not isinstance(s, For) or s.kind != "unrolled" or s.attrs.without(ACCUMULATORS):
            return None
        if s.var not in steps - needed:
            return None
        row = 1 if count is None else _in_a_row(s, count, needed)
        if count is None or row == 1:
            return replace(s, kind="serial", attrs=s.attrs.without(ACCUMULATORS))
        if row == count:
            return None
        outer, step = PrimVar(s.var.name), PrimVar(s.var.name)
        place = Binary("add", s.begin, Binary("add", Binary("mul", outer, imm(row)), step))
        inside = substitute_stmt(s.body, {s.var: place})
        inside = For(step, imm(0), imm(row), inside, "unrolled", attrs=s.attrs)
        return For(outer, imm(0), imm(count // row), inside)

    return rewrite_stmt(body, on_stmt)


def _in_a_row(loop: For, steps: int, needed: set[PrimVar]) -> int:
    """How many of a loop's steps are written out: they divide evenly."""
    asked = loop.attrs.get(ACCUMULATORS)
    tile = [s for s in walk_stmt(loop.body) if isinstance(s, For) and s.var in needed]
    sums = prod(number(s.extent) or 1 for s in tile if s.kind != "vectorized")
    copies = -(-asked // sums) if isinstance(asked, int) else 1
    return divisors(steps, max(FEW_STEPS, copies))[-1]


def _tail_of(loop: For, above: Path, known: Analyzer) -> Tail | None:
    """The tail that all blocks below a loop agree on."""
    conditions = [c for c in conditions_of(loop, above) if c.is_hot]
    blocks = [id(b) for b in computing(loop.body)]
    if not conditions or [id(c.block) for c in conditions] != blocks:
        return None
    within = [s for s in walk_stmt(loop.body) if isinstance(s, For)]
    found = [_rows(c, within, known) for c in conditions]
    whole = [x for x in found if x is not None]
    if len(whole) < len(found):
        return None
    first, count = whole[0]
    size = number(first.extent)
    if size is None or size < 2:
        return None
    for other, n in whole:
        if other.extent != first.extent or other.begin != imm(0) or not known.equal(n, count):
            return None
    rows = frozenset(x.var for x, _ in whole)
    is_sum = any("R" in driven(c.block, v) for c in conditions for v in rows)
    left = {_left(c.part, row, size, known) for c, (row, _) in zip(conditions, whole, strict=True)}
    exact = left.pop() if len(left) == 1 else None
    return Tail(rows, size, count, tuple(c.part for c in conditions), is_sum, exact)


def _left(part: PrimExpr, row: For, size: int, known: Analyzer) -> int | None:
    """How many rows of a tile lie inside, if not all do: the same for tiles of one grid."""
    assert isinstance(part, Compare)
    limit, first = number(part.b), substitute_prim(part.a, {row.var: imm(0)})
    if limit is None or known.simplify(Binary("floormod", first, imm(size))) != imm(0):
        return None
    return limit % size


def _rows(c: Condition, within: Sequence[For], known: Analyzer) -> tuple[For, PrimExpr] | None:
    """The one loop that a condition depends on, written out, and how far it goes under it.

    Loops `within` the one over tiles that have one iteration do not count.
    """
    if len(c.inner) != 1 or c.inner[0].kind != "unrolled" or not isinstance(c.part, Compare):
        return None
    (row,) = c.inner
    _, by = split_linear(from_expr(known.simplify(c.part.a)), row.var)
    if by is None or as_constant(by) != 1:
        return None
    first: Values = {x.var: x.begin for x in within if x.extent == imm(1)}
    first[row.var] = imm(0)
    room = Binary("sub", c.part.b, substitute_prim(c.part.a, first))
    inside: PrimExpr = known.simplify(room)
    if variables(inside) & {x.var for x in within}:
        return None
    if not known.prove(Compare("le", inside, row.extent)):
        inside = Binary("min", inside, row.extent)  # further iterations come to the rest
    if not known.prove(Compare("ge", inside, imm(0))):
        inside = Binary("max", inside, imm(0))
    return row, known.simplify(inside)


def registers_of(body: Stmt, tail: Tail) -> frozenset[Buffer] | None:
    """Temporaries of a tile, whose places all move along with its loops; None if some do not."""
    inside = [s.buffer for s in walk_stmt(body) if isinstance(s, Allocate)]
    moved: dict[Buffer, list[int | None]] = {}
    for block in all_blocks(body):
        values = _values(block)
        for access in accesses_in(block):
            if not any(access.buffer is b for b in inside):
                continue
            steps = [_step(substitute_prim(i, values), tail.loops) for i in access.indices]
            if None in steps or moved.setdefault(access.buffer, steps) != steps:
                return None
    return frozenset(moved)


def _values(block: Block) -> Values:
    return {a.var: a.value for a in block.axes}


def accesses_in(block: Block) -> Sequence[Load | Store]:
    """What a block loads, and what it stores."""
    found: list[Load | Store] = []
    for s in walk_stmt(block):
        found += stmt_loads(s)
        found += [s] if isinstance(s, Store) else []
    return found


def _step(index: PrimExpr, loops: frozenset[PrimVar]) -> int | None:
    """How far an index moves along with the one of some loops that it depends on."""
    used = variables(index) & loops
    if not used:
        return 0
    _, by = split_linear(from_expr(index), next(iter(used)))
    return None if by is None or len(used) > 1 else as_constant(by)


@dataclass(frozen=True, slots=True)
class Part:
    """A tile of `size` rows of the tail, from the row `begin` on.

    Of `alike` parts of predicates the row `first` is asked alone.
    """

    tail: Tail
    size: int
    begin: PrimVar
    registers: frozenset[Buffer]
    alike: tuple[PrimExpr, ...] = ()
    first: PrimExpr | None = None

    def stmt(self, s: Stmt) -> Stmt:
        """The tile's body for these rows."""
        match s:
            case For() if s.var in self.tail.loops:
                return replace(s, extent=imm(self.size), body=self.stmt(s.body))
            case Block():
                kept = [
                    self._of_first(p) if any(p is x for x in self.alike) else p
                    for p in (() if s.predicate is None else conjuncts(s.predicate))
                    if not any(p is x for x in self.tail.parts)
                ]
                return self._block(replace(s, predicate=conjunction(kept)))
            case _:
                return map_stmt(s, self.stmt, self._moved)

    def _of_first(self, part: PrimExpr) -> PrimExpr:
        assert self.first is not None
        return substitute_prim(part, dict.fromkeys(self.tail.loops, self.first))

    def _block(self, block: Block) -> Stmt:
        """The block over rows that count from `begin`, temporaries over those of the tile."""
        values = _values(block)

        def own(e: PrimExpr) -> PrimExpr | None:
            if not isinstance(e, Load) or e.buffer not in self.registers:
                return None
            return replace(e, indices=tuple(substitute_prim(i, values) for i in e.indices))

        def inside(e: PrimExpr) -> PrimExpr:
            return rewrite_prim(self._moved(e), own)

        def below(s: Stmt) -> Stmt:
            if isinstance(s, Store) and s.buffer in self.registers:
                places = tuple(substitute_prim(i, values) for i in s.indices)
                return replace(s, indices=places, value=inside(s.value))
            return map_stmt(s, below, inside)

        made = map_stmt(block, below, self._moved)
        assert isinstance(made, Block)
        return with_regions(made)

    def _moved(self, e: PrimExpr) -> PrimExpr:
        """With the tile's rows counting from `begin`, but where temporaries are indexed."""
        if isinstance(e, PrimVar) and e in self.tail.loops:
            return Binary("add", self.begin, e)
        if isinstance(e, Load) and e.buffer in self.registers:
            return e
        return map_prim(e, self._moved)
