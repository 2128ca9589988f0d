"""Inlining of elementwise and injective producers within a kernel: compute_inline on prim funcs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from unity.arith import simplify
from unity.ir.dtype import INT64
from unity.ir.foreign import foreign_symbol
from unity.ir.prim_expr import (
    Binary,
    Cast,
    Imm,
    Intrinsic,
    Load,
    PrimExpr,
    PrimVar,
    Select,
    SizeVar,
)
from unity.ir.regions import block_regions
from unity.ir.stmt import Allocate, Block, Buffer, For, Let, PrimFunc, Seq, Stmt, Store
from unity.ir.visit import (
    prim_children,
    prim_loads,
    rewrite_loads,
    rewrite_stmt,
    stmt_exprs,
    stmt_loads,
    substitute_prim,
    walk_prim,
    walk_stmt,
)

MOST = 500
"""Nodes that copies of a formula may come to in one statement: chains of formulas that each read
the one before twice would double with every link."""


@dataclass(frozen=True, slots=True)
class Producer:
    """A block that gives each element of a buffer by a formula over the element's indices."""

    buffer: Buffer
    axes: tuple[PrimVar, ...]
    value: PrimExpr

    def at(self, indices: Sequence[PrimExpr]) -> PrimExpr:
        """The formula for one element."""
        into: dict[PrimVar | SizeVar, PrimExpr] = dict(zip(self.axes, indices, strict=True))
        return substitute_prim(self.value, into)


def inline_producers(func: PrimFunc, buffers: Sequence[Buffer]) -> PrimFunc:
    """The kernel without those of its temporary buffers whose elements can be had from a formula.

    Args:
        func: A prim func whose body is statements in sequence, temporaries allocated around them.
        buffers: The temporaries to try, in the order they are written.
    """
    allocated, stmts = taken_apart(func.body)
    # From the last to the first: what is inlined is then still as simple as it was made.
    for buffer in reversed(buffers):
        found = [(i, p) for i, s in enumerate(stmts) if (p := producer(s, buffer)) is not None]
        if len(found) != 1 or _writers(stmts, buffer) != 1:
            continue
        at, made = found[0]
        users = [s for i, s in enumerate(stmts) if i != at]
        if not all(_may_inline(s, made) for s in users):
            continue
        stmts = [_inlined(s, made) for s in users]
        allocated.remove(buffer)
    body: Stmt = stmts[0] if len(stmts) == 1 else Seq(tuple(stmts))
    for buffer in reversed(allocated):
        body = Allocate(buffer, body)
    return replace(func, body=body)


def taken_apart(body: Stmt) -> tuple[list[Buffer], list[Stmt]]:
    """The temporaries around a sequence, and the statements; nested ones are pulled up."""
    match body:
        case Allocate(buffer, inner):
            allocated, stmts = taken_apart(inner)
            return [buffer, *allocated], stmts
        case Seq(parts):
            opened = [taken_apart(p) for p in parts]
            return [b for a, _ in opened for b in a], [s for _, ss in opened for s in ss]
        case _:
            return [], [body]


def producer(stmt: Stmt, buffer: Buffer) -> Producer | None:
    """What a loop nest computes into a buffer, if it is one formula for every element."""
    while isinstance(stmt, For):
        stmt = stmt.body
    if not isinstance(stmt, Block) or stmt.init is not None or stmt.predicate is not None:
        return None
    store = stmt.body
    if not isinstance(store, Store) or store.buffer is not buffer or store.predicate is not None:
        return None
    if foreign_symbol(store.value) is not None:
        return None
    axes = [a.var for a in stmt.axes]
    whole = all(
        a.kind == "S" and isinstance(a.value, PrimVar) and a.domain.begin == Imm(0, a.var.dtype)
        for a in stmt.axes
    )
    indexed = tuple(i for i in store.indices if isinstance(i, PrimVar))
    if not whole or len(indexed) != len(store.indices) or set(indexed) != set(axes):
        return None
    extents = {a.var: a.domain.extent for a in stmt.axes}
    if not all(_same(extents[v], n) for v, n in zip(indexed, buffer.shape, strict=True)):
        return None
    if any(load.buffer is buffer for load in prim_loads(store.value)):
        return None
    return Producer(buffer, indexed, store.value)


