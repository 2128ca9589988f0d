"""MaskLanes: lanes past an end are computed and not stored, so that sums stay in registers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from unity.arith import Analyzer
from unity.arith.region import extremes
from unity.ir.empty_reduction import conjuncts
from unity.ir.foreign import foreign_symbol
from unity.ir.module import IRModule
from unity.ir.prim_expr import Binary, Compare, Load, PrimExpr, PrimVar, Select, imm
from unity.ir.stmt import Allocate, Block, Buffer, For, IfThen, PrimFunc, Range, Stmt, Store
from unity.ir.visit import (
    leaves,
    map_stmts,
    prim_children,
    prim_loads,
    rewrite_prim,
    stmt_children,
    substitute_prim,
    variables,
    walk_stmt,
)

from ..blocks.combine import neutral, step_of
from ..blocks.extents import number
from ..blocks.site import iteration_map
from ..blocks.tree import Path, Values, conjunction, known_at, loops_of, with_buffers
from ..passes import Context, Pass, Sight
from .functions import map_prim_funcs, with_body


@dataclass(frozen=True, slots=True)
class MaskLanes(Pass):
    """A predicate on lanes moves from what a block stores to a temporary to what it loads.

    What `PartitionLoops` leaves of columns that fill no vector: a store under a mask would keep
    the sums in memory. Lanes past the end have places of their own in the temporary, which nobody
    reads but they themselves, so that what they hold is of no account; blocks that copy it out are
    predicated still. Such a block becomes the statement that it stands for.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 8, 5], c: f32[Buffer, 5]) -> None:
    ...     t = T.alloc((8,), "float32", scope="local")
    ...     for k in range(8):
    ...         for j in T.vectorized(8):
    ...             with T.block("sum"):
    ...                 vj = T.axis.spatial(5, j)
    ...                 vk = T.axis.reduce(8, k)
    ...                 T.where(j < 5)
    ...                 t[j] += a[vk, vj]
    ...     for j in T.vectorized(8):
    ...         with T.block("copy"):
    ...             vj = T.axis.spatial(5, j)
    ...             T.where(j < 5)
    ...             c[vj] = t[j]
    ... ''')
    >>> print(print_module(MaskLanes()(before, Context())), end="")
    @script.prim_func
    def main(a: f32[Buffer, 8, 5], c: f32[Buffer, 5]) -> None:
        t = T.alloc((8,), "float32", scope="local")
        for k in range(8):
            for j in T.vectorized(8):
                t[j] += T.load(a, (k, j), j < 5)
        for j in T.vectorized(8):
            with T.block("copy"):
                vj = T.axis.spatial(5, j)
                T.where(j < 5)
                c[vj] = t[j]
    """

    sees: ClassVar[Sight] = "kernel"

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each prim func by itself."""
        return map_prim_funcs(module, _masked)


def _masked(func: PrimFunc) -> PrimFunc:
    """The prim func, itself where no block of it has lanes under a predicate."""
    if not any(isinstance(s, Block) and s.predicate is not None for s in walk_stmt(func.body)):
        return func
    return with_body(func, _stmt(_with_room(func.body), ()))


def _with_room(body: Stmt) -> Stmt:
    """With temporaries that have a place for each lane of what is stored to them."""
    grown: dict[Buffer, Buffer] = {}
    for path in _predicated(body, ()):
        block = path[-1]
        assert isinstance(block, Block)
        store = block.body
        at = _allocation(store, path[:-1])
        if not isinstance(store, Store) or at is None or not _lane_parts(block, path[:-1]):
            continue
        buffer, known = store.buffer, known_at(path[:-1])
        values: Values = {a.var: a.value for a in block.axes}
        over = {x.var: Range(x.begin, x.extent) for x in loops_of(path[at:])}
        shape = list(grown.get(buffer, buffer).shape)
        for k, (index, size) in enumerate(zip(store.indices, shape, strict=True)):
            ends = extremes(substitute_prim(index, values), over, known)
            last = None if ends is None else number(ends[1])
            now = number(size)
            if last is not None and now is not None and last >= now:
                shape[k] = imm(last + 1)
        if tuple(shape) != buffer.shape:
            grown[buffer] = replace(buffer, shape=tuple(shape))
    return with_buffers(body, grown) if grown else body


def _predicated(s: Stmt, above: Path) -> list[Path]:
    """The ways to blocks with a predicate."""
    here = (*above, s)
    if isinstance(s, Block):
        return [here] if s.predicate is not None else []
    return [p for child in stmt_children(s) for p in _predicated(child, here)]


def _allocation(store: Stmt, above: Path) -> int | None:
    """Where on a path the registers or the stack that a statement stores to are allocated."""
    if not isinstance(store, Store) or store.buffer.scope != "local" or store.buffer.strides:
        return None
    found = (k for k, s in enumerate(above) if isinstance(s, Allocate) and s.buffer is store.buffer)
    return next(found, None)


def _lane_parts(block: Block, above: Path) -> list[PrimExpr]:
    """The parts of a block's predicate that lanes differ in."""
    lanes = {x.var for x in loops_of(above) if x.kind == "vectorized"}
    parts = () if block.predicate is None else conjuncts(block.predicate)
    return [p for p in parts if variables(p) & lanes]


def _stmt(s: Stmt, above: Path) -> Stmt:
    if isinstance(s, Block):
        return _lanes(s, above) or s
    return map_stmts(s, lambda x: _stmt(x, (*above, s)))


def _lanes(block: Block, above: Path) -> Stmt | None:
    """The statement of a block whose lanes need no mask where it stores."""
    store = block.body
    if block.predicate is None or block.init is not None or block.allocations:
        return None
    if not isinstance(store, Store) or store.predicate is not None:
        return None
    if foreign_symbol(store.value) is not None:
        return None  # nothing is known of what it does for lanes past the end
    if any(_divides(x) for x in leaves(store.value).divisions):
        return None  # what lanes past the end load is zero
    at, moved = _allocation(store, above), _lane_parts(block, above)
    if at is None or not moved:
        return None
    values: Values = {a.var: a.value for a in block.axes}
    place = tuple(substitute_prim(i, values) for i in store.indices)
    outside = known_at(above)
    value = _loads(store, moved, values, known_at((*above, block)), outside)
    if value is None:
        return None
    if _counts(block, moved, outside):
        value = _chosen(replace(store, indices=place, value=value), moved, outside)
        if value is None:
            return None
    elif not _own_place(place, store.buffer, moved, loops_of(above[at:]), outside):
        return None
    parts = conjuncts(block.predicate)
    rest = conjunction([p for p in parts if not any(p is m for m in moved)])
    made = replace(store, indices=place, value=value)
    return made if rest is None else IfThen(rest, made)


def _counts(block: Block, moved: Sequence[PrimExpr], known: Analyzer) -> bool:
    """Whether what lanes would store that leave a step out is read: all are in the domain."""
    lanes = {v for p in moved for v in variables(p)}
    return all(
        _within(axis.value - axis.domain.begin, axis.domain.extent, known)
        for axis in block.axes
        if axis.kind == "S" and variables(axis.value) & lanes
    )


def _chosen(store: Store, moved: Sequence[PrimExpr], known: Analyzer) -> PrimExpr | None:
    """What a step leaves at its place: lanes that leave it out add nothing."""
    found, mask = step_of(store), conjunction(moved)
    sizes = store.buffer.shape
    if found is None or mask is None:
        return None
    if not all(_within(i, n, known) for i, n in zip(store.indices, sizes, strict=True)):
        return None
    op, value = found
    own = Select(mask, value, neutral(op, value.dtype))
    return Binary(op, Load(store.buffer, store.indices), own)


def _divides(e: PrimExpr) -> bool:
    """Whether an expression divides integers by what is loaded."""
    if not isinstance(e, Binary) or e.dtype.is_float or not e.op.endswith(("div", "mod")):
        return False
    return bool(prim_loads(e.b))


def _own_place(
    place: Sequence[PrimExpr],
    buffer: Buffer,
    moved: Sequence[PrimExpr],
    loops: Sequence[For],
    known: Analyzer,
) -> bool:
    """Whether every lane, those past the end as well, has a place of a buffer for itself."""
    inside = {x.var for x in loops if x.extent != imm(1)}
    used = {v for i in place for v in variables(i)}
    if any(variables(p) & inside - used for p in moved):
        return False
    for index, size in zip(place, buffer.shape, strict=True):
        if not _within(index, size, known):
            return False
    m = iteration_map(place, [x for x in loops if x.var in used], known)
    return m is not None and m.is_injective()


def _within(index: PrimExpr, size: PrimExpr, known: Analyzer) -> bool:
    return known.prove(Compare("ge", index, imm(0))) and known.prove(Compare("lt", index, size))


def _loads(
    store: Store,
    moved: Sequence[PrimExpr],
    values: Values,
    known: Analyzer,
    outside: Analyzer,
) -> PrimExpr | None:
    """The value with loads that may lie past an end predicated; None where it can't be."""
    mask = conjunction(moved)
    loads = [substitute_prim(x, values) for x in prim_loads(store.value)]
    moving = _movers([*moved, *loads])
    gone = {m for p in moved for m in moving(p)}
    for load, placed in zip(prim_loads(store.value), loads, strict=True):
        if load.buffer is store.buffer and load.indices != store.indices:
            return None  # what other lanes hold
        if moving(placed) & gone:
            continue
        if not all(
            _within(i, n, known) for i, n in zip(load.indices, load.buffer.shape, strict=True)
        ):
            return None

    def on_load(e: PrimExpr) -> PrimExpr | None:
        if not isinstance(e, Load) or not moving(e) & gone:
            return None
        if all(_within(i, n, outside) for i, n in zip(e.indices, e.buffer.shape, strict=True)):
            return None
        assert mask is not None
        return replace(
            e, predicate=mask if e.predicate is None else Binary("and", e.predicate, mask)
        )

    return rewrite_prim(substitute_prim(store.value, values), on_load)


def _movers(exprs: Sequence[PrimExpr]) -> Callable[[PrimExpr], set[PrimExpr]]:
    """What an expression, one of some, moves with: variables, or a quotient and a rest of one.

    A loop made of two (`fuse`) is in expressions as ``i // n`` and ``i % n``, the loops that it was
    made of, which have nothing to do with each other. Where it is there otherwise, it is one.
    """
    divisors: dict[PrimVar, set[PrimExpr | None]] = {}
    for e in exprs:
        for var, by, _ in _parts(e):
            divisors.setdefault(var, set()).add(by)

    def moving(e: PrimExpr) -> set[PrimExpr]:
        return {part if divisors[var] == {by} else var for var, by, part in _parts(e)}

    return moving


def _parts(e: PrimExpr) -> Iterator[tuple[PrimVar, PrimExpr | None, PrimExpr]]:
    """The variables of an expression: what each is divided by, and that quotient or rest."""
    match e:
        case Binary("floordiv" | "floormod", PrimVar() as var, by) if not variables(by):
            yield var, by, e
        case PrimVar():
            yield e, None, e
        case _:
            for x in prim_children(e):
                yield from _parts(x)
