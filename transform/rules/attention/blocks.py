"""A row chain laid out block of rows by block of rows: what lies between stays in the caches.

A block's rows are kept side by side, (inner, rows): lanes run over rows in the first contraction
and in the stages between, so that nothing is ever joined across lanes, and the second contraction
reads the rows' elements one after the other. Only the first one's own operand has to be turned,
once a block; the other operands are read where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unity.ir.prim_expr import Binary, Compare, Load, PrimExpr, PrimVar, Select, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import Allocate, Buffer, IfThen, Stmt, Store
from unity.ir.visit import rewrite_prim, rewrite_stmt
from unity.machine.target import Target

from ...blocks.access import depends
from ...blocks.extents import ceildiv, number, product
from ...blocks.nest import Axis, Nest, Reduction
from ...blocks.tree import sequence
from ...roles.attention import RowChain, row_chain
from ...roles.lanes import lanes_for
from ...roles.row_group import RowGroup, substituted
from ...tactics.register_tile import Values
from ...tactics.row_storage import rewritten
from ...tactics.threads import parallel
from ..rows.row_by_row import row_steps, rows
from ..rule import Legal, Neighbourhood, Rule, worth
from ..stages import Stages
from ..table import laid_out

VECTORS = 4
"""Vectors of rows in a block."""
FEW = 4
"""Rows from which on a block pays, most of its lanes empty as they may be."""


@dataclass(frozen=True, slots=True)
class _Tier:
    """Blocks of one size: `count` of `width` rows from `begin`; a padded one may hold fewer."""

    begin: PrimExpr
    count: PrimExpr
    width: int
    padded: bool


@dataclass(frozen=True, slots=True)
class ChainBlocks:
    """The decisions.

    Attributes:
        vectors: Vectors of rows in a block.
        few: Rows from which on there are blocks; fewer go one by one.
        grain: Multiply-adds that a task has at least.
    """

    vectors: int
    few: int
    grain: int


def _match(stages: Stages, target: Target) -> RowChain | None:
    return row_chain(stages.rest, {*stages.temporaries}, target)


def _decide(_chain: RowChain, target: Target) -> ChainBlocks:
    return ChainBlocks(VECTORS, FEW, target.machine.grain("multiply_adds"))


def _legal(_chain: RowChain, _decisions: ChainBlocks, _target: Target) -> Neighbourhood:
    return {
        "vectors": Legal(range(1, 9), "a block's rows lie side by side in up to 8 vectors"),
        "few": Legal(range(1, 65), "up to 64 rows go one by one"),
        "grain": worth("multiply-adds"),
    }


def _write(chain: RowChain, decisions: ChainBlocks, target: Target) -> Stmt:
    """The chain as a loop over blocks of rows; few rows go one by one."""
    if chain.row is None:
        return _one_by_one(chain, decisions, target)
    extent = chain.row.extent
    known = number(extent)
    if known is not None and known < decisions.few:
        return _one_by_one(chain, decisions, target)
    tiers = _tiers(chain, extent, decisions.vectors, target)
    row = chain.row
    blocks = sequence([_blocks(chain, row, tier, decisions.grain, target) for tier in tiers])
    if known is not None:
        return blocks
    few = Compare("lt", extent, imm(decisions.few))
    return IfThen(few, _one_by_one(chain, decisions, target), blocks)


CHAIN_BLOCKS = Rule(
    "chain_blocks", _match, _decide, _legal, _write, count=lambda chain: len(chain.stages)
)


def _tiers(chain: RowChain, extent: PrimExpr, vectors: int, target: Target) -> list[_Tier]:
    assert chain.head.reduction is not None
    lanes = lanes_for(chain.head.reduction.value.dtype.bits, target.vector_bits, extent)
    width = vectors * lanes
    known = number(extent)
    if known is None:
        rest = Binary("sub", extent, multiply(extent // width, imm(width)))
        return [
            _Tier(imm(0), extent // width, width, padded=False),
            _Tier(multiply(extent // width, imm(width)), ceildiv(rest, imm(lanes)), lanes, True),
        ]
    full, left = divmod(known, width)
    tiers = [_Tier(imm(0), imm(full), width, padded=False)] if full else []
    if left:
        vectors = -(-left // lanes)
        tiers.append(_Tier(imm(full * width), imm(1), vectors * lanes, left % lanes != 0))
    return tiers


def _blocks(chain: RowChain, row: Axis, tier: _Tier, grain: int, target: Target) -> Stmt:
    domain = [(a.var.name.removeprefix("v"), a.extent) for a in chain.outer]
    domain.append(("block", tier.count))
    steps = product([chain.inner.extent, *(a.extent for a in chain.columns)])

    def body(point: Sequence[PrimExpr]) -> Stmt:
        begin = add(tier.begin, multiply(point[-1], imm(tier.width)))
        outer: Values = {a.var: p for a, p in zip(chain.outer, point, strict=False)}
        return _Block(chain, row, tier, begin, outer, target).stmt()

    return parallel(domain, multiply(steps, imm(2 * tier.width)), grain, body)


class _Block:
    """Writes one block.

    Args:
        chain: The stages.
        row: The axis over the rows.
        tier: The size.
        begin: The block's first row.
        outer: The values of the outer axes.
        target: What the stages are laid out for.
    """

    def __init__(
        self,
        chain: RowChain,
        row: Axis,
        tier: _Tier,
        begin: PrimExpr,
        outer: Values,
        target: Target,
    ) -> None:
        self.chain, self.axis, self.tier, self.target = chain, row, tier, target
        self.local = PrimVar(row.var.name)
        self.row = add(begin, self.local)
        self.begin = begin
        self.values: Values = {**outer, row.var: self.row}
        self.made: list[Buffer] = []

    def stmt(self) -> Stmt:
        chain = self.chain
        width = imm(self.tier.width)
        here = Axis(self.local, width)
        moved: dict[Buffer, tuple[Buffer, tuple[PrimExpr, ...]]] = {}
        for old, at in chain.temporaries.items():
            host = chain.overwritten(old)
            moved[old] = self.kept(old, at, width) if host is None else moved[host]
        stmts: list[Stmt] = []
        head = rewritten(chain.head, moved)
        reduction, panels = self.turned(head)
        stmts += [laid_out(p, self.target) for p in panels]
        head = replace(head, reduction=reduction, axes=(chain.inner, here))
        stages = [head]
        for stage in chain.middle.stages:
            elements = stage.reduction is None and not chain.middle.is_scalar(stage)
            over = (chain.inner, here) if elements else (here,)
            stages.append(replace(rewritten(stage, moved), axes=over))
        stmts += [laid_out(self.placed(s), self.target) for s in stages]
        left = Binary("sub", self.axis.extent, self.begin)
        here = Axis(self.local, Binary("min", width, left) if self.tier.padded else width)
        outer = set(chain.outer)
        tail = rewritten(chain.tail, moved)
        axes = tuple(here if a is self.axis else a for a in tail.axes if a not in outer)
        tail = substituted(replace(tail, axes=axes), self.values)
        stmts.append(laid_out(tail, self.target))
        body = sequence(stmts)
        for buffer in self.made:
            body = Allocate(buffer, body)
        return body

    def kept(
        self, old: Buffer, at: Sequence[PrimExpr], width: PrimExpr
    ) -> tuple[Buffer, tuple[PrimExpr, ...]]:
        """Where a temporary is within the block."""
        inner = self.chain.inner
        elements = any(i is inner.var for i in at)
        shape = (inner.extent, width) if elements else (width,)
        new = Buffer(old.name, shape, old.dtype, scope="local")
        self.made.append(new)
        return new, (inner.var, self.local) if elements else (self.local,)

    def turned(self, head: Nest) -> tuple[Reduction, list[Nest]]:
        """The head's reduction over copies of its rows' operands, and what makes the copies."""
        reduction = head.reduction
        assert reduction is not None
        width = imm(self.tier.width)
        found: dict[Load, Load] = {}
        panels: list[Nest] = []
        for load in reduction.loads():
            if not depends(load, self.axis.var) or load in found:
                continue
            shape = (*(a.extent for a in reduction.axes), width)
            panel = Buffer("panel", shape, load.buffer.dtype, scope="local")
            at = (*(a.var for a in reduction.axes), self.local)
            self.made.append(panel)
            found[load] = Load(panel, at)
            axes = (*reduction.axes, Axis(self.local, width))
            nest = Nest("panel", axes, None, Store(panel, at, load), panel)
            panels.append(self.placed(nest))

        def on_load(e: PrimExpr) -> PrimExpr | None:
            return found.get(e) if isinstance(e, Load) else None

        return replace(reduction, value=rewrite_prim(reduction.value, on_load)), panels

    def placed(self, nest: Nest) -> Nest:
        """The stage at the block's rows; what lies past the last row reads as zero."""
        if self.tier.padded:
            inside = Compare("lt", self.row, self.axis.extent)

            def on_load(e: PrimExpr) -> PrimExpr | None:
                if isinstance(e, Load) and depends(e, self.axis.var):
                    return Select(inside, e, imm(0, e.dtype))
                return None

            reduction = nest.reduction
            if reduction is not None:
                value = rewrite_prim(reduction.value, on_load)
                reduction = replace(reduction, value=value)
            finish = rewrite_stmt(nest.finish, None, on_load)
            nest = replace(nest, reduction=reduction, finish=finish)
        return substituted(nest, self.values)


