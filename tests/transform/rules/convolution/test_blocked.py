"""Blocked channels: tiles of pixels by blocks that fit the registers, for every kind of extent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.transform.cases import floats
from tests.transform.tensor.kernels import assert_same
from unity.interpreter import run_prim_func
from unity.ir.dims import Dim, dim
from unity.ir.dtype import INT64, Array
from unity.ir.equality import structural_equal
from unity.ir.module import IRModule
from unity.ir.prim_expr import Imm, Intrinsic, Load, SizeVar
from unity.ir.stmt import Allocate, Block, Evaluate, For, PrimFunc
from unity.ir.symbols.convert import size_var
from unity.ir.visit import walk_prim, walk_stmt
from unity.machine.machine import Machine
from unity.machine.target import Target
from unity.op.table import OPS
from unity.transform.blocks.extents import number
from unity.transform.passes import Context
from unity.transform.rules.default import DefaultRules, schedule
from unity.transform.schedule import default_rules
from unity.transform.tensor import CompactBuffers

from ..kernels import lowered, unscheduled

TARGET = replace(Context().target, vector_bits=512, vector_registers=32, threads=2)
SHORT = replace(TARGET, vector_bits=256, vector_registers=16)


def kernel(
    x: tuple[Dim, ...], w: tuple[int, ...], **attrs: int | bool | tuple[int, ...]
) -> PrimFunc:
    """The unscheduled kernel of nn.conv2d_blocked, or of the one over frames."""
    return unscheduled(name_of(x), (x, w), attrs)[0]


def name_of(x: tuple[Dim, ...]) -> str:
    """The operator that takes such images."""
    return f"nn.conv{len(x) - 3}d_blocked"


def check(
    scheduled: PrimFunc,
    arrays: Sequence[Array],
    sizes: dict[SizeVar, int],
    **attrs: int | bool | tuple[int, ...],
) -> None:
    """Interpreted, it gives what the operator's reference does."""
    name = name_of(arrays[0].shape)
    reference = OPS[name].reference
    assert reference is not None
    shapes = [a.shape for a in arrays]
    expected = reference(arrays, unscheduled(name, shapes, attrs)[1])
    assert isinstance(expected, np.ndarray)
    (got,) = run_prim_func(scheduled, arrays, sizes)
    np.testing.assert_allclose(got.astype(float), expected.astype(float), rtol=1e-5, atol=1e-5)


def tiles(func: PrimFunc, target: Target) -> list[int]:
    """The elements of each tile of accumulators, once it is compact."""
    module = CompactBuffers()(IRModule({"main": func}), Context(target))
    stmts = walk_stmt(module.prim_funcs()["main"].body)
    sums = [s.buffer.shape for s in stmts if isinstance(s, Allocate)]
    return [math.prod(number(n) or 0 for n in shape) for shape in sums]


@pytest.mark.rotated(2)
@pytest.mark.parametrize(
    ("x", "w", "attrs"),
    [
        ((1, 1, 3, 15, 16), (3, 1, 3, 3, 16, 16), {"padding": 1}),
        ((2, 1, 3, 7, 16), (5, 1, 1, 3, 16, 16), {"padding": (0, 1)}),
        ((1, 2, 4, 4, 16), (4, 2, 1, 1, 16, 16), {}),
        ((1, 3, 9, 9, 1), (2, 3, 3, 3, 1, 16), {"strides": 2}),
        ((1, 2, 6, 9, 16), (2, 1, 3, 3, 1, 16), {"depthwise": True, "padding": 1}),
        ((1, 2, 8, 8, 16), (2, 1, 3, 3, 1, 16), {"depthwise": True, "padding": 1, "strides": 2}),
        ((1, 2, 5, 5, 8), (3, 2, 3, 3, 8, 8), {"padding": 1}),
        ((1, 1, 3, 3, 9, 16), (3, 1, 3, 3, 3, 16, 16), {"padding": 1}),
        ((2, 1, 4, 5, 5, 8), (2, 1, 3, 1, 1, 8, 8), {"padding": (1, 0, 0), "strides": (2, 1, 1)}),
        ((1, 3, 3, 6, 6, 1), (2, 3, 3, 3, 3, 1, 8), {"padding": (1, 1, 1), "strides": (1, 2, 2)}),
        ((1, 2, 3, 4, 6, 8), (2, 1, 3, 3, 3, 1, 8), {"depthwise": True, "padding": 1}),
        ((1, 1, 2, 4, 6, 8), (2, 1, 1, 1, 1, 8, 8), {"strides": 2}),
    ],
)
def test_laid_out_it_computes_the_same(
    x: tuple[int, ...], w: tuple[int, ...], attrs: dict[str, int | bool | tuple[int, ...]]
) -> None:
    target = TARGET if w[-1] == 16 else SHORT
    before = kernel(x, w, **attrs)
    check(schedule(before, target), floats(0, x, w), {}, **attrs)


