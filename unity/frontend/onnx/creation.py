"""Nodes that make tensors: Constant, ConstantOfShape, Range, Trilu, OneHot, EyeLike."""

from __future__ import annotations

import numpy as np

from unity.frontend.emission import FOLDED
from unity.frontend.run_time.slicing import counted, diagonal, scalar
from unity.ir.dims import Dim, SymDim, as_dim, dim_max, floordiv
from unity.ir.dtype import INT64, dtype
from unity.ir.graph import Constant, Expr

from .node import Converter, Node, Value
from .reading.tensors import dtype_of


def _constant(node: Node) -> Value:
    for name in ("value_float", "value_floats", "value_int", "value_ints"):
        found = node.attribute(name)
        if found is None:
            continue
        match name:
            case "value_float":
                return Constant(np.asarray(found.f, np.float32))
            case "value_floats":
                return Constant(np.asarray(list(found.floats), np.float32))
            case "value_int":
                return Constant(np.asarray(found.i, np.int64))
            case _:
                return Constant(np.asarray(list(found.ints), np.int64))
    texts = node.texts("value")
    if texts is not None:
        node.graph.add_texts(node.proto.output[0], texts)
        node.string_outputs.add(0)
        return Constant(node.vocabulary.array(texts), node.proto.output[0])
    array = node.array_of("value")
    if array is None:
        raise node.gap("a constant that is sparse")
    return Constant(array, node.proto.output[0])


def _constant_of_shape(node: Node) -> Value:
    fill = node.array_of("value")
    array = np.zeros(1, np.float32) if fill is None else fill
    shape = node.dims(0, "a shape")
    numbers = [d for d in shape if isinstance(d, int)]
    if len(numbers) < len(shape) or np.prod(numbers, dtype=np.float64) > FOLDED:
        return node.op("full", shape, Constant(array.reshape(())), dtype=dtype(array.dtype))
    return Constant(np.full(numbers, array.reshape(())))


def _range(node: Node) -> Value:
    known = [node.sizes(i) for i in range(3)]
    if all(k is not None for k in known):
        start, end, step = (k.flat[0] for k in known if k is not None)
        kind = known[0].dtype if known[0] is not None else INT64
        if isinstance(step, SymDim):
            length = as_dim(-floordiv(start - end, step))
            even = as_dim(length * step) == as_dim(end - start)
            return counted(node, *_scalars(node), dim_max(length, 0) if even else None)
        return node.op("arange", start, end, step, dtype=kind)
    bounds = [node.constant(i) for i in range(3)]
    numbers = [float(b.astype(np.float64).reshape(())) for b in bounds if b is not None]
    if len(numbers) < 3:
        return counted(node, *_scalars(node))
    return node.op("arange", *numbers, dtype=node.dtype_of(node.tensor(0)))


def _scalars(node: Node) -> tuple[Expr, Expr, Expr]:
    start, limit, delta = (scalar(node, node.tensor(i)) for i in range(3))
    return start, limit, delta


def _trilu(node: Node) -> Value:
    upper = node.int_of("upper", 1)
    x = node.tensor(0)
    if node.has(1) and not node.is_known(1):
        return diagonal(node, x, scalar(node, node.tensor(1)), upper=bool(upper))
    k: Dim = node.dims(1, "the diagonal")[0] if node.has(1) else 0
    return node.op("triu" if upper else "tril", x, k=k)


def _eye_like(node: Node) -> Value:
    x = node.tensor(0)
    kind = node.int_of("dtype", 0)
    shape = node.shape_of(x)
    if len(shape) != 2:
        raise node.gap(f"rank {len(shape)}")
    target = dtype_of(kind, "the attribute 'dtype'") if kind else node.dtype_of(x)
    k = node.int_of("k", 0)
    rows = node.op("expand_dims", node.op("arange", shape[0]), axis=1)
    columns = node.op("arange", shape[1])
    shifted = node.op("add", rows, Constant(np.asarray(k, np.int64)))
    return node.cast(node.op("equal", shifted, columns), target)


def _one_hot(node: Node) -> Value:
    depth = node.dims(1, "the depth")[0]
    indices, values = node.tensor(0), node.tensor(2)
    if not node.dtype_of(indices).is_int:
        indices = node.cast(indices, INT64)
    axis = node.axis(node.int_of("axis", -1), node.rank(0) + 1)
    off, on = (
        node.op(
            "reshape", node.op("strided_slice", values, axes=(0,), begin=(i,), end=(i + 1,)), ()
        )
        for i in (0, 1)
    )
    return node.op("one_hot", indices, on, off, depth=depth, axis=axis)


CONVERTERS: dict[str, Converter] = {
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Range": _range,
    "Trilu": _trilu,
    "EyeLike": _eye_like,
    "OneHot": _one_hot,
}
