"""Stages that read along one axis and write along another: turned in registers, by rectangles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import unity
from unity.codegen.llvm import compile_kernels, host_target
from unity.ir.marks import INSTRUCTION
from unity.ir.stmt import For
from unity.ir.visit import walk_stmt
from unity.machine.target import Target
from unity.script import parse
from unity.transform import Context, pipeline
from unity.transform.schedule import ScheduleDefault, default_rules

WIDE = host_target(2)
TARGETS = {
    bits: replace(WIDE, vector_bits=bits, vector_registers=16 if bits < 512 else 32)
    for bits in (128, 256, 512)
    if bits <= WIDE.vector_bits
}
DTYPES = {
    "float32": "f32",
    "float64": "f64",
    "float16": "f16",
    "int8": "i8",
    "uint8": "u8",
    "bool": "boolean",
}


def permuted(
    shape: tuple[object, ...], axes: tuple[int, ...], dtype: str = "float32", more: str = "y"
) -> str:
    """A permutation, and what is computed of it: ``y``, with ``z`` another input of its shape."""
    out = tuple(shape[a] for a in axes)
    names = [s for s in shape if isinstance(s, str)]
    symbols = "".join(f'{s} = dim("{s}")\n' for s in names)
    kind = DTYPES[dtype]
    given, made = (", ".join(map(str, s)) for s in (shape, out))
    return f"""
{symbols}
@script.function
def main(x: {kind}[Tensor, {given}], z: {kind}[Tensor, {made}]) -> {kind}[Tensor, {made}]:
    with R.dataflow():
        y = R.permute_dims(x, {axes})
        out = {more}
    return out
"""


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    if dtype == "bool":
        return rng.random(shape) < 0.5
    return rng.integers(-100 if dtype != "uint8" else 0, 100, shape).astype(dtype)


def turned(source: str, target: Target) -> int:
    """How many rectangles a program's kernels turn in registers."""
    module = pipeline("cpu").run(parse(source), Context(target))
    loops = [s for f in module.prim_funcs().values() for s in walk_stmt(f.body)]
    return sum(isinstance(s, For) and s.attrs.get(INSTRUCTION) == "transpose" for s in loops)