H, W = dim("h"), dim("w")
UNKNOWN = [
    ((1, 1, 3, 3, 16, 16), {"padding": 1}),
    ((2, 2, 1, 1, 16, 16), {}),  # all pixels are one axis
    ((3, 1, 5, 5, 1, 16), {"strides": 2, "padding": 2}),
    ((2, 1, 3, 3, 1, 16), {"depthwise": True, "padding": 1}),
    ((2, 1, 5, 3, 1, 16), {"depthwise": True, "padding": (2, 1), "strides": (1, 2)}),
    ((1, 1, 2, 3, 16, 16), {"padding": (0, 2, 1, 4), "dilation": 2}),
    ((2, 1, 3, 3, 8, 8), {"padding": 1}),
]


@pytest.mark.rotated(4)
@pytest.mark.parametrize(("w", "attrs"), UNKNOWN)
def test_pixels_may_be_unknown(
    w: tuple[int, ...], attrs: dict[str, int | bool | tuple[int, ...]]
) -> None:
    """Lines shorter than a tile, and such as end in smaller ones."""
    target = TARGET if w[-1] == 16 else SHORT
    depthwise = attrs.get("depthwise") is True
    blocks, lanes = (w[0], w[5]) if depthwise else (w[1], w[4])
    before = kernel((1, blocks, H, W, lanes), w, **attrs)
    after = schedule(before, target)
    assert 8 <= max(tiles(after, target)) // w[-1] <= target.vector_registers - 2
    low = lowered(after, target)
    for height, width in ((5, 5), (4, 23)):
        arrays = floats(0, (1, blocks, height, width, lanes), w)
        check(after, arrays, {size_var(H): height, size_var(W): width}, **attrs)
        assert_same(before, low, {"h": height, "w": width})


def test_what_is_left_of_a_line_does_not_wait_for_itself() -> None:
    """Few sums have copies, so that the multipliers are busy: pixels at a border, and rests."""
    func = kernel((1, 4, H, W, 8), (4, 4, 3, 3, 8, 8), padding=1)
    after = lowered(schedule(func, SHORT), SHORT)
    sums = [s for s in walk_stmt(after.body) if isinstance(s, Allocate)]
    within = [sum(isinstance(x, Allocate) for x in walk_stmt(s)) for s in sums]
    assert max(within) == 4  # of a pixel, of which each sum is there four times
    for height, width in ((3, 1), (2, 4)):
        assert_same(func, after, {"h": height, "w": width})


def test_channels_of_unknown_planes_stand_in_a_row() -> None:
    """As those of known ones do: no pixel of one plane is one of another."""
    w = (2, 3, 7, 7, 1, 8)
    (known,) = default_rules(kernel((1, 3, 40, 40, 1), w, padding=3, strides=2), SHORT)
    (unknown,) = default_rules(kernel((1, 3, H, W, 1), w, padding=3, strides=2), SHORT)
    assert [r.decisions["steps"] for r in (known, unknown)] == [3, 3]


def test_lines_of_unknown_number_are_shared_among_threads() -> None:
    func = kernel((1, 4, H, W, 16), (4, 4, 3, 3, 16, 16), padding=1)
    loops = [s for s in walk_stmt(schedule(func, TARGET).body) if isinstance(s, For)]
    (part,) = [s for s in loops if s.kind == "parallel"]
    assert part.extent == Imm(TARGET.threads, INT64)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("taps", "shared"), [(3, True), (1, False)])
