"""How many threads an executable uses: at compile time, later, and for one call."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity.errors import UnityError
from unity.script import parse

SOURCE = """
@script.function
def main(x: f32[Tensor, 256, 256], y: f32[Tensor, 256, 256]) -> f32[Tensor, 256, 256]:
    return R.matmul(x, y)
"""


@pytest.fixture(scope="module")
def product() -> unity.Executable:
    return unity.compile(parse(SOURCE), threads=2)


def test_each_executable_has_its_own_number(product: unity.Executable) -> None:
    other = unity.compile(parse(SOURCE), threads=1)
    assert (product.threads, other.threads) == (2, 1)
    other.threads = 3
    assert (product.threads, other.threads) == (2, 3)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_call_may_use_another_number(product: unity.Executable, threads: int) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 256, 256), np.float32)
    (got,) = product.run({"x": x, "y": y}, threads=threads).values()
    np.testing.assert_allclose(got, x @ y, rtol=1e-4, atol=1e-4)
    assert product.threads == 2


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2"])
def test_a_wrong_number_is_refused(product: unity.Executable, threads: int) -> None:
    with pytest.raises(UnityError, match="threads"):
        product.threads = threads
    assert product.threads == 2
