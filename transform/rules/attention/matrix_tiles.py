"""A row chain on matrix tiles: attention whose products are of narrow numbers.

For each set of rows the two right operands are copied once to panels in groups of depth; then block
of rows by block of rows the first product makes the rows, the stages between work on them row by
row, and the second product sums along them. All of it stays in the caches. Numbers of rows, their
lengths and the other extents must be known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from unity.ir.dtype import FLOAT32
from unity.ir.prim_expr import Binary, Cast, Compare, Imm, Load, PrimExpr, PrimVar, Select, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import Allocate, Buffer, For, Seq, Stmt, Store
from unity.ir.visit import rewrite_prim, rewrite_stmt, substitute_prim
from unity.machine.dot_units import SIDE, group_of, has_dot
from unity.machine.target import Target

from ...blocks.extents import number, product
from ...blocks.nest import Axis, Nest, Reduction
from ...blocks.tree import sequence
from ...roles.attention import RowChain, row_chain
from ...roles.grouped_panels import operands
from ...roles.row_group import substituted
from ...tactics.register_tile import Values
from ...tactics.threads import parallel
from ...tactics.tile_sums import depth_of
from ..rows.by_row import ROWS
from ..rule import Legal, Neighbourhood, Rule, first, worth
from ..stages import Stages
from ..table import found_for, laid_out

WIDTH = 2 * SIDE
"""Columns of a panel, and what rows of a block are a multiple of."""
FEW = 16
"""Rows from which on tiles are full enough."""
BLOCK_BYTES = 128 << 10
"""What a block's rows take, at most, if there are more than one pair of tiles."""
MOST_BYTES = 1 << 20
"""What the rows of the smallest block may take."""

Domain = list[tuple[str, PrimExpr]]
BlocksOf = Callable[[Values, Sequence[PrimExpr]], Stmt]
"""What is done to a set of rows, by the values of the outer axes and a point of the domain."""


@dataclass(frozen=True, slots=True)
class ChainTiles:
    """The decisions.

    Attributes:
        height: Rows of a block.
        grain: Multiply-adds that a task has at least.
    """

    height: int
    grain: int


def _match(stages: Stages, target: Target) -> RowChain | None:
    """A chain both of whose contractions multiply numbers that the target has tiles for."""
    chain = row_chain(stages.rest, {*stages.temporaries}, target)
    if chain is None:
        return None
    row = chain.row
    head, tail = chain.head.reduction, chain.tail.reduction
    assert head is not None
    assert tail is not None
    if row is None or len(head.axes) != 1 or len(chain.columns) != 1:
        return None
    extents = [number(a.extent) for a in (row, chain.inner, head.axes[0], chain.columns[0])]
    if any(not e for e in extents) or (extents[0] or 0) < FEW:
        return None
    first = operands(head, chain.inner.var)
    second = operands(tail, chain.columns[0].var)
    if first is None or second is None:
        return None
    for (left, right), reduction in ((first, head), (second, tail)):
        if not has_dot(target, "tile", left.dtype, right.dtype, reduction.value.dtype):
            return None
    depth = extents[2] or 0
    if depth % depth_of(first[1].dtype) or _row_bytes(chain) * WIDTH > MOST_BYTES:
        return None
    if head.op != "add" or tail.op != "add" or head.init != head.identity:
        return None
    return chain


def _row_bytes(chain: RowChain) -> int:
    """What a row of a block takes."""
    return _padded(chain) * FLOAT32.bytes


