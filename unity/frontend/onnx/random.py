"""Random numbers: those of a hash of a seed and of each element's place.

The generator is PCG's output function on a linear step of 32 bits (Jarzynski and Olano, "Hash
functions for GPU rendering", 2020): ``hash(hash(seed) + place)``, the place counted through all
elements of all draws of a node. A real from 0 to 1 (without 1) is its upper 24 bits. A node's
attribute `seed` is taken by its bits; without one, the seed is the CRC of the node's name, so that
nodes differ. A model is a function: the same node gives the same numbers in each run. Give the seed
another value, or the model an input that says it, for others.
"""

from __future__ import annotations

import math
import zlib
from math import prod

import numpy as np

from unity.errors import UnityError
from unity.ir.dims import Dim, as_dim
from unity.ir.dtype import BOOL, FLOAT32, FLOAT64, INT32, INT64, DType
from unity.ir.graph import Constant, Expr
from unity.ir.types import Shape

from .node import Converter, Node, Value
from .reading.tensors import dtype_of

UINT32 = DType("uint32")


def _number(value: int) -> Constant:
    return Constant(np.asarray(value & 0xFFFFFFFF, np.uint32))


def _hash(node: Node, x: Expr) -> Expr:
    """PCG's hash of 32 bits to 32."""
    state = node.op("add", node.op("multiply", x, _number(747796405)), _number(2891336453))
    shift = node.op("add", node.op("right_shift", state, _number(28)), _number(4))
    word = node.op("bitwise_xor", node.op("right_shift", state, shift), state)
    word = node.op("multiply", word, _number(277803737))
    return node.op("bitwise_xor", node.op("right_shift", word, _number(22)), word)


def _seed(node: Node) -> int:
    given = node.attribute("seed")
    if given is None:
        return zlib.crc32(node.label.encode())
    return int(np.asarray(given.f, np.float32).view(np.uint32))


def _hashed(value: int) -> int:
    """The hash of a number that is known."""
    state = (value * 747796405 + 2891336453) & 0xFFFFFFFF
    word = (((state >> ((state >> 28) + 4)) ^ state) * 277803737) & 0xFFFFFFFF
    return (word >> 22) ^ word


def uniform(node: Node, shape: Shape, draw: int = 0) -> Expr:
    """Reals from 0 to 1 in float32; draws of other numbers are others."""
    count: Dim = as_dim(prod(shape))
    place = node.cast(node.op("arange", 0, count, 1, dtype=INT64), UINT32)
    begin = _hashed(_hashed(_seed(node)) + draw)
    whole = _hash(node, node.op("add", place, _number(begin)))
    upper = node.cast(node.op("right_shift", whole, _number(8)), FLOAT32)
    found = node.op("multiply", upper, node.number(2.0**-24, upper))
    return node.op("reshape", found, shape)


def _normal(node: Node, shape: Shape) -> Expr:
    """Normal numbers, by Box and Muller."""
    first, second = uniform(node, shape, 0), uniform(node, shape, 1)
    # 1 - u is never 0.
    log = node.op("log", node.op("subtract", node.number(1.0, first), first))
    radius = node.op("sqrt", node.op("multiply", log, node.number(-2.0, log)))
    angle = node.op("multiply", second, node.number(2 * math.pi, second))
    return node.op("multiply", radius, node.op("cos", angle))


def _scaled(node: Node, x: Expr, factor: float, offset: float, to: DType) -> Expr:
    moved = node.op("multiply", x, node.number(factor, x))
    return node.cast(node.op("add", moved, node.number(offset, x)), to)


def _made(node: Node, shape: Shape, to: DType) -> Value:
    if "Normal" in node.proto.op_type:
        mean, scale = node.float_of("mean", 0.0), node.float_of("scale", 1.0)
        return _scaled(node, _normal(node, shape), scale, mean, to)
    low, high = node.float_of("low", 0.0), node.float_of("high", 1.0)
    return _scaled(node, uniform(node, shape), high - low, low, to)


def _random(node: Node) -> Value:
    return _made(node, node.ints_of("shape") or (), _dtype(node, FLOAT32))


def _random_like(node: Node) -> Value:
    x = node.tensor(0)
    kind = node.dtype_of(x)
    return _made(node, node.shape_of(x), _dtype(node, kind if kind.is_float else FLOAT32))


def _dtype(node: Node, otherwise: DType) -> DType:
    code = node.int_of("dtype", 0)
    return dtype_of(code, "the attribute 'dtype'") if code else otherwise


def _bernoulli(node: Node) -> Value:
    """1 as often as the input says."""
    x = node.tensor(0)
    wide = FLOAT64 if node.dtype_of(x) == FLOAT64 else FLOAT32  # a narrow float rounds up to 1
    drawn = node.cast(uniform(node, node.shape_of(x)), wide)
    found = node.op("less", drawn, node.cast(x, wide))
    return node.cast(found, _dtype(node, node.dtype_of(x)))


def _multinomial(node: Node) -> Value:
    """Classes drawn by logarithms of what is proportional to their probabilities (Gumbel's way)."""
    x, count = node.cast(node.tensor(0), FLOAT32), node.int_of("sample_size", 1)
    if len(node.shape_of(x)) != 2:
        raise UnityError(f"takes a matrix, got shape {node.shape_of(x)}")
    batch, classes = node.shape_of(x)
    drawn = uniform(node, (batch, count, classes))
    drawn = node.op("maximum", drawn, node.number(2.0**-25, drawn))
    noise = node.op("negative", node.op("log", node.op("negative", node.op("log", drawn))))
    scores = node.op("add", node.op("expand_dims", x, axis=1), noise)
    return node.cast(node.op("argmax", scores, axis=-1), _dtype(node, INT32))


def dropped(node: Node) -> tuple[Value, Value]:
    """Elements set to 0 with a probability, the others scaled up; and which are kept."""
    x, training = node.tensor(0), node.op("reshape", node.tensor(2), ())
    kind = node.dtype_of(x)
    ratio: Expr = node.number(0.5, x)
    if node.has(1):
        ratio = node.op("reshape", node.cast(node.tensor(1), kind), ())
    drawn = node.cast(uniform(node, node.shape_of(x)), kind)
    kept = node.op("logical_or", node.op("logical_not", training),
                   node.op("greater_equal", drawn, ratio))  # fmt: skip
    rest = node.op("subtract", node.number(1.0, x), ratio)
    up = node.op("where", training, node.op("divide", node.number(1.0, x), rest),
                 node.number(1.0, x))  # fmt: skip
    scaled = node.op("where", kept, node.op("multiply", x, up), node.number(0.0, x))
    return scaled, node.cast(kept, BOOL)


CONVERTERS: dict[str, Converter] = {
    "Bernoulli": _bernoulli,
    "Multinomial": _multinomial,
    "RandomNormal": _random,
    "RandomNormalLike": _random_like,
    "RandomUniform": _random,
    "RandomUniformLike": _random_like,
}
