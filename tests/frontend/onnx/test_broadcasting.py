"""Dims of different names broadcast: they are equal at run time, or one of them is 1 there."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import unity
from unity.errors import UnityError
from unity.script import print_module

from .programs import imported, model, ops_of, result_shape, run

f4 = np.float32

MASKED = """
g (float[b, 2, s, 4] x, float[c, 1, t, 4] mask, float[4] scale) => (float[k, l, m, o] z) {
    u = Add(mask, x)
    v = Mul(u, x)
    z = Mul(v, scale)
}"""


def arrays(*shapes: tuple[int, ...]) -> list[npt.NDArray[np.float32]]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(s).astype(np.float32) for s in shapes]


def test_a_dim_of_1_broadcasts_and_equal_ones_are_as_they_were() -> None:
    exe = unity.compile(model(MASKED))
    assert exe.native()["main"] == "native"
    for batch, rows in ((3, 5), (1, 5), (3, 1), (1, 1)):
        x, mask, scale = arrays((3, 2, 5, 4), (batch, 1, rows, 4), (4,))
        np.testing.assert_allclose(np.asarray(exe(x, mask, scale), f4), (x + mask) * x * scale)
    assert np.asarray(exe(*arrays((0, 2, 5, 4), (1, 1, 5, 4), (4,)))).shape == (0, 2, 5, 4)
    for sizes in (((1, 2, 5, 4), (3, 1, 1, 4)), ((1, 2, 1, 4), (3, 1, 5, 4))):
        x, mask, scale = arrays(*sizes, (4,))
        np.testing.assert_allclose(
            np.asarray(exe(x, mask, scale), f4), (x + mask) * x * scale, 1e-5, 1e-5
        )
    for batch, rows in ((2, 5), (3, 4), (0, 5)):
        with pytest.raises(
            UnityError, match=r"u \(Add\): .* must be equal where they are not 1; got "
        ):
            exe(*arrays((3, 2, 5, 4), (batch, 1, rows, 4), (4,)))


def test_the_dim_that_is_a_number_is_that_of_the_result() -> None:
    module = imported("g (float[n] x, float[8] y) => (float[8] z) { z = Add(x, y) }")
    assert result_shape(module) == "8"
    for n in (1, 8):
        x, y = arrays((n,), (8,))
        np.testing.assert_array_equal(run(module, x, y), x + y)
    with pytest.raises(UnityError, match=r"z \(Add\): n and 8 must be equal where they are not 1"):
        run(module, *arrays((4,), (8,)))


def test_dims_of_one_name_are_not_looked_at() -> None:
    module = imported("g (float[n, 8] x, float[n, 8] y) => (float[n, 8] z) { z = Add(x, y) }")
    assert ops_of(module) == ["add"]


TWO_SIDED = {
    "Add": "g (float[n, a] x, float[m, b] y) => (float[k, l] z) { z = Add(x, y) }",
    "MatMul": "g (float[n, a, 3] x, float[m, 3, b] y) => (float[k, l, p] z) { z = MatMul(x, y) }",
    "Expand": """
g (float[n, a] x, float[m, b] y) => (float[k, l] z) {
    s = Shape(y)
    z = Expand(x, s)
}""",
    "again": """
