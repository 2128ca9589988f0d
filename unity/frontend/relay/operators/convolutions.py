"""Convolutions and transposed ones, whatever layouts their operands have."""

from __future__ import annotations

from unity.errors import UnityError
from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.ir.dtype import DType
from unity.ir.graph import Expr

from .layouts import primal, transform

_SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def paddings(given: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """All begins, then all ends, of one number, one for each axis, or of both."""
    if len(given) == 2 * rank:
        return given
    if len(given) == 1:
        return given * (2 * rank)
    if len(given) == rank:
        return given * 2
    raise UnityError(f"the attribute 'padding' is {given}, of {rank} axes")


def steps(c: RelayCall, name: str, rank: int) -> tuple[int, ...]:
    """A number for each spatial axis."""
    found = c.integers(name)
    if len(found) == 1:
        return found * rank
    if len(found) != rank:
        raise UnityError(f"the attribute {name!r} is {found}, of {rank} axes")
    return found


def data_layout(rank: int) -> str:
    """How our operators want their input."""
    return "NC" + _SPATIAL[rank]


def _conv(rank: int) -> Converter:
    def convert(c: RelayCall) -> Expr:
        x, weight = c.tensor(0), c.tensor(1)
        found = convolution(c, x, weight, rank, c.dtype_or("out_dtype", c.dtype_of(x)))
        return _in_output_layout(c, found, rank)

    return convert


def convolution(c: RelayCall, x: Expr, weight: Expr, rank: int, out: DType) -> Expr:
    """The convolution that a call's attributes say, in our layout; `out_layout` is left to read."""
    groups = c.integer("groups")
    x = transform(c, x, c.text("data_layout"), data_layout(rank))
    weight = transform(c, weight, c.text("kernel_layout"), "OI" + _SPATIAL[rank])
    weight = _depthwise(c, x, weight, groups)
    _check_kernel(c, weight, (0,), rank)
    x, weight = one_dtype(c, x, weight, out)
    return c.op(
        f"nn.conv{rank}d",
        x,
        weight,
        strides=steps(c, "strides", rank),
        padding=paddings(c.integers("padding"), rank),
        dilation=steps(c, "dilation", rank),
        groups=groups,
        out_dtype=None if out == c.dtype_of(x) else out,
    )


def one_dtype(c: RelayCall, a: Expr, b: Expr, out: DType) -> tuple[Expr, Expr]:
    """The operands of a product: where their dtypes differ (uint8, int8), in the result's."""
    if c.dtype_of(a) == c.dtype_of(b):
        return a, b
    return c.cast(a, out), c.cast(b, out)


def _depthwise(c: RelayCall, x: Expr, weight: Expr, groups: int) -> Expr:
    """A weight of one filter a channel: ``HWOI`` has its axes (h, w, channels, multiplier)."""
    made, taken, *kernel = c.shape_of(weight)
    if groups == 1 or made != groups or taken == 1 or c.shape_of(x)[1] != groups:
        return weight
    return c.op("reshape", weight, (made * taken, 1, *kernel))


def _check_kernel(c: RelayCall, weight: Expr, outputs: tuple[int, ...], rank: int) -> None:
    """The attributes that repeat what the weight's shape says must say the same."""
    shape = c.shape_of(weight)
    kernel, channels = c.optional_integers("kernel_size"), c.optional_integer("channels")
    if kernel and tuple(shape[2:]) != kernel:
        raise UnityError(f"kernel_size is {kernel}, but the weight has {tuple(shape[2:])}")
    if channels is not None and outputs and shape[outputs[0]] != channels:
        raise UnityError(f"channels is {channels}, but the weight has {shape[outputs[0]]}")


def _in_output_layout(c: RelayCall, found: Expr, rank: int) -> Expr:
    return transform(c, found, data_layout(rank), c.text("out_layout") or c.text("data_layout"))


def _transpose(rank: int) -> Converter:
    def convert(c: RelayCall) -> Expr:
        x, weight = c.tensor(0), c.tensor(1)
        found = transposed_convolution(c, x, weight, rank, c.dtype_or("out_dtype", c.dtype_of(x)))
        return _in_output_layout(c, found, rank)

    return convert


def transposed_convolution(c: RelayCall, x: Expr, weight: Expr, rank: int, out: DType) -> Expr:
    """The transposed convolution that a call's attributes say, in our layout."""
    groups = c.integer("groups")
    x = transform(c, x, c.text("data_layout"), data_layout(rank))
    layout = c.text("kernel_layout")
    if sorted(primal(layout)) != sorted("OI" + _SPATIAL[rank]):
        raise UnityError(f"kernel_layout {layout!r} is not that of {rank} axes")
    weight = transform(c, weight, layout, "IO" + _SPATIAL[rank])
    _check_kernel(c, weight, (1,) if groups == 1 else (), rank)
    x, weight = one_dtype(c, x, weight, out)
    return c.op(
        f"nn.conv{rank}d_transpose",
        x,
        weight,
        strides=steps(c, "strides", rank),
        padding=paddings(c.integers("padding"), rank),
        output_padding=steps(c, "output_padding", rank),
        dilation=steps(c, "dilation", rank),
        groups=groups,
        out_dtype=None if out == c.dtype_of(x) else out,
    )


CONVERTERS: dict[str, Converter] = {
    "nn.conv1d": _conv(1),
    "nn.conv2d": _conv(2),
    "nn.conv3d": _conv(3),
    "nn.conv1d_transpose": _transpose(1),
    "nn.conv2d_transpose": _transpose(2),
    "nn.conv3d_transpose": _transpose(3),
    "nn.contrib_conv2d_NCHWc": _conv(2),
    "nn.contrib_conv2d_NCHWc_int8": _conv(2),
    "nn.contrib_depthwise_conv2d_NCHWc": _conv(2),
}
