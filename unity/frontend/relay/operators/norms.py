"""Normalizations, activations with parameters, softmax, and what belongs to training."""

from __future__ import annotations

from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.ir.graph import Expr, Tuple


def _affine(c: RelayCall) -> tuple[Expr, Expr]:
    """Gamma and beta; without ``scale`` or ``center`` they are ones or zeros."""
    gamma, beta = c.tensor(1), c.tensor(2)
    if not c.flag("scale"):
        gamma = c.op("ones_like", gamma)
    if not c.flag("center"):
        beta = c.op("zeros_like", beta)
    return gamma, beta


def _batch_norm(c: RelayCall) -> Expr:
    x, (gamma, beta) = c.tensor(0), _affine(c)
    mean, variance = c.tensor(3), c.tensor(4)
    axis, epsilon = c.axis(c.integer("axis"), c.rank()), c.real("epsilon")
    found = c.op("nn.batch_norm", x, gamma, beta, mean, variance, axis=axis, epsilon=epsilon)
    return Tuple((found, mean, variance))


def _layer_norm(c: RelayCall) -> Expr:
    x, (gamma, beta), rank = c.tensor(0), _affine(c), c.rank()
    axis, epsilon = c.axis(c.integer("axis"), rank), c.real("epsilon")
    if axis == rank - 1:
        return c.op("nn.layer_norm", x, gamma, beta, axes=(axis,), epsilon=epsilon)
    order = (*(a for a in range(rank) if a != axis), axis)
    found = c.op(
        "nn.layer_norm", c.transposed(x, order), gamma, beta, axes=(rank - 1,), epsilon=epsilon
    )
    return c.transposed(found, [order.index(a) for a in range(rank)])


def _instance_norm(c: RelayCall) -> Expr:
    x, (gamma, beta) = c.tensor(0), _affine(c)
    axis, epsilon = c.axis(c.integer("axis"), c.rank()), c.real("epsilon")
    return c.op("nn.instance_norm", x, gamma, beta, channel_axis=axis, epsilon=epsilon)


def _group_norm(c: RelayCall) -> Expr:
    x, (gamma, beta) = c.tensor(0), _affine(c)
    return c.op(
        "nn.group_norm",
        x,
        gamma,
        beta,
        num_groups=c.integer("num_groups"),
        channel_axis=c.axis(c.integer("axis"), c.rank()),
        epsilon=c.real("epsilon"),
    )


def _lrn(c: RelayCall) -> Expr:
    return c.op(
        "nn.lrn",
        c.tensor(0),
        size=c.integer("size"),
        axis=c.axis(c.integer("axis"), c.rank()),
        alpha=c.real("alpha"),
        beta=c.real("beta"),
        bias=c.real("bias"),
    )


def _l2_normalize(c: RelayCall) -> Expr:
    x, rank = c.tensor(0), c.rank()
    axes = tuple(c.axis(a, rank) for a in c.optional_integers("axis") or range(rank))
    squares = c.op("sum", c.op("square", x), axis=axes, keepdims=True)
    return c.op("divide", x, c.op("sqrt", c.op("maximum", squares, float(c.real("eps")))))


def _softmax(name: str) -> Converter:
    return lambda c: c.op(name, c.tensor(0), axis=c.axis(c.integer("axis"), c.rank()))


def _bias_add(c: RelayCall) -> Expr:
    x, bias, rank = c.tensor(0), c.tensor(1), c.rank()
    axis = c.axis(c.integer("axis"), rank)
    return c.op("add", *c.of(x, c.along(bias, axis, rank)))


def _leaky_relu(c: RelayCall) -> Expr:
    return c.op("nn.leakyrelu", c.tensor(0), alpha=float(c.real("alpha")))


def _prelu(c: RelayCall) -> Expr:
    return c.op("nn.prelu", c.tensor(0), c.tensor(1), axis=c.axis(c.integer("axis"), c.rank()))


def _dropout(c: RelayCall) -> Expr:
    """Nothing is dropped when a model runs; the mask is ones."""
    c.drop("rate")
    return Tuple((c.tensor(0), c.op("ones_like", c.tensor(0))))


def _cross_entropy(c: RelayCall) -> Expr:
    """The mean over the batch of what labels lose; of logits, which are logarithms already."""
    x, labels = c.tensor(0), c.tensor(1)
    logarithms = x if c.name.endswith("with_logits") else c.op("log", x)
    total = c.op("negative", c.op("sum", c.op("multiply", logarithms, labels)))
    count = c.cast(c.op("dims", c.shape_of(x)[0]), c.dtype_of(x))
    return c.op("divide", total, count)


CONVERTERS: dict[str, Converter] = {
    "nn.batch_norm": _batch_norm,
    "nn.layer_norm": _layer_norm,
    "nn.instance_norm": _instance_norm,
    "nn.group_norm": _group_norm,
    "nn.lrn": _lrn,
    "nn.l2_normalize": _l2_normalize,
    "nn.softmax": _softmax("nn.softmax"),
    "nn.fast_softmax": _softmax("nn.softmax"),
    "nn.log_softmax": _softmax("nn.log_softmax"),
    "nn.bias_add": _bias_add,
    "nn.leaky_relu": _leaky_relu,
    "nn.prelu": _prelu,
    "nn.dropout": _dropout,
    "nn.cross_entropy": _cross_entropy,
    "nn.cross_entropy_with_logits": _cross_entropy,
}
