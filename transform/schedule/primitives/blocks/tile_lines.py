"""tile_lines: some lines of what makes a temporary become a tile, one even walk through memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unity.arith.polynomial import from_expr
from unity.ir.prim_expr import Binary, Cast, Load, PrimExpr, PrimVar, imm
from unity.ir.stmt import Block, BlockAxis, Buffer, For, PrimFunc, Range, Stmt, Store
from unity.ir.visit import rewrite_stmt, substitute_prim, substitute_stmt, variables
from unity.script.printer import text

from ....blocks.access import mentions, step
from ....blocks.dataflow import checked
from ....blocks.extents import number
from ....blocks.tree import (
    Outcome,
    Values,
    around,
    block_path,
    illegal,
    known_above,
    replaced,
    with_regions,
)
from ..location.compute_at import made_by
from ..storage.transform_layout import with_elements
from .tile_axis import Tiles, asked, dimension_of, moved_to, plain_loops

BLOCK = "tile_lines, argument 1 'block'"
AXIS = "tile_lines, argument 2 'axis'"
LINES = "tile_lines, argument 3 'lines'"
ARITHMETIC = ("add", "sub", "mul", "div", "min", "max", "fmin", "fmax")
"""Operations that may be done on whatever values there are."""


def tile_lines(func: PrimFunc, name: str, index: int, lines: int) -> Outcome:
    """Lines and the points on them become tiles, and places in a tile that go on over its lines.

    Where the next line of what is read lies no further off than a line's points go, all of a tile
    is one even walk through memory, as instructions want it. What lies between the end of a line
    and the next is computed as well, and read by nobody. Where tiles do not divide the lines, the
    last one begins earlier, so that it is full; see `tile_axis`.

    Args:
        func: The prim func.
        name: A block that makes a temporary, directly in one serial loop for each of its axes.
        index: Which of its axes goes through lines: a spatial one, which indexes the temporary
            once, as does the one behind it, which goes along a line. It has `lines` at least.
        lines: Of a tile.

    Raises:
        UnityError: There are no such axes; they do more than say where it reads; a line of what is
            read is at no even distance of points from the next, or longer than that; there are
            fewer lines.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 6, 5], c: f32[Buffer, 4, 3]) -> None:
    ...     t = T.alloc((4, 3), "float32")
    ...     for i, j in T.grid(4, 3):
    ...         with T.block("double"):
    ...             vi, vj = T.axis.remap("SS", i, j)
    ...             t[vi, vj] = a[vi + 2, vj + 1] * 2.0
    ...     for i, j in T.grid(4, 3):
    ...         with T.block("copy"):
    ...             vi, vj = T.axis.remap("SS", i, j)
    ...             c[vi, vj] = t[vi, vj]
    ... ''').prim_funcs()["main"])
    >>> sch.tile_lines("double", 0, 2)
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 6, 5], c: f32[Buffer, 4, 3]) -> None:
        t = T.alloc((2, 8), "float32")
        for i_tile, j in T.grid(2, 8):
            with T.block("double"):
                vi_tile, vj = T.axis.remap("SS", i_tile, j)
                t[vi_tile, vj] = a[vi_tile * 2 + 2 + (vj + 1) // 5, (vj + 1) % 5] * 2.0
        for i, j in T.grid(4, 3):
            with T.block("copy"):
                vi, vj = T.axis.remap("SS", i, j)
                c[vi, vj] = t[vi // 2, vi % 2 * 5 + vj]
    """
    path, block = block_path(func, name)
    loops = plain_loops(BLOCK, path, block)
    last = len(block.axes) - 1
    if not 0 <= index < last or any(a.kind != "S" for a in block.axes[index : index + 2]):
        raise illegal(AXIS, f"{name!r} has no spatial axes {index} and {index + 1}")
    if lines < 1:
        raise illegal(LINES, f"it must be positive, got {lines}")
    line, point = block.axes[index : index + 2]
    known, buffer = known_above(path), made_by(BLOCK, block)
    at = dimension_of((BLOCK, AXIS), func, block, line, buffer)
    if dimension_of((BLOCK, AXIS), func, block, point, buffer) != at + 1:
        raise illegal(AXIS, f"{point.var.name!r} does not index {buffer.name!r} next to it")
    width = number(point.domain.extent)
    if not width:
        raise illegal(AXIS, f"{point.var.name!r} has no known extent")
    tiles = Tiles(line.domain.extent, lines, known, asked(path))
    if not tiles.fit:
        raise illegal(LINES, f"it is not known that there are {lines} lines")
    pitch = _pitch(block, line.var, point.var)
    if pitch < width:
        raise illegal(AXIS, f"a line of {width} points is {pitch} before the next")
    size = (lines - 1) * pitch + width
    tile, place = PrimVar(f"{line.var.name}_tile"), PrimVar(point.var.name)
    of_lines = next(x for x in loops if x.var is line.value)
    of_points = next(x for x in loops if x.var is point.value)
    each, within = PrimVar(f"{of_lines.var.name}_tile"), PrimVar(of_points.var.name)
    made = (
        BlockAxis(tile, "S", Range(imm(0), tiles.count), each),
        BlockAxis(place, "S", Range(imm(0), imm(size)), within),
    )
    axes = (*block.axes[:index], *made, *block.axes[index + 2 :])
    nest: list[For] = []
    for x in loops:
        if x is of_lines:
            nest.append(replace(x, var=each, extent=tiles.count))
        elif x is of_points:
            nest.append(replace(x, var=within, extent=imm(size)))
        else:
            nest.append(x)
    shape = buffer.shape
    grown = (*shape[:at], tiles.count, imm(size), *shape[at + 2 :])
    new = replace(buffer, shape=grown, separators=())

    def own(indices: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        return (*indices[:at], tile, place, *indices[at + 2 :])

    def read(indices: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        tile_of, line_of = tiles.of(indices[at])
        there = Binary("add", Binary("mul", line_of, imm(pitch)), indices[at + 1])
        return (*indices[:at], tile_of, there, *indices[at + 2 :])

    values: Values = {line.var: tiles.begin(tile), point.var: place}

    def moved(s: Stmt) -> Stmt:
        return substitute_stmt(
            _carried(moved_to(s, buffer, new, own), line.var, point.var, values), values
        )

    inside = replace(
        block,
        axes=axes,
        body=moved(block.body),
        init=None if block.init is None else moved(block.init),
    )
    done = replaced(func, [(loops[0], around(nest, with_regions(inside)))])
    return Outcome(checked(with_elements(done, buffer, new, read), BLOCK))


@dataclass(frozen=True, slots=True)
class _Walk:
    """How a load goes through lines and along one.

    Attributes:
        dimension: The one that goes along a line; that before it goes through lines.
        pitch: Points of a line before the next begins.
    """

    dimension: int
    pitch: int


def _pitch(block: Block, line: PrimVar, point: PrimVar) -> int:
    """Points from a line of what a block reads to the next one."""
    pitches: set[int] = set()
    for part in (block.body, block.init):
        match part:
            case Store(predicate=None):
                for load in _moving(part.value, {line, point}, part.buffer):
                    pitches.add(_walk(load, line, point).pitch)
            case None:
                pass
            case _:
                raise illegal(BLOCK, f"{block.name!r} does more than store a value")
    if len(pitches) != 1:
        found = ", ".join(map(str, sorted(pitches))) or "none"
        raise illegal(AXIS, f"what is read is not at one distance of lines, but {found}")
    return pitches.pop()


def _moving(e: PrimExpr, of: set[PrimVar], own: Buffer) -> list[Load]:
    """The loads of a value that move along axes; they are done wherever it is computed."""
    if not variables(e) & of or (isinstance(e, Load) and e.buffer is own):
        return []
    match e:
        case Load(predicate=None):
            return [e]
        case Binary(op, a, b) if op in ARITHMETIC:
            return [*_moving(a, of, own), *_moving(b, of, own)]
        case Cast(_, value):
            return _moving(value, of, own)
        case _:
            raise illegal(AXIS, f"more than what is read depends on it: {text(e)}")


def _walk(load: Load, line: PrimVar, point: PrimVar) -> _Walk:
    """How a load goes through lines."""
    moved = [k for k, i in enumerate(load.indices) if variables(i) & {line, point}]
    if len(moved) == 2 and moved[1] == moved[0] + 1:
        indices = [from_expr(load.indices[k]) for k in moved]
        far, near = step(indices[0], line) or 0, step(indices[1], point) or 0
        others = mentions(indices[0], point) or mentions(indices[1], line)
        length = number(load.buffer.shape[moved[1]]) or 0
        if far > 0 and near > 0 and not others and far * length % near == 0:
            return _Walk(moved[1], far * length // near)
    raise illegal(AXIS, f"{text(load)} does not go evenly from line to line")


def _carried(s: Stmt, line: PrimVar, point: PrimVar, values: Values) -> Stmt:
    """A statement that reads at places of a tile: past the end of a line, on one of the next.

    All of these lie between two places that are points, so that they lie in the buffer.
    """

    def on_load(e: Load) -> PrimExpr | None:
        if not variables(e) & {line, point}:
            return None
        k = _walk(e, line, point).dimension
        before, along = (substitute_prim(e.indices[x], values) for x in (k - 1, k))
        length = e.buffer.shape[k]
        row = Binary("add", before, Binary("floordiv", along, length))
        rest = (*e.indices[: k - 1], row, Binary("floormod", along, length), *e.indices[k + 1 :])
        return replace(e, indices=rest)

    return rewrite_stmt(s, lambda _: None, load_fn=on_load)
