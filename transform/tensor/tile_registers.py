"""TileRegisters: temporaries of matrix tiles become tile registers, taken together once a task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import ClassVar

from unity.arith import simplify
from unity.errors import UnityError
from unity.ir.marks import INSTRUCTION, TILES
from unity.ir.module import IRModule
from unity.ir.prim_expr import Binary, Imm, Load, PrimExpr, PrimVar, imm
from unity.ir.stmt import Allocate, Buffer, For, PrimFunc, Seq, Stmt, Store
from unity.ir.visit import map_stmts, rewrite_stmt, stmt_loads, substitute_prim, walk_stmt
from unity.machine.dot_units import TILE_REGISTERS

from ..blocks.access import depends
from ..blocks.extents import number
from ..passes import Context, Pass, Sight
from .functions import map_prim_funcs, with_body


@dataclass(frozen=True, slots=True, order=True)
class _Tile:
    """A part of a temporary that is a register: its first element, and how many it has."""

    first: int
    size: int


@dataclass(frozen=True, slots=True)
class TileRegisters(Pass):
    """A temporary of scope `TILES` of several tiles becomes as many registers.

    Steps of a schedule leave it where it is used; the registers are taken all together around what
    a thread does, as configuring them costs as much as some products; where they are more than
    there are, around runs of statements that they are enough for. Temporaries beside each other
    share them. Takes flat buffers, with loops written out: which tile it is must be known.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... @script.prim_func
    ... def main(x: f32[Buffer, 512]) -> None:
    ...     for i in range(2):
    ...         t = T.alloc((512,), "float32", scope="amx.tile")
    ...         for m in T.serial(16, attrs={"instruction": "tile_zero"}):
    ...             for n in range(16):
    ...                 t[256 + m * 16 + n] = 0.0
    ...         for m in T.serial(16, attrs={"instruction": "tile_store"}):
    ...             for n in range(16):
    ...                 x[i * 256 + m * 16 + n] = t[256 + m * 16 + n]
    ... ''')
    >>> print(print_module(TileRegisters()(before, Context())), end="")
    @script.prim_func
    def main(x: f32[Buffer, 512]) -> None:
        tile = T.alloc((256,), "float32", scope="amx.tile")
        for i in range(2):
            for m in T.serial(16, attrs={"instruction": "tile_zero"}):
                for n in range(16):
                    tile[m * 16 + n] = 0.0
            for m in T.serial(16, attrs={"instruction": "tile_store"}):
                for n in range(16):
                    x[i * 256 + m * 16 + n] = tile[m * 16 + n]
    """

    sees: ClassVar[Sight] = "kernel"

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each prim func by itself."""
        return map_prim_funcs(module, _taken)


def _taken(func: PrimFunc) -> PrimFunc:
    """The prim func, itself where all registers are taken together already."""
    if not any(_is_apart(s) for s in walk_stmt(func.body)):
        return func
    return with_body(func, _task(func.body))


def _is_apart(s: Stmt) -> bool:
    """Whether tiles are allocated that are no registers, or within other statements of some."""
    if not isinstance(s, Allocate) or s.buffer.scope != TILES:
        return False
    below = s.body
    if isinstance(below, Allocate) and below.buffer.scope == TILES:
        return False
    inside = any(isinstance(x, Allocate) and x.buffer.scope == TILES for x in walk_stmt(below))
    return inside or any(number(s.buffer.shape[0]) != t.size for t in _tiles_of(below, s.buffer))


def _task(s: Stmt) -> Stmt:
    """A statement of one thread with its registers around it; those in it do so by themselves."""
    return _tasks(s) if _shares(s) else _together(s)


def _together(s: Stmt) -> Stmt:
    """A statement with its registers around it, or around the parts that there are enough for."""
    pool = _Registers()
    body = pool.stmt(s, ())
    if pool.suffice or (isinstance(s, Allocate) and s.buffer.scope == TILES):
        return pool.around(body)
    return Seq(tuple(_parts(s.stmts))) if isinstance(s, Seq) else map_stmts(s, _together)


def _parts(stmts: Sequence[Stmt]) -> Iterator[Stmt]:
    """As many statements at once as there are registers for, each such run with its own."""
    pool, run = _Registers(), list[Stmt]()
    for s in stmts:
        more = _Registers([*pool.made])
        body = more.stmt(s, ())
        if more.suffice:
            pool = more
            run.append(body)
            continue
        if run:
            yield pool.around(Seq(tuple(run)))
        alone = _Registers()
        body = alone.stmt(s, ())
        pool, run = (alone, [body]) if alone.suffice else (_Registers(), list[Stmt]())
        if not alone.suffice:
            yield _together(s)
    if run:
        yield pool.around(Seq(tuple(run)))


def _shares(s: Stmt) -> bool:
    """Whether threads share some of it."""
    return any(isinstance(x, For) and x.kind == "parallel" for x in walk_stmt(s))


def _tasks(s: Stmt) -> Stmt:
    """What threads share, and what stands beside it."""
    if isinstance(s, For) and s.kind == "parallel":
        return replace(s, body=_task(s.body))
    return map_stmts(s, _tasks) if _shares(s) else _task(s)


@dataclass
class _Registers:
    """Carries the registers of a task, in the order in which they were taken first."""

    made: list[Buffer] = field(default_factory=list[Buffer])

    @property
    def suffice(self) -> bool:
        """Whether a thread has as many."""
        return len(self.made) <= TILE_REGISTERS

    def around(self, body: Stmt) -> Stmt:
        """A statement with the registers taken around it."""
        for register in reversed(self.made):
            body = Allocate(register, body)
        return body

    def stmt(self, s: Stmt, live: tuple[Buffer, ...]) -> Stmt:
        """The statement on registers, where some are in use."""
        if not isinstance(s, Allocate) or s.buffer.scope != TILES:
            return map_stmts(s, lambda x: self.stmt(x, live))
        taken: dict[_Tile, Buffer] = {}
        for tile in sorted(_tiles_of(s.body, s.buffer)):
            taken[tile] = self._free(s.buffer, tile.size, (*live, *taken.values()))
        body = _moved(s.body, s.buffer, taken)
        return self.stmt(body, (*live, *taken.values()))

    def _free(self, buffer: Buffer, size: int, live: Sequence[Buffer]) -> Buffer:
        """A register for a tile of a buffer that is not in use."""
        for register in self.made:
            same = register.dtype == buffer.dtype and register.shape == (imm(size),)
            if same and not any(register is x for x in live):
                return register
        register = Buffer("tile", (imm(size),), buffer.dtype, scope=TILES)
        self.made.append(register)
        return register


def _tiles_of(s: Stmt, buffer: Buffer) -> set[_Tile]:
    """The tiles of a temporary that instructions use."""
    found: set[_Tile] = set()
    for x in walk_stmt(s):
        if isinstance(x, For) and INSTRUCTION in x.attrs:
            loops, store = _nest(x)
            accesses: list[Load | Store] = [*stmt_loads(store), store]
            places = [e.indices[0] for e in accesses if e.buffer is buffer]
            found |= {_tile(buffer, place, loops) for place in places}
    return found


def _nest(s: For) -> tuple[dict[PrimVar, int], Store]:
    """The loops of an instruction and how often they run, and its store."""
    loops: dict[PrimVar, int] = {}
    body: Stmt = s
    while isinstance(body, For):
        loops[body.var] = number(body.extent) or 0
        body = body.body
    assert isinstance(body, Store)
    return loops, body


def _tile(buffer: Buffer, place: PrimExpr, loops: Mapping[PrimVar, int]) -> _Tile:
    """The tile at a place that loops go through.

    Raises:
        UnityError: It is not known which one.
    """
    first = simplify(substitute_prim(place, {v: imm(0) for v in loops}))
    if not isinstance(first, Imm):
        raise UnityError(
            f"it is not known at compile time which of the tiles of {buffer.name!r} is used",
            hint="unroll the loops over tiles",
        )
    return _Tile(int(first.value), prod(n for v, n in loops.items() if depends(place, v)))


def _moved(s: Stmt, buffer: Buffer, taken: Mapping[_Tile, Buffer]) -> Stmt:
    """The statement with tiles of a temporary in registers."""
    if not isinstance(s, For) or INSTRUCTION not in s.attrs:
        return map_stmts(s, lambda x: _moved(x, buffer, taken))
    loops, _ = _nest(s)

    def there(place: PrimExpr) -> tuple[Buffer, tuple[PrimExpr, ...]]:
        tile = _tile(buffer, place, loops)
        return taken[tile], (simplify(Binary("sub", place, imm(tile.first))),)

    def on_load(e: Load) -> PrimExpr | None:
        return Load(*there(e.indices[0])) if e.buffer is buffer else None

    def on_stmt(x: Stmt) -> Stmt | None:
        if not isinstance(x, Store) or x.buffer is not buffer:
            return None
        register, indices = there(x.indices[0])
        return replace(x, buffer=register, indices=indices)

    return rewrite_stmt(s, on_stmt, load_fn=on_load)
