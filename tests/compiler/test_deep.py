"""Networks of many blocks: what looks at one block does not look at all that follow."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import unity
from unity.ir.graph import Expr, Function, Var
from unity.script import parse
from unity.transform.graph.fuse import fuse_readers
from unity.transform.graph.layout.column_chunks import column_chunks
from unity.transform.graph.uses import variables


def residual(blocks: int) -> str:
    """``x = relu(x @ w) + x`` so many times, with weights of one array."""
    lines = [f"    x{i + 1} = R.add(R.nn.relu(R.matmul(x{i}, w)), x{i})" for i in range(blocks)]
    head = "@script.function\ndef main(x0: f32[Tensor, 4, 16], w: f32[Tensor, 16, 16]) -> "
    return "\n".join([f"{head}f32[Tensor, 4, 16]:", *lines, f"    return x{blocks}"])


def function(blocks: int) -> Function:
    return parse(residual(blocks)).graph_functions()["main"]


def test_columns_are_looked_for_without_recursion() -> None:
    """The chain of a thousand blocks had ended in Python's limit on recursion."""
    assert column_chunks(function(1200), 4) == {}


@pytest.mark.rotated(1 / 4)
@pytest.mark.long("1,200 blocks are compiled: what recurses into a chain ends in Python's limit")
def test_a_thousand_blocks_compile_and_are_right() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 16), np.float32)
    w = rng.standard_normal((16, 16), np.float32) * np.float32(0.01)
    found = unity.compile(parse(residual(1200)))(x, w)
    for _ in range(1200):
        x = np.maximum(x @ w, 0) + x
    np.testing.assert_allclose(np.asarray(found), x, rtol=1e-4)


def test_what_reads_a_product_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the blocks, twice the expressions looked at (it had been four times)."""
    looked: list[Expr] = []

    def watched(e: Expr) -> Iterator[Var]:
        looked.append(e)
        return variables(e)

    monkeypatch.setattr(fuse_readers, "variables", watched)
    counts = []
    for blocks in (40, 80):
        looked.clear()
        unity.compile(parse(residual(blocks)))
        counts.append(len(looked))
    assert counts[1] <= 2.2 * counts[0]
