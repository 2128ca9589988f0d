"""blockize: loops and the block in them as one block, over tiles."""

from __future__ import annotations

from dataclasses import replace

from unity.arith.region import extremes
from unity.ir.empty_reduction import conjuncts
from unity.ir.prim_expr import Binary, Compare, PrimExpr, PrimVar, imm
from unity.ir.stmt import Block, BlockAxis, For, PrimFunc, Range, Stmt
from unity.ir.visit import substitute_prim, substitute_stmt, variables

from ....blocks.extents import number
from ....blocks.legality import breach
from ....blocks.site import Site, iteration_map, sites
from ....blocks.tree import (
    Outcome,
    Values,
    all_blocks,
    around,
    block_path,
    blocks_below,
    conjunction,
    driven,
    illegal,
    loop_path,
    replaced,
    unique,
    with_regions,
)


def blockize(func: PrimFunc, var: PrimVar) -> Outcome:
    """A block around a loop, whose axes count tiles of what the loop goes through.

    Args:
        func: The prim func.
        var: A loop that holds nothing but loops and one block.

    Returns:
        The block around, under the predicate of the old one, which is inside it.

    Raises:
        UnityError: The loop holds more; what it goes through is no tile, tiles do not divide the
            block's domain, or only a part of one is under the block's predicate.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 8, 8], c: f32[Buffer, 8]) -> None:
    ...     for i, k in T.grid(8, 8):
    ...         with T.block("sum"):
    ...             vi, vk = T.axis.remap("SR", i, k)
    ...             with T.init():
    ...                 c[vi] = 0.0
    ...             c[vi] += a[vi, vk]
    ... ''').prim_funcs()["main"])
    >>> tiles = sch.tile(*sch.get_loops("sum"), 4, 4)
    >>> outer = sch.blockize(tiles[2])
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 8, 8], c: f32[Buffer, 8]) -> None:
        for i_0, k_0 in T.grid(2, 2):
            with T.block("sum_o"):
                vi_o, vk_o = T.axis.remap("SR", i_0, k_0)
                with T.init():
                    for i_1 in range(4):
                        with T.block("sum_init"):
                            vi = T.axis.spatial(8, vi_o * 4 + i_1)
                            c[vi] = 0.0
                for i_1, k_1 in T.grid(4, 4):
                    with T.block("sum"):
                        vi = T.axis.spatial(8, vi_o * 4 + i_1)
                        vk = T.axis.reduce(8, vk_o * 4 + k_1)
                        c[vi] += a[vi, vk]
    """
    where = "blockize, argument 1 'loop'"
    path, loop = loop_path(func, var)
    found = sites(loop, path[:-1])
    if len(found) != 1 or blocks_below(loop) != [found[0].block]:
        raise illegal(where, "it holds not one block")
    site = found[0]
    block = site.block
    below = block_path(replace(func, body=loop), block.name)[0]
    if len(below) != len(site.loops) + 1:
        raise illegal(where, "it holds more than loops and a block")
    predicate = None if block.predicate is None else _of_tile(block.predicate, site)
    if predicate is not None and variables(predicate) & {x.var for x in site.loops}:
        raise illegal(where, f"the predicate of {block.name!r} is not the same for all of it")
    if any(a.kind == "O" for a in block.axes) or any(x.kind == "thread" for x in site.loops):
        raise illegal(where, f"{block.name!r} has opaque axes or loops bound to threads")
    why = breach(site)
    if why is not None:
        raise illegal(where, why)
    inner = [x for x in site.loops if driven(block, x.var)]
    m = iteration_map([a.value for a in block.axes], inner, site.known)
    if m is None or not m.is_bijective():
        raise illegal(where, f"the loops are not known to go through a tile of {block.name!r}")
    axes: list[BlockAxis] = []
    within: list[BlockAxis] = []
    for axis, s in zip(block.axes, m.sums, strict=True):
        extent = m.compact_extent(s)
        assert extent is not None
        size = number(extent)
        tiles = Binary("floordiv", axis.domain.extent, extent)
        at = site.known.simplify(Binary("floordiv", s.base, extent))
        if size is None or size == 0 or axis.domain.begin != imm(0):
            raise illegal(where, f"the tile of axis {axis.var.name!r} has no constant size")
        exact = site.known.equal(Binary("mul", tiles, extent), axis.domain.extent)
        if not exact or not site.known.equal(Binary("mul", at, extent), s.base):
            raise illegal(where, f"tiles of {size} do not divide axis {axis.var.name!r}")
        if variables(at) & {x.var for x in site.loops}:
            raise illegal(where, f"axis {axis.var.name!r} is no tile and a place in it")
        outer = PrimVar(f"{axis.var.name}_o")
        count = site.known.simplify(tiles)
        axes.append(BlockAxis(outer, axis.kind, Range(imm(0), count), at))
        rest = site.known.simplify(Binary("sub", axis.value, s.base))
        value = Binary("add", Binary("mul", outer, extent), rest)
        within.append(replace(axis, value=site.known.simplify(value)))
    names = {b.name for b in all_blocks(func.body)}
    new = replace(block, axes=tuple(within), init=None, predicate=None)
    init: Stmt | None = None
    if block.init is not None:
        init = _init(block, within, [x for x in inner if driven(block, x.var) == {"S"}], names)
        if any(driven(block, x.var) == {"R", "S"} for x in inner):
            raise illegal(where, "a loop in it drives spatial and reduce axes")
        for x in site.loops:
            runs = site.known.prove(Compare("ge", x.extent, imm(1)))
            if not driven(block, x.var) and not runs:
                why = f"{x.var.name!r} may be empty: the init would run without {block.name!r}"
                raise illegal(where, why)
    body = replaced(replace(func, body=loop), [(block, with_regions(new))]).body
    name = unique(f"{block.name}_o", names)
    whole = with_regions(Block(name, tuple(axes), (), (), body, init, predicate))
    return Outcome(replaced(func, [(loop, whole)]), blocks=(name,))


