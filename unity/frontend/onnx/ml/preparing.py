"""What stands before a classic model: Scaler, Normalizer, Imputer, Binarizer, columns picked."""

from __future__ import annotations

import numpy as np

from unity.errors import UnityError
from unity.ir.dims import always_ge
from unity.ir.dtype import FLOAT32
from unity.ir.graph import Constant, Expr

from ..node import Converter, Node, Value
from .rows import working


def _columns(node: Node, name: str, values: tuple[float, ...], x: Expr) -> Constant:
    """Numbers for the columns of x: one for all, or one for each."""
    width = node.shape_of(x)[-1]
    if len(values) != 1 and isinstance(width, int) and len(values) != width:
        raise UnityError(f"{name} has {len(values)} elements for {width} columns")
    return Constant(np.asarray(values).astype(node.dtype_of(x).numpy))


def _scaler(node: Node) -> Value:
    x = node.tensor(0)
    x = node.cast(x, working(node.dtype_of(x)))
    offset, scale = node.floats_of("offset"), node.floats_of("scale")
    if offset:
        x = node.op("subtract", x, _columns(node, "offset", offset, x))
    if scale:
        x = node.op("multiply", x, _columns(node, "scale", scale, x))
    return node.cast(x, FLOAT32)


def _normalizer(node: Node) -> Value:
    """Rows divided by their norm; one whose norm is 0 stays."""
    how = node.text_of("norm", "MAX")
    x = node.tensor(0)
    x = node.cast(x, working(node.dtype_of(x)))
    match how:
        case "MAX":
            norm = node.op("max", x, axis=-1, keepdims=True)
        case "L1":
            norm = node.op("sum", node.op("abs", x), axis=-1, keepdims=True)
        case "L2":
            norm = node.op("sqrt", node.op("sum", node.op("square", x), axis=-1, keepdims=True))
        case _:
            raise UnityError(f"norm {how!r}; expected MAX, L1 or L2")
    none = node.op("equal", norm, node.number(0, norm))
    norm = node.op("where", none, node.number(1, norm), norm)
    return node.cast(node.op("divide", x, norm), FLOAT32)


def _imputer(node: Node) -> Value:
    x = node.tensor(0)
    kind = node.dtype_of(x)
    name, of = ("imputed_value_floats", "replaced_value_float")
    values: tuple[float, ...] | None
    if kind.is_float:
        values, replaced = node.floats_of(name), node.float_of(of, 0.0)
        node.ignore("imputed_value_int64s", "replaced_value_int64")
    else:
        name, of = "imputed_value_int64s", "replaced_value_int64"
        values, replaced = node.ints_of(name), node.int_of(of, 0)
        node.ignore("imputed_value_floats", "replaced_value_float")
    if not values:
        raise UnityError(f"needs {name} for an input of {kind}")
    missing = replaced != replaced
    found = node.op("isnan", x) if missing else node.op("equal", x, node.number(replaced, x))
    return node.op("where", found, _columns(node, name, values, x), x)


def _binarizer(node: Node) -> Value:
    x = node.tensor(0)
    above = node.op("greater", x, node.number(node.float_of("threshold", 0.0), x))
    return node.op("astype", above, dtype=node.dtype_of(x))


def _array_feature_extractor(node: Node) -> Value:
    """Some columns, along the last axis; those of a vector are a row."""
    x, at = node.tensor(0), node.constant(1)
    shape = node.shape_of(x)
    if at is None:
        places = node.op("reshape", node.tensor(1), (-1,))
    else:
        flat = at.astype(np.int64).reshape(-1)
        most = int(flat.max(initial=0))
        if flat.size and (flat.min() < 0 or not always_ge(shape[-1], most + 1)):
            raise UnityError(f"picks the columns {flat.tolist()} of {shape[-1]}")
        places = Constant(flat)
    if node.has_strings(0):
        node.string_outputs.add(0)
    found = node.op("take", x, places, axis=len(shape) - 1)
    return node.op("expand_dims", found, axis=0) if len(shape) == 1 else found


def _feature_vectorizer(node: Node) -> Value:
    """Columns of several inputs side by side, each cut or filled with 0 to a width; float32."""
    widths = node.ints_of("inputdimensions") or ()
    if len(widths) != node.count:
        raise UnityError(f"inputdimensions {list(widths)} for {node.count} inputs")
    parts = [_wide(node, node.tensor(k), width) for k, width in enumerate(widths)]
    return node.op("concat", tuple(parts), axis=1)


def _wide(node: Node, x: Expr, width: int) -> Expr:
    x = node.cast(x, FLOAT32)
    if len(node.shape_of(x)) == 1:
        x = node.op("expand_dims", x, axis=1)
    own = node.shape_of(x)[1]
    if not isinstance(own, int):
        raise node.symbolic_gap("an input of unknown width", own)
    if own > width:
        return node.op("strided_slice", x, axes=(1,), begin=(0,), end=(width,))
    if own < width:
        return node.op("nn.pad", x, (0, 0, 0, width - own), pad_mode="constant", pad_value=0.0)
    return x


CONVERTERS: dict[str, Converter] = {
    "Scaler": _scaler,
    "Normalizer": _normalizer,
    "Imputer": _imputer,
    "Binarizer": _binarizer,
    "ArrayFeatureExtractor": _array_feature_extractor,
    "FeatureVectorizer": _feature_vectorizer,
}
