"""Stages over nothing, and over one: no rule counts in tiles of an axis that has no points."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from tests.transform.cases import floats
from tests.transform.rules.kernels import lowered
from tests.transform.tensor.kernels import CPU, assert_same
from unity import te
from unity.interpreter import interpret
from unity.ir.dims import dim
from unity.ir.types import TensorType
from unity.script import parse
from unity.transform.rules.default import default_schedule, schedule

VIEWS = {
    "turned": "R.permute_dims(x)",
    "summed": "R.sum(R.permute_dims(x), axis=1)",
    "softmax": "R.nn.softmax(R.permute_dims(x))",
    "product": "R.nn.relu(R.matmul(R.permute_dims(x), x))",
}
KNOWN = [(0, 64), (64, 0)]
HEADS = [(4, 4, 1), (4, 0, 8), (0, 4, 8), (5, 5, 0)]


def text() -> str:
    parts = ['n = dim("n")']
    for name, value in VIEWS.items():
        parts += [
            f"""
@script.function
def {name}_{rows}_{columns}(x: f32[Tensor, {rows}, {columns}]):
    return {value}
"""
            for rows, columns in KNOWN
        ]
    parts += [
        f"""
@script.function
def attend_{length}_{keys}_{size}(
    q: f32[Tensor, 2, {length}, 2, {size}], k: f32[Tensor, 2, {keys}, 2, {size}]
):
    return R.nn.attention(q, k, k)
"""
        for length, keys, size in HEADS
    ]
    parts.append("""
@script.function
def unknown(x: f32[Tensor, n, 8], y: f32[Tensor, 2, n, 2, 1]):
    s = R.nn.softmax(R.matmul(x, R.permute_dims(x)))
    return R.matmul(s, x), R.permute_dims(x), R.nn.attention(y, y, y)
""")
    return "\n".join(parts)


@pytest.mark.long("compiles every kind of kernel at extents of 0 and 1")
@pytest.mark.rotated(1)
@pytest.mark.filterwarnings("ignore")
def test_nothing_and_one() -> None:
    module = parse(text())
    executable = unity.compile(module)
    for name, function in module.graph_functions().items():
        for n in (0, 1, 3) if name == "unknown" else (0,):
            shapes = []
            for p in function.params:
                assert isinstance(p.type, TensorType)
                assert isinstance(p.type.shape, tuple)
                shapes.append(tuple(d if isinstance(d, int) else n for d in p.type.shape))
            args = floats(n, *shapes)
            expected, got = interpret(module, name, args), executable[name](*args)
            both = (expected, got) if isinstance(expected, tuple) else ((expected,), (got,))
            for a, b in zip(*both, strict=True):
                message = f"{name}, n={n}"
                np.testing.assert_allclose(
                    np.asarray(b, float), np.asarray(a, float), 1e-4, 1e-5, err_msg=message
                )


BARE = """
@script.prim_func
def main(
    x: f32[Buffer, {0}, {1}], c: f32[Buffer, {0}], d: f32[Buffer, {0}, {1}]
) -> None:
    t = T.alloc(({0},), "float32")
    for i, j in T.grid({0}, {1}):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", i, j)
            with T.init():
                t[vi] = 3.0
            t[vi] += x[vi, vj]
    for i in range({0}):
        with T.block("relu"):
            vi = T.axis.spatial({0}, i)
            c[vi] = T.max(t[vi], 0.0)
    for i, j in T.grid({0}, {1}):
        with T.block("twice"):
            vi, vj = T.axis.remap("SS", i, j)
            d[vi, vj] = x[vi, vj] * 2.0
"""


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0)])
def test_a_program_of_steps_gives_the_init(shape: tuple[int, int]) -> None:
    before = parse(BARE.format(*shape)).prim_funcs()["main"]
    sch = default_schedule(before, CPU)
    for done in (sch.func, schedule(before, CPU)):
        assert_same(before, done, {})
        assert_same(before, lowered(done, CPU), {})


def test_narrow_sums_that_leave_one_point() -> None:
    n, m = dim("n"), dim("m")
    x = te.placeholder((n, m), "float16", "x")
    p, q = te.reduce_axis(n, "p"), te.reduce_axis(m, "q")
    y = te.compute((), lambda: te.sum(te.cast(x[p, q], "float32"), [p, q]), "y")
    before = te.create_prim_func([x, y])
    assert_same(before, schedule(before, CPU), {"n": 2, "m": 3})


def test_products_that_leave_one_point() -> None:
    n, m = dim("n"), dim("m")
    x, w = te.placeholder((n, m), "float32", "x"), te.placeholder((n, m), "float32", "w")
    p, q = te.reduce_axis(n, "p"), te.reduce_axis(m, "q")
    y = te.compute((), lambda: te.sum(x[p, q] * w[p, q], [p, q]), "y")
    before = te.create_prim_func([x, w, y])
    assert_same(before, schedule(before, CPU), {"n": 2, "m": 3})
