"""The assembly of the default register tiles: sums stay in registers, on every width of them."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

import unity
from tests.bench.operators import OPERATORS
from unity.codegen.llvm import compile_kernels
from unity.ir.module import IRModule
from unity.machine.target import Target
from unity.script import parse
from unity.transform import Context, pipeline

LINUX = "x86_64-unknown-linux-gnu"
SSE = ("sse4.1", "sse4.2")
AVX2 = (*SSE, "avx", "avx2", "f16c", "fma")
AVX512 = (*AVX2, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")
TARGETS = {
    "avx512": Target("cpu", LINUX, "skylake-avx512", AVX512, 512, 32, threads=2),
    "avx2": Target("cpu", LINUX, "haswell", AVX2, 256, 16, threads=2),
    "sse4.2": Target("cpu", LINUX, "nehalem", SSE, 128, 16, threads=2),
}
PRODUCT = """
m = dim("m")
k = dim("k")
n = dim("n")

@script.function
def main(a: f32[Tensor, {m}, {k}], b: f32[Tensor, {k}, {n}]) -> f32[Tensor, {m}, {n}]:
    return R.matmul(a, b)
"""
TRANSPOSED = """
@script.function
def main(a: f32[Tensor, 120, 256], b: f32[Tensor, 192, 256]) -> f32[Tensor, 120, 192]:
    return R.matmul(a, R.permute_dims(b, (1, 0)))
"""
PANELS = """
@script.function
def main(x: f32[Tensor, 36, 512]) -> f32[Tensor, 36, 33]:
    return R.matmul(x, R.const("panels"))
"""
CONVOLUTION = """
h = dim("h", typical=7)
w = dim("w", typical=7)
big = dim("big")

@script.function
def main(x: f32[Tensor, 1, 64, {size}]) -> f32[Tensor, ...]:
    y = R.nn.conv2d(x, R.const("square"), padding=1{options})
    return {result}
"""
VIDEO = """
@script.function
def main(x: f32[Tensor, 1, 64, 4, 28, 28]) -> f32[Tensor, ...]:
    return R.nn.conv3d(x, R.const("cube"), padding=1)
"""
SMALL = """
@script.function
def main(x: f32[Tensor, 1, 512, 7, 7]) -> f32[Tensor, ...]:
    return R.nn.conv2d(x, R.const("many"), padding=1)
"""
DEPTHWISE = 'R.nn.conv2d(y, R.const("deep"), padding=1, groups=64)'
WEIGHTS = {
    "square": np.ones((64, 64, 3, 3), np.float32),
    "deep": np.ones((64, 1, 3, 3), np.float32),
    "many": np.ones((512, 512, 3, 3), np.float32),
    "cube": np.ones((64, 64, 3, 3, 3), np.float32),
    "panels": np.ones((512, 33), np.float32),
}
SCRIPTS = {
    "product": PRODUCT.format(m=128, k=768, n=768),
    "short rows": PRODUCT.format(m=8, k=512, n=48),
    "product of any size": PRODUCT.format(m="m", k="k", n="n"),
    "transposed": TRANSPOSED,
    "three columns": PANELS,
    "Winograd": CONVOLUTION.format(size="28, 28", options="", result="y"),
    "Winograd of any size": CONVOLUTION.format(size="big, big", options="", result="y"),
    "gathered": CONVOLUTION.format(size="h, w", options=", strides=2", result="y"),
    "depthwise": CONVOLUTION.format(size="28, 28", options=", strides=2", result=DEPTHWISE),
    "3d": VIDEO,
    "small image": SMALL,
}
DEEP = ("3d", "Winograd", "gathered")
MODELS = ("linear_128x768x768", "conv3x3_64_64_56", "conv1x1_256_64_56")
LABEL = re.compile(r"^(\.L\w+):")
JUMP = re.compile(r"^\tj\w+\t(\.L\w+)")
PRODUCTS = re.compile(r"^\tv?(fn?m(add|sub)\d+|mul)ps\t")
MASKED = re.compile(r"cmp\w*ps|pcmp|maskmov|\{%k|pextr|pinsr")
TILE = 8
"""Products of vectors in a loop from which on it is a tile's."""


def module(case: str) -> IRModule:
    return parse(SCRIPTS[case], WEIGHTS) if case in SCRIPTS else unity.load(OPERATORS[case].build())


@cache
def assembly(case: str, target: str) -> str:
    return assembly_of(module(case), TARGETS[target])


def assembly_of(program: IRModule, target: Target) -> str:
    """That of all kernels."""
    functions = pipeline("cpu").run(program, Context(target)).prim_funcs()
    code = compile_kernels(functions, target)
    return "\n".join(code.asm(name) for name in functions)


