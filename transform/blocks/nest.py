"""A stage of a prim func as the schedule sees it: axes, one formula, and where the result goes.

A prim func made by te (or fused from such) is a sequence of loop nests around one block each.
`nest_of` reads such a nest into a `Nest`, whose loops the rules are free to lay out anew. What is
no such nest (hand-written loops, several blocks in one loop, calls of C functions) is left as it
was written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from unity.ir.foreign import symbols_in
from unity.ir.prim_expr import Binary, Cast, Imm, Load, PrimExpr, PrimVar, Select, SizeVar, imm
from unity.ir.regions import block_regions
from unity.ir.stmt import Allocate, Block, BlockAxis, Buffer, For, Let, Range, Seq, Stmt, Store
from unity.ir.visit import prim_loads, stmt_exprs, substitute_stmt, variables, walk_prim, walk_stmt

from .combine import ReduceOp, neutral, step_of
from .extents import number
from .tree import NOTHING, around


@dataclass(frozen=True, slots=True)
class Axis:
    """A variable from 0 to an extent."""

    var: PrimVar
    extent: PrimExpr

    @property
    def length(self) -> int:
        """The extent, where it is known to be a number."""
        extent = number(self.extent)
        assert extent is not None
        return extent


@dataclass(frozen=True, slots=True)
class Reduction:
    """``result = init op value op value ...`` over some axes."""

    op: ReduceOp
    axes: tuple[Axis, ...]
    value: PrimExpr
    init: PrimExpr
    result: PrimVar

    def loads(self) -> tuple[Load, ...]:
        """Every load of a step."""
        return prim_loads(self.value)

    @property
    def identity(self) -> PrimExpr:
        """The neutral element of the operation."""
        return neutral(self.op, self.value.dtype)


@dataclass(frozen=True, slots=True)
class Nest:
    """One stage: for every point of the spatial axes, reduce, then store.

    Attributes:
        name: The block's.
        axes: The spatial axes, outermost first.
        reduction: What is reduced, if anything.
        finish: The stores, over the axes' variables and the reduction's `result`.
        output: The buffer of the stage before anything was fused behind it.
    """

    name: str
    axes: tuple[Axis, ...]
    reduction: Reduction | None
    finish: Stmt
    output: Buffer

    def loads(self) -> Iterator[Load]:
        """Every load of the stage."""
        exprs = [] if self.reduction is None else [self.reduction.value, self.reduction.init]
        for stmt in walk_stmt(self.finish):
            exprs += stmt_exprs(stmt)
        for expr in exprs:
            yield from prim_loads(expr)

    def stores(self) -> Iterator[Store]:
        """Every store of the stage."""
        yield from (s for s in walk_stmt(self.finish) if isinstance(s, Store))


def block_of(nest: Nest) -> Stmt:
    """A stage without a reduction as loops around a block: what `nest_of` reads."""
    loops = [
        For(PrimVar(a.var.name.removeprefix("v")), imm(0), a.extent, NOTHING) for a in nest.axes
    ]
    axes = tuple(
        BlockAxis(a.var, "S", Range(imm(0), a.extent), loop.var)
        for a, loop in zip(nest.axes, loops, strict=True)
    )
    reads, writes = block_regions(nest.finish, None, [a.var for a in axes])
    return around(loops, Block(nest.name, axes, reads, writes, nest.finish))


def opened(s: Stmt) -> tuple[list[Buffer], list[Stmt]]:
    """The temporaries around a kernel's stages, and the stages."""
    temporaries: list[Buffer] = []
    while isinstance(s, Allocate):
        temporaries.append(s.buffer)
        s = s.body
    stages: list[Stmt] = []

    def note(part: Stmt) -> None:
        if isinstance(part, Seq):
            for each in part.stmts:
                note(each)
        else:
            stages.append(part)

    note(s)
    return temporaries, stages


