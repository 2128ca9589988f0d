"""Shapes, joining and cutting, reductions."""

from __future__ import annotations

from unity.errors import UnityError
from unity.ir.dims import SymDim, always_ge

from .rule import NodeRule, same_dtype
from .writer import Arg, OpNode


def _reshape(n: OpNode) -> Arg:
    return n.w.node("Reshape", [n.input(0), n.w.vector(n.out_dims)], allowzero=1)


def _permute(n: OpNode) -> Arg:
    axes = n.attrs["axes"]
    if n.rank() < 2:
        return n.w.node("Identity", [n.input(0)])
    perm = list(reversed(range(n.rank()))) if axes is None else n.ints("axes")
    return n.w.node("Transpose", [n.input(0)], perm=[a % n.rank() for a in perm])


def _broadcast_to(n: OpNode) -> Arg:
    return n.w.node("Expand", [n.input(0), n.w.vector(n.out_dims)])


def _concat(n: OpNode) -> Arg:
    tensors = n.args[0]
    assert isinstance(tensors, tuple)
    names = [t for t in tensors if isinstance(t, str)]
    axis = n.integer("axis")
    return n.w.node("Concat", names, axis=axis % len(n.out_dims))


def _split(n: OpNode) -> Arg:
    sections, axis = n.attrs["indices_or_sections"], n.axis()
    size = n.dims(0)[axis]
    if isinstance(sections, int):
        return tuple(n.w.many("Split", [n.input(0)], n.outputs, axis=axis, num_outputs=n.outputs))
    at = n.ints("indices_or_sections")
    if not isinstance(size, int):
        raise UnityError("the axis split has a symbolic size")
    parts = [b - a for a, b in zip([0, *at], [*at, size], strict=True)]
    return tuple(n.w.many("Split", [n.input(0), n.w.ints(parts)], n.outputs, axis=axis))


def _slice(n: OpNode) -> Arg:
    def numbers(name: str) -> str:
        value = n.attrs[name]
        assert isinstance(value, tuple)
        dims = [v for v in value if isinstance(v, int | SymDim)]
        if len(dims) != len(value):
            raise UnityError(f"{name} holds something else than sizes")
        return n.w.vector(dims)

    axes = n.ints("axes")
    steps = n.ints("strides") if n.attrs["strides"] is not None else [1] * len(axes)
    given = [n.input(0), numbers("begin"), numbers("end"), n.w.ints(axes), n.w.ints(steps)]
    return n.w.node("Slice", given)


def _tile(n: OpNode) -> Arg:
    repeats = n.ints("repeats")
    if len(repeats) != n.rank():
        raise UnityError("takes a number for every axis")
    return n.w.node("Tile", [n.input(0), n.w.ints(repeats)])


def _pad(n: OpNode) -> Arg:
    width, mode = n.ints("pad_width"), str(n.attrs["pad_mode"])
    modes = {"constant": "constant", "reflect": "reflect", "edge": "edge", "replicate": "edge"}
    if mode not in modes:
        raise UnityError(f"pad_mode={mode!r}")
    if n.rank() == 0 or len(width) != 2 * n.rank():
        raise UnityError("takes a begin and an end for every axis")
    pads = n.w.ints([*width[0::2], *width[1::2]])
    value = n.w.scalar(n.number("pad_value"), n.dtype())
    return n.w.node("Pad", [n.input(0), pads, value], mode=modes[mode])


def _reduction(op: str) -> NodeRule:
    def rule(n: OpNode) -> Arg:
        axis = n.attrs["axis"]
        axes = list(range(n.rank())) if axis is None else n.ints("axis")
        keep = int(n.flag("keepdims"))
        if op == "ReduceMean" and any(not always_ge(n.dims(0)[a], 1) for a in axes):
            raise UnityError("a mean of nothing is another number there")
        same_dtype(n)
        return n.w.node(op, [n.input(0), n.w.ints(axes)], keepdims=keep)

    return rule


def _arg_reduction(op: str) -> NodeRule:
    def rule(n: OpNode) -> Arg:
        if n.attrs["axis"] is None:
            raise UnityError("takes one axis")
        return n.w.node(op, [n.input(0)], axis=n.axis(), keepdims=int(n.flag("keepdims")))

    return rule


def _softmax(op: str) -> NodeRule:
    return lambda n: n.w.node(op, [n.input(0)], axis=n.axis())


RULES: dict[str, NodeRule] = {
    "reshape": _reshape,
    "flatten": _reshape,
    "expand_dims": _reshape,
    "squeeze": _reshape,
    "permute_dims": _permute,
    "broadcast_to": _broadcast_to,
    "concat": _concat,
    "split": _split,
    "strided_slice": _slice,
    "tile": _tile,
    "nn.pad": _pad,
    "sum": _reduction("ReduceSum"),
    "prod": _reduction("ReduceProd"),
    "mean": _reduction("ReduceMean"),
    "max": _reduction("ReduceMax"),
    "min": _reduction("ReduceMin"),
    "argmax": _arg_reduction("ArgMax"),
    "argmin": _arg_reduction("ArgMin"),
    "nn.softmax": _softmax("Softmax"),
    "nn.log_softmax": _softmax("LogSoftmax"),
}
