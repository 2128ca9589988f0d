"""One pass over a row: every stage that needs no result of the others in it, vector by vector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from unity.ir.aligned import LINE
from unity.ir.prim_expr import (
    Binary,
    Compare,
    Imm,
    Intrinsic,
    Load,
    PrimExpr,
    PrimVar,
    Select,
    SizeVar,
    imm,
)
from unity.ir.regions import add, multiply
from unity.ir.stmt import Allocate, Buffer, Evaluate, For, IfThen, Let, Seq, Stmt, Store
from unity.ir.visit import (
    map_prim,
    prim_children,
    prim_loads,
    rewrite_prim,
    substitute_prim,
    walk_prim,
)

from ...blocks.access import depends
from ...blocks.extents import number
from ...blocks.nest import Axis, Nest, Reduction
from ...blocks.tree import sequence
from ...tactics.register_tile import Values, finished, joined, loops
from ...tactics.result import with_init
from .passes import DIRECT


@dataclass(frozen=True, slots=True)
class RowPass:
    """What is done while walking a row once.

    Attributes:
        inner: The axes within a row; lanes run along the last.
        stages: Reductions and elementwise stages, in order.
        lanes: How many.
        unroll: Vectors in a step, each with accumulators of its own.
        padded: Buffers whose rows reach to a whole vector, which need no masks.
        silent: Buffers that nobody reads after this pass.
        ahead: Elements of later rows, at the same places as this one's, to be fetched meanwhile.
    """

    inner: tuple[Axis, ...]
    stages: tuple[Nest, ...]
    lanes: int
    unroll: int
    padded: frozenset[Buffer]
    silent: frozenset[Buffer]
    ahead: tuple[Load, ...] = ()

    def stmt(self) -> Stmt:
        """The pass, with the stores of the reductions' results."""
        hoist = _Invariants([a.var for a in self.inner])
        stages = [hoist.stage(s) for s in self.stages]
        reductions = [s.reduction for s in self.stages if s.reduction is not None]
        buffers = [
            Buffer("acc", (imm(self.unroll * self.lanes),), r.value.dtype, scope="local")
            for r in reductions
        ]
        body: list[Stmt] = [self._fill(r, b) for r, b in zip(reductions, buffers, strict=True)]
        body.append(loops(self.inner[:-1], self._walk(stages, buffers)))
        accumulators = iter(buffers)
        for stage in self.stages:
            if stage.reduction is not None:
                body += self._end(stage, stage.reduction, next(accumulators))
        result: Stmt = hoist.around(sequence(body))
        for buffer in buffers:
            result = Allocate(buffer, result)
        return result

    def _fill(self, reduction: Reduction, buffer: Buffer) -> Stmt:
        def one(at: PrimExpr) -> Stmt:
            return Store(buffer, (at,), reduction.identity)

        return self._each_vector(one)

    def _each_vector(self, one: Callable[[PrimExpr], Stmt]) -> Stmt:
        lane = PrimVar("lane")
        stmts = [one(add(imm(u * self.lanes), lane)) for u in range(self.unroll)]
        return For(lane, imm(0), imm(self.lanes), sequence(stmts), "vectorized")

    def _end(self, stage: Nest, reduction: Reduction, buffer: Buffer) -> list[Stmt]:
        stmts: list[Stmt] = []
        if self.unroll > 1:
            lane = PrimVar("lane")
            parts: list[PrimExpr] = [
                Load(buffer, (add(imm(u * self.lanes), lane),)) for u in range(self.unroll)
            ]
            while len(parts) > 1:  # by pairs: the next pass waits for the result
                pairs = zip(parts[::2], parts[1::2], strict=False)
                rest = parts[-1:] if len(parts) % 2 else []
                parts = [Binary(reduction.op, a, b) for a, b in pairs] + rest
            (total,) = parts
            store = Store(buffer, (lane,), total)
            stmts.append(For(lane, imm(0), imm(self.lanes), store, "vectorized"))
        stmts += joined(reduction, buffer, imm(0), self.lanes)
        finish = with_init(reduction, stage.finish)
        stmts.append(finished(reduction, Load(buffer, (imm(0),)), finish, {}))
        return stmts

    def _fetch(self, begin: PrimExpr, count: int) -> list[Stmt]:
        """An element of each line that as many vectors of `ahead` lie in."""
        found: list[Stmt] = []
        for load in self.ahead:
            step = max(1, LINE // (self.lanes * load.buffer.dtype.bytes))
            for u in range(0, count, step):
                here: Values = {self.inner[-1].var: add(begin, imm(u * self.lanes))}
                there = substitute_prim(load, here)
                found.append(Evaluate(Intrinsic("prefetch", (there,), there.dtype)))
        return found

    def _walk(self, stages: Sequence[Nest], buffers: Sequence[Buffer]) -> Stmt:
        extent = self.inner[-1].extent
        known, lanes = number(extent), self.lanes

        def vectors(begin: PrimExpr, count: int, masked: bool = False) -> Stmt:
            """So many vectors, the last of them masked."""
            lane, parts = PrimVar("lane"), list[Stmt]()
            for u in range(count):
                index = add(add(begin, imm(u * lanes)), lane)
                tail = extent if masked and u == count - 1 else None
                slot = add(imm(u % self.unroll * lanes), lane)
                vector = _Vector(self, index, slot, tail)
                parts.append(vector.stmt(stages, buffers))
            body = For(lane, imm(0), imm(lanes), sequence(parts), "vectorized")
            return sequence([*self._fetch(begin, count - masked), body])

        step = imm(self.unroll * lanes)
        at = PrimVar(self.inner[-1].var.name)
        if known is not None:
            count = -(-known // lanes)
            if count <= max(DIRECT, self.unroll):
                return vectors(imm(0), count, known % lanes != 0) if count else Seq(())
            whole = known // (self.unroll * lanes)
            done = whole * self.unroll * lanes
            parts: list[Stmt] = [
                For(at, imm(0), imm(whole), vectors(multiply(at, step), self.unroll))
            ]
            if done < known:
                rest = -(-(known - done) // lanes)
                parts.append(vectors(imm(done), rest, known % lanes != 0))
            return sequence(parts)
        whole_steps = extent // (self.unroll * lanes)
        parts = [For(at, imm(0), whole_steps, vectors(multiply(at, step), self.unroll))]
        if self.unroll > 1:
            more = PrimVar(self.inner[-1].var.name)
            begin = add(multiply(whole_steps, step), multiply(more, imm(lanes)))
            count_left = Binary("floordiv", Binary("floormod", extent, step), imm(lanes))
            parts.append(For(more, imm(0), count_left, vectors(begin, 1)))
        left = Compare("gt", Binary("floormod", extent, imm(lanes)), imm(0))
        begin = multiply(extent // lanes, imm(lanes))
        parts.append(IfThen(left, vectors(begin, 1, masked=True)))
        return sequence(parts)


@dataclass(slots=True)
class _Vector:
    """Writes the stages for one vector.

    Attributes:
        walk: The pass.
        index: The last inner axis's value.
        slot: Where the vector's accumulators are.
        limit: What the index must stay below, None where it does.
    """

    walk: RowPass
    index: PrimExpr
    slot: PrimExpr
    limit: PrimExpr | None
    steps: list[tuple[PrimVar, PrimExpr] | Stmt] = field(default_factory=list)
    values: dict[Load, PrimExpr] = field(default_factory=dict)

    def stmt(self, stages: Sequence[Nest], buffers: Sequence[Buffer]) -> Stmt:
        inside: PrimExpr | None = None
        if self.limit is not None:
            inside = self.bind("inside", Compare("lt", self.index, self.limit))
        accumulators = iter(buffers)
        written = {s.buffer for stage in stages for s in stage.stores()}
        for stage in stages:
            if stage.reduction is not None:
                value = self.value(stage.reduction.value, inside, written)
                if inside is not None:
                    value = Select(inside, value, stage.reduction.identity)
                buffer = next(accumulators)
                now = Binary(stage.reduction.op, Load(buffer, (self.slot,)), value)
                self.steps.append(Store(buffer, (self.slot,), now))
                continue
            self.elementwise(stage.finish, inside, written)
        result: Stmt | None = None
        for step in reversed(self.steps):
            if isinstance(step, tuple):
                result = Let(step[0], step[1], Seq(()) if result is None else result)
            else:
                result = step if result is None else Seq((step, result))
        return Seq(()) if result is None else result

    def elementwise(self, s: Stmt, inside: PrimExpr | None, written: set[Buffer]) -> None:
        names: Values = {}
        while isinstance(s, Let):
            value = self.value(substitute_prim(s.value, names), inside, written)
            names[s.var] = self.bind(s.var.name, value)
            s = s.body
        assert isinstance(s, Store)
        value = self.value(substitute_prim(s.value, names), inside, written)
        result = self.bind(s.buffer.name, value)
        self.values[Load(s.buffer, s.indices)] = result
        if s.buffer in self.walk.silent:
            return
        mask = None if s.buffer in self.walk.padded else inside
        indices = tuple(substitute_prim(i, self.here) for i in s.indices)
        self.steps.append(Store(s.buffer, indices, result, mask))

    @property
    def here(self) -> Values:
        return {self.walk.inner[-1].var: self.index}

    def bind(self, name: str, value: PrimExpr) -> PrimExpr:
        """A variable that has the value from here on."""
        if isinstance(value, PrimVar | Imm):
            return value
        var = PrimVar(name, value.dtype)
        self.steps.append((var, value))
        return var

    def value(self, e: PrimExpr, inside: PrimExpr | None, written: set[Buffer]) -> PrimExpr:
        """An expression at this vector, each element it needs in any case loaded only once."""
        last = self.walk.inner[-1].var

        def located(x: PrimExpr) -> PrimExpr | None:
            if not isinstance(x, Load):
                return None
            masked = inside is not None and x.buffer not in self.walk.padded and depends(x, last)
            predicate = x.predicate
            if masked and inside is not None:
                predicate = inside if predicate is None else Binary("and", predicate, inside)
            return Load(x.buffer, x.indices, predicate)

        def forwarded(x: PrimExpr) -> PrimExpr:
            if isinstance(x, Load) and x in self.values:
                return self.values[x]
            return map_prim(x, forwarded)

        for load in _certain(e, last):
            if load in self.values or load.buffer in written:
                continue
            moved = substitute_prim(rewrite_prim(load, located), self.here)
            self.values[load] = self.bind(load.buffer.name, moved)
        return substitute_prim(rewrite_prim(forwarded(e), located), self.here)


def _certain(e: PrimExpr, var: PrimVar) -> list[Load]:
    """The outermost loads along a variable that are done in any case."""
    match e:
        case Load():
            return [e] if depends(e, var) else []
        case Select():  # a branch's loads are done only where it is taken
            return _certain(e.condition, var)
        case _:
            return [x for child in prim_children(e) for x in _certain(child, var)]


class _Invariants:
    """Takes out of a pass what is the same for the whole row."""

    def __init__(self, inner: Sequence[PrimVar]) -> None:
        self.inner = inner
        self.found: dict[PrimExpr, PrimVar] = {}

    def stage(self, stage: Nest) -> Nest:
        if stage.reduction is not None:
            value = self.expr(stage.reduction.value, frozenset())
            return replace(stage, reduction=replace(stage.reduction, value=value))
        return replace(stage, finish=self.formula(stage.finish, frozenset()))

    def formula(self, s: Stmt, bound: frozenset[PrimVar]) -> Stmt:
        if isinstance(s, Let):
            body = self.formula(s.body, bound | {s.var})
            return Let(s.var, self.expr(s.value, bound), body)
        assert isinstance(s, Store)
        return Store(s.buffer, s.indices, self.expr(s.value, bound))

    def expr(self, e: PrimExpr, bound: frozenset[PrimVar]) -> PrimExpr:
        if isinstance(e, Imm | PrimVar | SizeVar):
            return e
        fixed = not any(
            isinstance(x, PrimVar) and (x in bound or any(x is v for v in self.inner))
            for x in walk_prim(e)
        )
        if fixed:
            if not prim_loads(e):
                return e
            return self.found.setdefault(e, PrimVar("same", e.dtype))
        if isinstance(e, Load):
            return e  # its indices stay as they are, to be found again
        if isinstance(e, Select):  # a branch may not be evaluated where it is not taken
            return Select(self.expr(e.condition, bound), e.then, e.orelse)
        return map_prim(e, lambda x: self.expr(x, bound))

    def around(self, body: Stmt) -> Stmt:
        for value, var in reversed(self.found.items()):
            body = Let(var, value, body)
        return body
