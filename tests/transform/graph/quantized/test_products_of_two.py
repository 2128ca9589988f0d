"""IntegerProducts: products of two integer matrices that are known only when the program runs."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from tests.codegen.llvm.levels import LEVELS
from unity.interpreter import interpret
from unity.ir.module import IRModule
from unity.script import parse, print_module
from unity.transform import Context
from unity.transform.graph import EliminateDeadCode, IntegerProducts, Normalize

PAIRS = Context(target=LEVELS["avx2"])
RNG = np.random.default_rng(5)


def integers(module: IRModule, context: Context = PAIRS) -> IRModule:
    for step in (Normalize(), IntegerProducts(), EliminateDeadCode()):
        module = step(module, context)
    return module


PRODUCT = """
n = dim("n")
@script.function
def main(x: u8[Tensor, {rows}, {depth}], w: {of}[Tensor, {depth}, {columns}], z: u8[Tensor, ()])\
 -> i32[Tensor, {rows}, {columns}]:
    a = R.subtract(R.astype(x, "int32"), R.astype(z, "int32"))
    b = R.astype(w, "int32")
    return R.matmul(a, {right})
"""
OFF = 'R.subtract(b, R.const(-3, "int32"))'


def product(
    rows: int | str, depth: int, columns: int, of: str = "i8", right: str = "b"
) -> IRModule:
    return parse(PRODUCT.format(rows=rows, depth=depth, columns=columns, of=of, right=right))


def test_the_right_matrix_is_laid_out_in_panels_when_the_program_runs() -> None:
    after = print_module(integers(product(40, 64, 48)))
    assert [line.strip() for line in after.splitlines()[-7:]] == [
        "a = R.subtract(astype, astype_1)",
        'short = R.astype(a, dtype="int16")',
        'short_1 = R.astype(w, dtype="int16")',
        "parts = R.reshape(short_1, (32, 2, 3, 16))",
        "panels = R.permute_dims(parts, axes=(2, 0, 3, 1))",
        'matmul = R.matmul_interleaved(short, panels, columns=48, out_dtype="int32")',
        "return matmul",
    ]


@pytest.mark.rotated(1 / 4)
@pytest.mark.parametrize("right", ["b", OFF], ids=["plain", "off a zero point"])
@pytest.mark.parametrize("of", ["i8", "u8"])
@pytest.mark.parametrize(
    ("rows", "depth", "columns"), [(40, 64, 48), (33, 63, 50), ("2, 17", 5, 8), ("n", 30, 16)]
)
def test_sums_are_exact(rows: int | str, depth: int, columns: int, of: str, right: str) -> None:
    module = product(rows, depth, columns, of, right)
    after = integers(module)
    assert "matmul_interleaved" in print_module(after)
    named: dict[int | str, tuple[int, ...]] = {"2, 17": (2, 17), "n": (35,)}
    shape = named[rows] if isinstance(rows, str) else (rows,)
    x = RNG.choice(np.array([0, 1, 254, 255], np.uint8), (*shape, depth))
    low, high = (-128, 127) if of == "i8" else (0, 255)
    w = RNG.choice(np.array([low, low + 1, high], np.int8 if of == "i8" else np.uint8),
                   (depth, columns))  # fmt: skip
    z = np.array(200, np.uint8)
    want = (x.astype(np.int64) - 200) @ (w.astype(np.int64) + (3 if right == OFF else 0))
    for got in (interpret(after, "main", [x, w, z]), unity.compile(module, cache=None)(x, w, z)):
        np.testing.assert_array_equal(np.asarray(got), want)


def test_what_repays_no_panels_stays() -> None:
    for module in (product(8, 64, 48), product(40, 3, 48), product(40, 64, 3)):
        assert "matmul_interleaved" not in print_module(integers(module))
    other = Context(target=LEVELS["avx512 with dots"])
    assert "matmul_interleaved" not in print_module(integers(product(40, 64, 48), other))


def test_integers_that_int16_does_not_hold_stay() -> None:
    wide = 'R.subtract(b, R.const(70000, "int32"))'
    assert "matmul_interleaved" not in print_module(integers(product(40, 64, 48, "i8", wide)))