def _padded(chain: RowChain) -> int:
    """Elements of a row, in whole panels."""
    return -(-(number(chain.inner.extent) or 0) // WIDTH) * WIDTH


def _rows(chain: RowChain) -> int:
    return (None if chain.row is None else number(chain.row.extent)) or 1


def _decide(chain: RowChain, target: Target) -> ChainTiles:
    most = BLOCK_BYTES // _row_bytes(chain) // WIDTH * WIDTH
    height = min(max(most, WIDTH), _rows(chain))
    return ChainTiles(height, target.machine.grain("tile_multiply_adds"))


def _legal(chain: RowChain, _decisions: ChainTiles, _target: Target) -> Neighbourhood:
    rows, most = _rows(chain), MOST_BYTES // _row_bytes(chain)
    heights = [min(h, rows) for h in range(WIDTH, rows + WIDTH, WIDTH) if min(h, rows) <= most]
    why = f"blocks of {rows} rows in steps of {WIDTH}, of at most {MOST_BYTES} bytes"
    return {"height": Legal(heights, why), "grain": worth("multiply-adds")}


def _write(chain: RowChain, decisions: ChainTiles, target: Target) -> Stmt:
    assert chain.row is not None
    return _Chain(chain, chain.row, decisions, target).stmt()


CHAIN_TILES = Rule(
    "chain_tiles", _match, _decide, _legal, _write, count=lambda chain: len(chain.stages)
)


class _Chain:
    """Writes the chain.

    Args:
        chain: The stages.
        row: The axis over the rows.
        decisions: How.
        target: What they are laid out for.
    """

    def __init__(self, chain: RowChain, row: Axis, decisions: ChainTiles, target: Target) -> None:
        self.chain, self.row, self.target = chain, row, target
        self.serial = replace(target, threads=1)
        self.grain = decisions.grain
        self.padded, self.rows, self.height = _padded(chain), _rows(chain), decisions.height
        head, tail = chain.head.reduction, chain.tail.reduction
        assert head is not None
        assert tail is not None
        self.first = Panels(head, chain.inner, head.axes[0])
        self.second = Panels(tail, chain.columns[0], tail.axes[0])

    def stmt(self) -> Stmt:
        """All sets of rows in parallel; where they are few, their blocks of rows."""
        chain = self.chain
        whole, rest = divmod(self.rows, self.height)
        sets = math.prod(number(a.extent) or 1 for a in chain.outer)
        alone = whole > 1 and sets < self.target.tasks
        domain = [(a.var.name.removeprefix("v"), a.extent) for a in chain.outer]
        steps = [chain.inner.extent, *(a.extent for a in chain.columns), imm(2)]

        def over(domain: Domain, blocks: BlocksOf, height: int) -> Stmt:
            def body(point: Sequence[PrimExpr]) -> Stmt:
                outer: Values = {a.var: p for a, p in zip(chain.outer, point, strict=False)}
                body = blocks(outer, point)
                for panels in (self.first, self.second):
                    body = panels.around(outer, body)
                return body

            return parallel(domain, product([*steps, imm(height)]), self.grain, body)

        if not alone:
            return over(domain, lambda outer, _: self._all(outer, whole, rest), self.rows)
        height = imm(self.height)
        parts = [
            over(
                [*domain, ("block", imm(whole))],
                lambda outer, point: self._block(outer, multiply(point[-1], height), self.height),
                self.height,
            )
        ]
        if rest:
            end = multiply(imm(whole), height)
            parts.append(over(domain, lambda outer, _: self._block(outer, end, rest), rest))
        return sequence(parts)

    def _all(self, outer: Values, whole: int, rest: int) -> Stmt:
        """All blocks of rows of a set, one after the other."""
        block, height = PrimVar("block"), imm(self.height)
        here = self._block(outer, multiply(block, height), self.height)
        parts: list[Stmt] = [For(block, imm(0), imm(whole), here)]
        if rest:
            parts.append(self._block(outer, imm(whole * self.height), rest))
        return sequence(parts)

    def _block(self, outer: Values, begin: PrimExpr, height: int) -> Stmt:
        """Some rows from the first product to the second."""
        chain = self.chain
        local = PrimVar(self.row.var.name)
        here = Axis(local, imm(height))
        values: Values = {**outer, self.row.var: add(begin, local)}
        made: list[Buffer] = []
        moved: dict[Buffer, tuple[Buffer, tuple[PrimExpr, ...]]] = {}
        for old, at in chain.temporaries.items():
            host = chain.overwritten(old)
            if host is not None:
                moved[old] = moved[host]
                continue
            elements = any(i is chain.inner.var for i in at)
            shape = (imm(height), imm(self.padded)) if elements else (imm(height),)
            new = Buffer(old.name, shape, old.dtype, scope="local", align=64)
            made.append(new)
            moved[old] = new, (local, chain.inner.var) if elements else (local,)
        head = self._product(_rewritten(chain.head, moved), self.first, (here, chain.inner))
        stages: list[Nest] = []
        for stage in chain.middle.stages:
            elements = stage.reduction is None and not chain.middle.is_scalar(stage)
            axes = (here, chain.inner) if elements else (here,)
            stages.append(substituted(replace(_rewritten(stage, moved), axes=axes), values))
        tail = self._product(_rewritten(chain.tail, moved), self.second, (here, *chain.columns))
        body = sequence(
            [
                laid_out(substituted(head, values), self.serial),
                *self._rows(stages),
                laid_out(substituted(tail, values), self.serial),
            ]
        )
        for buffer in made:
            body = Allocate(buffer, body)
        return body

    def _rows(self, stages: Sequence[Nest]) -> list[Stmt]:
        """The stages between, those over the same rows row by row."""
        done: list[Stmt] = []
        at = 0
        while at < len(stages):
            here = Stages(stages, at, set())
            found = first((ROWS,), here, self.serial, []) or found_for(stages[at], self.serial)
            done.append(found.stmt())
            at += found.count
        return done

    def _product(self, nest: Nest, panels: Panels, axes: tuple[Axis, ...]) -> Nest:
        """A contraction over the panels of its right operand."""
        reduction = nest.reduction
        assert reduction is not None
        return replace(nest, axes=axes, reduction=panels.product(reduction))


class Panels:
    """The right operand of a contraction in panels, its depth in groups; zeros where there is none.

    Args:
        reduction: The contraction.
        column: The axis along which the operand moves and the result as well.
        depth: The axis that is summed over.
    """

    def __init__(self, reduction: Reduction, column: Axis, depth: Axis) -> None:
        factors = operands(reduction, column.var)
        assert factors is not None
        _, self.load = factors
        self.column, self.depth = column.var, depth.var
        self.columns, self.deep = number(column.extent) or 0, number(depth.extent) or 0
        dtype = self.load.buffer.dtype
        self.group = group_of(dtype)
        step = depth_of(dtype)
        self.steps = -(-self.deep // step) * SIDE
        self.count = -(-self.columns // WIDTH)
        shape = (self.count, self.steps, WIDTH, self.group)
        self.buffer = Buffer("panels", tuple(map(imm, shape)), dtype, scope="local", align=64)

    def around(self, outer: Values, body: Stmt) -> Stmt:
        """A statement behind what makes the panels for it."""
        whole = self.deep // self.group
        parts = [self._filled(outer, 0, whole)] if whole else []
        if self.steps > whole:
            parts.append(self._filled(outer, whole, self.steps))
        return Allocate(self.buffer, Seq((*parts, body)))

    def _filled(self, outer: Values, begin: int, end: int) -> Stmt:
        """Some groups of depth of all panels, a register of them at a time."""
        panel, step, lane = PrimVar("panel"), PrimVar("step"), PrimVar("lane")
        lanes = WIDTH * self.group // 2
        group = imm(self.group)
        place = Binary("floormod", lane, group)
        depth = add(multiply(step, group), place)
        stores: list[Stmt] = []
        for half in range(2):
            inside = add(imm(half * SIDE), Binary("floordiv", lane, group))
            column = add(multiply(panel, imm(WIDTH)), inside)
            if self.columns % WIDTH:  # what no one reads may be anything
                column = Binary("min", column, imm(self.columns - 1))
            value = substitute_prim(
                self.load,
                {**outer, self.column: column, self.depth: _least(depth, self.deep, end, group)},
            )
            if end * self.group > self.deep:
                inner = Compare("lt", depth, imm(self.deep))
                value = Select(inner, value, imm(0, value.dtype))
            stores.append(Store(self.buffer, (panel, step, inside, place), value))
        vector = For(lane, imm(0), imm(lanes), sequence(stores), "vectorized")
        return For(
            panel,
            imm(0),
            imm(self.count),
            For(step, imm(begin), imm(end - begin), vector),
        )

    def product(self, reduction: Reduction) -> Reduction:
        """The contraction over groups, its right operand read from the panels."""
        factors = operands(reduction, self.column)
        assert factors is not None
        left, right = factors
        k, p = PrimVar("k"), PrimVar("p")
        depth = add(multiply(k, imm(self.group)), p)
        left = substitute_prim(left, {self.depth: depth})
        if self.steps * self.group > self.deep:
            left = Select(Compare("lt", depth, imm(self.deep)), left, imm(0, left.dtype))
        width = imm(WIDTH)
        column = self.column
        at = (Binary("floordiv", column, width), k, Binary("floormod", column, width), p)
        wide = reduction.value.dtype
        value = Binary("mul", Cast(wide, left), Cast(wide, Load(self.buffer, at)))
        axes = (Axis(k, imm(self.steps)), Axis(p, imm(self.group)))
        assert right.buffer.dtype == self.buffer.dtype
        return replace(reduction, axes=axes, value=value)


def _least(depth: PrimExpr, deep: int, end: int, group: Imm) -> PrimExpr:
    """The depth, or the last one where it lies past that."""
    return depth if end * int(group.value) <= deep else Binary("min", depth, imm(deep - 1))


def _rewritten(stage: Nest, moved: dict[Buffer, tuple[Buffer, tuple[PrimExpr, ...]]]) -> Nest:
    """The stage with buffers replaced, each accessed at one place."""

    def on_load(e: PrimExpr) -> PrimExpr | None:
        if isinstance(e, Load) and e.buffer in moved:
            return Load(*moved[e.buffer], e.predicate)
        return None

    def on_store(s: Stmt) -> Stmt | None:
        if isinstance(s, Store) and s.buffer in moved:
            buffer, indices = moved[s.buffer]
            return Store(buffer, indices, s.value)
        return None

    reduction = stage.reduction
    if reduction is not None:
        value = rewrite_prim(reduction.value, on_load)
        reduction = replace(reduction, value=value, init=rewrite_prim(reduction.init, on_load))
    return replace(stage, reduction=reduction, finish=rewrite_stmt(stage.finish, on_store, on_load))
