"""SimplifyOps: each rule, where it holds and where it must not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.transform.cases import becomes, floats, keeps_meaning, stays
from unity.interpreter import interpret
from unity.ir.dtype import dtype
from unity.ir.graph import Constant, Tuple
from unity.ir.module import IRModule
from unity.ir.types import TensorType
from unity.op.builder import GraphBuilder
from unity.transform import Context
from unity.transform.graph import EliminateDeadCode, SimplifyOps

TEXT = """
n = dim("n")
@script.function
def main(x: f32[Tensor, {dims}]) -> f32[Tensor, {out}]:
    with R.dataflow():
        y = {value}
        z = R.exp(y)
    return z
"""


def program(value: str, dims: str = "2, 4", out: str | None = None) -> str:
    return TEXT.format(value=value, dims=dims, out=out or dims).replace("y = x\n        ", "")


@pytest.mark.parametrize(
    ("before", "after", "dims", "out"),
    [
        ("R.reshape(R.reshape(x, (4, 2)), (8,))", "R.reshape(x, (8,))", "2, 4", "8"),
        ("R.squeeze(R.expand_dims(x, 1), 1)", "x", "n, 4", "n, 4"),
        ("R.flatten(R.expand_dims(x, 0))", "R.reshape(x, (8,))", "2, 4", "8"),
        ("R.permute_dims(R.permute_dims(x))", "x", "n, 4", "n, 4"),
        (
            "R.permute_dims(R.permute_dims(x, (1, 2, 0)), (1, 2, 0))",
            "R.permute_dims(x, (2, 0, 1))",
            "2, n, 4",
            "4, 2, n",
        ),
        ("R.permute_dims(x, (0, 1))", "x", "n, 4", "n, 4"),
        ("R.permute_dims(x, (1, 0, 2))", "R.reshape(x, (n, 1, 4))", "1, n, 4", "n, 1, 4"),
        ('R.astype(x, "float32")', "x", "n", "n"),
        ("R.broadcast_to(x, (n, 4))", "x", "n, 4", "n, 4"),
        ("R.concat((x,), 0)", "x", "n, 4", "n, 4"),
        ("R.strided_slice(x, (0,), (0,), (2,))", "x", "2, 4", "2, 4"),
        ("R.multiply(x, 1.0)", "x", "n", "n"),
        ("R.multiply(1.0, x)", "x", "n", "n"),
        ("R.divide(x, 1.0)", "x", "n", "n"),
        ("R.divide(x, 8.0)", "R.multiply(x, 0.125)", "n", "n"),
        ("R.subtract(x, 0.0)", "x", "n", "n"),
        ("R.power(x, 2.0)", "R.square(x)", "n", "n"),
        ("R.power(x, 1.0)", "x", "n", "n"),
    ],
)
def test_rules(before: str, after: str, dims: str, out: str) -> None:
    steps = [SimplifyOps(), EliminateDeadCode()]
    simple = program(after, dims, out)
    if after == "x":
        simple = program("y", dims, out).replace("        y = y\n", "").replace("exp(y)", "exp(x)")
    becomes(steps, program(before, dims, out), simple)
    shape = tuple(3 if d == "n" else int(d) for d in dims.split(", "))
    keeps_meaning(steps, program(before, dims, out), floats(0, shape))


@pytest.mark.parametrize(
    ("value", "dims", "out"),
    [
        ("R.divide(x, 3.0)", "n", "n"),
        ("R.divide(x, 0.0)", "n", "n"),
        ("R.subtract(x, -0.0)", "n", "n"),  # a 0.0 of -0.0
        ("R.add(x, 0.0)", "n", "n"),  # -0.0 + 0.0 is 0.0
        ("R.power(x, 0.5)", "n", "n"),  # of -0.0 and -inf it is not the square root
        ('R.multiply(x, R.const([[1.0]], "float32"))', "n", "1, n"),
        ("R.permute_dims(x)", "2, n", "n, 2"),
        ("R.strided_slice(x, (0,), (0,), (1,))", "2, 4", "1, 4"),
        ("R.strided_slice(x, (0,), (1,), (-3,), (-1,))", "2, 4", "2, 4"),
        ("R.reshape(x, (4, 2))", "2, 4", "4, 2"),
    ],
)
def test_what_must_stay(value: str, dims: str, out: str) -> None:
    stays(SimplifyOps(), program(value, dims, out))


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid")
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
def test_quotients_by_powers_of_two_are_exact_to_the_ends_of_the_dtype(kind: str) -> None:
    """Reciprocals of the least powers are infinite, those of the largest subnormal."""
    storage, g = dtype(kind).numpy, GraphBuilder()
    x = g.param("x", TensorType((8,), dtype(kind)))
    exponents = {"float16": (-24, 15), "float64": (-1074, 1023)}.get(kind, (-149, 127))
    near = [*range(exponents[0], exponents[0] + 28), *range(-17, 18), *range(exponents[1] - 5, 0)]
    powers = np.array([2.0**e for e in sorted({*near, exponents[1]})]).astype(storage)
    powers = powers[np.isfinite(powers.astype(np.float64)) & (powers != 0)]
    values = [g.op("divide", x, Constant(np.array(p, storage))) for p in powers]
    before = IRModule({"main": g.finish(Tuple(tuple(values)))})
    given = np.array([0.0, -0.0, 1.0, 1.5, -3.0, 1e-4, np.inf, float(powers[0])]).astype(storage)
    after = SimplifyOps()(before, Context())
    assert after is not before or kind == "bfloat16"
    expected, got = (interpret(m, "main", [given]) for m in (before, after))
    assert isinstance(expected, tuple)
    assert isinstance(got, tuple)
    for p, wanted, mine in zip(
        powers, map(np.asarray, expected), map(np.asarray, got), strict=True
    ):
        np.testing.assert_array_equal(mine, wanted, err_msg=f"by {p}")


MERGED = """
n = dim("n")
b = dim("b")
@script.function
def main(x: f32[Tensor, b, 3, n, 8], y: f32[Tensor, b, 3, {y}]) -> f32[Tensor, {out}]:
    with R.dataflow():
        left = R.reshape(x, (b * 3, n, 8))
        right = R.reshape(y, (b * 3, {y}))
        product = R.matmul(left, {right})
        parts = {parts}
    return parts
