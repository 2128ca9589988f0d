"""Convolutions on matrix tiles: every way that tiles cover an image, and who gets none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

import unity
from tests.codegen.llvm.run_kernel import HOST, run
from unity.codegen.llvm import compile_kernels
from unity.interpreter import interpret, run_prim_func
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, dim
from unity.ir.dtype import BFLOAT16, FLOAT32, Array
from unity.ir.marks import INSTRUCTION, TILES
from unity.ir.module import IRModule
from unity.ir.stmt import Allocate, For, PrimFunc
from unity.ir.visit import walk_stmt
from unity.ir.well_formed.verify import verify
from unity.machine.dot_units import has_dot
from unity.machine.target import Target
from unity.op.convolution.conv_interleaved import interleaved, interleaved_lines
from unity.op.table import OPS
from unity.script import parse
from unity.transform import Context, pipeline
from unity.transform.graph import LegalizeOps
from unity.transform.rules.default import schedule
from unity.transform.schedule import default_schedule

from ..kernels import lowered, unscheduled

Shape = tuple[int, ...]
TILED = replace(HOST, features=(*HOST.features, "amx-tile", "amx-bf16"), threads=2)
LANES = tuple(f for f in HOST.features if not f.startswith("amx"))
"""What there is without tiles."""
LINE = "line"


def kernel(x: Sequence[Dim], w: Shape, attrs: dict[str, int | Shape]) -> tuple[PrimFunc, Attrs]:
    """The unscheduled kernel of nn.conv2d_interleaved, and all its attributes."""
    given = {**attrs, "out_dtype": FLOAT32}
    return unscheduled("nn.conv2d_interleaved", (x, w), given, BFLOAT16)


def operands(x: Shape, w: Shape, attrs: dict[str, int | Shape]) -> list[Array]:
    """Random ones; the weights ``(o, c, kh, kw, b, d)`` interleaved."""
    rng = np.random.default_rng(sum(x) + sum(w))
    image, plain = (np.asarray(rng.standard_normal(s)).astype(BFLOAT16.numpy) for s in (x, w))
    return [image, interleaved_lines(plain, 2, 32) if LINE in attrs else interleaved(plain, 2)]


def close(got: Array, want: Array) -> None:
    wide: npt.NDArray[np.float64] = want.astype(np.float64)
    atol = 1e-5 * float(np.abs(wide).max())
    np.testing.assert_allclose(got.astype(np.float64), wide, rtol=0, atol=atol)


CASES: dict[str, tuple[Shape, Shape, dict[str, int | Shape]]] = {
    "pixels in a row": ((1, 2, 5, 7, 32), (2, 2, 1, 1, 32, 32), {}),
    "lines in parts": ((1, 1, 4, 35, 32), (1, 1, 3, 3, 32, 32), {"padding": 1}),
    "parts that overlap, an odd number": ((2, 1, 3, 37, 32), (2, 1, 1, 3, 32, 32), {}),
    "one line a tile": ((1, 2, 5, 9, 32), (3, 2, 3, 3, 32, 32), {"padding": (0, 1, 2, 3)}),
    "two lines a tile, one left": ((1, 1, 5, 7, 32), (1, 1, 3, 3, 32, 32), {"padding": 1}),
    "many lines a tile": ((1, 1, 5, 2, 32), (1, 1, 3, 3, 32, 32), {"padding": 1}),
    "strided": ((1, 1, 9, 11, 32), (2, 1, 3, 3, 32, 32), {"padding": 1, "strides": 2}),
    "strided, no taps": ((1, 2, 8, 8, 32), (2, 2, 1, 1, 32, 32), {"strides": 2}),
    "dilated": ((1, 1, 9, 9, 32), (1, 1, 3, 3, 32, 32), {"padding": 2, "dilation": 2}),
    "narrow blocks": ((1, 1, 6, 20, 32), (2, 1, 3, 3, 32, 16), {"padding": 1}),
    "one tile": ((1, 1, 2, 3, 32), (1, 1, 1, 1, 32, 32), {}),
    "few channels": (
        (1, 1, 12, 21, 3), (2, 1, 7, 7, 3, 32), {"padding": 3, "strides": 2, LINE: 7}
    ),
    "channels that fill no block": ((2, 1, 4, 6, 40), (1, 1, 3, 3, 40, 32), {LINE: 3}),
}  # fmt: skip


@pytest.mark.long("interprets tiles of a matrix element by element")
@pytest.mark.rotated(3)
@pytest.mark.parametrize("name", CASES)
def test_laid_out_it_computes_the_same(name: str) -> None:
    x, w, attrs = CASES[name]
    arrays = operands(x, w, attrs)
    before, full = kernel(x, arrays[1].shape, attrs)
    reference = OPS["nn.conv2d_interleaved"].reference
    assert reference is not None
    want = reference(arrays, full)
    assert isinstance(want, np.ndarray)
    after = schedule(before, TILED)
    verify(IRModule({"main": after}))
    assert any(isinstance(s, Allocate) and s.buffer.scope == TILES for s in walk_stmt(after.body))
    if name in ("two lines a tile, one left", "one tile", "few channels"):  # slow
        (got,) = run_prim_func(after, arrays, {})
        close(got, want)
    if not has_dot(HOST, "tile", BFLOAT16, BFLOAT16, FLOAT32):
        return
    low = lowered(after, TILED)
    for checks in (False, True):
        close(run(low, arrays, np.full(want.shape, np.nan, np.float32), checks=checks), want)


def test_random_images_and_kernels() -> None:
    if not has_dot(HOST, "tile", BFLOAT16, BFLOAT16, FLOAT32):
        pytest.skip("no matrix tiles on this cpu")
    rng = np.random.default_rng(0)
    reference = OPS["nn.conv2d_interleaved"].reference
    assert reference is not None
    for _ in range(12):
        n, c, o, kh, kw, s, d = (int(v) for v in rng.integers(1, (3, 4, 4, 4, 4, 4, 3)))
        h, w = (int(v) for v in rng.integers(6, 50, 2))
        padding = tuple(int(v) for v in rng.integers(0, 3, 4))
        attrs: dict[str, int | Shape] = {"padding": padding, "strides": s, "dilation": d}
        x, weight = (n, c, h, w, 32), (o, c, kh, kw, 32, 32)
        arrays = operands(x, weight, attrs)
        before, full = kernel(x, arrays[1].shape, attrs)
        want = reference(arrays, full)
        assert isinstance(want, np.ndarray)
        after = schedule(before, TILED)
        low = lowered(after, TILED)
        close(run(low, arrays, np.full(want.shape, np.nan, np.float32), checks=True), want)


def marks(func: PrimFunc) -> set[object]:
    """The instructions that loops are marked with."""
    return {s.attrs.get(INSTRUCTION) for s in walk_stmt(func.body) if isinstance(s, For)}


@pytest.mark.parametrize("name", ["one line a tile", "strided", "two lines a tile, one left"])
def test_a_step_is_four_loads_and_four_products(name: str) -> None:
    """Also where there is an odd number of lines; nothing stands there twice."""
    x, w, attrs = CASES[name]
    before, _ = kernel(x, (*w[:4], 16, 32, 2), attrs)
    made = default_schedule(before, TILED)
    low = lowered(made.func, TILED)
    found = Counter(s.attrs.get(INSTRUCTION) for s in walk_stmt(low.body) if isinstance(s, For))
    assert [found[f"tile_{step}"] for step in ("zero", "load", "dot", "store")] == [4, 4, 4, 4]


@pytest.mark.rotated(4)
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_in_vector_registers_it_computes_the_same(name: str, known: bool) -> None:
    target = replace(HOST, features=LANES)
    x, w, attrs = CASES[name]
    arrays = operands(x, w, attrs)
    shape: list[Dim] = list(x) if known else [*x[:2], dim("h"), dim("w"), x[4]]
    before, full = kernel(shape, arrays[1].shape, attrs)
    able = target.has("avx512bf16") and target.vector_bits == 512
    after = schedule(before, target)
    assert ("lane_dot" in marks(after)) == able
    if not able:
        return
    reference = OPS["nn.conv2d_interleaved"].reference
    assert reference is not None
    want = reference(arrays, full)
    assert isinstance(want, np.ndarray)
    low = lowered(after, target)
    assert "lane_dot" in marks(low)
    sizes = {} if known else {"h": x[2], "w": x[3]}
    close(run(low, arrays, np.full(want.shape, np.nan, np.float32), sizes, target=target), want)


@pytest.mark.rotated(1 / 4)
@pytest.mark.parametrize(
    ("triple", "features"),
    [
        ("x86_64-unknown-linux-gnu", ("avx512bf16", "avx512f", "avx512vl", "avx512bw")),
        ("x86_64-unknown-linux-gnu", ("avx2", "fma")),
        ("aarch64-unknown-linux-gnu", ()),
    ],
)
def test_targets_without_tiles_compile(triple: str, features: tuple[str, ...]) -> None:
    wide = 512 if "avx512f" in features else 256 if features else 128
    registers = 16 if wide == 256 else 32
    target = Target("cpu", triple, "generic", features, wide, registers)
    x, w, attrs = CASES["two lines a tile, one left"]
    before, _ = kernel(x, (*w[:4], 16, 32, 2), attrs)
    after = schedule(before, target)
    assert "tile_dot" not in marks(after)
    low = lowered(after, target)
    assert compile_kernels({"main": low}, target).asm("main")


JOINED = """
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 64, 9, 9]) -> f32[Tensor, n, 64, 9, 9]:
    with R.dataflow():
        a = R.nn.conv2d(x, R.const("w1"))
        b = R.concat((a, R.nn.max_pool2d(a, pool_size=3, padding=1)), axis=1)
        c = R.nn.relu(R.add(R.multiply(b, R.const("scale")), R.const("shift")))
        y = R.nn.conv2d(c, R.const("w2"))
    return y
