"""Random diamonds behind products: results of products of one input that meet again, and again.

Products of one input become one, kernels that read a product are joined to it, and what reads two
products could be joined to either: each value here is mostly used twice. The functions of one test
are compiled in one module, and compared with the interpreter.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import unity
from unity.interpreter import interpret
from unity.ir.dims import Dim, dim
from unity.ir.dtype import FLOAT32
from unity.ir.graph import Constant, Expr, Function, Tuple, Var
from unity.ir.module import IRModule
from unity.ir.types import TensorType
from unity.op.builder import GraphBuilder

UNARY = ("tanh", "sigmoid", "nn.relu", "sin", "negative", "nn.silu")
BINARY = ("add", "subtract", "multiply", "maximum")
TOGETHER = 25
"""Functions in one module."""


def diamond(seed: int) -> Function:
    """One to three products of one input, and steps that mostly take what was made just before."""
    rng, arrays, b = Random(seed), np.random.default_rng(seed), GraphBuilder()
    rows: Dim = rng.choice((dim("n"), dim("n"), 1, 5, 16))
    depth, width = rng.choice((3, 8, 16)), rng.choice((4, 16, 17, 32))

    def weight() -> Expr:
        if rng.random() < 0.2:
            return b.param(f"w{rng.random()}"[:6], TensorType((depth, width), FLOAT32))
        return Constant((arrays.standard_normal((depth, width)) / depth).astype(np.float32))

    x = b.param("x", TensorType((rows, depth), FLOAT32))
    made: list[Var] = [b.op("matmul", x, weight()) for _ in range(rng.choice((1, 2, 2, 2, 3)))]
    for _ in range(rng.randint(2, 8)):
        near = made[-4:]
        if rng.random() < 0.35:
            made.append(b.op(rng.choice(UNARY), rng.choice(near)))
        elif rng.random() < 0.1 and width > 4:
            both = b.op("concat", Tuple((rng.choice(near), rng.choice(near))), axis=1)
            made.append(b.op("strided_slice", both, axes=(1,), begin=(4,), end=(4 + width,)))
        elif rng.random() < 0.15:
            bias = Constant(arrays.standard_normal(width).astype(np.float32))
            made.append(b.op("add", rng.choice(near), bias))
        else:
            made.append(b.op(rng.choice(BINARY), rng.choice(made), rng.choice(near)))
    returned = rng.sample(made, min(len(made), rng.choice((1, 2, 2, 3))))
    return b.finish(Tuple(tuple(dict.fromkeys((made[-1], *returned)))))


def check(first: int, count: int = TOGETHER) -> None:
    module = IRModule({f"diamond_{i}": diamond(i) for i in range(first, first + count)})
    executable = unity.compile(module, cache=None)
    for name, function in module.graph_functions().items():
        rng = np.random.default_rng(first)
        args = [rng.standard_normal(sizes(p)).astype(np.float32) for p in function.params]
        got, expected = executable[name](*args), interpret(module, name, args)
        assert isinstance(got, tuple)
        assert isinstance(expected, tuple)
        for mine, wanted in zip(got, expected, strict=True):
            assert isinstance(mine, np.ndarray)
            assert isinstance(wanted, np.ndarray)
            np.testing.assert_allclose(mine, np.asarray(wanted, float), 2e-4, 2e-4, err_msg=name)


def sizes(param: Var) -> tuple[int, ...]:
    assert isinstance(param.type, TensorType)
    assert isinstance(param.type.shape, tuple)
    return tuple(n if isinstance(n, int) else 3 for n in param.type.shape)


@pytest.mark.rotated(1)
def test_a_sample() -> None:
    check(0, 4)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 20 * TOGETHER, TOGETHER))
def test_the_rest(first: int) -> None:
    check(first)