@pytest.mark.rotated(3)
@pytest.mark.parametrize("bits", TARGETS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_random_permutations_of_every_width(dtype: str, bits: int) -> None:
    rng = np.random.default_rng(bits)
    for _ in range(4):
        rank = int(rng.integers(2, 5))
        shape = tuple(int(x) for x in rng.choice([1, 2, 3, 8, 9, 16, 17, 33, 70], rank))
        axes = tuple(int(a) for a in rng.permutation(rank))
        x = values(rng, shape, dtype)
        want = x.transpose(axes)
        exe = unity.compile(parse(permuted(shape, axes, dtype)), target=TARGETS[bits])
        np.testing.assert_array_equal(exe(x, want), want, err_msg=f"{shape} {axes}")
    assert turned(permuted((70, 33), (1, 0), dtype), TARGETS[bits])


@pytest.mark.rotated(1)
@pytest.mark.parametrize("bits", TARGETS)
def test_every_tail(bits: int) -> None:
    rng = np.random.default_rng(0)
    for shape in [(8, 8), (15, 17), (16, 31), (17, 16), (33, 18), (47, 64), (64, 9), (200, 1025)]:
        source = permuted(shape, (1, 0))
        x = values(rng, shape, "float32")
        assert turned(source, TARGETS[bits])
        exe = unity.compile(parse(source), target=TARGETS[bits])
        np.testing.assert_array_equal(exe(x, x.T), x.T)


@pytest.mark.rotated(1)
@pytest.mark.parametrize("bits", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
def test_short_lines(dtype: str, bits: int) -> None:
    rng = np.random.default_rng(4)
    least = 8 if dtype == "uint8" else 4
    for shape in [(2, 40), (3, 17), (5, 8), (7, 33), (40, least), (9, 7), (3, least), (2, 1000)]:
        source = permuted((6, *shape), (0, 2, 1), dtype)
        assert bool(turned(source, TARGETS[bits])) == (shape[1] >= least)
        x = values(rng, (6, *shape), dtype)
        want = x.transpose(0, 2, 1)
        exe = unity.compile(parse(source), target=TARGETS[bits])
        np.testing.assert_array_equal(exe(x, want), want, err_msg=f"{shape}")
    assert not turned(permuted((40, least - 1), (1, 0), dtype), TARGETS[bits])


def test_no_shuffle_is_an_instruction_that_avx_lacks() -> None:
    """Of AMD's `insertq`, LLVM makes the shuffles of two lines of bytes."""
    features = ("avx", "avx2", "fma", "sse2", "sse4.1", "sse4.2", "sse4a", "ssse3")
    machine = Target("cpu", "x86_64-unknown-linux-gnu", "znver3", features, 256, 16)
    source = permuted((2, 4096), (1, 0), "uint8")
    kernels = pipeline("cpu").run(parse(source), Context(machine)).prim_funcs()
    code = compile_kernels(kernels, machine, cache=None)
    for name in kernels:
        assert "insertq" not in code.listing(name).assembly


@pytest.mark.rotated(2)
@pytest.mark.parametrize("bits", TARGETS)
@pytest.mark.parametrize(
    "more", ["R.add(y, z)", "R.nn.relu(y)", "R.add(R.multiply(y, z), R.exp(R.minimum(y, z)))"]
)
def test_what_is_computed_of_turned_lines(more: str, bits: int) -> None:
    rng = np.random.default_rng(1)
    for shape in [(40, 24), (37, 19), (3, 21, 50)]:
        axes = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
        source = permuted(shape, axes, "float32", more)
        x = rng.standard_normal(shape, np.float32)
        y = x.transpose(axes)
        z = rng.standard_normal(y.shape, np.float32)
        wants = {
            "R.add(y, z)": y + z,
            "R.nn.relu(y)": np.maximum(y, 0),
            "R.add(R.multiply(y, z), R.exp(R.minimum(y, z)))": y * z + np.exp(np.minimum(y, z)),
        }
        assert turned(source, TARGETS[bits])
        exe = unity.compile(parse(source), target=TARGETS[bits])
        np.testing.assert_allclose(exe(x, z), wants[more], rtol=1e-6, atol=1e-6)


@pytest.mark.rotated(1 / 4)
@pytest.mark.parametrize("bits", TARGETS)
def test_sizes_known_at_run_time(bits: int) -> None:
    rng = np.random.default_rng(2)
    exe = unity.compile(parse(permuted(("n", "m"), (1, 0), "float32", "y + z")), TARGETS[bits])
    assert turned(permuted(("n", "m"), (1, 0)), TARGETS[bits])
    for shape in [(0, 3), (1, 1), (5, 0), (7, 40), (16, 16), (33, 18), (64, 48), (130, 77)]:
        x = values(rng, shape, "float32")
        np.testing.assert_array_equal(exe(x, x.T), x.T + x.T)


def test_casts_and_several_loads() -> None:
    source = """
@script.function
def main(x: u8[Tensor, 70, 40], w: f32[Tensor, 70, 40]) -> f32[Tensor, 40, 70]:
    with R.dataflow():
        y = R.permute_dims(R.astype(x, "float32"), (1, 0))
        z = R.permute_dims(w, (1, 0))
        out = R.multiply(y, z)
    return out
"""
    rng = np.random.default_rng(3)
    x, w = values(rng, (70, 40), "uint8"), rng.standard_normal((70, 40), np.float32)
    assert turned(source, WIDE)
    np.testing.assert_array_equal(unity.compile(parse(source))(x, w), (x * w).T)


def test_other_machines_compile() -> None:
    linux = "{}-unknown-linux-gnu"
    machines = [
        Target("cpu", linux.format("x86_64"), "x86-64", ("sse2",), 128, 16),
        Target("cpu", linux.format("x86_64"), "haswell", ("avx2", "fma", "sse4.1"), 256, 16),
        Target("cpu", linux.format("aarch64"), "generic", ("neon",), 128, 32),
    ]
    for machine in machines:
        for dtype in ("float32", "uint8", "float16"):
            module = pipeline("cpu").run(parse(permuted((70, 33), (1, 0), dtype)), Context(machine))
            code = compile_kernels(module.prim_funcs(), machine, cache=None)
            assert code.objects


@pytest.mark.parametrize(
    ("shape", "axes", "dtype", "lines"),
    [
        ((512, 512), (1, 0), "float32", 4),  # what is read: half a page apart
        ((500, 512), (1, 0), "float32", 4),
        ((512, 500), (1, 0), "float32", 2),  # what is written
        ((256, 600), (1, 0), "float32", 2),  # a quarter of a page
        ((384, 500), (1, 0), "float32", 1),
        ((1024, 500), (1, 0), "float32", 4),
        ((500, 500), (1, 0), "float32", 1),
        ((2, 1024, 500), (0, 2, 1), "float32", 4),
        ((1024, 512), (1, 0), "float16", 2),  # 64 elements at most
        ((256, 500), (1, 0), "float64", 1),
    ],
)
def test_rows_in_the_same_sets_are_written_by_several_lines(
    shape: tuple[int, ...], axes: tuple[int, ...], dtype: str, lines: int
) -> None:
    target = replace(WIDE, vector_bits=256, vector_registers=16, l2_bytes=1 << 19)
    lowered = (
        pipeline("cpu")
        .until(ScheduleDefault)
        .run(parse(permuted(shape, axes, dtype)), Context(target))
    )
    (kernel,) = [f for f in lowered.prim_funcs().values() if len(f.params) == 2]
    (rule,) = default_rules(kernel, target)
    assert rule.rule == "transpose"
    assert rule.decisions["columns"] == lines * 64 * 8 // target.vector_bits
