"""rolling_buffer: iterations of a loop leave to the next one what it needs of a temporary, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unity.arith.polynomial import as_constant, from_expr, split_linear
from unity.arith.region import covers
from unity.ir.empty_reduction import conjuncts
from unity.ir.prim_expr import Binary, Compare, PrimExpr, PrimVar, imm
from unity.ir.stmt import Allocate, Block, Buffer, For, PrimFunc
from unity.ir.visit import variables, walk_stmt

from ....blocks.dataflow import accesses, axes_of_index, checked, loaded, sole_store, stored
from ....blocks.extents import number
from ....blocks.legality import breach, late_init
from ....blocks.motion import refuse_shifting
from ....blocks.site import Site, sites
from ....blocks.tree import (
    Outcome,
    Path,
    block_path,
    conjunction,
    driven,
    illegal,
    loop_path,
    loops_of,
    replaced,
    scope_path,
)
from .set_scope import laid_out
from .transform_layout import with_elements

BLOCK = "rolling_buffer, argument 1 'block'"
INDEX = "rolling_buffer, argument 2 'index'"
LOOP = "rolling_buffer, argument 3 'loop'"


def rolling_buffer(func: PrimFunc, name: str, index: int, var: PrimVar) -> Outcome:
    """A block makes in an iteration only what the one before did not, in a buffer that goes around.

    For windows that overlap: the temporary holds as many lines as one iteration needs, and a line
    that no iteration needs any more is where the next one is made. After TVM's ``rolling_buffer``;
    `store_at` comes before, `parallel` on loops further out as well.

    Args:
        func: The prim func.
        name: A block that was computed at the loop, and makes a temporary there.
        index: Which of its writes.
        var: A serial loop, in each iteration of which the block makes the same number of lines, by
            the same number of lines further on, before others read them.

    Raises:
        UnityError: The block or the loop is no such; iterations share no line; what the block reads
            changes in the loop.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 10, 4], c: f32[Buffer, 8, 4]) -> None:
    ...     t = T.alloc((10, 4), "float32")
    ...     for i, j in T.grid(10, 4):
    ...         with T.block("double"):
    ...             vi, vj = T.axis.remap("SS", i, j)
    ...             t[vi, vj] = a[vi, vj] * 2.0
    ...     for i, j in T.grid(8, 4):
    ...         with T.block("window"):
    ...             vi, vj = T.axis.remap("SS", i, j)
    ...             c[vi, vj] = t[vi, vj] + t[vi + 1, vj] + t[vi + 2, vj]
    ... ''').prim_funcs()["main"])
    >>> rows = sch.get_loops("window")[0]
    >>> sch.compute_at("double", rows)
    >>> sch.rolling_buffer("double", 0, rows)
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 10, 4], c: f32[Buffer, 8, 4]) -> None:
        t = T.alloc((3, 4), "float32")
        for i in range(8):
            for i_at, j_at in T.grid(3, 4):
                with T.block("double"):
                    vi = T.axis.spatial(10, i + i_at)
                    vj = T.axis.spatial(4, j_at)
                    T.where(i < 1 or i_at >= 2)
                    t[vi % 3, vj] = a[vi, vj] * 2.0
            for j in range(4):
                with T.block("window"):
                    vi, vj = T.axis.remap("SS", i, j)
                    c[vi, vj] = t[vi % 3, vj] + t[(vi + 1) % 3, vj] + t[(vi + 2) % 3, vj]
    """
    path, block = block_path(func, name)
    target, loop = loop_path(func, var)
    buffer = laid_out(func, name, index, "rolling_buffer")
    scope = scope_path(path)
    if not any(s is loop for s in scope[:-1]):
        raise illegal(LOOP, f"it is not around {name!r}")
    if loop.kind != "serial":
        raise illegal(LOOP, f"it is {loop.kind}: its iterations are in no order")
    if driven(block, var) - {"S"}:
        raise illegal(LOOP, f"{buffer.name!r} is complete only after {var.name!r}")
    _refuse_uses(func, target, block, buffer)
    at = next(k for k, s in enumerate(path) if s is loop)
    site = next(s for s in sites(loop.body, target) if s.block is block)
    whole = Site(block, path[at:-1], loops_of(path[at:]), site.known)
    why = breach(whole) or (late_init(site) if block.init is not None else None)
    if why is not None:
        raise illegal(BLOCK, why)
    refuse_shifting(BLOCK, func, path)
    for other in sorted(b.name for b in loaded(block) & (stored(loop.body) - {buffer})):
        raise illegal(BLOCK, f"{other!r}, which it reads, is stored to in the loop")
    _refuse_predicate(block, loop, site)
    lines = _lines(site, buffer, loop)
    ahead = known_difference(site, block.axes[lines.axis].value, lines.begin)
    old = Compare("ge", ahead, imm(lines.count - lines.step))
    first = Compare("lt", var, site.known.simplify(Binary("add", loop.begin, imm(1))))
    given = () if block.predicate is None else conjuncts(block.predicate)
    new = replace(block, predicate=conjunction([*given, Binary("or", first, old)]))
    shape = list(buffer.shape)
    shape[lines.dimension] = imm(lines.count)

    def around(indices: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        place = list(indices)
        place[lines.dimension] = Binary("floormod", place[lines.dimension], imm(lines.count))
        return tuple(place)

    folded = replace(buffer, shape=tuple(shape))
    done = with_elements(replaced(func, [(block, new)]), buffer, folded, around)
    return Outcome(checked(done, LOOP))


@dataclass(frozen=True, slots=True)
class _Lines:
    """What a block makes in an iteration along the one dimension that moves with the loop.

    Attributes:
        dimension: Of the buffer.
        axis: The number of the block's axis that indexes it.
        begin: The first line.
        count: How many there are.
        step: By how many the next iteration is further on.
    """

    dimension: int
    axis: int
    begin: PrimExpr
    count: int
    step: int


def known_difference(site: Site, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """How far one index is from another."""
    return site.known.simplify(Binary("sub", a, b))


def _lines(site: Site, buffer: Buffer, loop: For) -> _Lines:
    block = site.block
    region = next(r for r in block.writes if r.buffer is buffer)
    axes = axes_of_index([r.begin for r in region.ranges], block)
    box = replace(site, block=replace(block, predicate=None)).fills(buffer)
    if axes is None or box is None:
        raise illegal(INDEX, f"what is made of {buffer.name!r} in an iteration is no known box")
    moving = [k for k, r in enumerate(box) if loop.var in variables(r.begin)]
    if len(moving) != 1 or any(loop.var in variables(r.extent) for r in box):
        raise illegal(LOOP, f"{buffer.name!r} does not move along one dimension with it")
    k = moving[0]
    factor = split_linear(from_expr(site.known.simplify(box[k].begin)), loop.var)[1]
    step, count = None if factor is None else as_constant(factor), number(box[k].extent)
    if step is None or count is None or step < 1:
        raise illegal(LOOP, f"how far {buffer.name!r} moves on in an iteration is not known")
    if step >= count:
        raise illegal(LOOP, f"its iterations share nothing of {buffer.name!r}")
    number_of_axis = next(n for n, a in enumerate(block.axes) if a is axes[k])
    return _Lines(k, number_of_axis, box[k].begin, count, step)


def _refuse_uses(func: PrimFunc, target: Path, block: Block, buffer: Buffer) -> None:
    """Refuse a temporary that is used outside the loop, or not made before it is read there."""
    loop = target[-1]
    assert isinstance(loop, For)
    if not sole_store(block, buffer, func) or buffer.strides is not None:
        raise illegal(INDEX, f"others store to {buffer.name!r}, too, or it has strides")
    if any(isinstance(s, Allocate) and s.buffer is buffer for s in walk_stmt(loop.body)):
        raise illegal(LOOP, f"each of its iterations has its own {buffer.name!r}")
    uses = [a for part in accesses(func, buffer) for a in part]
    if any(a.block is None or all(s is not loop for s in a.path) for a in uses):
        raise illegal(LOOP, f"{buffer.name!r} is used outside of it, or outside any block")
    found = sites(loop.body, target)
    maker = next(k for k, s in enumerate(found) if s.block is block)
    box = found[maker].fills(buffer)
    for k, reader in enumerate(found):
        need = reader.touched(buffer) if k != maker else None
        if need is None:
            continue
        apart = not any(isinstance(s, For) and s in found[maker].above for s in reader.above)
        if k < maker or not apart or box is None or not covers(box, need, reader.known):
            why = f"{reader.block.name!r} may read of {buffer.name!r} what is not made there before"
            raise illegal(LOOP, why)


def _refuse_predicate(block: Block, loop: For, site: Site) -> None:
    """Refuse conditions that do not say the same of a point in each iteration."""
    inside = {loop.var, *(x.var for x in site.loops)}
    for part in () if block.predicate is None else conjuncts(block.predicate):
        match part:
            case Compare("lt", a, b) if not variables(b) & inside:
                fits = any(site.known.equal(a, axis.value) for axis in block.axes)
            case _:
                fits = not variables(part) & inside
        if not fits:
            raise illegal(BLOCK, f"{block.name!r} has a predicate that is more than ends of axes")
