"""Normalizations."""

from __future__ import annotations

from unity.ir.dims import equal
from unity.ir.dtype import FLOAT32
from unity.ir.graph import Expr

from .node import Converter, Node, Value


def _of_channels(node: Node, count: int) -> list[Expr]:
    """So many inputs: one with channels along axis 1, then vectors of as many elements."""
    x, *vectors = (node.tensor(i) for i in range(count))
    rank = node.rank(0)
    if rank < 2:
        return [x, *vectors]
    told = [s[0] for s in map(node.shape_of, vectors) if len(s) == 1]
    channels = next((d for d in told if isinstance(d, int)), node.shape_of(x)[1])
    x = node.agreed(x, (None, channels, *(None,) * (rank - 2)))
    return [x, *(node.agreed(v, (node.shape_of(x)[1],)) for v in vectors)]


def _batch_norm(node: Node) -> Value | list[Value]:
    if node.int_of("training_mode", 0):
        return _batch_norm_in_training(node)
    node.ignore("momentum")
    if node.version < 9 and not node.int_of("spatial", 1):
        raise node.gap("spatial=0")
    x, *rest = _of_channels(node, 5)
    rest = [node.cast(v, node.dtype_of(x)) for v in rest]
    return node.op("nn.batch_norm", x, *rest, epsilon=node.float_of("epsilon", 1e-5))


def _batch_norm_in_training(node: Node) -> list[Value]:
    """By the batch's own mean and variance, which the running ones take a share of."""
    x, gamma, beta, mean, variance = _of_channels(node, 5)
    kind, wide = node.dtype_of(x), node.dtype_of(mean)
    axes = tuple(k for k in range(node.rank(0)) if k != 1)
    own = node.cast(x, wide)
    batch = [node.op(name, own, axis=axes) for name in ("mean", "variance")]
    rest = (node.cast(v, kind) for v in (gamma, beta, *batch))
    found = node.op("nn.batch_norm", x, *rest, epsilon=node.float_of("epsilon", 1e-5))
    momentum = node.float_of("momentum", 0.9)
    shares = [
        (old, momentum, new, 1 - momentum) for old, new in zip((mean, variance), batch, strict=True)
    ]
    return [found, *(_mixed(node, *share) for share in shares)]


def _mixed(node: Node, a: Expr, share: float, b: Expr, rest: float) -> Expr:
    first = node.op("multiply", a, node.number(share, a))
    return node.op("add", first, node.op("multiply", b, node.number(rest, b)))


def _instance_norm(node: Node) -> Value:
    x, gamma, beta = _of_channels(node, 3)
    return node.op("nn.instance_norm", x, gamma, beta, epsilon=node.float_of("epsilon", 1e-5))


def _axes_from(node: Node) -> tuple[int, ...]:
    rank = node.rank(0)
    return tuple(range(node.axis(node.int_of("axis", -1), rank), rank))


def _parameters(node: Node, axes: tuple[int, ...]) -> tuple[Expr, list[Expr]]:
    """The input, and its scale and bias brought to the shape of the normalized axes."""
    x = node.tensor(0)
    given = [node.tensor(1), *([node.tensor(2)] if node.has(2) else [])]
    first = node.shape_of(given[0])
    if len(first) == len(axes):
        shape = list(node.shape_of(x))
        for a, d in zip(axes, first, strict=True):
            if d != 1 and not equal(shape[a], d) and not isinstance(shape[a], int):
                shape[a] = d
        if tuple(shape) != node.shape_of(x):
            x = node.assert_shape(x, tuple(shape))
    wanted = tuple(node.shape_of(x)[a] for a in axes)
    return x, [
        g if node.shape_of(g) == wanted else node.op("broadcast_to", g, wanted) for g in given
    ]


def _last_axes(name: str) -> Converter:
    def convert(node: Node) -> Value | list[Value]:
        if node.int_of("stash_type", 1) != 1:
            raise node.gap("stash_type other than float32")
        axes = _axes_from(node)
        x, parameters = _parameters(node, axes)
        epsilon = node.float_of("epsilon", 1e-5)
        found = node.op(name, x, *parameters, axes=axes, epsilon=epsilon)
        if not any(node.proto.output[1:]):
            return found
        more: list[Value] = [found, *_statistics(node, x, axes, epsilon)]
        return more

    return convert


def _statistics(node: Node, x: Expr, axes: tuple[int, ...], epsilon: float) -> list[Expr]:
    """LayerNormalization's further outputs: the mean and one over the deviation, in float32."""
    wide = node.cast(x, FLOAT32)
    mean = node.op("mean", wide, axis=axes, keepdims=True)
    variance = node.op("variance", wide, axis=axes, keepdims=True)
    shifted = node.op("add", variance, node.number(epsilon, variance))
    return [mean, node.op("rsqrt", shifted)]


def _group_norm(node: Node) -> Value:
    if node.int_of("stash_type", 1) != 1:
        raise node.gap("stash_type other than float32")
    if node.version < 21:
        raise node.gap("the version before opset 21")
    groups = node.int_of("num_groups", 1)
    x, gamma, beta = _of_channels(node, 3)
    epsilon = node.float_of("epsilon", 1e-5)
    return node.op("nn.group_norm", x, gamma, beta, num_groups=groups, epsilon=epsilon)


def _lrn(node: Node) -> Value:
    return node.op(
        "nn.lrn",
        node.tensor(0),
        size=node.int_of("size", 1),
        alpha=node.float_of("alpha", 1e-4),
        beta=node.float_of("beta", 0.75),
        bias=node.float_of("bias", 1.0),
    )


def _lp_norm(node: Node) -> Value:
    """``x / |x|`` along an axis, by the sum of magnitudes or the Euclidean norm."""
    x = node.tensor(0)
    axis = node.axis(node.int_of("axis", -1), node.rank(0))
    if node.int_of("p", 2) == 1:
        norm = node.op("sum", node.op("abs", x), axis=(axis,), keepdims=True)
    else:
        squares = node.op("sum", node.op("square", x), axis=(axis,), keepdims=True)
        norm = node.op("sqrt", squares)
    quotient = node.op("divide", x, norm)
    zero = node.number(0, x)
    return node.op("where", node.op("equal", norm, zero), zero, quotient)


def _mean_variance_norm(node: Node) -> Value:
    axes = node.ints_of("axes") or (0, 2, 3)
    x = node.tensor(0)
    centred = node.op("subtract", x, node.op("mean", x, axis=axes, keepdims=True))
    spread = node.op("mean", node.op("square", centred), axis=axes, keepdims=True)
    deviation = node.op("add", node.op("sqrt", spread), node.number(1e-9, x))
    return node.op("divide", centred, deviation)


CONVERTERS: dict[str, Converter] = {
    "BatchNormalization": _batch_norm,
    "InstanceNormalization": _instance_norm,
    "LayerNormalization": _last_axes("nn.layer_norm"),
    "RMSNormalization": _last_axes("nn.rms_norm"),
    "GroupNormalization": _group_norm,
    "LRN": _lrn,
    "LpNormalization": _lp_norm,
    "MeanVarianceNormalization": _mean_variance_norm,
}