"""


def test_what_stands_before_a_product_is_rounded_first() -> None:
    if not has_dot(HOST, "tile", BFLOAT16, BFLOAT16, FLOAT32):
        pytest.skip("no matrix tiles on this cpu")
    rng = np.random.default_rng(3)
    shapes = {
        "w1": (64, 64, 1, 1),
        "w2": (64, 128, 1, 1),
        "scale": (128, 1, 1),
        "shift": (128, 1, 1),
    }
    arrays = [rng.standard_normal(s).astype(np.float32) for s in shapes.values()]
    constants = {k: a / np.float32(4) for k, a in zip(shapes, arrays, strict=True)}
    module = parse(JOINED, constants)
    x = rng.standard_normal((2, 64, 9, 9)).astype(np.float32)
    graph = pipeline(precision="bf16").until(LegalizeOps).run(module, Context(HOST))
    want = interpret(graph, "main", [x])
    assert isinstance(want, np.ndarray)
    exe = unity.compile(module, precision="bf16")
    assert all("tdpbf16ps" in exe.asm(k) for k in exe.kernels if "interleaved" in k)
    got = np.asarray(exe(x)).astype(np.float64)
    np.testing.assert_allclose(got, want.astype(np.float64), rtol=0, atol=3e-2)


RESIDUAL = """
@script.function
def main(x: f32[Tensor, 1, 48, {size}, {size}]) -> f32[Tensor, 1, 48, {size}, {size}]:
    with R.dataflow():
        a = R.nn.relu(R.nn.conv2d(x, R.const("w1")))
        b = R.nn.relu(R.add(R.nn.conv2d(a, R.const("w3"), padding=1), R.const("bias")))
        c = R.nn.relu(R.add(R.nn.conv2d(b, R.const("w1")), a))
        y = R.nn.max_pool2d(R.nn.conv2d(c, R.const("w3"), padding=1), pool_size=3, padding=1)
    return y
"""


@pytest.mark.parametrize("size", [7, 19, 37])
def test_tiles_that_overlap_add_to_each_pixel_once(size: int) -> None:
    """What is added to may be stored in place."""
    if not has_dot(HOST, "tile", BFLOAT16, BFLOAT16, FLOAT32):
        pytest.skip("no matrix tiles on this cpu")
    rng = np.random.default_rng(size)
    shapes = {"w1": (48, 48, 1, 1), "w3": (48, 48, 3, 3), "bias": (1, 48, 1, 1)}
    constants = {
        k: rng.standard_normal(s).astype(np.float32) / np.float32(8) for k, s in shapes.items()
    }
    module = parse(RESIDUAL.format(size=size), constants)
    x = rng.standard_normal((1, 48, size, size)).astype(np.float32)
    graph = pipeline(precision="bf16").until(LegalizeOps).run(module, Context(HOST))
    want = interpret(graph, "main", [x])
    assert isinstance(want, np.ndarray)
    exe = unity.compile(module, precision="bf16")
    assert sum("conv2d_interleaved" in name for name in exe.kernels) == 4
    got = np.asarray(exe(x)).astype(np.float64)
    np.testing.assert_allclose(got, want.astype(np.float64), rtol=0, atol=2e-2)