def nest_of(s: Stmt, around: Collection[PrimVar] = ()) -> Nest | None:
    """The stage that a perfect loop nest around one block is; None if it is no such nest.

    Args:
        s: The nest.
        around: Variables that its extents may depend on, as on sizes: axes of a block around it.
    """
    loops: dict[PrimVar, For] = {}
    while isinstance(s, For) and s.kind == "serial":
        loops[s.var] = s
        s = s.body
    if not isinstance(s, Block) or s.predicate is not None or s.allocations or symbols_in(s):
        return None
    bound = [a.value for a in s.axes if isinstance(a.value, PrimVar) and a.value in loops]
    if len(set(bound)) != len(s.axes) or len(loops) != len(s.axes):
        return None
    if any(a.kind == "O" for a in s.axes) or not _covered(s, loops, around):
        return None
    block = _from_zero(s)
    spatial = tuple(Axis(a.var, a.domain.extent) for a in block.axes if a.kind == "S")
    reduced = tuple(Axis(a.var, a.domain.extent) for a in block.axes if a.kind == "R")
    if not reduced:
        return _plain(block, spatial)
    return _reducing(block, spatial, reduced)


def _covered(block: Block, loops: dict[PrimVar, For], around: Collection[PrimVar]) -> bool:
    """Whether each loop runs over exactly the domain of the axis it drives."""
    for axis in block.axes:
        assert isinstance(axis.value, PrimVar)
        loop = loops[axis.value]
        if loop.begin != axis.domain.begin or loop.extent != axis.domain.extent:
            return False
        if variables(loop.extent) - {*around}:
            return False
    return True


def _from_zero(block: Block) -> Block:
    """With every axis counting from 0."""
    shift: dict[PrimVar | SizeVar, PrimExpr] = {
        a.var: Binary("add", a.var, a.domain.begin) for a in block.axes if a.domain.begin != imm(0)
    }
    if not shift:
        return block
    init = None if block.init is None else substitute_stmt(block.init, shift)
    return replace(block, init=init, body=substitute_stmt(block.body, shift))


def _plain(block: Block, axes: tuple[Axis, ...]) -> Nest | None:
    stores = [s for s in walk_stmt(block.body) if isinstance(s, Store)]
    if block.init is not None or len(stores) != 1 or not is_formula(block.body):
        return None
    return Nest(block.name, axes, None, block.body, stores[0].buffer)


def is_formula(s: Stmt) -> bool:
    """Whether a statement is a store, perhaps with values bound before it."""
    while isinstance(s, Let):
        s = s.body
    return isinstance(s, Store)


def _reducing(block: Block, axes: tuple[Axis, ...], reduced: tuple[Axis, ...]) -> Nest | None:
    init, body = block.init, block.body
    if not isinstance(init, Store) or not isinstance(body, Store):
        return None
    if (init.buffer, init.indices) != (body.buffer, body.indices):
        return None
    step = step_of(body)
    if step is None:
        return None
    op, value = step
    if any(e.buffer is body.buffer for e in prim_loads(value)):
        return None
    result = PrimVar("result", body.value.dtype)
    reduction = Reduction(op, reduced, value, init.value, result)
    return Nest(block.name, axes, reduction, replace(body, value=result), body.buffer)


def padded_choice(reduction: Reduction) -> Select | None:
    """The only choice of a reduction, if steps that take what is no element change nothing.

    They give the neutral element, or multiply by zero; the other factors are taken to be finite.
    """
    choices = {e for e in walk_prim(reduction.value) if isinstance(e, Select)}
    if len(choices) != 1:
        return None
    (choice,) = choices
    return choice if _changes_nothing(reduction, choice) else None


def _changes_nothing(reduction: Reduction, choice: Select) -> bool:
    """Whether a step that takes padding leaves the result as it is."""

    def vanishes(e: PrimExpr) -> bool:
        match e:
            case Cast(_, value):
                return vanishes(value)
            case Binary("mul", a, b):
                return vanishes(a) or vanishes(b)
            case Select():
                return e == choice and isinstance(e.orelse, Imm) and e.orelse.value == 0
            case _:
                return False

    if reduction.value == choice:
        return choice.orelse == reduction.identity
    return reduction.op == "add" and vanishes(reduction.value)
