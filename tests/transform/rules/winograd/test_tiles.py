"""Tile groups: transforms of tiles and their products done some tiles at a time, for any extent."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest

from tests.transform.cases import floats
from tests.transform.schedule.printed import difference
from tests.transform.tensor.kernels import after, assert_same
from unity.arith import Analyzer
from unity.errors import UnityError
from unity.interpreter import run_prim_func
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, Symbol, dim, evaluate, floordiv, symbols_of
from unity.ir.marks import COMPACT, TAIL
from unity.ir.prim_expr import Binary, Compare, PrimExpr, imm
from unity.ir.stmt import Allocate, For, IfThen, PrimFunc, Seq, Store
from unity.ir.symbols.convert import size_var
from unity.ir.visit import walk_stmt
from unity.machine.target import Target
from unity.op.table import OPS
from unity.script import parse
from unity.transform.blocks.extents import number
from unity.transform.blocks.nest import nest_of, opened
from unity.transform.graph import FuseOps, FuseTir, LegalizeOps
from unity.transform.passes import Context
from unity.transform.roles.winograd import TileGroup, tile_group
from unity.transform.rules.default import schedule
from unity.transform.rules.winograd.plan import plan_for, sharers
from unity.transform.schedule import Schedule, default_rules, default_schedule
from unity.transform.tensor import CompactBuffers, OpenBlocks, PartitionLoops

from ..kernels import lowered, unscheduled

TARGET = replace(Context().target, vector_bits=128, vector_registers=16, threads=2)
"""Four lanes keep the interpreter's work small."""
LARGE = replace(TARGET, vector_bits=512, vector_registers=32, threads=1, l2_bytes=2 << 20)


def kernel(x: tuple[Dim, ...], w: tuple[int, ...], **attrs: int | tuple[int, ...]) -> PrimFunc:
    """The unscheduled kernel of nn.conv2d_winograd."""
    return unscheduled("nn.conv2d_winograd", (x, w), attrs)[0]


def group_of(func: PrimFunc, target: Target) -> TileGroup | None:
    """What the stages of a kernel are told to be."""
    temporaries, body = set(), func.body
    while isinstance(body, Allocate):
        temporaries.add(body.buffer)
        body = body.body
    assert isinstance(body, Seq)
    return tile_group([nest_of(s) or s for s in body.stmts], temporaries, target)


@pytest.mark.rotated(2)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("x", "w", "attrs"),
    [
        ((1, 2, 9, 6, 4), (6, 6, 3, 2, 4, 4), {"tile": 4, "padding": 1}),
        ((2, 1, 8, 8, 4), (6, 6, 2, 1, 4, 4), {"tile": 4}),
        ((1, 2, 5, 7, 4), (4, 4, 4, 2, 4, 4), {"tile": 2, "padding": (0, 1, 2, 1)}),
        ((1, 1, 3, 3, 4), (6, 6, 1, 1, 4, 4), {"tile": 4, "padding": 1}),
        ((3, 1, 14, 5, 4), (4, 4, 2, 1, 4, 4), {"tile": 2, "padding": 1}),
    ],
)
def test_laid_out_it_computes_the_same(
    x: tuple[int, ...], w: tuple[int, ...], attrs: dict[str, int | tuple[int, ...]], threads: int
) -> None:
    before = kernel(x, w, **attrs)
    target = replace(TARGET, threads=threads)
    assert group_of(before, target) is not None
    arrays = floats(0, x, w)
    expected = OPS["nn.conv2d_winograd"].reference
    assert expected is not None
    wanted = expected(arrays, Attrs({"padding": 0, **attrs}))
    (got,) = run_prim_func(schedule(before, target), arrays, {})
    scale = float(abs(np.asarray(wanted)).max())
    np.testing.assert_allclose(got.astype(float), np.asarray(wanted), atol=1e-5 * scale)


H, W = dim("h"), dim("w")
SMALL = dim("h", typical=12)


