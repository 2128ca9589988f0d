"""MultipleAccumulators: of few sums each has copies, which wait for one another less."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

from unity.ir.empty_reduction import conjuncts
from unity.ir.marks import ACCUMULATORS
from unity.ir.module import IRModule
from unity.ir.prim_expr import Binary, Load, PrimExpr, PrimVar, imm
from unity.ir.stmt import Allocate, Block, For, PrimFunc, Stmt, Store
from unity.ir.visit import prim_loads, stmt_children, substitute_stmt, walk_stmt

from ..blocks.extents import number
from ..blocks.nest import ReduceOp, neutral
from ..blocks.tree import (
    Path,
    all_blocks,
    around,
    buffers_in,
    conjunction,
    driven,
    renewed,
    replaced,
    sequence,
    variables,
    with_regions,
)
from ..passes import Context, Pass, Sight
from .functions import map_prim_funcs


@dataclass(frozen=True, slots=True)
class MultipleAccumulators(Pass):
    """A loop over steps of a sum says how many sums are to be in flight (`ACCUMULATORS`).

    A multiplication takes several cycles, and the next step of the same sum waits for it. Where a
    tile has fewer sums than keep the machine busy, each has copies: one for every so many-th step,
    added up behind the last one. A tile's size is known here, be it what is left of an extent.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 64], c: f32[Buffer, 1]) -> None:
    ...     t = T.alloc((1,), "float32", scope="local")
    ...     t[0] = 0.0
    ...     for k in range(16):
    ...         for k_in in T.unroll(4, attrs={"accumulators": 2}):
    ...             with T.block("sum"):
    ...                 vi = T.axis.spatial(1, 0)
    ...                 vk = T.axis.reduce(64, k * 4 + k_in)
    ...                 t[vi] += a[vk]
    ...     c[0] = t[0]
    ... ''')
    >>> print(print_module(MultipleAccumulators()(before, Context())), end="")
    @script.prim_func
    def main(a: f32[Buffer, 64], c: f32[Buffer, 1]) -> None:
        t = T.alloc((1,), "float32", scope="local")
        t[0] = 0.0
        with T.suite():
            t_1 = T.alloc((1,), "float32", scope="local")
            with T.block("sum_begun"):
                vi = T.axis.spatial(1, 0)
                t_1[vi] = 0.0
            for k in range(16):
                for k_in in T.unroll(2):
                    with T.block("sum"):
                        vi = T.axis.spatial(1, 0)
                        vk = T.axis.reduce(64, k * 4 + (k_in * 2 + 0))
                        t[vi] += a[vk]
                    with T.block("sum_1"):
                        vi = T.axis.spatial(1, 0)
                        vk = T.axis.reduce(64, k * 4 + (k_in * 2 + 1))
                        t_1[vi] += a[vk]
            with T.block("sum_joined"):
                vi = T.axis.spatial(1, 0)
                t[vi] += t_1[vi]
        c[0] = t[0]
    """

    sees: ClassVar[Sight] = "kernel"

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each prim func by itself; a quarter of the registers is for what is multiplied."""
        room = ctx.target.vector_registers * 3 // 4
        return map_prim_funcs(module, lambda f: with_copies(f, room))


@dataclass(frozen=True, slots=True)
class _Sum:
    """A sum that some steps in a row add to.

    Attributes:
        whole: The loop over all steps.
        row: The loop over those in a row.
        tile: The loops over sums, in that one.
        block: The block that adds.
        op: What it adds by.
        store: Its statement.
        copies: How many times each sum is to be had.
    """

    whole: For
    row: For
    tile: tuple[For, ...]
    block: Block
    op: ReduceOp
    store: Store
    copies: int


def with_copies(func: PrimFunc, room: int) -> PrimFunc:
    """The prim func with copies of its sums, in so many registers; itself if there are none."""
    found = [s for path in _marked(func.body, ()) if (s := _sum(path, room)) is not None]
    once = [s for s in found if sum(s.whole is other.whole for other in found) == 1]
    if not once:
        return func
    names = {b.name for b in all_blocks(func.body)}
    return replaced(func, [(s.whole, _several(s, names)) for s in once])


def _marked(s: Stmt, above: Path) -> Iterator[Path]:
    """The ways to loops that ask for sums in flight."""
    if isinstance(s, For) and ACCUMULATORS in s.attrs:
        yield (*above, s)
        return
    if isinstance(s, Block):
        return
    for child in stmt_children(s):
        yield from _marked(child, (*above, s))


def _sum(path: Path, room: int) -> _Sum | None:
    """The sum that a loop at the end of a path takes steps of; None where no copies are due."""
    row = path[-1]
    assert isinstance(row, For)
    tile: list[For] = []
    inner = row.body
    while isinstance(inner, For):
        tile.append(inner)
        inner = inner.body
    steps, asked = number(row.extent), row.attrs[ACCUMULATORS]
    if not isinstance(inner, Block) or not steps or not isinstance(asked, int):
        return None
    block, store = inner, inner.body
    if driven(block, row.var) != {"R"} or any("R" in driven(block, x.var) for x in tile):
        return None
    sizes = [number(x.extent) for x in tile if x.kind != "vectorized"]
    if not isinstance(store, Store) or store.predicate is not None or None in sizes:
        return None
    size = max(1, prod(n or 0 for n in sizes))
    most = min(-(-asked // size), room // size, steps)
    copies = max((n for n in range(1, most + 1) if steps % n == 0), default=1)
    match store.value:
        case Binary("add" | "mul" | "min" | "max" | "and" | "or" as op, Load() as a, b) if (
            a == Load(store.buffer, store.indices)
        ):
            used = {x.buffer for x in prim_loads(b)}
        case _:
            return None
    whole = _whole(path, block)
    others = [b for x in all_blocks(whole) if x is not block for b in buffers_in(x)]
    if copies == 1 or store.buffer.scope != "local" or store.buffer in {*used, *others}:
        return None
    return _Sum(whole, row, tuple(tile), block, op, store, copies)


def _whole(path: Path, block: Block) -> For:
    """The outermost of the loops over steps around a block, between which there is no other."""
    whole = path[-1]
    for s in reversed(path[:-1]):
        if isinstance(s, Allocate) or (isinstance(s, For) and driven(block, s.var) != {"R"}):
            break
        whole = s if isinstance(s, For) else whole
    assert isinstance(whole, For)
    return whole


def _several(s: _Sum, names: set[str]) -> Stmt:
    """The loop over steps with copies, which begin as neutral elements and are added up."""
    copies = [replace(s.store.buffer) for _ in range(s.copies - 1)]
    at = PrimVar(s.row.var.name, s.row.var.dtype)
    bound: set[PrimVar] = set()
    turns: list[Stmt] = []
    for k, buffer in enumerate((s.store.buffer, *copies)):
        step = Binary("add", Binary("mul", at, imm(s.copies)), imm(k))
        body = substitute_stmt(s.row.body, {s.row.var: step}, {s.store.buffer: buffer})
        turns.append(renewed(body, set() if k == 0 else names, bound))
    count = imm((number(s.row.extent) or 0) // s.copies)
    attrs = s.row.attrs.without(ACCUMULATORS)
    row = replace(s.row, var=at, extent=count, body=sequence(turns), attrs=attrs)
    steps = replaced(PrimFunc((), s.whole), [(s.row, row)]).body
    value: PrimExpr = Load(s.store.buffer, s.store.indices)
    for buffer in copies:
        value = Binary(s.op, value, Load(buffer, s.store.indices))
    zero = neutral(s.op, s.store.value.dtype)
    begun = [_over(s, Store(b, s.store.indices, zero), "begun", names) for b in copies]
    joined = _over(s, replace(s.store, value=value), "joined", names)
    result = sequence([*begun, steps, joined])
    for buffer in copies:
        result = Allocate(buffer, result)
    return result


def _over(s: _Sum, store: Store, name: str, names: set[str]) -> Stmt:
    """A statement for each sum of the tile."""
    stepped = {s.row.var, *(x.var for x in walk_stmt(s.whole) if isinstance(x, For))}
    stepped -= {x.var for x in s.tile}
    parts = () if s.block.predicate is None else conjuncts(s.block.predicate)
    kept = [p for p in parts if not variables(p) & stepped]
    axes = tuple(a for a in s.block.axes if a.kind == "S")
    own = replace(
        s.block, name=f"{s.block.name}_{name}", axes=axes, body=store, predicate=conjunction(kept)
    )
    bound = {x.var for x in s.tile} | {a.var for a in axes}
    return renewed(around(s.tile, with_regions(own)), names, bound)
