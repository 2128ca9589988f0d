"""Dot products of narrow numbers as tensor intrinsics: AMX tiles, AVX-512 BF16 and VNNI, AVX2.

All take the right operand with the depth in groups of 4 bytes, ``(k / group, n, group)``, and add
to a result of 4 bytes: ``c[m, n] += a[m, k] * b[k / group, n, k % group]``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

from unity.ir.dtype import DType
from unity.ir.prim_expr import Binary, Cast, Load, PrimExpr, PrimVar, imm
from unity.ir.regions import add, block_regions, multiply
from unity.ir.stmt import AxisKind, Block, BlockAxis, Buffer, For, PrimFunc, Range, Seq, Stmt, Store
from unity.machine.dot_units import DOT_UNITS, SIDE, DotUnit, group_of

from .marked import (
    accumulator,
    lane_dot,
    operand,
    tile_dot,
    tile_load,
    tile_store,
    tile_zero,
    within,
)
from .tensor_intrinsic import TensorIntrinsic

TILE_STEP_NAMES = ("zero", "left", "right", "dot", "store")
"""What a sum on tiles is made of."""


def tiles(a: DType, b: DType, out: DType, rows: int, columns: int) -> TensorIntrinsic:
    """AMX: rows by columns, each 16 or 32, over a depth of 64 bytes."""
    c, left, right = _buffers(a, b, out, (rows, columns, 16))
    group = group_of(a)
    cs = {
        (i, j): accumulator(f"c{i}{j}", 16, out)
        for i in range(rows // 16)
        for j in range(columns // 16)
    }
    rights = [operand(f"b{j}", 16, b) for j in range(columns // 16)]
    lefts = [operand(f"a{i}", 16, a) for i in range(rows // 16)]

    def at_left(i: int, x: Sequence[PrimVar]) -> Load:
        m, k, p = x
        return Load(left, (add(m, imm(16 * i)), add(multiply(k, imm(group)), p)))

    def at_right(j: int, x: Sequence[PrimVar]) -> Load:
        k, n, p = x
        return Load(right, (k, add(n, imm(16 * j)), p))

    def at_result(ij: tuple[int, int], x: Sequence[PrimVar]) -> Load:
        (i, j), (m, n) = ij, x
        return Load(c, (add(m, imm(16 * i)), add(n, imm(16 * j))))

    steps: list[Stmt] = []
    steps += [tile_load(t, partial(at_result, ij)) for ij, t in cs.items()]
    steps += [tile_load(t, partial(at_right, j)) for j, t in enumerate(rights)]
    steps += [tile_load(t, partial(at_left, i)) for i, t in enumerate(lefts)]
    steps += [tile_dot(t, lefts[i], rights[j]) for (i, j), t in cs.items()]
    steps += [tile_store(t, partial(at_result, ij)) for ij, t in cs.items()]
    body = within([*cs.values(), *lefts, *rights], Seq(tuple(steps)))
    return _intrinsic((c, left, right), (rows, columns, 16, group), body)


def lanes(a: DType, b: DType, out: DType, count: int) -> TensorIntrinsic:
    """A vector register of columns over a depth of 4 bytes."""
    group = group_of(a)
    left = Buffer("a", (imm(group),), a)
    right = Buffer("b", (imm(count), imm(group)), b)
    c = Buffer("c", (imm(count),), out)
    body = lane_dot(
        lambda x: Load(c, tuple(x)),
        lambda x: Load(left, tuple(x)),
        lambda x: Load(right, tuple(x)),
        count,
        group,
    )
    return _intrinsic((c, left, right), (count, group), body)


def tile_steps(unit: DotUnit, rows: int = SIDE) -> dict[str, TensorIntrinsic]:
    """AMX, an instruction each, on buffers of scope `TILES`, of which each holds some tiles.

    What a sum over many steps is made of, whose tiles stay in registers: ``zero`` and ``store`` for
    a tile of sums, ``left`` and ``right`` (loads) for one of operands (rows or groups of depth, 16,
    places), ``dot``.

    Args:
        unit: What adds up.
        rows: Of tiles of sums and of the left operand, 16 at most.
    """
    a, b = operand("a", rows, unit.left), operand("b", SIDE, unit.right)
    c = accumulator("c", rows, unit.out)
    group = group_of(unit.left)
    out = Buffer("x", c.shape, c.dtype)
    made = {
        "zero": _elementwise((c,), lambda at: imm(0, c.dtype), tile_zero(c)),
        "store": _elementwise(
            (c, out), lambda at: Load(c, at), tile_store(c, lambda x: Load(out, tuple(x)))
        ),
        "dot": _intrinsic((c, a, b), (rows, SIDE, SIDE, group), tile_dot(c, a, b)),
    }
    for side, tile in (("left", a), ("right", b)):
        x = Buffer("x", tile.shape, tile.dtype)
        load = tile_load(tile, partial(_element, x))
        made[side] = _elementwise((x, tile), partial(Load, x), load)
    return {tile_step(unit, step, rows): made[step] for step in TILE_STEP_NAMES}


def tile_step(unit: DotUnit, step: str, rows: int = SIDE) -> str:
    """The name of one of `TILE_STEP_NAMES` on tiles of some rows."""
    short = "" if rows == SIDE else f"_{rows}_rows"
    return f"{unit.name}_{step}{short}"


@cache
def short_tile_step(name: str) -> TensorIntrinsic | None:
    """A step on tiles of fewer rows than 16, by its name; None for any other name."""
    for unit in _TILE_UNITS:
        for rows in range(1, SIDE):
            if name in {tile_step(unit, step, rows) for step in TILE_STEP_NAMES}:
                return tile_steps(unit, rows)[name]
    return None


def _element(x: Buffer, index: Sequence[PrimVar]) -> Load:
    return Load(x, tuple(index))


def _elementwise(
    buffers: Sequence[Buffer], value: Callable[[tuple[PrimExpr, ...]], PrimExpr], body: Stmt
) -> TensorIntrinsic:
    """What stores to each element of the last buffer."""
    out = buffers[-1]
    loops = [PrimVar(f"i{k}") for k in range(len(out.shape))]
    axes = [PrimVar(f"v{k}") for k in range(len(out.shape))]
    at: tuple[PrimExpr, ...] = tuple(axes)
    store = Store(out, at, value(at))
    reads, writes = block_regions(store, None, axes)
    bound = tuple(
        BlockAxis(v, "S", Range(imm(0), n), x)
        for v, n, x in zip(axes, out.shape, loops, strict=True)
    )
    described: Stmt = Block("tile", bound, reads, writes, store)
    for var, extent in zip(reversed(loops), reversed(out.shape), strict=True):
        described = For(var, imm(0), extent, described)
    params = tuple(buffers)
    return TensorIntrinsic(PrimFunc(params, described), PrimFunc(params, body))


def _buffers(
    a: DType, b: DType, out: DType, extents: tuple[int, int, int]
) -> tuple[Buffer, Buffer, Buffer]:
    m, n, k = extents
    group = group_of(a)
    return (
        Buffer("c", (imm(m), imm(n)), out),
        Buffer("a", (imm(m), imm(k * group)), a),
        Buffer("b", (imm(k), imm(n), imm(group)), b),
    )


def _intrinsic(
    buffers: tuple[Buffer, Buffer, Buffer], extents: Sequence[int], body: Stmt
) -> TensorIntrinsic:
    c, a, b = buffers
    params = (a, b, c)
    return TensorIntrinsic(PrimFunc(params, _described(c, a, b, extents)), PrimFunc(params, body))


def _described(c: Buffer, a: Buffer, b: Buffer, extents: Sequence[int]) -> Stmt:
    """The loops and the block; without rows and depth where there is one of each."""
    names = ("m", "n", "k", "p") if len(extents) == 4 else ("n", "p")
    loops = [PrimVar(x) for x in names]
    axes = [PrimVar(f"v{x}") for x in names]
    *rest, p = axes
    group = imm(extents[-1])
    if len(axes) == 4:
        m, n, k = rest
        at_a: tuple[PrimExpr, ...] = (m, add(multiply(k, group), p))
        if len(a.shape) == 3:
            at_a = (m, k, p)
        at_b: tuple[PrimExpr, ...] = (k, n, p)
        at_c: tuple[PrimExpr, ...] = (m, n)
    else:
        (n,) = rest
        at_a, at_b, at_c = (p,), (n, p), (n,)
    here = Load(c, at_c)
    product = Binary("mul", Cast(c.dtype, Load(a, at_a)), Cast(c.dtype, Load(b, at_b)))
    store = Store(c, at_c, Binary("add", here, product))
    reads, writes = block_regions(store, None, axes)
    kinds: tuple[AxisKind, ...] = ("S", "S", "R", "R") if len(axes) == 4 else ("S", "R")
    bound = tuple(
        BlockAxis(v, kind, Range(imm(0), imm(e)), x)
        for v, kind, e, x in zip(axes, kinds, extents, loops, strict=True)
    )
    body: Stmt = Block("dot", bound, reads, writes, store)
    for var, extent in zip(reversed(loops), reversed(extents), strict=True):
        body = For(var, imm(0), imm(extent), body)
    return body


def _of(unit: DotUnit) -> dict[str, TensorIntrinsic]:
    """The intrinsics of a unit: blocks of one tile or two by two, registers of two widths."""
    given, group = (unit.left, unit.right, unit.out), group_of(unit.left)
    if unit.form == "lanes":
        return {intrinsic_of(unit, n): lanes(*given, n) for n in unit.lane_counts}
    depth = SIDE * group
    return {f"{unit.name}_{n}x{n}x{depth}": tiles(*given, n, n) for n in (16, 32)}


def intrinsic_of(unit: DotUnit, count: int) -> str:
    """The name of what a unit of lanes does with so many sums."""
    return f"{unit.name}_{count}x{group_of(unit.left)}"


_TILE_UNITS = tuple(unit for unit in DOT_UNITS if unit.form == "tile")
DOTS: dict[str, TensorIntrinsic] = {k: v for unit in DOT_UNITS for k, v in _of(unit).items()}
"""By name: the unit, the operands, then columns (and rows, for tiles) and depth."""

TILE_STEPS: dict[str, TensorIntrinsic] = {
    k: v for unit in _TILE_UNITS for k, v in tile_steps(unit).items()
}
"""Those of whole tiles, by name: the unit, then the step."""
