"""Statements that are one instruction each: loops that say what it computes, marked with its name.

Tiles are buffers of scope `TILES`: accumulators ``(rows, 16)`` of float32 or int32, left operands
``(rows, 16, group)`` and right ones ``(16, 16, group)``, groups being what 4 bytes hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from unity.ir.attrs import Attrs
from unity.ir.dtype import DType
from unity.ir.marks import INSTRUCTION, TILES
from unity.ir.prim_expr import Binary, Cast, Load, PrimExpr, PrimVar, imm
from unity.ir.stmt import Allocate, Buffer, For, Stmt, Store
from unity.machine.dot_units import SIDE, group_of

Access = Callable[[Sequence[PrimVar]], Load]
"""An element of memory for an element of a tile."""


def accumulator(name: str, rows: int, dtype: DType) -> Buffer:
    """A tile that products are added to."""
    return Buffer(name, (imm(rows), imm(SIDE)), dtype, scope=TILES)


def operand(name: str, rows: int, dtype: DType) -> Buffer:
    """A tile of operands: rows of the left one, or 16 groups of the right one."""
    return Buffer(name, (imm(rows), imm(SIDE), imm(group_of(dtype))), dtype, scope=TILES)


def within(tiles: Sequence[Buffer], body: Stmt) -> Stmt:
    """A statement with tiles."""
    for tile in reversed(tiles):
        body = Allocate(tile, body)
    return body


def tile_zero(tile: Buffer) -> Stmt:
    """All of a tile zero."""
    index = _variables(tile)
    return _marked("tile_zero", tile, index, Store(tile, tuple(index), imm(0, tile.dtype)))


def tile_load(tile: Buffer, source: Access) -> Stmt:
    """A tile from memory, where its rows lie at an even distance and are contiguous."""
    index = _variables(tile)
    return _marked("tile_load", tile, index, Store(tile, tuple(index), source(index)))


def tile_store(tile: Buffer, target: Access) -> Stmt:
    """A tile to memory, which is the same the other way round."""
    index = _variables(tile)
    to = target(index)
    store = Store(to.buffer, to.indices, Load(tile, tuple(index)))
    return _marked("tile_store", tile, index, store)


def tile_dot(c: Buffer, a: Buffer, b: Buffer) -> Stmt:
    """``c[m, n] += a[m, k, p] * b[k, n, p]``."""
    m, n, k, p = (PrimVar(x) for x in "mnkp")
    store = _added(Load(c, (m, n)), Load(a, (m, k, p)), Load(b, (k, n, p)))
    extents = (c.shape[0], imm(SIDE), imm(SIDE), a.shape[2])
    return _nest("tile_dot", (m, n, k, p), extents, store)


def lane_dot(c: Access, a: Access, b: Access, lanes: int, group: int) -> Stmt:
    """``c[n] += a[p] * b[n, p]`` for the lanes of a register."""
    n, p = PrimVar("n"), PrimVar("p")
    store = _added(c((n,)), a((p,)), b((n, p)))
    return _nest("lane_dot", (n, p), (imm(lanes), imm(group)), store)


def _added(c: Load, a: Load, b: Load) -> Store:
    product = Binary("mul", Cast(c.dtype, a), Cast(c.dtype, b))
    return Store(c.buffer, c.indices, Binary("add", c, product))


def _variables(tile: Buffer) -> list[PrimVar]:
    return [PrimVar(x) for x in ("m", "k", "p")[: len(tile.shape)]]


def _marked(name: str, tile: Buffer, index: Sequence[PrimVar], store: Store) -> Stmt:
    return _nest(name, index, tile.shape, store)


def _nest(name: str, index: Sequence[PrimVar], extents: Sequence[PrimExpr], body: Stmt) -> Stmt:
    for var, extent in zip(reversed(index), reversed(extents), strict=True):
        body = For(var, imm(0), extent, body)
    assert isinstance(body, For)
    return replace(body, attrs=Attrs({INSTRUCTION: name}))
