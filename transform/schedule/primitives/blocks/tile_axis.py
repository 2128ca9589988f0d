"""tile_axis: an axis of what makes a temporary becomes tiles of one size, all of them full."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from unity.arith import Analyzer
from unity.ir.empty_reduction import conjuncts
from unity.ir.foreign import symbols_in
from unity.ir.prim_expr import Binary, Compare, Load, Not, PrimExpr, PrimVar, imm
from unity.ir.stmt import Block, BlockAxis, Buffer, For, IfThen, PrimFunc, Range, Stmt, Store
from unity.ir.visit import rewrite_stmt, stmt_loads, substitute_stmt, variables, walk_stmt

from ....blocks.dataflow import addressed_in, checked, is_param, sole_store
from ....blocks.legality import breach
from ....blocks.site import Site
from ....blocks.tree import (
    Outcome,
    Path,
    Values,
    around,
    block_path,
    illegal,
    is_zero,
    known_above,
    replaced,
    with_regions,
)
from ..location.compute_at import made_by
from ..storage.transform_layout import with_elements

BLOCK = "tile_axis, argument 1 'block'"
AXIS = "tile_axis, argument 2 'axis'"


def tile_axis(func: PrimFunc, name: str, index: int, size: int) -> Outcome:
    """An axis becomes two, tiles and places in them, and so does the dimension it indexes.

    Where tiles do not divide the axis, the last one begins earlier, so that it is full: what it
    shares with the one before is computed twice, of the same. So a tile is always as an instruction
    wants it, without anything behind the end. Along an axis that may be shorter than a tile, places
    past the end compute its last point.

    Args:
        func: The prim func.
        name: A block that makes a temporary, directly in one serial loop for each of its axes.
        index: Which of its axes: a spatial one, which indexes the temporary once.
        size: Of a tile.

    Raises:
        UnityError: There is no such block or axis; the size is not positive.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 10], c: f32[Buffer, 10]) -> None:
    ...     t = T.alloc((10,), "float32")
    ...     for i in range(10):
    ...         with T.block("double"):
    ...             vi = T.axis.remap("S", i)
    ...             t[vi] = a[vi] * 2.0
    ...     for i in range(10):
    ...         with T.block("copy"):
    ...             vi = T.axis.remap("S", i)
    ...             c[vi] = t[vi]
    ... ''').prim_funcs()["main"])
    >>> sch.tile_axis("double", 0, 4)
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 10], c: f32[Buffer, 10]) -> None:
        t = T.alloc((3, 4), "float32")
        for i_tile, i in T.grid(3, 4):
            with T.block("double"):
                vi_tile, vi = T.axis.remap("SS", i_tile, i)
                t[vi_tile, vi] = a[T.min(6, vi_tile * 4) + vi] * 2.0
        for i in range(10):
            with T.block("copy"):
                vi = T.axis.remap("S", i)
                c[vi] = t[vi // 4, (vi - T.min(6, vi // 4 * 4)) % 4]
    """
    path, block = block_path(func, name)
    loops = plain_loops(BLOCK, path, block)
    if not 0 <= index < len(block.axes) or block.axes[index].kind != "S":
        raise illegal(AXIS, f"{name!r} has no spatial axis {index}")
    if size < 1:
        raise illegal("tile_axis, argument 3 'size'", f"it must be positive, got {size}")
    axis, known = block.axes[index], known_above(path)
    buffer = made_by(BLOCK, block)
    dimension = dimension_of((BLOCK, AXIS), func, block, axis, buffer)
    tiles = Tiles(axis.domain.extent, size, known, asked(path))
    tile = PrimVar(f"{axis.var.name}_tile")
    place = PrimVar(axis.var.name)
    loop = next(x for x in loops if x.var is axis.value)
    each, within = PrimVar(f"{loop.var.name}_tile"), PrimVar(loop.var.name)
    made = [
        BlockAxis(tile, "S", Range(imm(0), tiles.count), each),
        BlockAxis(place, "S", Range(imm(0), imm(size)), within),
    ]
    axes = (*block.axes[:index], *made, *block.axes[index + 1 :])
    nest: list[For] = []
    for x in loops:
        if x is loop:
            nest.append(replace(x, var=each, extent=tiles.count))
            nest.append(replace(x, var=within, extent=imm(size)))
        else:
            nest.append(x)
    shape = buffer.shape
    grown = (*shape[:dimension], tiles.count, imm(size), *shape[dimension + 1 :])
    new = replace(buffer, shape=grown, separators=())

    def own(at: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        return (*at[:dimension], tile, place, *at[dimension + 1 :])

    def read(at: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        return (*at[:dimension], *tiles.of(at[dimension]), *at[dimension + 1 :])

    values: Values = {axis.var: tiles.index(tile, place)}

    def moved(s: Stmt) -> Stmt:
        return substitute_stmt(moved_to(s, buffer, new, own), values)

    inside = replace(
        block,
        axes=axes,
        body=moved(block.body),
        init=None if block.init is None else moved(block.init),
    )
    done = replaced(func, [(loops[0], around(nest, with_regions(inside)))])
    return Outcome(checked(with_elements(done, buffer, new, read), BLOCK))


class Tiles:
    """Tiles of one size along an axis; see `tile_axis`.

    Attributes:
        count: How many there are.
        fit: Whether there is surely one at least that is full of points.
    """

    def __init__(
        self, extent: PrimExpr, size: int, known: Analyzer, asked: Sequence[PrimExpr]
    ) -> None:
        def is_least(e: PrimExpr) -> bool:
            """Whether something is never negative where the block runs."""
            return any(
                known.prove(Compare("ge", x, imm(0)))
                for x in (e, *(Binary("sub", e, fact) for fact in asked))
            )

        self.extent, self.size, self.known = extent, imm(size), known
        self.fit = is_least(Binary("sub", extent, self.size))
        some = is_least(Binary("sub", extent, imm(1)))
        self.single = some and is_least(Binary("sub", self.size, extent))
        rounded = Binary("floordiv", Binary("add", extent, imm(size - 1)), self.size)
        self.count = imm(1) if self.single else known.simplify(rounded)
        self.divide = known.equal(Binary("mul", self.count, self.size), extent)

    def begin(self, tile: PrimExpr) -> PrimExpr:
        """Where a tile begins."""
        if self.single:
            return imm(0)
        here = Binary("mul", tile, self.size)
        if self.divide:
            return here
        last = self.known.simplify(Binary("sub", self.extent, self.size))
        if not self.fit:
            last = Binary("max", last, imm(0))
        return Binary("min", last, here)

    def index(self, tile: PrimExpr, place: PrimExpr) -> PrimExpr:
        """The point of the axis at a place in a tile."""
        point = place if self.single else Binary("add", self.begin(tile), place)
        if self.divide or self.fit:
            return point
        return Binary("min", self.known.simplify(Binary("sub", self.extent, imm(1))), point)

    def of(self, index: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
        """The tile that an index is read from, and the place in it: the remainder says its end."""
        if self.single:
            return imm(0), Binary("floormod", index, self.size)
        tile = Binary("floordiv", index, self.size)
        from_begin = index if self.divide else Binary("sub", index, self.begin(tile))
        return tile, Binary("floormod", from_begin, self.size)


def asked(path: Path) -> list[PrimExpr]:
    """What is no less than 0 at a place because of conditions around it."""
    found: list[PrimExpr] = []
    for s, inner in pairwise(path):
        if not isinstance(s, IfThen):
            continue
        parts = conjuncts(s.condition)
        if inner is not s.then:
            parts = tuple(Analyzer().simplify(Not(p)) for p in parts if len(parts) == 1)
        for part in parts:
            match part:
                case Compare("ge", more, less) | Compare("le", less, more):
                    found.append(Binary("sub", more, less))
                case Compare("gt", more, less) | Compare("lt", less, more):
                    found.append(Binary("sub", Binary("sub", more, less), imm(1)))
                case _:
                    pass
    return found


def axis_loops(where: str, path: Path, block: Block) -> tuple[For, ...]:
    """The loops directly around a block, a serial one over each of its axes.

    Args:
        where: The argument that names the block.
        path: To the block.
        block: It.
    """
    around_it = path[len(path) - 1 - len(block.axes) : -1]
    loops = tuple(s for s in around_it if isinstance(s, For))
    values = [a.value for a in block.axes]
    if len(loops) != len(values) or {x.var for x in loops} != set(values) or not loops:
        raise illegal(where, f"{block.name!r} is not directly in one loop for each of its axes")
    for axis in block.axes:
        loop = next(x for x in loops if x.var is axis.value)
        whole = is_zero(axis.domain.begin) and is_zero(loop.begin)
        if not whole or loop.extent != axis.domain.extent or loop.kind != "serial":
            raise illegal(where, f"{loop.var.name!r} is no serial loop over a whole axis")
        if variables(loop.extent):
            raise illegal(where, f"the extent of {loop.var.name!r} is no size")
    return loops


def plain_loops(where: str, path: Path, block: Block) -> tuple[For, ...]:
    """The same of a block that does what it says, with nothing of its own."""
    loops = axis_loops(where, path, block)
    if block.predicate is not None or block.allocations or symbols_in(block.body):
        has = "has a predicate, memory of its own, or calls a foreign function"
        raise illegal(where, f"{block.name!r} {has}")
    why = breach(Site(block, path[len(path) - 1 - len(block.axes) : -1], loops, known_above(path)))
    if why is not None:
        raise illegal(where, why)
    return loops


def dimension_of(
    where: tuple[str, str], func: PrimFunc, block: Block, axis: BlockAxis, buffer: Buffer
) -> int:
    """Which dimension of what a block makes an axis indexes.

    Args:
        where: The arguments that name the block and the axis.
        func: The prim func.
        block: The block.
        axis: One of its axes.
        buffer: What it makes.
    """
    if is_param(func, buffer) or buffer.strides is not None:
        raise illegal(where[0], f"it stores to {buffer.name!r}, which is no temporary of its own")
    if not sole_store(block, buffer, func) or buffer in addressed_in(func.body):
        raise illegal(
            where[0], f"{buffer.name!r} is touched by more than it and what loads from it"
        )
    parts = [s for s in (block.body, block.init) if s is not None]
    inside = [s for part in parts for s in walk_stmt(part)]
    at = {s.indices for s in inside if isinstance(s, Store)}
    at |= {x.indices for s in inside for x in stmt_loads(s) if x.buffer is buffer}
    if len(at) != 1:
        raise illegal(where[0], f"it touches {buffer.name!r} at several places")
    (indices,) = at
    found = [k for k, i in enumerate(indices) if axis.var in variables(i)]
    if len(found) != 1 or indices[found[0]] is not axis.var:
        raise illegal(where[1], f"{axis.var.name!r} does not index {buffer.name!r} once")
    if buffer.shape[found[0]] != axis.domain.extent:
        raise illegal(where[1], f"{buffer.name!r} is longer than {axis.var.name!r} runs")
    return found[0]


def moved_to(
    s: Stmt, buffer: Buffer, new: Buffer, at: Callable[[Sequence[PrimExpr]], tuple[PrimExpr, ...]]
) -> Stmt:
    """A statement that touches another buffer elsewhere."""

    def on_expr(e: PrimExpr) -> PrimExpr | None:
        return Load(new, at(e.indices)) if isinstance(e, Load) and e.buffer is buffer else None

    def on_stmt(x: Stmt) -> Stmt | None:
        if isinstance(x, Store) and x.buffer is buffer:
            return replace(x, buffer=new, indices=at(x.indices))
        return None

    return rewrite_stmt(s, on_stmt, on_expr)
