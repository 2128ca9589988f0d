"""Convolutions. ONNX's paddings are all begins, then all ends, as Unity's are."""

from __future__ import annotations

from collections.abc import Sequence

from unity.errors import UnityError
from unity.frontend.sizes import is_symbolic
from unity.ir.dims import Dim, always_ge, as_dim, ceildiv, dim_max, dim_text, equal, floordiv
from unity.ir.graph import Expr

from .node import Converter, Node, Value


def per_axis(node: Node, name: str, rank: int) -> tuple[int, ...]:
    """A number for each spatial axis; ones by default."""
    found = node.ints_of(name) or (1,) * rank
    if len(found) != rank:
        raise UnityError(f"{name} {found} are not {rank} numbers")
    return found


def paddings(
    node: Node,
    x: Expr,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    fill: float | None,
) -> tuple[Expr, tuple[int, ...]]:
    """The input and the paddings, those that ``auto_pad`` asks for worked out.

    Where they depend on symbols the input comes back padded with `fill`.
    """
    rank = len(kernel)
    mode = node.text_of("auto_pad", "NOTSET")
    explicit = node.ints_of("pads")
    if mode in ("NOTSET", "VALID"):
        pads = (explicit if mode == "NOTSET" else None) or (0,) * (2 * rank)
        if len(pads) != 2 * rank:
            raise UnityError(f"pads {pads} are not {2 * rank} numbers")
        reaches = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        _require_a_window(node, x, reaches, pads)
        return x, pads
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise node.gap(f"auto_pad {mode!r}")
    before: list[Dim] = []
    after: list[Dim] = []
    for extent, k, s, d in zip(node.shape_of(x)[2:], kernel, strides, dilations, strict=True):
        reach = (k - 1) * d + 1
        total = reach - s if extent % s == 0 else (ceildiv(extent, s) - 1) * s + reach - extent
        total = dim_max(total, 0) if not always_ge(total, 0) else total
        small = floordiv(total, 2)
        large = as_dim(total - small)
        before.append(small if mode == "SAME_UPPER" else large)
        after.append(large if mode == "SAME_UPPER" else small)
    known = tuple(d for d in (*before, *after) if isinstance(d, int))
    if len(known) == 2 * rank:
        return x, known
    if fill is None:
        raise node.gap(f"auto_pad {mode} with a stride over a symbolic extent")
    pairs = (d for pair in zip(before, after, strict=True) for d in pair)
    padded = node.op("nn.pad", x, (0, 0, 0, 0, *pairs), pad_value=fill)
    return padded, (0,) * (2 * rank)


def _require_a_window(node: Node, x: Expr, reaches: Sequence[int], pads: Sequence[int]) -> None:
    """Check at run time that extents unknown here hold a window, else the result is empty."""
    rank, out = len(reaches), bool(node.int_of("ceil_mode", 0))
    strides = per_axis(node, "strides", rank)
    for axis, (extent, reach) in enumerate(zip(node.shape_of(x)[2:], reaches, strict=True)):
        least = reach - pads[axis] - pads[rank + axis] - (strides[axis] - 1 if out else 0)
        if is_symbolic(extent) and not always_ge(extent, least):
            what = f"needs_more_along_axis_{2 + axis}"
            rule = f"its input must have at least {dim_text(least)} along axis {2 + axis}"
            node.require(extent, dim_max(extent, least), what, rule)


def _conv(node: Node) -> Value:
    return convolution(node, node.tensor(0), node.tensor(1), 2)


