"""Contractions, pooling, normalization."""

from __future__ import annotations

from collections.abc import Sequence

from unity.errors import UnityError

from .rule import NodeRule, same_dtype
from .writer import Arg, OpNode


def _matmul(n: OpNode) -> Arg:
    if n.attrs["out_dtype"] not in (None, n.dtype()):
        raise UnityError("the result has another dtype")
    return n.w.node("MatMul", n.inputs)


def _conv(spatial: int, data: str, kernel: str) -> NodeRule:
    def rule(n: OpNode) -> Arg:
        _layout(n, ("data_layout", data), ("kernel_layout", kernel))
        if n.attrs["out_dtype"] not in (None, n.dtype()):
            raise UnityError("the result has another dtype")
        return n.w.node(
            "Conv",
            n.inputs,
            strides=n.ints("strides", spatial),
            pads=_pads(n, spatial),
            dilations=n.ints("dilation", spatial),
            group=n.integer("groups"),
        )

    return rule


def _conv_transpose(spatial: int, data: str, kernel: str) -> NodeRule:
    def rule(n: OpNode) -> Arg:
        _layout(n, ("data_layout", data), ("kernel_layout", kernel))
        return n.w.node(
            "ConvTranspose",
            n.inputs,
            strides=n.ints("strides", spatial),
            pads=_pads(n, spatial),
            dilations=n.ints("dilation", spatial),
            output_padding=n.ints("output_padding", spatial),
            group=n.integer("groups"),
        )

    return rule


def _pool(op: str, spatial: int, layout: str) -> NodeRule:
    def rule(n: OpNode) -> Arg:
        _layout(n, ("layout", layout))
        same_dtype(n)
        more = (
            {"count_include_pad": int(n.flag("count_include_pad"))} if op == "AveragePool" else {}
        )
        return n.w.node(
            op,
            [n.input(0)],
            kernel_shape=n.ints("pool_size", spatial),
            strides=n.ints("strides", spatial),
            pads=_pads(n, spatial),
            dilations=n.ints("dilation", spatial),
            ceil_mode=int(n.flag("ceil_mode")),
            **more,
        )

    return rule


def _global_pool(layout: str) -> NodeRule:
    def rule(n: OpNode) -> Arg:
        _layout(n, ("layout", layout))
        if any(size != 1 for size in n.ints("output_size", len(layout) - 2)):
            raise UnityError("takes output_size=1")
        same_dtype(n)
        return n.w.node("GlobalAveragePool", [n.input(0)])

    return rule


def _pads(n: OpNode, spatial: int) -> Sequence[int]:
    """Begins, then ends; ours may be one number, one an axis, or both of every axis in order."""
    given = n.ints("padding", spatial)
    return [*given, *given] if len(given) == spatial else given


def _layout(n: OpNode, *wanted: tuple[str, str]) -> None:
    for name, value in wanted:
        if n.attrs[name] != value:
            raise UnityError(f"takes {name}={value!r}")


def _batch_norm(n: OpNode) -> Arg:
    if n.axis() != 1:
        raise UnityError("takes channels on axis 1")
    return n.w.node("BatchNormalization", n.inputs, epsilon=n.number("epsilon"))


def _layer_norm(n: OpNode) -> Arg:
    axes = [a % n.rank() for a in n.ints("axes")]
    if axes != list(range(axes[0], n.rank())):
        raise UnityError("takes the last axes, in order")
    return n.w.node("LayerNormalization", n.inputs, axis=axes[0], epsilon=n.number("epsilon"))


def _instance_norm(n: OpNode) -> Arg:
    if n.axis("channel_axis") != 1:
        raise UnityError("takes channels on axis 1")
    return n.w.node("InstanceNormalization", n.inputs, epsilon=n.number("epsilon"))


def _lrn(n: OpNode) -> Arg:
    if n.axis() != 1 or n.rank() != 4:
        raise UnityError("takes images, channels on axis 1")
    return n.w.node(
        "LRN",
        [n.input(0)],
        size=n.integer("size"),
        alpha=n.number("alpha"),
        beta=n.number("beta"),
        bias=n.number("bias"),
    )


RULES: dict[str, NodeRule] = {
    "matmul": _matmul,
    "nn.conv1d": _conv(1, "NCW", "OIW"),
    "nn.conv2d": _conv(2, "NCHW", "OIHW"),
    "nn.conv3d": _conv(3, "NCDHW", "OIDHW"),
    "nn.conv1d_transpose": _conv_transpose(1, "NCW", "IOW"),
    "nn.conv2d_transpose": _conv_transpose(2, "NCHW", "IOHW"),
    "nn.conv3d_transpose": _conv_transpose(3, "NCDHW", "IODHW"),
    "nn.max_pool1d": _pool("MaxPool", 1, "NCW"),
    "nn.max_pool2d": _pool("MaxPool", 2, "NCHW"),
    "nn.max_pool3d": _pool("MaxPool", 3, "NCDHW"),
    "nn.avg_pool1d": _pool("AveragePool", 1, "NCW"),
    "nn.avg_pool2d": _pool("AveragePool", 2, "NCHW"),
    "nn.avg_pool3d": _pool("AveragePool", 3, "NCDHW"),
    "nn.adaptive_avg_pool1d": _global_pool("NCW"),
    "nn.adaptive_avg_pool2d": _global_pool("NCHW"),
    "nn.adaptive_avg_pool3d": _global_pool("NCDHW"),
    "nn.batch_norm": _batch_norm,
    "nn.layer_norm": _layer_norm,
    "nn.instance_norm": _instance_norm,
    "nn.lrn": _lrn,
}
