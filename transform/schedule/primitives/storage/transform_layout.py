"""transform_layout: a temporary laid out by an index map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from unity.arith import Analyzer
from unity.arith.iter_map import IterMap, detect, where_loops_run
from unity.arith.region import extremes, greater
from unity.ir.prim_expr import Binary, Compare, Imm, Load, PrimExpr, PrimVar, imm
from unity.ir.stmt import Allocate, Block, Buffer, PrimFunc, Range, Stmt, Store
from unity.ir.visit import map_stmt, prim_loads, rewrite_loads, rewrite_stmt, temporaries, variables

from ....blocks.tree import Outcome, illegal, with_regions
from ...index_map import IndexMap
from .set_scope import laid_out


def transform_layout(func: PrimFunc, name: str, index: int, index_map: IndexMap) -> Outcome:
    """Each element of a temporary moves to where a map sends its indices.

    Args:
        func: The prim func.
        name: A block.
        index: Which of its writes: to a temporary.
        index_map: The new indices in terms of the old ones; room between them stays unused.

    Raises:
        UnityError: There is no such write; the map may send two elements to one place, or takes
            another number of indices.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 8, 8], c: f32[Buffer, 8, 8]) -> None:
    ...     t = T.alloc((8, 8), "float32")
    ...     for i, j in T.grid(8, 8):
    ...         with T.block("double"):
    ...             vi, vj = T.axis.remap("SS", i, j)
    ...             t[vi, vj] = a[vi, vj] * 2.0
    ...     for i, j in T.grid(8, 8):
    ...         with T.block("flip"):
    ...             vi, vj = T.axis.remap("SS", i, j)
    ...             c[vi, vj] = t[vj, vi]
    ... ''').prim_funcs()["main"])
    >>> sch.transform_layout("double", 0, lambda i, j: (i // 4, j, i % 4))
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 8, 8], c: f32[Buffer, 8, 8]) -> None:
        t = T.alloc((2, 8, 4), "float32")
        for i, j in T.grid(8, 8):
            with T.block("double"):
                vi, vj = T.axis.remap("SS", i, j)
                t[vi // 4, vj, vi % 4] = a[vi, vj] * 2.0
        for i, j in T.grid(8, 8):
            with T.block("flip"):
                vi, vj = T.axis.remap("SS", i, j)
                c[vi, vj] = t[vj // 4, vi, vj % 4]
    """
    buffer = laid_out(func, name, index, "transform_layout")
    if buffer.strides is not None:
        raise illegal("transform_layout, argument 2 'index'", f"{buffer.name!r} has strides")
    return Outcome(relaid("transform_layout, argument 3 'index_map'", func, buffer, index_map))


def relaid(where: str, func: PrimFunc, buffer: Buffer, index_map: IndexMap) -> PrimFunc:
    """The prim func with a buffer, which has no strides, laid out by an index map.

    Args:
        where: The argument that the map is.
        func: The prim func.
        buffer: A temporary.
        index_map: The new indices in terms of the old ones.
    """
    rank = len(buffer.shape)
    if len(index_map.inputs) != rank:
        raise illegal(where, f"it takes {len(index_map.inputs)} indices, the rank is {rank}")
    extents: dict[PrimVar, PrimExpr] = dict(zip(index_map.inputs, buffer.shape, strict=True))
    m = detect(index_map.outputs, extents)
    if m is None or not m.is_injective():
        raise illegal(where, "it is not known to send each element to a place of its own")
    shape = _shape(where, index_map, extents, m)
    new = replace(buffer, shape=shape, separators=())
    return with_elements(func, buffer, new, index_map)


def with_elements(
    func: PrimFunc,
    buffer: Buffer,
    new: Buffer,
    at: Callable[[Sequence[PrimExpr]], tuple[PrimExpr, ...]],
) -> PrimFunc:
    """The prim func with a buffer's elements at other places of a new one."""

    def on_load(e: Load) -> PrimExpr | None:
        return Load(new, at(e.indices), e.predicate) if e.buffer is buffer else None

    def on_stmt(s: Stmt) -> Stmt | None:
        match s:
            case Store() if s.buffer is buffer:
                return replace(s, buffer=new, indices=at(s.indices))
            case Allocate() if s.buffer is buffer:
                return replace(s, buffer=new)
            case Block() if _names(s, buffer):
                return with_regions(_simplified(s, new))
            case _:
                return None

    def moved(e: PrimExpr) -> PrimExpr:
        return rewrite_loads(e, on_load)

    def go(s: Stmt) -> Stmt:
        if isinstance(s, Block) and not _holds(s, buffer):
            return s
        s = map_stmt(s, go, moved)
        return on_stmt(s) or s

    return replace(func, body=go(func.body))


def _simplified(block: Block, buffer: Buffer) -> Block:
    """With the indices at which a block accesses a buffer in their shortest form."""
    known = Analyzer()
    for axis in block.axes:
        known = known.with_extent(axis.var, axis.domain.begin, axis.domain.extent)
    once = {a.var for a in block.axes if not isinstance(a.domain.extent, Imm)}

    def simple(index: PrimExpr) -> PrimExpr:
        if isinstance(index, PrimVar):
            return index
        if isinstance(short := known.simplify(index), Imm) and variables(index) & once:
            axis = Analyzer().simplify(index)  # of an axis with one point, which may have none
            return axis if isinstance(axis, PrimVar) else short
        return short

    def indices(given: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        return tuple(map(simple, given))

    def on_load(e: Load) -> PrimExpr | None:
        return replace(e, indices=indices(e.indices)) if e.buffer is buffer else None

    def on_stmt(s: Stmt) -> Stmt | None:
        if isinstance(s, Store) and s.buffer is buffer:
            return replace(s, indices=indices(s.indices))
        return None

    init = None if block.init is None else rewrite_stmt(block.init, on_stmt, load_fn=on_load)
    return replace(block, body=rewrite_stmt(block.body, on_stmt, load_fn=on_load), init=init)


def _names(block: Block, buffer: Buffer) -> bool:
    return any(r.buffer is buffer for r in (*block.reads, *block.writes))


def _holds(block: Block, buffer: Buffer) -> bool:
    """Whether a buffer is in a block, or decides where, or whether, it runs."""
    if _names(block, buffer):
        return True
    own = [a.value for a in block.axes]
    own += [] if block.predicate is None else [block.predicate]
    asks = any(x.buffer is buffer for e in own for x in prim_loads(e))
    return asks or any(x is buffer for x in temporaries(block))


def _shape(
    where: str, index_map: IndexMap, extents: dict[PrimVar, PrimExpr], m: IterMap
) -> tuple[PrimExpr, ...]:
    known = where_loops_run(Analyzer(), extents)  # there are elements only then
    shape: list[PrimExpr] = []
    over = {v: Range(imm(0), n) for v, n in extents.items()}
    for e, found in zip(index_map.outputs, m.sums, strict=True):
        whole = m.compact_extent(found)
        if found.base == imm(0) and whole is not None and not isinstance(whole, Imm):
            shape.append(whole)
            continue
        ends = extremes(e, over, known)
        if ends is None or not known.prove(Compare("ge", ends[0], imm(0))):
            raise illegal(where, "an index is not known never to be negative")
        shape.append(greater(Binary("add", ends[1], imm(1)), imm(0), Analyzer()))  # n may be 0
    return tuple(shape)
