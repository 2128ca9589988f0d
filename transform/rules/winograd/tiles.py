"""A tile group laid out: some tiles at a time are transformed, multiplied and transformed back.

Products go through register tiles over tiles and blocks of output channels. Where a transform
reads or writes beyond the image, the tiles within it get code without conditions.
"""

from __future__ import annotations

from collections.abc import Sequence

from unity.arith import Analyzer
from unity.ir.aligned import LINE
from unity.ir.prim_expr import Binary, Intrinsic, Load, PrimExpr, PrimVar, Select, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import Allocate, Buffer, Evaluate, For, IfThen, Let, Seq, Stmt, Store
from unity.ir.visit import (
    map_prim,
    map_stmt,
    prim_children,
    rewrite_prim,
    rewrite_stmt,
    stmt_exprs,
    substitute_prim,
    substitute_stmt,
    walk_prim,
    walk_stmt,
)
from unity.machine.target import Target

from ...blocks.extents import number, product
from ...blocks.nest import Axis
from ...blocks.tree import sequence
from ...roles.winograd import TileGroup, TileStage, Values, known_of_tiles, tile_group
from ...tactics.pieces import RowPart
from ...tactics.register_tile import Tile, accumulate, fill, loops, write_back
from ...tactics.result import with_init
from ...tactics.threads import parallel
from ...tensor.simplify_tir import simplified
from ..rule import Rule
from ..stages import Stages
from .border import conditions_of, settled, within
from .chunks import chunks_of
from .plan import PARTS_A_THREAD, TilePlan, legal_plans, plan_for

UNROLL, UNROLL_RARE = 8, 2
"""Steps of the product's innermost loop in a row, at most; where a tile comes once in a chunk."""


def _group(stages: Stages, target: Target) -> TileGroup | None:
    """All stages of a kernel, where they are one group."""
    return None if stages.at else tile_group(stages.every, {*stages.temporaries}, target)


def _write(group: TileGroup, plan: TilePlan, target: Target) -> Stmt:
    """The group as loops over chunks of tiles."""
    return _Writer(group, plan, target).stmt()


WINOGRAD = Rule(
    "winograd",
    match=_group,
    decide=plan_for,
    legal=legal_plans,
    write=_write,
    count=lambda group: len(group.before) + 1 + len(group.after),
)


