"""What the static estimate takes sizes to be."""

from __future__ import annotations

import pytest

from unity.ir.dims import Dim, as_dim, ceildiv, dim, dim_max, dim_min
from unity.transform.graph.resolve.cost import DEFAULT_SIZE, size_of

N = dim("n")


@pytest.mark.parametrize(
    ("size", "guess"),
    [
        (3, 3),
        (N, DEFAULT_SIZE),
        (dim_min(1000000000, N), DEFAULT_SIZE),
        (dim_max(0, N), DEFAULT_SIZE),
        (as_dim(2 * N + 1), 2 * DEFAULT_SIZE + 1),
        (as_dim(N - 1000), 0),
        (ceildiv(N, 16), DEFAULT_SIZE // 16),
        (dim("short", max=9), 9),
        (dim("capped", max=1 << 40), DEFAULT_SIZE),
        (dim("long", min=500), 500),
        (dim("whole", min=1, multiple_of=48), 96),
    ],
)
def test_expressions_are_computed_from_guesses_of_symbols(size: Dim, guess: int) -> None:
    assert size_of(size) == guess
