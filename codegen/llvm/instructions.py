"""Loops that are one instruction: those with the attribute ``instruction``, matrix tiles foremost.

Such a loop nest says in plain IR what the instruction computes, so that every other stage, the
interpreter foremost, reads it as what it is. Here its form is checked and the instruction emitted.
Buffers of scope `TILES` are the tile registers of AMX: those of one nest of allocations are
configured together and hold values within it only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from unity.arith import Analyzer
from unity.arith.polynomial import from_expr, split_linear, to_expr
from unity.errors import UnityError, UnsupportedError
from unity.ir.marks import INSTRUCTION, TILES
from unity.ir.prim_expr import Binary, Cast, Imm, Load, PrimExpr, PrimVar, imm
from unity.ir.stmt import Allocate, Buffer, For, Stmt, Store
from unity.ir.substitute import substitute_prim
from unity.machine.dot_units import (
    GROUP_BYTES,
    SIDE,
    TILE_REGISTERS,
    TILE_ROW_BYTES,
    dot_unit,
    group_of,
)

from .emitter import Emitter, Unit
from .expr import Expressions
from .memory import At
from .squares import Squares
from .types import Ty, memory_type, ty, value_type


@dataclass(frozen=True, slots=True)
class Place:
    """Where an access of a nest goes: an element, and how far each loop moves from there."""

    buffer: Buffer
    base: PrimExpr
    steps: tuple[PrimExpr, ...]

    @property
    def numbers(self) -> tuple[int | None, ...]:
        """The steps that are known."""
        return tuple(int(s.value) if isinstance(s, Imm) else None for s in self.steps)

    def moves(self, extents: Sequence[int], steps: Sequence[int]) -> bool:
        """Whether it moves by these steps, along loops that run more than once."""
        each = zip(self.numbers, extents, steps, strict=True)
        return all(number == step for number, extent, step in each if extent > 1)


@dataclass(frozen=True, slots=True)
class Marked:
    """A marked nest: its name, extents and the store within."""

    name: str
    loops: tuple[PrimVar, ...]
    extents: tuple[int, ...]
    store: Store

    def place(self, access: Load | Store) -> Place:
        """Where an access goes.

        Raises:
            UnityError: It does not move evenly.
        """
        index = access.indices[0] if access.indices else imm(0)
        rest = from_expr(Analyzer().simplify(index))
        steps: list[PrimExpr] = []
        for var in self.loops:
            rest, factor = split_linear(rest, var)
            if factor is None:
                raise self.wrong()
            steps.append(to_expr(factor))
        base = to_expr(rest)
        if any(substitute_prim(e, {v: imm(0)}) != e for e in (base, *steps) for v in self.loops):
            raise self.wrong()
        return Place(access.buffer, base, tuple(steps))

    def product(self) -> tuple[Place, Place]:
        """The operands of ``c += cast(a) * cast(b)``.

        Raises:
            UnityError: It computes something else.
        """
        store = self.store
        here = Load(store.buffer, store.indices)
        match store.value:
            case Binary("add", old, Binary("mul", Cast(_, Load() as a), Cast(_, Load() as b))):
                if old == here:
                    return self.place(a), self.place(b)
            case _:
                pass
        raise self.wrong()

    def wrong(self) -> UnityError:
        """That the mark is not true."""
        return UnityError(
            f"a loop marked {self.name!r} does not compute what the instruction does",
            hint="marks are made by tensorize and by schedule rules",
        )


def marked(s: For) -> Marked | None:
    """The nest that a loop begins if it is marked."""
    name = s.attrs.get(INSTRUCTION)
    if name is None:
        return None
    loops: list[PrimVar] = []
    extents: list[int] = []
    body: Stmt = s
    wrong = UnityError(f"a loop marked {name!r} is no nest of loops around a store")
    while isinstance(body, For):
        if body.begin != imm(0) or not isinstance(body.extent, Imm):
            raise wrong
        loops.append(body.var)
        extents.append(int(body.extent.value))
        body = body.body
    if not isinstance(body, Store) or body.predicate is not None:
        raise wrong
    return Marked(str(name), tuple(loops), tuple(extents), body)


@dataclass(slots=True)
class Instructions:
    """Emits the instructions of one function; carries which register each tile is."""

    em: Emitter
    expressions: Expressions
    tiles: dict[Buffer, int]

    def emit(self, nest: Marked) -> None:
        """Emit a marked nest.

        Raises:
            UnityError: The nest is not what its mark says, or the mark is unknown.
            UnsupportedError: The target has no such instruction.
        """
        rule = _RULES.get(nest.name)
        if rule is None:
            known = ", ".join(_RULES)
            raise UnityError(f"no instruction {nest.name!r}", hint=f"there are: {known}")
        rule(self, nest)

    # Tiles

    def configure(self, s: Allocate) -> Stmt:
        """Take tile registers for a nest of allocations; the statement within.

        Raises:
            UnityError: Too many tiles, or one that no register holds.
        """
        self.require("amx-tile")
        if self.tiles:
            raise UnityError("tiles allocated within tiles: allocate all of them together")
        body: Stmt = s
        rows: list[int] = []
        while isinstance(body, Allocate) and body.buffer.scope == TILES:
            count, rest = divmod(_elements(body.buffer) * body.buffer.dtype.bytes, TILE_ROW_BYTES)
            if rest or not 1 <= count <= 16:
                raise UnityError(f"tile {body.buffer.name!r} is not of 1 to 16 rows of 64 bytes")
            self.tiles[body.buffer] = len(rows)
            rows.append(count)
            body = body.body
        if len(rows) > TILE_REGISTERS:
            raise UnityError(f"{len(rows)} tiles at once: there are {TILE_REGISTERS}")
        self.em.do(f"call void @llvm.x86.ldtilecfg(ptr @{_configuration(self.em.unit, rows)})")
        return body

    def release(self) -> None:
        """Give the tile registers back."""
        self.em.do("call void @llvm.x86.tilerelease()")
        self.tiles.clear()

    def tile(self, buffer: Buffer, nest: Marked) -> str:
        """The register a tile is, as an operand."""
        if buffer not in self.tiles:
            raise nest.wrong()
        return f"i8 {self.tiles[buffer]}"

    def tile_zero(self, nest: Marked) -> None:
        """``tile = 0``."""
        place = nest.place(nest.store)
        value = nest.store.value
        if not isinstance(value, Imm) or value.value != 0 or not _covers(place, nest.extents):
            raise nest.wrong()
        self.em.do(f"call void @llvm.x86.tilezero({self.tile(place.buffer, nest)})")

    def tile_load(self, nest: Marked) -> None:
        """``tile[row, ...] = memory[base + row * stride + ...]``."""
        value = nest.store.value
        if not isinstance(value, Load):
            raise nest.wrong()
        self._move("tileloadd64", nest, nest.place(nest.store), nest.place(value))

    def tile_store(self, nest: Marked) -> None:
        """``memory[base + row * stride + ...] = tile[row, ...]``."""
        value = nest.store.value
        if not isinstance(value, Load):
            raise nest.wrong()
        self._move("tilestored64", nest, nest.place(value), nest.place(nest.store))

    def _move(self, name: str, nest: Marked, tile: Place, memory: Place) -> None:
        same = tile.buffer.dtype == memory.buffer.dtype
        if not same or not _covers(tile, nest.extents) or memory.steps[1:] != tile.steps[1:]:
            raise nest.wrong()
        self.check(memory, nest)
        address = self.address(memory)
        size = str(memory.buffer.dtype.bytes)
        stride = self.em.mul(self.expressions.index(memory.steps[0]), size, "")
        number = self.tile(tile.buffer, nest)
        self.em.do(f"call void @llvm.x86.{name}({number}, ptr {address}, i64 {stride})")

    def tile_dot(self, nest: Marked) -> None:
        """``c[m, n] += a[m, k, p] * b[k, n, p]``, over loops m, n, k, p."""
        a, b = nest.product()
        c = nest.place(nest.store)
        unit = dot_unit("tile", a.buffer.dtype, b.buffer.dtype, c.buffer.dtype)
        group = group_of(a.buffer.dtype)
        rows = _elements(c.buffer) * GROUP_BYTES // TILE_ROW_BYTES
        fits = (
            nest.extents == (rows, SIDE, SIDE, group)
            and c.moves(nest.extents, (SIDE, 1, 0, 0))
            and a.moves(nest.extents, (SIDE * group, 0, group, 1))
            and b.moves(nest.extents, (0, group, SIDE * group, 1))
            and all(p.base == imm(0) for p in (a, b, c))
        )
        if unit is None or not fits:
            raise nest.wrong()
        self.require(*unit.needs())
        tiles = ", ".join(self.tile(p.buffer, nest) for p in (c, a, b))
        self.em.do(f"call void @{unit.intrinsic}({tiles})")

    # Vectors

    def lane_dot(self, nest: Marked) -> None:
        """``c[n] += a[p] * b[n, p]``, over loops n, p."""
        a, b = nest.product()
        c = nest.place(nest.store)
        unit = dot_unit("lanes", a.buffer.dtype, b.buffer.dtype, c.buffer.dtype)
        group = group_of(a.buffer.dtype)
        lanes = nest.extents[0]
        fits = (
            nest.extents == (lanes, group)
            and c.numbers == (1, 0)
            and a.numbers == (0, 1)
            and b.numbers == (group, 1)
        )
        if unit is None or lanes not in unit.lane_counts or not fits:
            raise nest.wrong()
        self.require(*unit.needs(lanes))
        for place in (a, b, c):
            self.check(place, nest)
        em, wide = self.em, value_type(c.buffer.dtype.with_lanes(lanes))
        words = ty("i32", lanes)
        target = self.address(c)
        align = 4
        total = em.effect(f"load {wide.text}, ptr {target}, align {align}")
        size = a.buffer.dtype.bytes
        one = em.effect(f"load i32, ptr {self.address(a)}, align {size}")
        left = em.splat(one, words)
        right = em.effect(f"load {words.text}, ptr {self.address(b)}, align {size}")
        number = "bfloat" if a.buffer.dtype.is_float else f"i{a.buffer.dtype.bits}"
        operand = f"<{group * lanes} x {number}>"
        left, right = (em.pure(f"bitcast {words.text} {v} to {operand}") for v in (left, right))
        factors = f"{operand} {left}, {operand} {right}"
        if unit.adds:
            total = em.effect(
                f"call {wide.text} @{unit.intrinsic}.{32 * lanes}({wide.text} {total}, {factors})"
            )
        else:
            products = em.effect(f"call {wide.text} @{unit.intrinsic}({factors})")
            total = em.pure(f"add {wide.text} {total}, {products}")
        em.do(f"store {wide.text} {total}, ptr {target}, align {align}")

    def transpose(self, nest: Marked) -> None:
        """``to[r * s + l] = from[l * t + r]``, over loops r, l: a rectangle through registers.

        Of each line that is read, pieces of 16 bytes are taken, those of lines as far from each
        other as a piece is long put side by side in one register. Each round then interleaves,
        within every 16 bytes, the first half of these registers with the second, which turns the
        place of an element, its row and column as one number, by one bit.
        """
        (height, lanes), value = nest.extents, nest.store.value
        if not isinstance(value, Load) or value.predicate is not None:
            raise nest.wrong()
        target, source = nest.place(nest.store), nest.place(value)
        if target.steps[1] != imm(1) or source.steps[0] != imm(1):
            raise nest.wrong()
        if value.buffer.dtype != target.buffer.dtype:
            raise nest.wrong()
        for place in (target, source):
            self.check(place, nest)
        element = memory_type(value.buffer.dtype)
        squares = Squares(self.em, element, value.buffer.dtype.bytes, lanes)
        lines = self.lines(source, source.steps[1], element, lanes)
        results = self.lines(target, target.steps[0], element, height)
        for first in range(0, height, squares.side):
            width = min(squares.side, height - first)
            squares.emit(lines, first, results[first : first + width])

    # Both

    def address(self, place: Place) -> str:
        """The address of a place's first element."""
        pointer = self.expressions.pointers[place.buffer]
        index = self.expressions.index(place.base)
        return self.em.address(pointer, index, memory_type(place.buffer.dtype))

    def lines(self, place: Place, step: PrimExpr, element: Ty, count: int) -> list[str]:
        """The addresses of the first elements of lines at an even distance."""
        em, first = self.em, self.address(place)
        distance = self.expressions.index(step)
        return [em.address(first, em.mul(distance, str(i)), element) for i in range(count)]

    def check(self, place: Place, nest: Marked) -> None:
        """With checks on, leave the kernel if the first or last element is outside."""
        if not self.expressions.checks:
            return
        last = place.base
        for step, extent in zip(place.steps, nest.extents, strict=True):
            last = Binary("add", last, Binary("mul", step, imm(extent - 1)))
        for index in (place.base, last):
            self.expressions.check(place.buffer, At(self.expressions.index(index)), 1, None)

    def require(self, *features: str) -> None:
        """Refuse what the target lacks: LLVM would end the process.

        Raises:
            UnsupportedError: It lacks a feature.
        """
        for feature in features:
            if feature not in self.em.unit.abilities.dots:
                raise UnsupportedError(f"the target has no {feature}", [feature])


