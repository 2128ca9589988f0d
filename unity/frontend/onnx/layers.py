"""Convolutions and pooling. ONNX's paddings are all begins, then all ends, as Unity's are."""

from __future__ import annotations

from collections.abc import Sequence

from unity.errors import UnityError
from unity.ir.dims import ceildiv
from unity.ir.types import Shape

from .node import Converter, Node, Value


def _per_axis(node: Node, name: str, rank: int) -> tuple[int, ...]:
    found = node.ints_of(name) or (1,) * rank
    if len(found) != rank:
        raise UnityError(f"{name} {found} are not {rank} numbers")
    return found


def _padding(
    node: Node,
    shape: Shape,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> tuple[int, ...]:
    """The paddings, those that ``auto_pad`` asks for worked out."""
    rank = len(kernel)
    mode = node.text_of("auto_pad", "NOTSET")
    explicit = node.ints_of("pads")
    if mode == "NOTSET":
        pads = explicit or (0,) * (2 * rank)
        if len(pads) != 2 * rank:
            raise UnityError(f"pads {pads} are not {2 * rank} numbers")
        return pads
    if mode == "VALID":
        return (0,) * (2 * rank)
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise node.gap(f"auto_pad {mode!r}")
    before: list[int] = []
    after: list[int] = []
    for extent, k, s, d in zip(shape[2:], kernel, strides, dilations, strict=True):
        reach = (k - 1) * d + 1
        if isinstance(extent, int):
            total = max((ceildiv_int(extent, s) - 1) * s + reach - extent, 0)
        elif s == 1:
            total = reach - 1  # whatever the extent
        else:
            raise node.gap(f"auto_pad {mode} with a stride over the symbolic extent {extent}")
        small, large = total // 2, total - total // 2
        before.append(small if mode == "SAME_UPPER" else large)
        after.append(large if mode == "SAME_UPPER" else small)
    return (*before, *after)


def ceildiv_int(a: int, b: int) -> int:
    """``a / b`` rounded up."""
    found = ceildiv(a, b)
    assert isinstance(found, int)
    return found


def _conv(node: Node) -> Value:
    x, weight = node.tensor(0), node.tensor(1)
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
    strides = _per_axis(node, "strides", rank)
    dilations = _per_axis(node, "dilations", rank)
    found = node.op(
        f"nn.conv{rank}d",
        x,
        weight,
        strides=strides,
        padding=_padding(node, shape, kernel, strides, dilations),
        dilation=dilations,
        groups=node.int_of("group", 1),
    )
    if not node.has(2):
        return found
    bias = node.op("reshape", node.tensor(2), (1, -1, *(1,) * rank))
    return node.op("add", found, bias)


def _pool(kind: str) -> Converter:
    def convert(node: Node) -> Value:
        x = node.tensor(0)
        shape = node.shape_of(x)
        rank = len(shape) - 2
        if rank not in (1, 2, 3):
            raise node.gap(f"{rank} spatial axes")
        kernel = node.ints_of("kernel_shape")
        if kernel is None or len(kernel) != rank:
            raise UnityError(f"kernel_shape {kernel} does not fit the input {shape}")
        strides = _per_axis(node, "strides", rank)
        dilations = _per_axis(node, "dilations", rank)
        node.ignore("storage_order")  # of the indices, an output that is refused
        more: dict[str, bool] = {}
        if kind == "avg":
            more["count_include_pad"] = bool(node.int_of("count_include_pad", 0))
        return node.op(
            f"nn.{kind}_pool{rank}d",
            x,
            pool_size=kernel,
            strides=strides,
            padding=_padding(node, shape, kernel, strides, dilations),
            dilation=dilations,
            ceil_mode=bool(node.int_of("ceil_mode", 0)),
            **more,
        )

    return convert


def _global(name: str) -> Converter:
    def convert(node: Node) -> Value:
        x = node.tensor(0)
        axes = tuple(range(2, node.rank(0)))
        return node.op(name, x, axis=axes, keepdims=True)

    return convert


CONVERTERS: dict[str, Converter] = {
    "Conv": _conv,
    "MaxPool": _pool("max"),
    "AveragePool": _pool("avg"),
    "GlobalAveragePool": _global("mean"),
    "GlobalMaxPool": _global("max"),
}