def _one_by_one(chain: RowChain, decisions: ChainBlocks, target: Target) -> Stmt:
    """Row by row: sums along contiguous memory, lanes along each row."""
    points = chain.outer if chain.row is None else (*chain.outer, chain.row)
    domain = [(a.var.name.removeprefix("v"), a.extent) for a in points]
    steps = product([chain.inner.extent, *(a.extent for a in chain.columns)])
    inner = chain.inner

    def body(point: Sequence[PrimExpr]) -> Stmt:
        values: Values = {a.var: p for a, p in zip(points, point, strict=True)}
        moved: dict[Buffer, tuple[Buffer, tuple[PrimExpr, ...]]] = {}
        for old, at in chain.temporaries.items():
            elements = any(i is inner.var for i in at)
            shape = (inner.extent,) if elements else (imm(1),)
            new = Buffer(old.name, shape, old.dtype, scope="local")
            moved[old] = new, (inner.var,) if elements else (imm(0),)

        def placed(nest: Nest) -> Nest:
            axes = tuple(a for a in nest.axes if a not in points)
            return substituted(replace(rewritten(nest, moved), axes=axes), values)

        middle = RowGroup((), (inner,), tuple(placed(s) for s in chain.middle.stages))
        stmt = sequence(
            [
                laid_out(placed(chain.head), target),
                rows(middle, set(), row_steps(middle, target), target),
                laid_out(placed(chain.tail), target),
            ]
        )
        for buffer, _ in moved.values():
            stmt = Allocate(buffer, stmt)
        return stmt

    return parallel(domain, multiply(steps, imm(2)), decisions.grain, body)