g (float[n, a] x, float[m, b] y) => (float[k, l] z) {
    s = Add(x, y)
    t = Mul(x, s)
    z = Sub(y, t)
}""",
}


def broadcast_of(op: str, x: npt.NDArray[np.float32], y: npt.NDArray[np.float32]) -> object:
    match op:
        case "MatMul":
            return x @ y
        case "Expand":
            return x + np.zeros_like(y)
        case "again":
            return y - x * (x + y)
        case _:
            return x + y


@pytest.mark.parametrize("op", TWO_SIDED)
def test_either_of_two_unknown_dims_may_be_1(op: str) -> None:
    exe = unity.compile(model(TWO_SIDED[op]), cache=None)
    assert exe.native()["main"] == "native"
    ends = ((3,), (3,)) if op == "MatMul" else ((), ())
    for n, m in ((1, 3), (3, 1), (3, 3), (1, 1), (0, 1), (1, 0), (0, 0)):
        for a, b in ((2, 2),) if op == "MatMul" else ((2, 2), (1, 5), (5, 1)):
            x, y = arrays((n, a, *ends[0]), (m, *ends[1], b))
            got = np.asarray(exe(x, y), f4)
            np.testing.assert_allclose(got, np.asarray(broadcast_of(op, x, y), f4), 1e-5, 1e-5)
    for n, m in ((4, 3), (2, 3), (0, 3), (3, 0)):
        with pytest.raises(
            UnityError, match=rf"must be equal where they are not 1; got n = {n} and m = {m}"
        ):
            exe(*arrays((n, 2, *ends[0]), (m, *ends[1], 2)))


def test_all_three_of_where_may_be_1() -> None:
    exe = unity.compile(
        model("g (bool[c] i, float[n] x, float[m] y) => (float[k] z) { z = Where(i, x, y) }"),
        cache=None,
    )
    for c, n, m in ((1, 3, 1), (3, 1, 1), (1, 1, 3), (3, 3, 1), (3, 3, 3), (1, 0, 1)):
        i = np.arange(c) % 2 == 0
        x, y = arrays((n,), (m,))
        np.testing.assert_array_equal(np.asarray(exe(i, x, y)), np.where(i, x, y))
    with pytest.raises(
        UnityError, match="c, m and n must be equal where they are not 1; got c = 3 "
    ):
        exe(np.ones(3, np.bool_), *arrays((1,), (2,)))


def test_dims_that_met_are_not_looked_at_again() -> None:
    module = imported(TWO_SIDED["again"])
    checks = print_module(module).count("dims_do_not_broadcast")
    assert checks == print_module(imported(TWO_SIDED["Add"])).count("dims_do_not_broadcast")
    assert result_shape(module) == result_shape(imported(TWO_SIDED["Add"]))


SCORES = """
g (float[b, 4, s, 8] q, float[b, 4, 8, s] k, float[c, 1, 1, t] mask) => (float[i, 4, j, l] z)
    <float scale = {2.0}> {
    product = MatMul(q, k)
    scores = Mul(product, scale)
    z = Add(scores, mask)
}"""


def test_a_mask_gives_way_to_attentions_scores() -> None:
    """They are left as they are: what recognises attention looks for that."""
    module = imported(SCORES)
    assert result_shape(module) == "b, 4, s, s"
    assert ops_of(module) == ["matmul", "multiply", "stretch", "add"]
    exe = unity.compile(model(SCORES), cache=None)
    for b, s, c, t in ((2, 3, 1, 3), (2, 3, 2, 1), (1, 1, 1, 1)):
        q, k, mask = arrays((b, 4, s, 8), (b, 4, 8, s), (c, 1, 1, t))
        np.testing.assert_allclose(np.asarray(exe(q, k, mask), f4), q @ k * 2 + mask, 1e-5, 1e-5)
    told = r"z \(Add\): c must be 1 or equal to b; got b = 1 and c = 2"
    with pytest.raises(UnityError, match=told):
        exe(*arrays((1, 4, 3, 8), (1, 4, 8, 3), (2, 1, 1, 3)))


def test_a_tensor_of_fewer_axes_may_be_the_larger_one() -> None:
    """As numpy has it, whichever of the operands has dims of 1."""
    product = (
        "g (float[a, b, m, k] x, float[c, k, n] y) => (float[i, j, m, n] z) { z = MatMul(x, y) }"
    )
    exe = unity.compile(model(product), cache=None)
    for a, b, c in ((1, 1, 5), (2, 5, 1), (2, 5, 5), (2, 1, 5), (2, 0, 1)):
        x, y = arrays((a, b, 3, 4), (c, 4, 6))
        np.testing.assert_allclose(np.asarray(exe(x, y), f4), x @ y, 1e-5, 1e-5)
    chosen = "g (bool[c, 1] i, float[n] x, float[d, e] y) => (float[j, k] z) { z = Where(i, x, y) }"
    exe = unity.compile(model(chosen), cache=None)
    for c, n, d, e in ((2, 3, 2, 1), (1, 1, 2, 3), (2, 1, 1, 1), (2, 3, 1, 3)):
        i = np.arange(c)[:, None] % 2 == 0
        x, y = arrays((n,), (d, e))
        np.testing.assert_array_equal(np.asarray(exe(i, x, y)), np.where(i, x, y))


def test_a_slice_of_one_element_broadcasts_to_what_it_was_cut_of() -> None:
    module = imported("""
g (float[n, 4] x) => (float[n, 4] z)
    <int64[1] begin = {0}, int64[1] end = {1}> {
    first = Slice(x, begin, end)
    z = Sub(x, first)
}""")
    for n in (1, 3, 0):
        (x,) = arrays((n, 4))
        np.testing.assert_array_equal(run(module, x), x - x[:1])
