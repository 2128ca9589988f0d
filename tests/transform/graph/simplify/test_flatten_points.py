"""FlattenPoints: where rows of points become one, and that pixels stay."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity.interpreter import interpret
from unity.ir.well_formed.verify import verify
from unity.script import parse, print_module
from unity.transform import Context
from unity.transform.graph import FlattenPoints

RNG = np.random.default_rng(3)
TEXT = """
n = dim("n")
h = dim("h")
w = dim("w")

@script.function
def main(x: f32[Tensor, {batch}, 3, 5, 6], grid: f32[Tensor, {batch}, 2, {rows}, {columns}]):
    return R.image.grid_sample(x, grid, {attributes})
"""


@pytest.mark.parametrize(
    ("batch", "rows", "columns", "attributes"),
    [
        ("2", "7", "4", ""),
        ("n", "h", "w", 'padding_mode="border"'),
        ("n", "h", "4", 'method="nearest", align_corners=True'),
        ("2", "1", "w", ""),
        ("2", "h", "w", 'method="bicubic", padding_mode="reflection"'),
    ],
)
def test_rows_are_joined(batch: str, rows: str, columns: str, attributes: str) -> None:
    text = TEXT.format(batch=batch, rows=rows, columns=columns, attributes=attributes)
    before = parse(text)
    after = FlattenPoints()(before, Context())
    verify(after)
    assert (after is before) is (rows == "1")
    assert FlattenPoints()(after, Context()) is after
    assert print_module(after).count("R.image.grid_sample") == 1
    exe = unity.compile(before)
    for height, width in ((7, 4), (1, 9), (0, 4), (3, 1)):
        shape = (
            2,
            2,
            height if rows == "h" else int(rows),
            width if columns == "w" else int(columns),
        )
        x = RNG.standard_normal((2, 3, 5, 6)).astype(np.float32)
        grid = RNG.uniform(-1.2, 1.2, shape).astype(np.float32)
        want = np.asarray(interpret(before, "main", [x, grid]))
        assert want.shape == (2, 3, *shape[2:])
        got = np.asarray(interpret(after, "main", [x, grid]))
        np.testing.assert_array_equal(got, want)
        np.testing.assert_allclose(np.asarray(exe(x, grid)), want, rtol=0, atol=1e-4)