def _writers(stmts: Sequence[Stmt], buffer: Buffer) -> int:
    return sum(isinstance(s, Store) and s.buffer is buffer for top in stmts for s in walk_stmt(top))


def _same(a: PrimExpr, b: PrimExpr) -> bool:
    return a == b or simplify(a - b) == Imm(0, a.dtype)


def _may_inline(stmt: Stmt, made: Producer) -> bool:
    """Whether a consumer may compute the elements it reads itself."""
    for block in _readers(stmt, made.buffer):
        if any(isinstance(inner, Block) for inner in walk_stmt(block.body)):
            return False
        reads = _reads_of(block, made.buffer)
        if len(reads) > 1 and len(reads) * _size(made.value) > MOST:
            return False
    return not is_dearer_than_a_load(made.value) or reads_once(stmt, made.buffer)


def _size(value: PrimExpr) -> int:
    """How many nodes a formula is written with, no further than matters."""
    return sum(1 for _ in islice(walk_prim(value), MOST))


def reads_once(stmt: Stmt, buffer: Buffer) -> bool:
    """Whether at most one block reads a buffer, and reads each element once."""
    readers = _readers(stmt, buffer)
    if len(readers) != 1:
        return not readers
    (block,) = readers
    reads = [load.indices for load in _reads_of(block, buffer)]
    if _reduces(block) and len(reads) > 1:
        return False
    return len(set(reads)) == 1 and _tells_element(block, reads[0])


def is_transposition(func: PrimFunc) -> bool:
    """Whether a kernel copies its argument with the axes in another order, and does no more."""
    made = producer(func.body, func.buffers[-1])
    if made is None or len(func.buffers) != 2 or not isinstance(made.value, Load):
        return False
    indices = made.value.indices
    return made.value.predicate is None and sorted(map(id, indices)) == sorted(map(id, made.axes))


def widens(func: PrimFunc) -> bool:
    """Whether a kernel makes wider floats of narrow ones, and does no more."""
    made = producer(func.body, func.buffers[-1])
    if made is None or len(func.buffers) != 2:
        return False
    match made.value:
        case Cast(wide, Load(given)):
            return given.dtype.is_float and wide.is_float and given.dtype.bits < wide.bits
        case _:
            return False


def reads_along_axes(stmt: Stmt, buffer: Buffer) -> bool:
    """Whether every index of a buffer is an axis of the block that reads it."""
    reads = [load for block in _readers(stmt, buffer) for load in _reads_of(block, buffer)]
    plain = all(isinstance(i, PrimVar | Imm) for load in reads for i in load.indices)
    return plain and all(load.predicate is None for load in reads)


def _reduces(block: Block) -> bool:
    return any(a.kind != "S" for a in block.axes)


def _readers(stmt: Stmt, buffer: Buffer) -> list[Block]:
    return [
        s
        for s in walk_stmt(stmt)
        if isinstance(s, Block) and any(r.buffer is buffer for r in s.reads)
    ]


def _tells_element(block: Block, indices: Sequence[PrimExpr]) -> bool:
    """Whether the indices are the block's axes, each of extent above 1 among them."""
    plain = {i for i in indices if isinstance(i, PrimVar)}
    if not all(isinstance(i, PrimVar | Imm) for i in indices):
        return False
    return all(a.var in plain or a.domain.extent == Imm(1, a.var.dtype) for a in block.axes)


def is_dearer_than_a_load(value: PrimExpr) -> bool:
    """Whether a formula calls functions, divides, or makes indices of real numbers."""

    def costs(e: PrimExpr) -> bool:
        match e:
            case Intrinsic() | Binary("div" | "pow"):
                return True
            case Cast(dtype, real):
                return dtype == INT64 and real.dtype.is_float
            case _:
                return False

    return any(map(costs, walk_prim(value)))


