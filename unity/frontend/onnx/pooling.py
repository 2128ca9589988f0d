"""Pooling: maxima, means, norms."""

from __future__ import annotations

from math import prod

from unity import te
from unity.errors import UnityError
from unity.ir.graph import Expr

from .images.unpooling import places_of_maxima
from .layers import paddings, per_axis
from .node import Converter, Node, Value


def average_pool(node: Node, x: Expr) -> Expr:
    """The means of windows of a tensor."""
    found = _pooled(node, x, "avg")
    assert not isinstance(found, list)
    return found


def global_average(node: Node, x: Expr) -> Expr:
    """The mean of each channel."""
    axes = tuple(range(2, len(node.shape_of(x))))
    return node.op("mean", x, axis=axes, keepdims=True)


def _pool(kind: str) -> Converter:
    def convert(node: Node) -> Value | list[Value]:
        found = _pooled(node, node.tensor(0), kind)
        return [*found] if isinstance(found, list) else found

    return convert


def _pooled(node: Node, x: Expr, kind: str) -> Expr | list[Expr]:
    """What windows give; for maxima with their places, if those are asked for."""
    shape = node.shape_of(x)
    rank = len(shape) - 2
    if rank not in (1, 2, 3):
        raise node.gap(f"{rank} spatial axes")
    kernel = node.ints_of("kernel_shape")
    if kernel is None or len(kernel) != rank:
        raise UnityError(f"kernel_shape {kernel} does not fit the input {shape}")
    strides = per_axis(node, "strides", rank)
    dilations = per_axis(node, "dilations", rank)
    wants_places = any(node.proto.output[1:])
    if not wants_places:
        node.ignore("storage_order")
    more: dict[str, bool] = {}
    # Padding must never win; a mean would count it.
    fill = float(te.min_value(node.dtype_of(x)).value) if kind == "max" else None
    if kind == "avg":
        more["count_include_pad"] = bool(node.int_of("count_include_pad", 0))
    x, padding = paddings(node, x, kernel, strides, dilations, fill)
    pooled = node.op(
        f"nn.{kind}_pool{rank}d",
        x,
        pool_size=kernel,
        strides=strides,
        padding=padding,
        dilation=dilations,
        ceil_mode=bool(node.int_of("ceil_mode", 0)),
        **more,
    )
    if not wants_places:
        return pooled
    if node.shape_of(x) != shape:
        raise node.symbolic_gap("the places of maxima in a map padded by auto_pad", *shape)
    return [pooled, places_of_maxima(node, x, pooled, kernel, strides, padding, dilations)]


def _lp_pool(node: Node) -> Value:
    """The p-norm of each window, from the mean of powers with the padding counted in."""
    x = node.tensor(0)
    shape, kernel = node.shape_of(x), node.ints_of("kernel_shape")
    rank = len(shape) - 2
    if rank not in (1, 2, 3):
        raise node.gap(f"{rank} spatial axes")
    if kernel is None or len(kernel) != rank:
        raise UnityError(f"kernel_shape {kernel} does not fit the input {shape}")
    if node.int_of("ceil_mode", 0):
        raise node.gap("ceil_mode")
    strides, dilations = per_axis(node, "strides", rank), per_axis(node, "dilations", rank)
    p = node.int_of("p", 2)
    powers = _power(node, node.op("abs", x), p)
    powers, padding = paddings(node, powers, kernel, strides, dilations, 0.0)
    mean = node.op(
        f"nn.avg_pool{rank}d",
        powers,
        pool_size=kernel,
        strides=strides,
        padding=padding,
        dilation=dilations,
        count_include_pad=True,
    )
    total = node.op("multiply", mean, node.number(prod(kernel), x))
    return _power(node, total, 1 / p)


def _power(node: Node, x: Expr, exponent: float) -> Expr:
    match exponent:
        case 1:
            return x
        case 2:
            return node.op("multiply", x, x)
        case 0.5:
            return node.op("sqrt", x)
        case _:
            return node.op("power", x, node.number(exponent, x))


def _global(name: str) -> Converter:
    def convert(node: Node) -> Value:
        x = node.tensor(0)
        axes = tuple(range(2, node.rank(0)))
        return node.op(name, x, axis=axes, keepdims=True)

    return convert


CONVERTERS: dict[str, Converter] = {
    "MaxPool": _pool("max"),
    "AveragePool": _pool("avg"),
    "LpPool": _lp_pool,
    "GlobalAveragePool": _global("mean"),
    "GlobalMaxPool": _global("max"),
}
