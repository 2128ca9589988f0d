"""JoinDequantize: what is weights dequantized step by step, and what is something else."""

from __future__ import annotations

import numpy as np
import pytest

from unity.interpreter import interpret
from unity.ir.dtype import Array
from unity.ir.well_formed.verify import verify
from unity.script import parse, print_module
from unity.transform import Context
from unity.transform.graph import JoinDequantize

RNG = np.random.default_rng(5)
CONSTANTS: dict[str, Array] = {
    "w": RNG.integers(-128, 128, (8, 6), dtype=np.int8),
    "u": RNG.integers(0, 256, (8, 6), dtype=np.uint8),
    "k": RNG.integers(-128, 128, (5, 8, 3, 3), dtype=np.int8),
    "row": RNG.uniform(0.1, 0.2, (1, 6)).astype(np.float32),
    "column": RNG.uniform(0.1, 0.2, (8, 1)).astype(np.float32),
    "filters": RNG.uniform(0.1, 0.2, (5, 1, 1, 1)).astype(np.float32),
    "both": RNG.uniform(0.1, 0.2, (8, 6)).astype(np.float32),
    "zeros": RNG.integers(0, 256, (6,)).astype(np.float32),
}
MATRIX = "f32[Tensor, 4, 8]", "f32[Tensor, 4, 6]", "R.matmul(x, {})"
TURNED = "f32[Tensor, 4, 6]", "f32[Tensor, 4, 8]", "R.matmul(x, R.permute_dims({}, axes=(1, 0)))"
IMAGE = "f32[Tensor, 1, 8, 5, 5]", "f32[Tensor, 1, 5, 3, 3]", "R.nn.conv2d(x, {})"
WIDE = 'R.astype(R.const("{}"), "float32")'
JOINED = {
    "one scale": (MATRIX, f"R.multiply({WIDE.format('w')}, 0.5)"),
    "a scale in front": (MATRIX, f"R.multiply(0.5, {WIDE.format('w')})"),
    "columns": (MATRIX, f"R.multiply({WIDE.format('w')}, R.const('row'))"),
    "rows, turned": (TURNED, f"R.multiply({WIDE.format('w')}, R.const('column'))"),
    "zero points": (
        MATRIX,
        f"R.multiply(R.subtract({WIDE.format('u')}, R.const('zeros')), R.const('row'))",
    ),
    "a zero point": (MATRIX, f"R.multiply(R.subtract({WIDE.format('u')}, 128.0), R.const('row'))"),
    "filters": (IMAGE, f"R.multiply({WIDE.format('k')}, R.const('filters'))"),
}
OTHER = {
    "a scale for each": (MATRIX, f"R.multiply({WIDE.format('w')}, R.const('both'))"),
    "half a zero point": (MATRIX, f"R.multiply(R.subtract({WIDE.format('u')}, 0.5), 0.5)"),
    "scales and zeros along two axes": (
        MATRIX,
        f"R.multiply(R.subtract({WIDE.format('u')}, R.const('zeros')), R.const('column'))",
    ),
    "read otherwise": (MATRIX, f"R.negative(R.multiply({WIDE.format('w')}, 0.5))"),
}


@pytest.mark.parametrize("case", [*JOINED, *OTHER])
def test_what_is_joined(case: str) -> None:
    (given, result, product), weight = (JOINED | OTHER)[case]
    text = f"""
@script.function
def main(x: {given}) -> {result}:
    return {product.format(weight)}
"""
    before = parse(text, CONSTANTS)
    after = JoinDequantize()(before, Context())
    verify(after)
    assert ("R.dequantize" in print_module(after)) is (case in JOINED)
    assert (after is before) is (case in OTHER)
    shape = [int(n) for n in given.removeprefix("f32[Tensor, ").rstrip("]").split(", ")]
    x = RNG.standard_normal(shape).astype(np.float32)
    want, got = (np.asarray(interpret(m, "main", [x])) for m in (before, after))
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-4)


def test_tables_are_read_as_they_are() -> None:
    """A row of an embedding is dequantized where it is taken, not the whole."""
    module = parse(
        f"""
@script.function
def main(i: i64[Tensor, 3]) -> f32[Tensor, 3, 6]:
    return R.take(R.multiply({WIDE.format("w")}, R.const("column")), i, axis=0)
""",
        CONSTANTS,
    )
    assert JoinDequantize()(module, Context()) is module