class _Writer:
    """Carries the plan and the buffers that take the temporaries' places."""

    def __init__(self, group: TileGroup, plan: TilePlan, target: Target) -> None:
        self.group = group
        self.plan = plan
        self.target = target
        *outer, _, _ = group.tiles
        self.groups = _known(group.block_out) // (plan.columns * plan.panels)
        self.cut = chunks_of(group, plan, target.threads)
        self.chunk = PrimVar("chunk")
        self.chunks = [*outer, Axis(self.chunk, self.cut.count)]
        self.tasks = list(self.chunks)
        if plan.together:
            self.tasks.append(Axis(PrimVar("group"), imm(self.groups)))
        rooms = [*(a.extent for a in outer), self.cut.counted()]
        points = [a.extent for a in group.points]
        tasks = number(product([a.extent for a in self.tasks]))
        most = 1 if target.threads == 1 else target.threads * PARTS_A_THREAD
        self.parts = most if tasks is None else min(most, tasks)
        lead = rooms if plan.together else [imm(self.parts)]
        dtype = group.reduction.value.dtype
        length, lanes = imm(plan.tiles), group.lane_out.extent
        self.inputs = Buffer(
            group.inputs.name,
            (*lead, *points, group.block_in.extent, length, group.lane_in.extent),
            dtype,
        )
        self.products = Buffer(
            group.products.name,
            (imm(self.parts), *points, imm(plan.columns * plan.panels), length, lanes),
            dtype,
        )
        # Where the current part, tile of the chunk and block of the panel are told.
        self.part, self.tile, self.block = PrimVar("part"), PrimVar("tile"), PrimVar("block")

    def stmt(self) -> Stmt:
        """All of it, with its memory."""
        body = self.in_phases() if self.plan.together else self.by_chunks()
        return Allocate(self.inputs, Allocate(self.products, self.cut.around(body)))

    def in_phases(self) -> Stmt:
        """All inputs transformed by all threads, then the products' panels shared among them."""
        domain = [*self.chunks, self.group.block_in]
        cost = self.plan.tiles * _known(self.group.lane_in) * 16

        def first(at: Sequence[PrimExpr]) -> Stmt:
            values: Values = {a.var: p for a, p in zip(domain, at, strict=True)}
            body = self.cut.within(self.chunk, self.transformed(self.group.before))
            return substitute_stmt(body, values)

        named = [(a.var.name.removeprefix("v"), a.extent) for a in domain]
        before = parallel(named, imm(cost), self.target.machine.grain("multiply_adds"), first)
        return Seq((before, self.shared(self.multiplied(self.tasks[-1].var))))

    def by_chunks(self) -> Stmt:
        """Each part takes chunks from input to output."""
        before = loops([self.group.block_in], self.transformed(self.group.before))
        at = PrimVar("group")
        after = For(at, imm(0), imm(self.groups), self.multiplied(at))
        return self.shared(Seq((before, after)))

    def shared(self, body: Stmt) -> Stmt:
        """Something for each task, the tasks dealt out in parts."""
        body = self.cut.within(self.chunk, body)
        count = product([a.extent for a in self.tasks])
        task = PrimVar("task")
        rest: PrimExpr = task
        for axis in reversed(self.tasks[1:]):
            body = Let(axis.var, Binary("floormod", rest, axis.extent), body)
            rest = Binary("floordiv", rest, axis.extent)
        body = Let(self.tasks[0].var, rest, body)
        parts = imm(self.parts)
        begin = Binary("floordiv", multiply(self.part, count), parts)
        end = Binary("floordiv", multiply(add(self.part, imm(1)), count), parts)
        inner = For(task, begin, Binary("sub", end, begin), body)
        return For(self.part, imm(0), parts, inner, "parallel")

    # Transforms

    def transformed(self, stages: Sequence[TileStage]) -> Stmt:
        """Some stages for every tile of a chunk, at one block of channels."""
        known = known_of_tiles(self.group)
        inside = self.inside(stages, known)
        body = self.each(stages, known)
        if inside is not None:
            body = IfThen(inside, self.each(stages, known, inside=True), body)
        return self.cut.each(self.chunk, self.tile, body)

    def inside(self, stages: Sequence[TileStage], known: Analyzer) -> PrimExpr | None:
        """What tells a tile that lies within the image, where that is worth asking."""
        local = [a for s in stages for a in (*s.walked, s.chosen) if a is not None]
        for axis in local:
            known = known.with_extent(axis.var, imm(0), axis.extent)
        conditions = [c for s in stages for c in conditions_of(s)]
        return within(conditions, local, self.group.tiles, known)

    def each(self, stages: Sequence[TileStage], known: Analyzer, inside: bool = False) -> Stmt:
        """The stages at a tile, what lies between them in a buffer of the tile's size."""
        moved: dict[Buffer, Buffer] = {}
        stmts: list[Stmt] = []
        for stage in stages:
            (store,) = (s for s in walk_stmt(stage.finish) if isinstance(s, Store))
            places = self.group.places[store.buffer]
            ours = store.buffer in (self.group.inputs, self.group.products)
            if not ours and stage is not self.group.after[-1]:
                local = [e for e, p in zip(store.buffer.shape, places, strict=True) if p is None]
                lane = store.buffer.shape[-1]
                moved[store.buffer] = Buffer(
                    store.buffer.name, (*local, lane), store.buffer.dtype, scope="local"
                )
        for stage in stages:
            channels = self.group.lane_in if stage in self.group.before else self.group.lane_out
            stmts.append(self.stage(settled(stage) if inside else stage, channels, known, moved))
        body = sequence(stmts)
        for buffer in moved.values():
            body = Allocate(buffer, body)
        return body

    def stage(
        self, stage: TileStage, channels: Axis, known: Analyzer, moved: dict[Buffer, Buffer]
    ) -> Stmt:
        """One stage at a tile: loops within the tile, all choices in a row, lanes."""
        for axis in stage.walked:
            known = known.with_extent(axis.var, imm(0), axis.extent)
        versions: list[tuple[Stmt, PrimExpr | None]] = []
        for choice in range(_known(stage.chosen) if stage.chosen else 1):
            values: Values = {} if stage.chosen is None else {stage.chosen.var: imm(choice)}
            finish = simplified(substitute_stmt(stage.finish, values), known)
            guards = [known.simplify(substitute_prim(g, values)) for g in stage.guards]
            open_ = [g for g in guards if not known.prove(g)]
            guard = None
            for g in open_:
                guard = g if guard is None else Binary("and", guard, g)
            versions.append((self.stored(finish, moved), guard))
        guarded = any(g is not None for _, g in versions)
        own = set(moved.values()) | {self.products}
        named = _shared_values([s for s, _ in versions], guarded, own)
        body = sequence(
            [
                s if g is None else IfThen(g, s)
                for s, g in ((_with_values(s, named), g) for s, g in versions)
            ]
        )
        for value, var in named.items():
            body = Let(var, value, body)
        lane = PrimVar("lane")
        body = substitute_stmt(body, {channels.var: lane})
        body = For(lane, imm(0), channels.extent, body, "vectorized")
        return loops(stage.walked, body)

    # Temporaries

    def stored(self, s: Stmt, moved: dict[Buffer, Buffer]) -> Stmt:
        """A statement with its temporaries where they are now."""

        def on_load(e: PrimExpr) -> PrimExpr | None:
            if not isinstance(e, Load):
                return None
            at = self.index(e.buffer, e.indices, moved)
            return None if at is None else Load(*at)

        def on_store(x: Stmt) -> Stmt | None:
            if not isinstance(x, Store):
                return None
            at = self.index(x.buffer, x.indices, moved)
            return None if at is None else Store(*at, x.value)

        return rewrite_stmt(s, on_store, on_load)

    def index(
        self, buffer: Buffer, indices: Sequence[PrimExpr], moved: dict[Buffer, Buffer]
    ) -> tuple[Buffer, tuple[PrimExpr, ...]] | None:
        """Where an element of a temporary is now; None for what is none."""
        group = self.group
        if buffer in moved:
            places = group.places[buffer]
            local = [i for i, p in zip(indices, places, strict=True) if p is None]
            return moved[buffer], (*local, indices[-1])
        if buffer is group.inputs:
            lead = [a.var for a in self.chunks] if self.plan.together else [self.part]
            local, block = self.split(buffer, indices)
            return self.inputs, (*lead, *local, block, self.tile, indices[-1])
        if buffer is group.products:
            local, _ = self.split(buffer, indices)
            return self.products, (self.part, *local, self.block, self.tile, indices[-1])
        return None

    def split(self, buffer: Buffer, indices: Sequence[PrimExpr]) -> tuple[list[PrimExpr], PrimExpr]:
        """The indices of a point, in the order of the group's points, and that of the block."""
        group = self.group
        places = group.places[buffer]
        blocks = (group.block_in.var, group.block_out.var)
        local = [i for i, p in zip(indices, places, strict=True) if p is None]
        (block,) = (i for i, p in zip(indices, places, strict=True) if p in blocks)
        return local, block

    # Products

    def multiplied(self, at: PrimVar) -> Stmt:
        """A group of panels for a chunk: the products of all points, then what is made of them.

        A point's inputs stay in the first cache while the weights of all panels pass by.
        """
        group, count = self.group, self.plan.columns * self.plan.panels
        first = multiply(at, imm(count))
        panel = PrimVar("panel")
        kernels = [self.micro_kernel(p, first, panel) for p in self.cut.parts()]
        products = For(panel, imm(0), imm(self.plan.panels), sequence(kernels))
        out = add(first, self.block)
        after = substitute_stmt(self.transformed(group.after), {group.block_out.var: out})
        return Seq((loops(group.points, products), For(self.block, imm(0), imm(count), after)))

    def micro_kernel(self, part: RowPart, first: PrimExpr, panel: PrimVar) -> Stmt:
        """Register tiles of one size along the tiles of a chunk."""
        group, size, columns = self.group, part.size, self.plan.columns
        row, lane, lanes = PrimVar("row"), PrimVar("lane"), _known(group.lane_out)
        base = add(part.begin, multiply(row, imm(size)))
        tile = Tile(
            row=self.block,
            rows=tuple(add(multiply(panel, imm(columns)), imm(i)) for i in range(columns)),
            column=(self.tile,),
            columns=tuple((add(base, imm(i)),) for i in range(size)),
            lane=lane,
            lanes=lanes,
        )
        here: Values = {group.lane_out.var: lane}
        block: Values = {group.block_out.var: add(first, self.block)}

        def on_load(e: PrimExpr) -> PrimExpr | None:
            at = self.index(e.buffer, e.indices, {}) if isinstance(e, Load) else None
            return None if at is None else Load(*at)

        value = rewrite_prim(group.reduction.value, on_load)
        value = substitute_prim(value, {**here, **block})
        finish = self.stored(with_init(group.reduction, group.product.finish), {})
        finish = substitute_stmt(finish, here)
        acc = Buffer("acc", (imm(size * columns * lanes),), value.dtype, scope="local")
        reduction = group.reduction
        extent = _known(group.lane_in)
        most = UNROLL if part.when is None else UNROLL_RARE
        unroll = max(u for u in range(1, most + 1) if extent % u == 0)
        at, step = PrimVar(group.lane_in.var.name), PrimVar("step")
        index = add(multiply(at, imm(unroll)), step)
        each = accumulate(tile, reduction, substitute_prim(value, {group.lane_in.var: index}), acc)
        inner = For(step, imm(0), imm(unroll), each, "unrolled")
        body: Stmt = inner
        if self.plan.prefetch:
            column = add(first, multiply(panel, imm(columns)))
            turn, turns = add(part.turn, row), -(-self.plan.tiles // self.plan.rows)
            asked = self.prefetches(column, multiply(at, imm(unroll)), unroll, turn, turns)
            body = Seq((*asked, inner))
        steps = For(at, imm(0), imm(extent // unroll), body)
        start = fill(tile, reduction.identity, acc)
        done = write_back(tile, reduction, finish, acc)
        kernel = Allocate(acc, Seq((start, loops([group.block_in], steps), done)))
        every = For(row, imm(0), part.count, kernel)
        return every if part.when is None else IfThen(part.when, every)

    def prefetches(
        self, first: PrimExpr, begin: PrimExpr, steps: int, row: PrimExpr, rows: int
    ) -> list[Stmt]:
        """The next panel's weights asked for: those of some steps, shared out among all rows."""
        group = self.group
        (load,) = (x for x in group.reduction.loads() if x.buffer is not group.inputs)
        line = max(1, LINE // (_known(group.lane_out) * load.dtype.bytes))
        stmts: list[Stmt] = []
        far: Values = {}
        if self.plan.panels > 1:
            first = add(first, imm(self.plan.columns))
        else:
            far = {group.points[-1].var: add(group.points[-1].var, imm(1))}
        for block in range(self.plan.columns):
            for i in range(-(-steps // (line * rows))):
                step = add(begin, multiply(add(imm(i * rows), row), imm(line)))
                values: Values = {
                    **far,
                    group.block_out.var: add(first, imm(block)),
                    group.lane_in.var: step,
                    group.lane_out.var: imm(0),
                }
                asked = substitute_prim(load, values)
                stmts.append(Evaluate(Intrinsic("prefetch", (asked,), asked.dtype)))
        return stmts


def _known(axis: Axis) -> int:
    found = number(axis.extent)
    assert found is not None
    return found


def _shared_values(
    stmts: Sequence[Stmt], guarded: bool, temporaries: set[Buffer]
) -> dict[PrimExpr, PrimVar]:
    """Loads to be done once for all choices; only those of temporaries if stores are guarded."""
    found: dict[PrimExpr, PrimVar] = {}
    plain = not guarded and all(isinstance(s, Store) for s in stmts)

    def note(e: PrimExpr) -> None:
        match e:
            case Load() if plain or e.buffer in temporaries:
                found.setdefault(e, PrimVar(e.buffer.name, e.dtype))
            case Select() if plain and any(isinstance(x, Load) for x in walk_prim(e)):
                found.setdefault(e, PrimVar("seen", e.dtype))
            case Select() | Load():
                pass
            case _:
                for child in prim_children(e):
                    note(child)

    for s in stmts:
        for each in walk_stmt(s):
            for e in stmt_exprs(each):
                note(e)
    return found


def _with_values(s: Stmt, named: dict[PrimExpr, PrimVar]) -> Stmt:
    def go(e: PrimExpr) -> PrimExpr:
        found = named.get(e) if isinstance(e, Load | Select) else None
        return map_prim(e, go) if found is None else found

    return map_stmt(s, lambda x: _with_values(x, named), go)