def convolution(node: Node, x: Expr, weight: Expr, bias: int) -> Expr:
    """The convolution that a node's attributes describe.

    Args:
        node: The node.
        x: What is convolved.
        weight: The kernels.
        bias: Which input of the node the bias is; 0 for none.
    """
    shape, kernel_shape = node.shape_of(x), node.shape_of(weight)
    rank = len(shape) - 2
    if rank not in (1, 2, 3):
        raise node.gap(f"{rank} spatial axes")
    kernel = [k for k in kernel_shape[2:] if isinstance(k, int)]
    if len(kernel) != rank or len(kernel_shape) != rank + 2:
        raise UnityError(f"the weight {kernel_shape} does not fit the input {shape}")
    declared = node.ints_of("kernel_shape")
    if declared is not None and list(declared) != kernel:
        raise UnityError(f"kernel_shape is {declared}, but the weight {kernel_shape}")
    strides = per_axis(node, "strides", rank)
    dilations = per_axis(node, "dilations", rank)
    groups = node.int_of("group", 1)
    x = _of_channels(node, x, as_dim(kernel_shape[1] * groups))
    x, padding = paddings(node, x, kernel, strides, dilations, 0.0)
    found = node.op(
        f"nn.conv{rank}d",
        x,
        weight,
        strides=strides,
        padding=padding,
        dilation=dilations,
        groups=groups,
    )
    if not bias or not node.has(bias):
        return found
    return node.op("add", found, node.op("reshape", node.tensor(bias), (1, -1, *(1,) * rank)))


def _of_channels(node: Node, x: Expr, channels: Dim) -> Expr:
    """An input whose channels are checked at run time where they are not known."""
    batch, given, *extents = node.shape_of(x)
    if not is_symbolic(given) or equal(given, channels):
        return x
    return node.assert_shape(x, (batch, channels, *extents))


def _conv_transpose(node: Node) -> Value:
    weight = node.tensor(1)
    x = _of_channels(node, node.tensor(0), node.shape_of(weight)[0])
    shape, kernel_shape = node.shape_of(x), node.shape_of(weight)
    rank = len(shape) - 2
    kernel = [k for k in kernel_shape[2:] if isinstance(k, int)]
    if rank not in (1, 2, 3) or len(kernel) != rank:
        raise node.gap(f"{rank} spatial axes")
    node.ignore("kernel_shape")
    strides = per_axis(node, "strides", rank)
    dilations = per_axis(node, "dilations", rank)
    extra = node.ints_of("output_padding") or (0,) * rank
    wanted = node.ints_of("output_shape")
    mode = node.text_of("auto_pad", "NOTSET")
    padding = node.ints_of("pads") or (0,) * (2 * rank)
    if wanted is not None or mode.startswith("SAME"):
        padding, extra = _transpose_padding(node, wanted, kernel, strides, dilations, extra, mode)
    found = node.op(
        f"nn.conv{rank}d_transpose",
        x,
        weight,
        strides=strides,
        padding=padding,
        output_padding=extra,
        dilation=dilations,
        groups=node.int_of("group", 1),
    )
    if not node.has(2):
        return found
    return node.op("add", found, node.op("reshape", node.tensor(2), (1, -1, *(1,) * rank)))


def _transpose_padding(
    node: Node,
    wanted: tuple[int, ...] | None,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    extra: Sequence[int],
    mode: str,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Paddings (of the input, of the output) that give the wanted extents.

    By default these are the input's times the stride.
    """
    more = list(extra)
    before: list[int] = []
    after: list[int] = []
    for i, extent in enumerate(node.shape_of(node.tensor(0))[2:]):
        if not isinstance(extent, int):
            raise node.gap(f"an output shape for the symbolic extent {extent}")
        goal = extent * strides[i] if wanted is None else wanted[-len(kernel) :][i]
        reach = (kernel[i] - 1) * dilations[i] + 1
        total = strides[i] * (extent - 1) + extra[i] + reach - goal
        if total < 0:
            more[i] -= total
            total = 0
        small, large = total // 2, total - total // 2
        before.append(large if mode != "SAME_UPPER" else small)
        after.append(small if mode != "SAME_UPPER" else large)
    return (*before, *after), tuple(more)


CONVERTERS: dict[str, Converter] = {"Conv": _conv, "ConvTranspose": _conv_transpose}
