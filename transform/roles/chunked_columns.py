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
from unity.ir.prim_expr import Binary, Imm, Load, PrimExpr, PrimVar, SizeVar, imm
from unity.ir.stmt import Buffer, Let, Seq, Stmt, Store
from unity.ir.visit import rewrite_stmt, substitute_stmt, walk_prim, walk_stmt

from ..blocks.access import part_axis
from ..blocks.extents import number
from ..blocks.nest import Axis, Nest, is_formula
from ..blocks.tree import sequence


@dataclass(frozen=True, slots=True)
class ChunkedColumns:
    """A contraction with what becomes of its sums.

    Attributes:
        nest: Over the other axes, the chunks if there are several, then the units of a chunk. Its
            `finish` is over the other axes, the units and the results.
        chunk: The axis of chunks; None if there is one.
        results: What the sums are called in `finish`, chunk by chunk.
    """

    nest: Nest
    chunk: Axis | None
    results: tuple[PrimVar, ...]


def chunked_columns(nest: Nest) -> ChunkedColumns:
    """A contraction by itself: each sum goes where it went."""
    parts = _parted(nest)
    return replace(parts, nest=replace(parts.nest, finish=sequence(_finishes(parts))))


def with_readers(
    nest: Nest, readers: Sequence[Nest], private: AbstractSet[Buffer]
) -> ChunkedColumns | None:
    """A contraction and stages that read its result, or each other's, point by point.

    Args:
        nest: The contraction; nothing else reads its result.
        readers: Over the other axes and the units, in order.
        private: Buffers that only these stages use; they are not stored.

    Returns:
        None where a stage reads anything but the point it writes.
    """
    store = _store(nest.finish)
    if store is None or store.predicate is not None or store.buffer not in private:
        return None
    if not nest.axes or nest.reduction is None or store.indices != tuple(a.var for a in nest.axes):
        return None
    parts = _parted(nest)
    others = tuple(a for a in parts.nest.axes if a is not parts.chunk)
    units, sums = others[-1], store.buffer
    gates = [PrimVar("chunk_value", sums.dtype) for _ in parts.results]
    made: dict[Buffer, PrimVar] = {}
    steps: list[tuple[Stmt, PrimVar, bool]] = [
        (finish, gate, False) for finish, gate in zip(_finishes(parts), gates, strict=True)
    ]
    for reader in readers:
        if not _alike(reader, others) or not is_formula(reader.finish):
            return None
        values: dict[PrimVar | SizeVar, PrimExpr] = {
            a.var: b.var for a, b in zip(reader.axes, others, strict=True)
        }
        finish = substitute_stmt(reader.finish, values)
        here = _store(finish)
        assert here is not None
        at = tuple(a.var for a in others)
        if here.indices != at or here.predicate is not None or here.buffer in made:
            return None
        formula = _with_values(finish, at, units, sums, gates, made)
        if formula is None:
            return None
        made[here.buffer] = PrimVar("value", here.buffer.dtype)
        steps.append((formula, made[here.buffer], here.buffer not in private))
    *steps, (result, _, _) = steps
    for finish, var, stored in reversed(steps):
        result = _bound(finish, var, stored, result)
    return replace(parts, nest=replace(parts.nest, finish=result, output=readers[-1].output))


def _parted(nest: Nest) -> ChunkedColumns:
    """The contraction with the columns as chunks and units, where the weights say so."""
    reduction = nest.reduction
    assert reduction is not None
    column = nest.axes[-1] if nest.axes else None
    each = None if column is None else _units(nest, column)
    if column is None or each is None:
        return ChunkedColumns(nest, None, (reduction.result,))
    count = (number(column.extent) or 0) // each
    parts = part_axis(nest, column, imm(each), imm(count))
    chunk = parts.axes[-2]
    results = tuple(PrimVar("result", reduction.result.dtype) for _ in range(count))
    return ChunkedColumns(parts, chunk, results)


def _units(nest: Nest, column: Axis) -> int | None:
    """Columns of a chunk: what the place inside a panel divides the column by."""
    columns = number(column.extent)
    assert nest.reduction is not None
    for load in nest.reduction.loads():
        for e in walk_prim(load.indices[-1]) if load.indices else ():
            match e:
                case Binary("floordiv", a, Imm(int(each))) if a is column.var and columns:
                    return each if each < columns and columns % each == 0 else None
                case _:
                    pass
    return None


def _finishes(parts: ChunkedColumns) -> list[Stmt]:
    """What becomes of each chunk's sum, with variables of its own."""
    reduction, finish = parts.nest.reduction, parts.nest.finish
    assert reduction is not None
    if parts.chunk is None:
        return [finish]
    found: list[Stmt] = []
    for i, result in enumerate(parts.results):
        values: dict[PrimVar | SizeVar, PrimExpr] = {
            s.var: PrimVar(s.var.name, s.var.dtype) for s in walk_stmt(finish) if isinstance(s, Let)
        }
        values |= {parts.chunk.var: imm(i), reduction.result: result}
        found.append(substitute_stmt(finish, values))
    return found


def _store(finish: Stmt) -> Store | None:
    """The store at the end of a formula."""
    while isinstance(finish, Let):
        finish = finish.body
    return finish if isinstance(finish, Store) else None


def _alike(reader: Nest, axes: Sequence[Axis]) -> bool:
    extents = [a.extent for a in reader.axes]
    return reader.reduction is None and extents == [a.extent for a in axes]


def _with_values(
    finish: Stmt,
    at: tuple[PrimVar, ...],
    units: Axis,
    sums: Buffer,
    gates: Sequence[PrimVar],
    made: dict[Buffer, PrimVar],
) -> Stmt | None:
    """A reader's formula over values in place of what it read of the stages before it."""
    fits = True

    def on_load(x: Load) -> PrimExpr | None:
        nonlocal fits
        if x.buffer is not sums and x.buffer not in made:
            return None
        *before, last = x.indices
        plain = all(i is v or i == imm(0) for i, v in zip(before, at[:-1], strict=True))
        if x.buffer is not sums:
            fits = fits and plain and last is at[-1]
            return made[x.buffer]
        offset = number(simplify(last - units.var))
        chunk, inside = divmod(offset or 0, number(units.extent) or 1)
        fits = fits and plain and offset is not None and not inside and 0 <= chunk < len(gates)
        return gates[chunk] if fits else None

    moved = rewrite_stmt(finish, None, load_fn=on_load)
    return moved if fits else None


def _bound(finish: Stmt, var: PrimVar, stored: bool, rest: Stmt) -> Stmt:
    """What a formula gives as a variable of what follows, stored before or not at all."""
    match finish:
        case Let():
            return replace(finish, body=_bound(finish.body, var, stored, rest))
        case Store():
            then = Seq((replace(finish, value=var), rest)) if stored else rest
            return Let(var, finish.value, then)
        case _:
            raise AssertionError("no formula")