def _of_tile(predicate: PrimExpr, site: Site) -> PrimExpr:
    """A predicate, upper limits of it asked of a tile's first element where it is the same for all.

    That is where steps from tile to tile lead to the limit: ``i * 4 + j < 12``, of four `j`.
    """
    first: Values = {x.var: x.begin for x in site.loops}
    over = {x.var: Range(x.begin, x.extent) for x in site.loops}
    parts: list[PrimExpr] = []
    for part in conjuncts(predicate):
        parts.append(part)
        if not isinstance(part, Compare) or part.op != "lt" or not variables(part.a) & over.keys():
            continue
        ends, begin = extremes(part.a, over, site.known), substitute_prim(part.a, first)
        if ends is None or variables(part.b) & over.keys():
            continue
        span = Binary("add", Binary("sub", ends[1], ends[0]), imm(1))
        room = Binary("floormod", Binary("sub", part.b, begin), site.known.simplify(span))
        if site.known.equal(ends[0], begin) and site.known.equal(room, imm(0)):
            parts[-1] = Compare("lt", site.known.simplify(begin), part.b)
    result = conjunction(parts)
    assert result is not None
    return result


def _init(block: Block, within: list[BlockAxis], loops: list[For], names: set[str]) -> Stmt:
    """The init over a tile."""
    assert block.init is not None
    axes = [a for a in within if a.kind == "S"]
    mine: Values = {a.var: PrimVar(a.var.name) for a in axes}
    made = [
        replace(a, var=v)
        for a, v in zip(axes, mine.values(), strict=True)
        if isinstance(v, PrimVar)
    ]
    name = unique(f"{block.name}_init", names)
    inner = Block(name, tuple(made), (), (), substitute_stmt(block.init, mine))
    fresh: Values = {x.var: PrimVar(x.var.name) for x in loops}
    return substitute_stmt(around(loops, with_regions(inner)), fresh)