"""
PARTED = "R.reshape(product, (b, 3, n, 5))"


@pytest.mark.parametrize(
    ("y", "right", "whole"),
    [
        ("8, 5", "right", "y"),
        ("5, 8", "R.permute_dims(right, (0, 2, 1))", "R.permute_dims(y, (0, 1, 3, 2))"),
    ],
)
def test_a_product_of_merged_batches_is_that_of_all_of_them(y: str, right: str, whole: str) -> None:
    after = f"""
n = dim("n")
b = dim("b")
@script.function
def main(x: f32[Tensor, b, 3, n, 8], y: f32[Tensor, b, 3, {y}]) -> f32[Tensor, b, 3, n, 5]:
    with R.dataflow():
        parts = R.matmul(x, {whole})
    return parts
"""
    before = MERGED.format(y=y, right=right, parts=PARTED, out="b, 3, n, 5")
    becomes([SimplifyOps(), EliminateDeadCode()], before, after)


@pytest.mark.parametrize(
    ("parts", "out"),
    [
        ("R.nn.softmax(product)", "b * 3, n, 5"),  # read as it is
        (f"R.add({PARTED}, R.sum(product))", "b, 3, n, 5"),  # by something else as well
        ("R.reshape(product, (3, b, n, 5))", "3, b, n, 5"),  # parted otherwise
    ],
)
def test_products_that_are_read_with_merged_batches_stay(parts: str, out: str) -> None:
    stays(SimplifyOps(), MERGED.format(y="8, 5", right="right", parts=parts, out=out))