def innermost(text: str) -> list[list[str]]:
    """The bodies of the innermost loops: from a label to the jump back to it."""
    lines, labels = text.splitlines(), dict[str, int]()
    found: list[tuple[int, int]] = []
    for at, line in enumerate(lines):
        if label := LABEL.match(line):
            labels[label[1]] = at
        elif (jump := JUMP.match(line)) and jump[1] in labels:
            found.append((labels[jump[1]], at))
    return [
        lines[begin : end + 1]
        for begin, end in found
        if not any((b, e) != (begin, end) and begin <= b and e <= end for b, e in found)
    ]


def tiles(text: str) -> list[list[str]]:
    """The loops that are register tiles without masks."""
    return [
        body
        for body in innermost(text)
        if sum(bool(PRODUCTS.match(line)) for line in body) >= TILE
        and not any(MASKED.search(line) for line in body)
    ]


def spills(body: list[str], framed: bool) -> list[str]:
    """The instructions that keep a vector in a fixed place on the stack, or fetch it from there."""
    place = r"\(%r[sb]p\)" if framed else r"\(%rsp\)"
    return [line.strip() for line in body if re.search(place, line) and re.search("[xyz]mm", line)]


@pytest.mark.rotated(10)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", [*SCRIPTS, *MODELS])
def test_tiles_stay_in_registers(case: str, target: str) -> None:
    if (case, target) == ("product of any size", "sse4.2"):
        pytest.skip("its last rows, eight with a pointer each, keep three numbers on the stack")
    if (case, target) == ("depthwise", "avx512"):
        pytest.skip("its tile at the border, of thirteen pixels, keeps three numbers on the stack")
    if (case, target) == ("three columns", "sse4.2"):
        pytest.skip("its products take a register each, and some are kept on the stack")
    if (case, target) == ("Winograd of any size", "sse4.2"):
        pytest.skip("its last tile, whose products take a register each, keeps four of them")
    if case == "3d" and target != "sse4.2":
        pytest.skip("its tile at the border, of five pixels, keeps three weights on the stack")
    if (case, target) == ("small image", "avx2"):
        pytest.skip("its sums leave no register for the weights of further steps, loaded ahead")
    text = assembly(case, target)
    found = tiles(text)
    assert found, "no register tile"
    framed = "movq\t%rsp, %rbp" in text
    assert not [line for body in found for line in spills(body, framed)]


@pytest.mark.rotated(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", DEEP)
def test_pointers_stay_in_registers(case: str, target: str) -> None:
    text = assembly(case, target)
    assert tiles(text), "no register tile"
    kept = re.findall(r"^\t(?:mov|add|sub)q\t.*\(%rsp\)", text, re.MULTILINE)
    assert len(kept) < 350, "a pointer for each access, all of them on the stack"


@pytest.mark.rotated(3)
@pytest.mark.parametrize(("target", "most"), [("avx512", 24), ("avx2", 12), ("sse4.2", 8)])
def test_tiles_use_the_registers(target: str, most: int) -> None:
    steps = 4
    counts = [
        sum(bool(PRODUCTS.match(line)) for line in body)
        for body in tiles(assembly("product", target))
    ]
    assert max(counts) == most * steps


@pytest.mark.rotated(2)
@pytest.mark.parametrize(("case", "rows"), [("Winograd of any size", 13), ("gathered", 8)])
def test_tiles_of_unknown_images_use_the_registers(case: str, rows: int) -> None:
    """Of the 16 pixels that an image of 7 x 7 leaves by steps of 2, each thread has 8."""
    counts = [
        sum(bool(PRODUCTS.match(line)) for line in body) for body in tiles(assembly(case, "avx512"))
    ]
    assert max(counts) == 2 * rows * 8, "blocks, pixels, steps"


def test_sums_stay_where_they_are() -> None:
    """Also where each number is broadcast for one product alone, whose register is free then."""
    text = "\n".join(line for body in tiles(assembly("small image", "avx2")) for line in body)
    assert "vfmadd231ps" in text
    assert "vfmadd213ps" not in text


def test_a_spill_is_seen() -> None:
    text = "\n".join(
        [".LBB0_1:", *["\tvfmadd231ps\t%ymm0, %ymm1, %ymm2"] * TILE,
         "\tvmovups\t%ymm2, 32(%rsp)", "\tvmovups\t(%rsp,%rax), %ymm2", "\tjb\t.LBB0_1"]
    )  # fmt: skip
    (body,) = tiles(text)
    assert spills(body, framed=False) == ["vmovups\t%ymm2, 32(%rsp)"]
