"""MultipleAccumulators: of few sums each has copies, which wait for one another less."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

from unity.ir.empty_reduction import conjuncts
from unity.ir.marks import ACCUMULATORS
from unity.ir.module import IRModule
from unity.ir.prim_expr import Binary, Load, PrimExpr, PrimVar, imm
from unity.ir.stmt import Allocate, Block, For, PrimFunc, Stmt, Store
from unity.ir.visit import (
    prim_loads,
    stmt_children,
    substitute_stmt,
    temporaries,
    variables,
    walk_stmt,
)

from ..blocks.combine import ReduceOp, neutral, step_of
from ..blocks.extents import number
from ..blocks.site import Site, sites
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
    with_regions,
)
from ..passes import Context, Pass, Sight
from .functions import map_prim_funcs
from .sum_steps import by_pairs


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
        tile: The loops over sums, in that over steps.
        block: The block that adds.
        op: What it adds by.
        store: Its statement.
    """

    tile: tuple[For, ...]
    block: Block
    op: ReduceOp
    store: Store

    @property
    def size(self) -> int | None:
        """How many registers hold it."""
        sizes = [number(x.extent) for x in self.tile if x.kind != "vectorized"]
        known = [n for n in sizes if n is not None]
        return max(1, prod(known)) if len(known) == len(sizes) else None


@dataclass(frozen=True, slots=True)
class _Steps:
    """Steps in a row that are to have copies of their sums.

    Attributes:
        whole: The loop over all steps.
        row: The loop over those in a row.
        sums: What they add to.
        copies: How many times each sum is to be had.
    """

    whole: For
    row: For
    sums: tuple[_Sum, ...]
    copies: int


def with_copies(func: PrimFunc, room: int) -> PrimFunc:
    """The prim func with copies of its sums, in so many registers; itself if there are none."""
    found = [s for path in _marked(func.body, ()) if (s := _steps(path, room)) is not None]
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


def _steps(path: Path, room: int) -> _Steps | None:
    """What a loop at the end of a path takes steps of; None where no copies are due."""
    row = path[-1]
    assert isinstance(row, For)
    steps, asked = number(row.extent), row.attrs[ACCUMULATORS]
    if not steps or not isinstance(asked, int):
        return None
    adding = [s for s in sites(row.body, path) if "R" in driven(s.block, row.var)]
    sums = [_sum(s, row) for s in adding]
    found = [s for s in sums if s is not None]
    if not found or len(found) < len(sums):
        return None
    size = sum(s.size or 0 for s in found)
    most = min(-(-asked * len(found) // size), room // size, steps)
    copies = max((n for n in range(1, most + 1) if steps % n == 0), default=1)
    if copies == 1:
        return None
    whole = _whole(path, found)
    mine = [s.block for s in found]
    others = [b for x in all_blocks(whole) if not any(x is m for m in mine) for b in buffers_in(x)]
    targets = [s.store.buffer for s in found]
    if len(set(targets)) < len(targets) or any(b in others for b in targets):
        return None
    return _Steps(whole, row, tuple(found), copies)


def _sum(site: Site, row: For) -> _Sum | None:
    """The sum that a block adds to, none of whose loops in a row of steps is over steps."""
    block, store = site.block, site.block.body
    if driven(block, row.var) != {"R"} or any("R" in driven(block, x.var) for x in site.loops):
        return None
    if not isinstance(store, Store) or store.predicate is not None or block.init is not None:
        return None
    step = step_of(store)
    if step is None or store.buffer.scope != "local":
        return None
    op, value = step
    if any(x.buffer is store.buffer for x in prim_loads(value)):
        return None
    found = _Sum(site.loops, block, op, store)
    return None if found.size is None else found


def _whole(path: Path, sums: Sequence[_Sum]) -> For:
    """The outermost of the loops over steps around blocks, between which there is no other."""
    whole = path[-1]
    for s in reversed(path[:-1]):
        if isinstance(s, Allocate):
            break
        if isinstance(s, For) and any(driven(x.block, s.var) != {"R"} for x in sums):
            break
        whole = s if isinstance(s, For) else whole
    assert isinstance(whole, For)
    return whole


def _several(s: _Steps, names: set[str]) -> Stmt:
    """The loop over steps with copies, which begin as neutral elements and are added up."""
    sums = [x.store.buffer for x in s.sums]
    copies = [{b: replace(b) for b in sums} for _ in range(s.copies - 1)]
    at = PrimVar(s.row.var.name, s.row.var.dtype)
    bound: set[PrimVar] = set()
    turns: list[Stmt] = []
    for k, buffers in enumerate((None, *copies)):
        step: PrimExpr = Binary("add", Binary("mul", at, imm(s.copies)), imm(k))
        if s.row.begin != imm(0):
            step = Binary("add", s.row.begin, step)
        own = {b: replace(b) for b in temporaries(s.row.body)} if buffers else {}
        body = substitute_stmt(s.row.body, {s.row.var: step}, {**(buffers or {}), **own})
        turns.append(renewed(body, set() if k == 0 else names, bound))
    count = imm((number(s.row.extent) or 0) // s.copies)
    attrs = s.row.attrs.without(ACCUMULATORS)
    row = replace(s.row, var=at, begin=imm(0), extent=count, body=sequence(turns), attrs=attrs)
    steps = replaced(PrimFunc((), s.whole), [(s.row, row)]).body
    begun: list[Stmt] = []
    joined: list[Stmt] = []
    for x in s.sums:
        own_copies = [c[x.store.buffer] for c in copies]
        zero = neutral(x.op, x.store.value.dtype)
        places = x.store.indices
        begun += [_over(s, x, Store(b, places, zero), "begun", names) for b in own_copies]
        total = by_pairs(x.op, [Load(b, places) for b in (x.store.buffer, *own_copies)])
        joined.append(_over(s, x, replace(x.store, value=total), "joined", names))
    result = sequence([*begun, steps, *joined])
    for buffers in copies:
        for buffer in buffers.values():
            result = Allocate(buffer, result)
    return result


def _over(s: _Steps, x: _Sum, store: Store, name: str, names: set[str]) -> Stmt:
    """A statement for each sum of a tile."""
    stepped = {s.row.var, *(y.var for y in walk_stmt(s.whole) if isinstance(y, For))}
    stepped -= {y.var for y in x.tile}
    parts = () if x.block.predicate is None else conjuncts(x.block.predicate)
    kept = [p for p in parts if not variables(p) & stepped]
    axes = tuple(a for a in x.block.axes if a.kind == "S")
    own = replace(
        x.block, name=f"{x.block.name}_{name}", axes=axes, body=store, predicate=conjunction(kept)
    )
    bound = {y.var for y in x.tile} | {a.var for a in axes}
    return renewed(around(x.tile, with_regions(own)), names, bound)
