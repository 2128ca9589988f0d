"""cache_index: the indices that a block computes to read by are looked up in a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from unity.arith import Analyzer
from unity.ir.foreign import CALL_EXTERN
from unity.ir.prim_expr import DIVISIONS, Binary, Imm, Intrinsic, Load, PrimExpr, PrimVar, SizeVar
from unity.ir.stmt import Allocate, Block, Buffer, PrimFunc, Stmt
from unity.ir.visit import rewrite_stmt, stmt_loads, variables, walk_prim, walk_stmt

from ....blocks.dataflow import checked, computed_nest, top_of
from ....blocks.tree import (
    Outcome,
    all_blocks,
    block_path,
    illegal,
    known_at,
    replaced,
    scope_path,
    sequence,
    unique,
    with_regions,
)


def cache_index(func: PrimFunc, name: str, scope: str, threshold: int = 0) -> Outcome:
    """Each index that a block computes and reads by more than a number of times is looked up.

    A table is made before the block's nest. Pays where indices cost more than a load: positions of
    a resize, for each channel anew. After TVM's ``cache_index``; indices that the block stores by
    stay, as steps on its loops rely on them.

    Args:
        func: The prim func.
        name: The block.
        scope: Of the tables: ``global``, ``shared`` ...
        threshold: How often an index must occur at least, less one.

    Returns:
        The blocks that make tables; none where nothing is computed.

    Raises:
        UnityError: The threshold is negative; iterations that run at once would not be known to be
            independent any more.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 4, 6], c: f32[Buffer, 4, 8]) -> None:
    ...     for i, j in T.grid(4, 8):
    ...         with T.block("resize"):
    ...             vi, vj = T.axis.remap("SS", i, j)
    ...             c[vi, vj] = a[vi, vj * 3 // 4]
    ... ''').prim_funcs()["main"])
    >>> tables = sch.cache_index("resize", "global")
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 4, 6], c: f32[Buffer, 4, 8]) -> None:
        a_index = T.alloc((8,), "int64")
        for ax0 in range(8):
            with T.block("a_index"):
                v0 = T.axis.remap("S", ax0)
                a_index[v0] = v0 * 3 // 4
        for i, j in T.grid(4, 8):
            with T.block("resize"):
                vi, vj = T.axis.remap("SS", i, j)
                c[vi, vj] = a[vi, a_index[vj]]
    """
    if threshold < 0:
        why = f"it must not be negative, got {threshold}"
        raise illegal("cache_index, argument 3 'threshold'", why)
    path, block = block_path(func, name)
    top, root = top_of(path), scope_path(path)[0]
    names = {b.name for b in all_blocks(func.body)}
    tables: dict[PrimExpr, Load] = {}
    nests: list[Stmt] = []
    made: list[str] = []
    for index, buffer in _computed(block, known_at(path), threshold).items():
        axes = [a for a in block.axes if a.var in variables(index)]
        made.append(unique(f"{buffer.name}_index", names))
        extents = tuple(a.domain.extent for a in axes)
        table = Buffer(made[-1], extents, index.dtype, scope=scope)
        at = tuple(known_at(path).simplify(Binary("sub", a.var, a.domain.begin)) for a in axes)
        tables[index] = Load(table, at)
        nests.append(computed_nest(made[-1], table, axes, index))
    if not made:
        return Outcome(func)
    inner = replaced(replace(func, body=top), [(block, _looked_up(block, tables))]).body
    body = replaced(replace(func, body=root), [(top, sequence([*nests, inner]))]).body
    for load in reversed(tables.values()):
        body = Allocate(load.buffer, body)
    done = checked(replaced(func, [(root, body)]), "cache_index, argument 1 'block'")
    return Outcome(done, blocks=tuple(made))


def _computed(block: Block, known: Analyzer, threshold: int) -> dict[PrimExpr, Buffer]:
    """Indices over the block's axes that are computed often enough, and what is read by them."""
    times: Counter[PrimExpr] = Counter()
    read: dict[PrimExpr, Buffer] = {}
    axes = {
        a.var
        for a in block.axes
        if not any(isinstance(x, PrimVar | Load) for x in walk_prim(a.domain.extent))
    }
    for load in _reads(block):
        for index in load.indices:
            if (
                variables(index)
                and variables(index) <= axes
                and _may_be_made_anywhere(index, known)
            ):
                times[index] += 1
                read.setdefault(index, load.buffer)
    return {i: b for i, b in read.items() if times[i] > threshold}


def _reads(block: Block) -> list[Load]:
    """The loads of a block but of what it stores to, where loads and stores must look alike."""
    parts = [block.body] if block.init is None else [block.init, block.body]
    found = [e for part in parts for s in walk_stmt(part) for e in stmt_loads(s)]
    return [e for e in found if all(r.buffer is not e.buffer for r in block.writes)]


def _may_be_made_anywhere(e: PrimExpr, known: Analyzer) -> bool:
    """Whether an index is more than a variable, and may be computed where nobody reads by it."""
    if isinstance(e, PrimVar | SizeVar | Imm):
        return False
    for x in walk_prim(e):
        if isinstance(x, Load) or (isinstance(x, Intrinsic) and x.name == CALL_EXTERN):
            return False
        if isinstance(x, Binary) and x.op in DIVISIONS:
            low = known.bounds(x.b)[0]
            if low is None or low <= 0:
                return False
    return True


def _looked_up(block: Block, tables: Mapping[PrimExpr, Load]) -> Block:
    """The block with indices of what it reads looked up."""

    def on_load(e: Load) -> PrimExpr | None:
        if any(r.buffer is e.buffer for r in block.writes):
            return None
        return replace(e, indices=tuple(tables.get(i, i) for i in e.indices))

    def within(s: Stmt) -> Stmt:
        return rewrite_stmt(s, None, load_fn=on_load)

    init = None if block.init is None else within(block.init)
    return with_regions(replace(block, body=within(block.body), init=init))