@pytest.mark.long("the interpreter runs whole convolutions")
@pytest.mark.rotated(3)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("x", "sizes", "w", "attrs"),
    [
        ((1, 1, H, W, 4), (9, 6), (6, 6, 2, 1, 4, 4), {"tile": 4, "padding": 1}),
        ((1, 2, H, W, 4), (1, 1), (6, 6, 1, 2, 4, 4), {"tile": 4, "padding": 1}),
        ((2, 1, SMALL, 7, 4), (17, 7), (6, 6, 4, 1, 4, 4), {"tile": 4, "padding": 1}),
        ((1, 1, 5, W, 4), (5, 14), (4, 4, 2, 1, 4, 4), {"tile": 2, "padding": (0, 1, 2, 1)}),
        ((1, 1, H, W, 4), (13, 40), (4, 4, 1, 1, 4, 4), {"tile": 2}),
        ((1, 1, H, W, 4), (0, 3), (6, 6, 1, 1, 4, 4), {"tile": 4, "padding": 1}),
        (
            (3, 1, floordiv(H - 1, 2) + 1, W, 4),
            (15, 4),
            (6, 6, 1, 1, 4, 4),
            {"tile": 4, "padding": 1},
        ),
    ],
)
def test_images_of_unknown_size_are_cut_in_runs_of_tiles(
    x: tuple[Dim, ...],
    sizes: tuple[int, int],
    w: tuple[int, ...],
    attrs: dict[str, int | tuple[int, ...]],
    threads: int,
) -> None:
    before = kernel(x, w, **attrs)
    target = replace(TARGET, threads=threads)
    found = group_of(before, target)
    assert found is not None
    assert None in [number(a.extent) for a in found.tiles]
    given: dict[Symbol, int] = {}
    for size, value in zip(x[2:4], sizes, strict=True):
        given |= dict.fromkeys(symbols_of(size), value)
    image = tuple(evaluate(size, given) for size in x)
    arrays = floats(0, image, w)
    expected = OPS["nn.conv2d_winograd"].reference
    assert expected is not None
    wanted = np.asarray(expected(arrays, Attrs({"padding": 0, **attrs})))
    scheduled = schedule(before, target)
    (got,) = run_prim_func(scheduled, arrays, {size_var(s): n for s, n in given.items()})
    scale = float(abs(wanted).max(initial=0))
    np.testing.assert_allclose(got.astype(float), wanted, atol=1e-5 * scale)


def test_no_loop_is_kept_that_never_runs() -> None:
    """What is left of tiles where two conditions on them, written differently, say the same."""
    func = kernel((1, 2, H, W, 4), (6, 6, 2, 2, 4, 4), tile=4, padding=1)
    known = Analyzer()
    opened_up = after(schedule(func, TARGET), OpenBlocks(), CompactBuffers())
    partitioned = after(opened_up, PartitionLoops())
    loops = [s for s in walk_stmt(partitioned.body) if isinstance(s, For)]
    assert [x.var.name for x in loops if known.prove(Compare("le", x.extent, imm(0)))] == []


def test_runs_of_one_register_tile_end_with_a_smaller_one() -> None:
    """No row of a tile is asked at each step whether it is there; no smaller tile is long."""
    func = kernel((1, 1, H, W, 4), (4, 4, 1, 1, 4, 4), tile=2, padding=1)
    (rule,) = default_rules(func, TARGET)
    done = default_schedule(func, TARGET, {rule.blocks[0]: {"rows": 3, "tiles": 3}})
    tiles = [s for s in walk_stmt(done.func.body) if isinstance(s, For) and TAIL in s.attrs]
    assert [s.attrs[TAIL] for s in tiles] == [COMPACT]
    low = lowered(done.func, TARGET)
    asked = [s.condition for s in walk_stmt(low.body) if isinstance(s, IfThen)]
    counts = [c.b for c in asked if isinstance(c, Compare) and c.op == "eq"]
    assert counts[:2] == [imm(1), imm(2)]
    for h, w in ((3, 4), (5, 3)):
        assert_same(func, low, {"h": h, "w": w})


def test_smaller_tiles_write_out_few_steps() -> None:
    """Four of eight, but as many as two sums need to be enough in flight (copies of them)."""
    func = kernel((1, 1, H, W, 8), (4, 4, 1, 1, 8, 8), tile=2, padding=1)
    target = replace(TARGET, vector_bits=256)
    (rule,) = default_rules(func, target)
    done = default_schedule(func, target, {rule.blocks[0]: {"rows": 4, "tiles": 4}})
    low = lowered(done.func, target)
    asked = [s for s in walk_stmt(low.body) if isinstance(s, IfThen)]
    tiles = {s.condition.b: s.then for s in asked if isinstance(s.condition, Compare)}
    in_flight = target.machine.fma_in_flight
    for rows in (1, 2, 3):
        products = [
            s for s in walk_stmt(tiles[imm(rows)]) if isinstance(s, Store) and is_product(s.value)
        ]
        assert len(products) == rows * (8 if in_flight > 4 * rows else 4), rows
    assert_same(func, low, {"h": 5, "w": 3})


def is_product(e: PrimExpr) -> bool:
    """Whether a product is added to something."""
    return isinstance(e, Binary) and isinstance(e.b, Binary) and e.b.op == "mul"


def test_a_register_tile_may_have_one_row() -> None:
    h, w = dim("h"), dim("w")
    before = kernel((1, 1, h, w, 4), (4, 4, 2, 1, 4, 4), tile=2, padding=1)
    assert 1 in default_rules(before, TARGET)[0].legal["rows"].values
    done = default_schedule(before, TARGET, {"columns": {"rows": 1}})
    assert_same(before, done.func, {"h": 5, "w": 6})