def looks_up(stmt: Stmt) -> bool:
    """Whether anything is read at a place that was read itself."""
    loads = (load for s in walk_stmt(stmt) for load in stmt_loads(s))
    return any(prim_loads(at) for load in loads for at in load.indices)


def _reads_of(block: Block, buffer: Buffer) -> list[Load]:
    parts = [block.body] if block.init is None else [block.init, block.body]
    return [load for part in parts for load in _reads_in(part, buffer)]


def _reads_in(part: Stmt, buffer: Buffer) -> list[Load]:
    exprs = (e for s in walk_stmt(part) for e in stmt_exprs(s))
    return [load for e in exprs for load in prim_loads(e) if load.buffer is buffer]


def _inlined(stmt: Stmt, made: Producer) -> Stmt:
    """A consumer with its reads replaced by the formula."""

    def on_block(s: Stmt) -> Stmt | None:
        if not isinstance(s, Block) or not any(r.buffer is made.buffer for r in s.reads):
            return None
        # The schedule knows a reduction by its form, so no let comes between.
        name_repeated = not _reduces(s)
        body = _with_formula(s.body, made, name_repeated)
        init = None if s.init is None else _with_formula(s.init, made, name_repeated)
        reads, writes = block_regions(body, init, [a.var for a in s.axes])
        return replace(s, body=body, init=init, reads=reads, writes=writes)

    return rewrite_stmt(stmt, on_block)


def _with_formula(body: Stmt, made: Producer, name_repeated: bool) -> Stmt:
    """A block's statement with reads of the buffer replaced.

    With `name_repeated`, an element read several times, and not only under guards, is computed
    once in a let.
    """
    always = _unguarded(body, made.buffer)
    named: dict[tuple[PrimExpr, ...], PrimVar] = {}
    if name_repeated and not isinstance(made.value, Load | Imm | PrimVar | SizeVar):
        reads = Counter(x.indices for x in _reads_in(body, made.buffer))
        for indices in always:
            if reads[indices] > 1:
                named[indices] = PrimVar(made.buffer.name, made.buffer.dtype)

    def on_load(x: Load) -> PrimExpr | None:
        if x.buffer is not made.buffer:
            return None
        return named.get(x.indices) or _simplified(made.at(x.indices))

    body = rewrite_stmt(body, None, load_fn=on_load)
    for indices, var in named.items():
        body = Let(var, _simplified(made.at(indices)), body)
    return body


def _unguarded(body: Stmt, buffer: Buffer) -> Counter[tuple[PrimExpr, ...]]:
    """How often each element is read in lets around a store; those under a select don't count.

    Empty if the statement is anything else: its reads may depend on variables bound within.
    """
    found: Counter[tuple[PrimExpr, ...]] = Counter()
    while isinstance(body, Let):
        found.update(_unguarded_reads(body.value, buffer))
        body = body.body
    if not isinstance(body, Store):
        return Counter()
    found.update(_unguarded_reads(body.value, buffer))
    return found


def _unguarded_reads(e: PrimExpr, buffer: Buffer) -> Iterator[tuple[PrimExpr, ...]]:
    if isinstance(e, Load) and e.buffer is buffer:
        yield e.indices
    for child in (e.condition,) if isinstance(e, Select) else prim_children(e):
        yield from _unguarded_reads(child, buffer)


def _simplified(e: PrimExpr) -> PrimExpr:
    """The expression with its indices simplified."""

    def on_load(x: Load) -> PrimExpr:
        return Load(x.buffer, tuple(_index(i) for i in x.indices), x.predicate)

    return rewrite_loads(e, on_load)


def _index(e: PrimExpr) -> PrimExpr:
    return e if isinstance(e, PrimVar | Imm | SizeVar) else simplify(e)
