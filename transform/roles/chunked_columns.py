"""Contractions whose columns are chunks side by side in the weights, and what reads the chunks.

The weights of a cell's gates, or of a gated layer's two halves, lie so that a panel has a part of
each chunk (`matmul_packed` with `chunks`). One register tile then ends with all chunks of some
units at once, and what other stages compute of them point by point is done before anything is
stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from unity.arith import simplify
from unity.ir.prim_expr import Binary, Imm, Load, PrimVar, imm
from unity.ir.stmt import Buffer, Let, Stmt, Store
from unity.ir.visit import stmt_loads, substitute_stmt, walk_prim, walk_stmt

from ..blocks.access import Reshaped, as_written, collapse, parted_at
from ..blocks.extents import number
from ..blocks.nest import Axis, Nest, is_formula
from ..blocks.tree import Values, sequence


@dataclass(frozen=True, slots=True)
class ChunkedColumns:
    """A contraction over its columns in chunks.

    Attributes:
        shaped: Over the other axes, joined as far as every access walks evenly, the chunks if there
            are several, then the units of a chunk.
        chunk: The axis of chunks; None if there is one.
        chunks: How many there are.
    """

    shaped: Reshaped
    chunk: Axis | None
    chunks: int


def chunked_columns(nest: Nest, readers: Sequence[Nest] = ()) -> ChunkedColumns:
    """A contraction, and what reads its result point by point, with the columns in chunks.

    Args:
        nest: The contraction.
        readers: Stages that `may_read_points`; where they walk unevenly, no axes are joined.
    """
    shaped, units = as_written(nest), _units(nest)
    if units is None:
        return ChunkedColumns(collapse(_with_accesses(shaped, readers)), None, 1)
    count = (number(nest.axes[-1].extent) or 0) // units
    parted = parted_at(shaped, len(nest.axes) - 1, imm(units), imm(count))
    shaped = collapse(_with_accesses(parted, readers, chunked=True), keep=2)
    return ChunkedColumns(shaped, shaped.nest.axes[-2], count)


def _units(nest: Nest) -> int | None:
    """Columns of a chunk: what the place inside a panel divides the column by."""
    assert nest.reduction is not None
    column = nest.axes[-1] if nest.axes else None
    columns = None if column is None else number(column.extent)
    if column is None or columns is None:
        return None
    for load in nest.reduction.loads():
        for e in walk_prim(load.indices[-1]) if load.indices else ():
            match e:
                case Binary("floordiv", a, Imm(int(each))) if a is column.var:
                    return each if each < columns and columns % each == 0 else None
                case _:
                    pass
    return None


def _with_accesses(shaped: Reshaped, readers: Sequence[Nest], *, chunked: bool = False) -> Reshaped:
    """A stage that also does what readers of its result do."""
    if not readers:
        return shaped
    axes = shaped.nest.axes
    others = (*axes[:-2], axes[-1]) if chunked else axes
    moved = [_over(reader, others) for reader in readers]
    finish = sequence([shaped.nest.finish, *moved])
    return replace(shaped, nest=replace(shaped.nest, finish=finish))


def _over(reader: Nest, axes: Sequence[Axis]) -> Stmt:
    values: Values = {a.var: b.var for a, b in zip(reader.axes, axes, strict=True)}
    return substitute_stmt(reader.finish, values)


def may_read_points(nest: Nest, readers: Sequence[Nest], private: AbstractSet[Buffer]) -> bool:
    """Whether stages read a contraction's result, or each other's, at the point they write only.

    Args:
        nest: The contraction; nothing else reads its result.
        readers: Over the other axes and the units of a chunk, in order.
        private: Buffers that only these stages use; they are not stored.
    """
    store = _store(nest.finish)
    if store is None or store.predicate is not None or store.buffer not in private:
        return False
    if not nest.axes or nest.reduction is None or store.indices != tuple(a.var for a in nest.axes):
        return False
    units = _units(nest) or number(nest.axes[-1].extent) or 0
    extents = [*(a.extent for a in nest.axes[:-1]), imm(units)]
    written = {store.buffer: (number(nest.axes[-1].extent) or 0)}
    for reader in readers:
        if reader.reduction is not None or not is_formula(reader.finish):
            return False
        if [a.extent for a in reader.axes] != extents:
            return False
        here, at = _store(reader.finish), tuple(a.var for a in reader.axes)
        assert here is not None
        if here.indices != at or here.predicate is not None or here.buffer in written:
            return False
        loads = [x for s in walk_stmt(reader.finish) for x in stmt_loads(s)]
        if not all(
            _is_point(x, at, units, written[x.buffer]) for x in loads if x.buffer in written
        ):
            return False
        written[here.buffer] = units
    return True


def _is_point(x: Load, at: Sequence[PrimVar], units: int, columns: int) -> bool:
    """Whether what is read is at this point, of a chunk among those that there are."""
    *before, last = x.indices
    offset = number(simplify(last - at[-1]))
    plain = all(i is v or i == imm(0) for i, v in zip(before, at[:-1], strict=True))
    return plain and offset is not None and offset % units == 0 and 0 <= offset < columns


def _store(finish: Stmt) -> Store | None:
    """The store at the end of a formula."""
    while isinstance(finish, Let):
        finish = finish.body
    return finish if isinstance(finish, Store) else None