_RULES: dict[str, Callable[[Instructions, Marked], None]] = {
    "tile_zero": Instructions.tile_zero,
    "tile_load": Instructions.tile_load,
    "tile_store": Instructions.tile_store,
    "tile_dot": Instructions.tile_dot,
    "lane_dot": Instructions.lane_dot,
    "transpose": Instructions.transpose,
}


def _elements(buffer: Buffer) -> int:
    total = 1
    for extent in buffer.shape:
        if not isinstance(extent, Imm):
            raise UnityError(f"tile {buffer.name!r} must have known extents")
        total *= int(extent.value)
    return total


def _covers(place: Place, extents: Sequence[int]) -> bool:
    """Whether an access walks all of a tile in order."""
    step = 1
    wanted: list[int] = []
    for extent in reversed(extents):
        wanted.insert(0, step)
        step *= extent
    whole = place.base == imm(0) and step == _elements(place.buffer)
    return whole and place.moves(extents, wanted)


def _configuration(unit: Unit, rows: Sequence[int]) -> str:
    """The constant that ``ldtilecfg`` reads: palette 1, bytes of a row and rows of each tile."""
    name = "unity.tiles." + ".".join(map(str, rows))
    missing = TILE_REGISTERS - len(rows)
    widths = b"".join(
        (TILE_ROW_BYTES if n else 0).to_bytes(2, "little") for n in (*rows, *[0] * missing)
    )
    data = bytes([1]) + bytes(15) + widths + bytes(16) + bytes([*rows, *[0] * missing]) + bytes(8)
    text = ", ".join(f"i8 {b}" for b in data)
    unit.globals[name] = f"@{name} = internal constant [{len(data)} x i8] [{text}], align 64"
    return name