def test_lines_of_unknown_number_share_weights_that_no_cache_holds(
    taps: int, shared: bool, threads: int
) -> None:
    """Some of them, or those of a thread, follow one another at the weights of a tile."""
    target = replace(SHORT, threads=threads, l2_bytes=1 << 9)
    func = kernel((1, 2, H, W, 8), (3, 2, taps, taps, 8, 8), padding=taps // 2, strides=2)
    after = schedule(func, target)
    order = [s.var.name for s in walk_stmt(after.body) if isinstance(s, For)][:4]
    orders = {
        (1, True): ["i0_i2_0_i1_0", "i2_1", "i3_0", "i3_1"],
        (1, False): ["ax0_ax2_ax1_0", "ax3_0", "ax3_1", "ax1_1"],
        (2, True): ["i2_0", "i0", "i1_0", "i2_1"],
        (2, False): ["ax2_0", "ax0", "ax2_1", "ax3_0"],
    }
    assert order == orders[threads, shared]
    low = lowered(after, target)
    for height, width in ((5, 5), (19, 7)):
        assert_same(func, low, {"h": height, "w": width})


@pytest.mark.parametrize("target", [TARGET, SHORT])
@pytest.mark.parametrize("size", [7, 14, 28, 56])
def test_accumulators_fit_the_registers(target: Target, size: int) -> None:
    lanes = target.vector_bits // 32
    func = kernel((1, 4, size, size, lanes), (8, 4, 3, 3, lanes, lanes), padding=1)
    laid_out = schedule(func, target)
    largest = max(tiles(laid_out, target)) // lanes
    assert largest + 2 <= target.vector_registers
    assert largest >= target.vector_registers // 2  # and use most of them
    stmts = list(walk_stmt(laid_out.body))
    steps = [
        {v for a in s.axes if a.kind == "R" for v in walk_prim(a.value)}
        for s in stmts
        if isinstance(s, Block)
    ]
    loops = {s.var for s in stmts if isinstance(s, For) and s.kind == "serial"}
    assert any(len(loops & taps) > 2 for taps in steps), "taps stay loops"


@pytest.mark.rotated(1)
def test_heavy_weights_are_fetched_ahead() -> None:
    x, heavy, light = (1, 1, 5, 5, 16), (8, 1, 3, 3, 16, 16), (8, 2, 1, 1, 16, 16)
    assert fetched(schedule(kernel(x, heavy, padding=1), TARGET))
    assert not fetched(schedule(kernel((1, 2, 28, 28, 16), light), TARGET))
    before = kernel(x, heavy, padding=1)
    check(schedule(before, TARGET), floats(1, x, heavy), {}, padding=1)  # of every index


@pytest.mark.rotated(1)
@pytest.mark.parametrize("threads", [1, 2])
def test_heavy_weights_of_unknown_pixels_are_fetched_ahead(threads: int) -> None:
    """A part of them by each of some tiles, however many there are."""
    target = replace(TARGET, threads=threads)
    small = dim("h", typical=5), dim("w", typical=5)
    w = (8, 1, 1, 1, 16, 16)
    after = schedule(kernel((1, 1, *small, 16), w), target)
    assert fetched(after)
    assert not fetched(schedule(kernel((1, 1, H, W, 16), w), target))
    for height, width in ((1, 3), (3, 15)):
        arrays = floats(1, (1, 1, height, width, 16), w)
        check(after, arrays, {size_var(small[0]): height, size_var(small[1]): width})


@pytest.mark.parametrize(
    ("x", "w", "inside"),
    [
        ((1, 2, 2, 16), (4, 1, 3, 3, 16, 16), True),
        ((1, 4, 8, 16), (8, 1, 1, 1, 16, 16), False),  # about as much as the weights
    ],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_images_of_unknown_number_follow_at_heavy_weights(
    x: tuple[int, ...], w: tuple[int, ...], inside: bool, threads: int
) -> None:
    """Weights are read once for all images, where images cost less to be read for each block."""
    target, batch = replace(TARGET, threads=threads), dim("b")
    pad = w[2] // 2
    after = schedule(kernel((batch, *x), w, padding=pad), target)
    loops = [s for s in walk_stmt(after.body) if isinstance(s, For)]
    around = [s for s in loops if any(isinstance(v, SizeVar) for v in walk_prim(s.extent))]
    assert (around[:1] != loops[:1]) is inside
    for images in (0, 1, 3):
        arrays = floats(1, (images, *x), w)
        check(after, arrays, {size_var(batch): images}, padding=pad)


@pytest.mark.rotated(1 / 4)
@pytest.mark.parametrize(
    ("x", "w", "attrs", "threads", "cut"),
    [
        ((1, 1, 4, 8, 16), (2, 1, 1, 3, 16, 16), {"padding": (0, 1)}, 2, "v2"),
        ((1, 1, 6, 8, 16), (1, 1, 1, 3, 16, 16), {"padding": (0, 1)}, 3, "v1"),
        ((1, 2, 5, 9, 16), (2, 1, 3, 3, 1, 16), {"depthwise": True, "padding": 1}, 2, "v1"),
        ((1, 1, 8, 14, 16), (1, 1, 1, 1, 16, 16), {}, 2, "v1"),  # all pixels are one axis
        ((1, 1, 7, 7, 16), (4, 1, 1, 1, 16, 16), {}, 2, "v1"),  # weights fetched ahead
        ((1, 1, 5, 9, 16), (1, 1, 1, 3, 16, 16), {"padding": (0, 1)}, 4, None),  # no fair way
    ],
)
def test_each_thread_has_a_run_of_lines(
    x: tuple[int, ...],
    w: tuple[int, ...],
    attrs: dict[str, int | bool | tuple[int, ...]],
    threads: int,
    cut: str | None,
) -> None:
    before = kernel(x, w, **attrs)
    target = replace(TARGET, threads=threads, machine=Machine(wake_cycles=0))
    after = schedule(before, target)
    loops = [s for s in walk_stmt(after.body) if isinstance(s, For)]
    shared = [s for s in loops if s.kind == "parallel" and s.extent == Imm(threads, INT64)]
    assert bool(shared) == (cut is not None)
    for loop in shared:
        block = next(s for s in walk_stmt(after.body) if isinstance(s, Block))
        axes = [a for a in block.axes if loop.var in set(walk_prim(a.value))]
        assert {a.var.name for a in axes} == {cut}
    check(after, floats(2, x, w), {}, **attrs)


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_lines_around_all_blocks_share_nothing_that_is_fetched(threads: int, ahead: bool) -> None:
    """Each legal pair of decisions is laid out; weights are asked for by loops within a block."""
    x, w = (1, 1, 4, 6, 16), (8, 1, 1, 1, 16, 16)
    rules = DefaultRules(kernel(x, w, strides=2), replace(TARGET, threads=threads))
    (rule,) = (r for r in rules.applied() if "ahead" in r.decisions)
    wanted = {"ahead": ahead, "columns_last": True, "rows": 1}
    assert all(v in rule.legal[name].values for name, v in wanted.items())
    check(rules.schedule({rule.blocks[0]: wanted}).func, floats(2, x, w), {}, strides=2)


@pytest.mark.rotated(1)
def test_a_large_image_is_read_once_for_all_blocks() -> None:
    x, w = (1, 1, 9, 15, 16), (8, 1, 1, 1, 16, 16)
    before = kernel(x, w)
    target = replace(TARGET, l2_bytes=2048, threads=16)  # tiles of each size are shared
    after = schedule(before, target)
    assert not structural_equal(after, schedule(before, replace(target, l2_bytes=1 << 20)))
    check(after, floats(2, x, w), {})


def fetched(func: PrimFunc) -> set[str]:
    """The buffers that are fetched ahead of their use."""
    found: set[str] = set()
    for s in walk_stmt(func.body):
        if isinstance(s, Evaluate) and isinstance(s.value, Intrinsic):
            (load,) = s.value.args
            assert isinstance(load, Load)
            found.add(load.buffer.name)
    return found


@pytest.mark.parametrize(("taps", "padding", "steps"), [(3, 1, 4), (1, 0, 8)])
def test_a_border_takes_fewer_steps_of_heavy_weights_in_a_row(
    taps: int, padding: int, steps: int
) -> None:
    """Its tiles are written out for each part of the taps."""
    func = kernel((1, 8, 7, 7, 16), (8, 8, taps, taps, 16, 16), padding=padding)
    (rule,) = (r for r in DefaultRules(func, TARGET).applied() if "ahead" in r.decisions)
    assert rule.decisions["steps"] == steps
    assert 8 in rule.legal["steps"].values