def test_steps_that_only_the_rule_is_trusted_with_are_told() -> None:
    """Tiles of images of unknown size that nothing pads are not known to lie apart."""
    before = kernel((1, 1, dim("h"), dim("w"), 4), (4, 4, 2, 1, 4, 4), tile=2)
    sch = default_schedule(before, TARGET)
    assert difference(sch.func, schedule(before, TARGET)) is None
    with pytest.raises(UnityError, match="different iterations reach one point of block 'conv'"):
        Schedule(before, TARGET).replay(sch.trace)


def test_other_stages_are_no_tile_group() -> None:
    func = kernel((1, 1, 8, 8, 4), (6, 6, 2, 1, 4, 4), tile=4)
    assert group_of(func, replace(TARGET, vector_bits=256)) is None, "lanes of another register"


@pytest.mark.parametrize(("channels", "size"), [(64, 56), (128, 28), (256, 14), (512, 7)])
def test_register_tiles_fit_the_registers(channels: int, size: int) -> None:
    blocks = channels // 16
    func = kernel((1, blocks, size, size, 16), (6, 6, blocks, blocks, 16, 16), tile=4, padding=1)
    group = group_of(func, LARGE)
    assert group is not None
    plan = plan_for(group, LARGE)
    assert plan.columns * (plan.rows + 1) + 1 <= LARGE.vector_registers
    assert plan.columns * plan.rows >= LARGE.vector_registers // 2
    compact = after(schedule(func, LARGE), OpenBlocks(), CompactBuffers())
    tiles = [s.buffer for s in walk_stmt(compact.body) if isinstance(s, Allocate)]
    sums = [[number(n) for n in b.shape] for b in tiles if b.name.startswith("products_sums")]
    assert sums
    assert all(None not in shape and prod(n or 0 for n in shape) <= 16 * 30 for shape in sums)


def test_what_reads_an_image_point_by_point_is_done_tile_by_tile() -> None:
    """A stage behind the last transform that reads its result twice (SiLU)."""
    model = parse("""
@script.function
def main(
    x: f32[Tensor, 1, 1, 3, 5, 4], w: f32[Tensor, 6, 6, 1, 1, 4, 4]
) -> f32[Tensor, 1, 1, 3, 5, 4]:
    with R.dataflow():
        y = R.nn.conv2d_winograd(x, w, tile=4, padding=(1, 1, 1, 1))
        s = R.sigmoid(y)
        z = R.multiply(y, s)
    return z
""")
    for step in (LegalizeOps(), FuseOps(), FuseTir()):
        model = step(model, Context(TARGET))
    (func,) = [f for f in model.prim_funcs().values() if len(opened(f.body)[1]) == 6]
    rules = default_rules(func, TARGET)
    assert [r.rule for r in rules] == ["winograd"]
    arrays = floats(0, (1, 1, 3, 5, 4), (6, 6, 1, 1, 4, 4))
    (wanted,) = run_prim_func(func, arrays, {})
    (got,) = run_prim_func(schedule(func, TARGET), arrays, {})
    np.testing.assert_allclose(got.astype(float), wanted.astype(float), atol=1e-4)


def test_no_thread_is_idle_whatever_the_image() -> None:
    """64 channels of images of unknown size: 196 tiles of one of 224 pixels, 100 of one of 160."""
    rows, columns = floordiv(H + 3, 4), floordiv(W + 3, 4)
    func = kernel((1, 4, rows, columns, 16), (6, 6, 4, 4, 16, 16), tile=4, padding=1)
    target = replace(LARGE, threads=2)
    group = group_of(func, target)
    assert group is not None
    plan = plan_for(group, target)
    for tiles in (196, 100):
        whole, rest = divmod(tiles, plan.tiles)
        groups = 4 // (plan.columns * plan.panels) if plan.together else 1
        tasks = [n / groups for n in (*[plan.tiles] * whole, rest) if n for _ in range(groups)]
        assert sum(tasks[: -(-len(tasks) // 2)]) <= 0.65 * tiles


@pytest.mark.parametrize(("tiles", "asking"), [(24, 2), (6, 1)])
def test_weights_are_asked_for_by_two_tiles_where_a_chunk_may_have_them(
    tiles: int, asking: int
) -> None:
    """Of unknown sizes, though a small image has but one; all of them where they are known."""
    target = replace(LARGE, vector_bits=256, vector_registers=16)
    func = kernel((1, 32, H, W, 8), (4, 4, 32, 32, 8, 8), tile=2, padding=1)
    group = group_of(func, target)
    assert group is not None
    plan = replace(plan_for(group, target), rows=6, tiles=tiles, prefetch=True)
    assert sharers(group, plan) == asking
    known = group_of(kernel((1, 32, 7, 7, 8), (4, 4, 32, 32, 8, 8), tile=2, padding=1), target)
    assert known is not None
    assert sharers(known, plan) is None
