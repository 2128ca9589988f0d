"""Random small networks through the whole compiler, against the interpreter.

What single operators can't show: what fusion and the schedules do with neighbours. Each network is
compiled once with a symbolic batch and run at several sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pytest

import unity
from unity.interpreter import interpret
from unity.ir.dims import Dim, Symbol, dim, evaluate
from unity.ir.dtype import FLOAT32, INT64, Array
from unity.ir.graph import Constant, Expr, Function, Tuple, TupleGet, Var
from unity.ir.module import IRModule
from unity.ir.types import TensorType
from unity.op.builder import GraphBuilder

N, T = dim("n"), dim("t", min=1)
SIZES: tuple[tuple[int, int], ...] = ((1, 5), (3, 1), (2, 17), (0, 4))
"""Values of n and t to run each network at."""


@dataclass
class Growth:
    """A network while it grows."""

    rng: Random
    arrays: np.random.Generator
    builder: GraphBuilder

    def op(self, name: str, *args: object, **attrs: Any) -> Var:
        return self.builder.op(name, *args, **attrs)

    def constant(self, *shape: int, low: float = -1, high: float = 1) -> Constant:
        """Weights, scaled so that values stay of order one."""
        fan_in = int(np.prod(shape[1:])) if len(shape) > 1 else 1
        values = self.arrays.uniform(low, high, shape) / max(1.0, fan_in**0.5)
        return Constant(values.astype(np.float32))


def shape_of(x: Expr) -> tuple[Dim, ...]:
    assert isinstance(x, Var)
    assert isinstance(x.type, TensorType)
    assert isinstance(x.type.shape, tuple)
    return x.type.shape


def extent(x: Expr, axis: int) -> int:
    found = shape_of(x)[axis]
    assert isinstance(found, int)
    return found


# Steps on images (n, c, h, w)


def conv(g: Growth, x: Var) -> Var:
    c = extent(x, 1)
    kernel, groups = g.rng.choice((1, 1, 3, 3, 2)), 1
    out = g.rng.choice((1, 3, 8, 16, 17))
    if g.rng.random() < 0.3:
        groups, out = c, c * g.rng.choice((1, 1, 2))
    weight = g.constant(out, c // groups, kernel, kernel)
    attrs = {"padding": kernel // 2, "groups": groups, "strides": g.rng.choice((1, 1, 2))}
    made = g.op("nn.conv2d", x, weight, **attrs)
    if g.rng.random() < 0.5:
        made = g.op("add", made, g.constant(1, out, 1, 1))
    return made


def batch_norm(g: Growth, x: Var) -> Var:
    c = extent(x, 1)
    vectors = [g.constant(c) for _ in range(3)]
    return g.op("nn.batch_norm", x, *vectors, g.constant(c, low=0.5, high=2))


def pool(g: Growth, x: Var) -> Var:
    if min(extent(x, 2), extent(x, 3)) < 3:
        return g.op("nn.adaptive_avg_pool2d", x)
    name = g.rng.choice(("nn.max_pool2d", "nn.avg_pool2d"))
    size = g.rng.choice((2, 3))
    ceil = g.rng.random() < 0.3
    return g.op(name, x, pool_size=size, strides=g.rng.choice((1, 2)), padding=1, ceil_mode=ceil)


def residual(g: Growth, x: Var) -> Var:
    c = extent(x, 1)
    inner = g.op("nn.conv2d", x, g.constant(c, c, 3, 3), padding=1)
    return g.op("nn.relu", g.op("add", x, g.op("nn.relu", inner)))


def join(g: Growth, x: Var) -> Var:
    other = elementwise(g, x)
    return g.op("concat", Tuple((x, other, x)), axis=1)


def split(g: Growth, x: Var) -> Var:
    c = extent(x, 1)
    if c < 2:
        return x
    parts = g.op("split", x, (c // 2, 2 * (c // 2)), axis=1)
    get = [g.builder.emit(TupleGet(parts, i)) for i in (0, 1)]
    return g.op(g.rng.choice(("multiply", "maximum")), get[0], get[1])


def squeeze_excite(g: Growth, x: Var) -> Var:
    c = extent(x, 1)
    pooled = g.op("mean", x, axis=(2, 3), keepdims=True)
    gate = g.op("sigmoid", g.op("nn.conv2d", pooled, g.constant(c, c, 1, 1)))
    return g.op("multiply", x, gate)


def elementwise(g: Growth, x: Var) -> Var:
    name = g.rng.choice(
        ("nn.relu", "nn.silu", "nn.gelu", "tanh", "nn.hardswish", "sigmoid", "nn.leakyrelu")
    )
    return g.op(name, x)


def pad(g: Growth, x: Var) -> Var:
    mode = g.rng.choice(("constant", "edge"))
    return g.op("nn.pad", x, pad_width=(0, 0, 0, 0, 1, 0, 2, 1), pad_mode=mode)


# Steps on sequences (n, t, c)


def linear(g: Growth, x: Var) -> Var:
    c = extent(x, -1)
    out = g.rng.choice((1, 4, 16, 33))
    made = g.op("matmul", x, g.constant(c, out))
    return g.op("add", made, g.constant(out)) if g.rng.random() < 0.7 else made


def layer_norm(g: Growth, x: Var) -> Var:
    c = extent(x, -1)
    return g.op("nn.layer_norm", x, g.constant(c), g.constant(c))


def rms_norm(g: Growth, x: Var) -> Var:
    return g.op("nn.rms_norm", x, g.constant(extent(x, -1)))


def attention(g: Growth, x: Var) -> Var:
    """One or two heads of self-attention, causal or not."""
    c = extent(x, -1)
    heads = 2 if c % 2 == 0 else 1
    n, t, _ = shape_of(x)

    def head(what: Var) -> Var:
        wide = g.op("reshape", what, (n, t, heads, c // heads))
        return g.op("permute_dims", wide, axes=(0, 2, 1, 3))

    q, k, v = (head(g.op("matmul", x, g.constant(c, c))) for _ in range(3))
    scores = g.op("matmul", q, g.op("permute_dims", k, axes=(0, 1, 3, 2)))
    scores = g.op("multiply", scores, 0.5)
    if g.rng.random() < 0.5:
        places = g.op("arange", t)
        later = g.op(
            "less", g.op("expand_dims", places, axis=1), g.op("expand_dims", places, axis=0)
        )
        scores = g.op("where", later, -1e9, scores)
    mixed = g.op("matmul", g.op("nn.softmax", scores), v)
    return g.op("reshape", g.op("permute_dims", mixed, axes=(0, 2, 1, 3)), (n, t, c))


def feed_forward(g: Growth, x: Var) -> Var:
    return g.op("add", x, g.op("nn.gelu", linear_to(g, x, extent(x, -1))))


def linear_to(g: Growth, x: Var, out: int) -> Var:
    return g.op("matmul", x, g.constant(extent(x, -1), out))


def take_rows(g: Growth, x: Var) -> Var:
    at = Constant(np.array([0, -1, 2, 0], np.int64))
    return g.op("take", x, at, axis=2)


def last_step(g: Growth, x: Var) -> Var:
    last = g.op("strided_slice", x, axes=(1,), begin=(-1,), end=(None,))
    return g.op("add", x, last)


def running(g: Growth, x: Var) -> Var:
    return g.op("multiply", g.op("cumsum", x, axis=g.rng.choice((1, 2))), 0.25)


def soft(g: Growth, x: Var) -> Var:
    return g.op(g.rng.choice(("nn.softmax", "nn.log_softmax")), x, axis=g.rng.choice((-1, 1)))


Step = Callable[[Growth, Var], Var]
IMAGE_STEPS: tuple[Step, ...] = (
    conv, conv, conv, batch_norm, pool, residual, join, split, squeeze_excite, elementwise, pad,
)  # fmt: skip
SEQUENCE_STEPS: tuple[Step, ...] = (
    linear, linear, layer_norm, rms_norm, attention, feed_forward, take_rows, last_step, running,
    soft, elementwise,
)  # fmt: skip


def network(seed: int, steps: tuple[Step, ...], shape: tuple[Dim, ...]) -> Function:
    g = Growth(Random(seed), np.random.default_rng(seed), GraphBuilder())
    x = g.builder.param("x", TensorType(shape, FLOAT32))
    made: list[Var] = [x]
    for _ in range(g.rng.randint(2, 7)):
        made.append(g.rng.choice(steps)(g, made[-1]))
    if g.rng.random() < 0.3:  # a value that is used inside and returned as well
        return g.builder.finish(Tuple((made[-1], g.rng.choice(made[1:]))))
    return g.builder.finish(made[-1])


def check(function: Function, seed: int) -> None:
    module = IRModule({"main": function})
    executable = unity.compile(module, cache=None)
    kind = function.params[0].type
    assert isinstance(kind, TensorType)
    assert isinstance(kind.shape, tuple)
    for n, t in SIZES:
        values: dict[Symbol, int] = {N: n, T: t}
        x = np.random.default_rng(seed).standard_normal([evaluate(d, values) for d in kind.shape])
        array = x.astype(np.float32)
        compare(executable(array), interpret(module, "main", [array]), f"n={n}, t={t}")


def compare(got: object, expected: object, what: str) -> None:
    ours = got if isinstance(got, tuple) else (got,)
    theirs = expected if isinstance(expected, tuple) else (expected,)
    for mine, wanted in zip(ours, theirs, strict=True):
        assert isinstance(mine, np.ndarray)
        assert isinstance(wanted, np.ndarray)
        assert mine.shape == wanted.shape, what
        np.testing.assert_allclose(mine, wanted, 2e-4, 2e-4, err_msg=what)


@pytest.mark.rotated(10)
@pytest.mark.parametrize("seed", range(20))
def test_image_networks(seed: int) -> None:
    side = 5 + seed % 4
    check(network(seed, IMAGE_STEPS, (N, 1 + seed % 5, side, side + 1)), seed)


@pytest.mark.rotated(10)
@pytest.mark.parametrize("seed", range(20))
def test_sequence_networks(seed: int) -> None:
    check(network(seed, SEQUENCE_STEPS, (N, T, 4 + seed % 7)), seed)


@pytest.mark.long("compiles a block with attention of unknown lengths")
@pytest.mark.rotated(2)
def test_embedding_and_head() -> None:
    """Ids to vectors, a block, the last step's scores, the best of them."""
    g = Growth(Random(0), np.random.default_rng(0), GraphBuilder())
    ids = g.builder.param("ids", TensorType((N, T), INT64))
    x = g.op("take", g.constant(11, 8), ids, axis=0)
    x = feed_forward(g, attention(g, layer_norm(g, x)))
    last = g.op("squeeze", g.op("strided_slice", x, axes=(1,), begin=(-1,), end=(None,)), axis=1)
    scores = linear_to(g, last, 11)
    best = g.op("argmax", scores, axis=-1)
    function = g.builder.finish(Tuple((scores, best)))
    module = IRModule({"main": function})
    executable = unity.compile(module, cache=None)
    for n, t in ((1, 1), (2, 9)):
        array: Array = np.random.default_rng(n).integers(0, 11, (n, t))
        compare(executable(array), interpret(module, "main", [array]), f"n={n}, t={t}")
