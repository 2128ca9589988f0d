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
    assert result_shape(imported(MASKED)) == "b, 2, s, 4"
    exe = unity.compile(model(MASKED))
    assert exe.native()["main"] == "native"
    for batch, rows in ((3, 5), (1, 5), (3, 1), (1, 1)):
        x, mask, scale = arrays((3, 2, 5, 4), (batch, 1, rows, 4), (4,))
        np.testing.assert_allclose(np.asarray(exe(x, mask, scale), f4), (x + mask) * x * scale)
    assert np.asarray(exe(*arrays((0, 2, 5, 4), (1, 1, 5, 4), (4,)))).shape == (0, 2, 5, 4)
    for batch, rows in ((2, 5), (3, 4), (0, 5)):
        with pytest.raises(UnityError, match="u_dims_do_not_broadcast"):
            exe(*arrays((3, 2, 5, 4), (batch, 1, rows, 4), (4,)))


def test_the_dim_that_is_a_number_is_that_of_the_result() -> None:
    module = imported("g (float[n] x, float[8] y) => (float[8] z) { z = Add(x, y) }")
    assert result_shape(module) == "8"
    for n in (1, 8):
        x, y = arrays((n,), (8,))
        np.testing.assert_array_equal(run(module, x, y), x + y)
    with pytest.raises(UnityError, match="z_dims_do_not_broadcast"):
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
        with pytest.raises(UnityError, match=rf"dims_do_not_broadcast.* of n = {n} and m = {m}"):
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
    with pytest.raises(UnityError, match="dims_do_not_broadcast"):
        exe(np.ones(3, np.bool_), *arrays((1,), (2,)))


def test_dims_that_met_are_not_looked_at_again() -> None:
    module = imported(TWO_SIDED["again"])
    checks = print_module(module).count("dims_do_not_broadcast")
    assert checks == print_module(imported(TWO_SIDED["Add"])).count("dims_do_not_broadcast")
    assert result_shape(module) == result_shape(imported(TWO_SIDED["Add"]))


def test_what_is_broadcast_along_another_axis_gives_way() -> None:
    """The other is left as it is: what recognises attention looks for that."""
    module = imported(
        "g (float[b, 4, s] x, float[c, 1, t] mask) => (float[k, 4, l] z) { z = Add(x, mask) }"
    )
    assert result_shape(module) == "b, 4, s"
    assert ops_of(module) == ["stretch", "add"]


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
