"""Stages over nothing, and over one: no rule counts in tiles of an axis that has no points."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from tests.transform.cases import floats
from unity.interpreter import interpret
from unity.ir.types import TensorType
from unity.script import parse

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
