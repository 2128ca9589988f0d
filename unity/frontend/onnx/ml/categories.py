"""LabelEncoder, CategoryMapper, OneHotEncoder: values looked up in tables of a model.

Tables are small: a value is compared with each key.
"""

from __future__ import annotations

import numpy as np

from unity.errors import UnityError
from unity.ir.dtype import BOOL, FLOAT32, INT64, Array, dtype
from unity.ir.graph import Constant, Expr

from ..node import Converter, Node, Value
from ..reading.tensors import array_of
from ..strings import is_strings, texts_of

_FAMILIES = ("strings", "int64s", "floats")


def _found(node: Node, x: Expr, keys: Array) -> tuple[Expr, Expr]:
    """For each value the place of its key, and whether it has one; x and keys are of one dtype.

    NaN is a key like any other from version 4 on, and none before.
    """
    if not keys.size:
        raise UnityError("has no keys")
    wide = node.op("expand_dims", x, axis=-1)
    same = node.op("equal", wide, Constant(keys))
    if node.version >= 4 and keys.dtype.kind == "f" and np.isnan(keys).any():
        nans = node.op("logical_and", node.op("isnan", wide), Constant(np.isnan(keys)))
        same = node.op("logical_or", same, nans)
    return node.op("argmax", node.op("astype", same, dtype="int8"), axis=-1), node.op(
        "any", same, axis=-1
    )


def _table(node: Node, side: str) -> tuple[Array, bool]:
    """The keys or values of a LabelEncoder, and whether they are codes of strings."""
    given = [f for f in _FAMILIES if node.attribute(f"{side}_{f}") is not None]
    tensor = node.attribute(f"{side}_tensor")
    if len(given) + (tensor is not None) != 1:
        raise UnityError(f"needs one of {side}_strings, {side}_int64s, {side}_floats")
    if tensor is not None:
        if is_strings(tensor.t):
            return node.vocabulary.array(texts_of(tensor.t, f"{side}_tensor")).reshape(-1), True
        return array_of(tensor.t, node.graph.model.storage, f"{side}_tensor").reshape(-1), False
    (family,) = given
    if family == "strings":
        return node.vocabulary.array(node.texts_of(f"{side}_strings") or ()), True
    if family == "int64s":
        return np.asarray(node.ints_of(f"{side}_int64s"), np.int64), False
    return np.asarray(node.floats_of(f"{side}_floats"), np.float32), False


def _default(node: Node, values: Array, strings: bool) -> Array:
    """What stands for values without a key: an array of one element."""
    tensor = node.attribute("default_tensor")
    node.ignore("default_string", "default_int64", "default_float")
    if tensor is not None:
        if is_strings(tensor.t):
            return node.vocabulary.array(texts_of(tensor.t, "default_tensor")).reshape(-1)
        return array_of(tensor.t, node.graph.model.storage, "default_tensor").reshape(-1)
    if strings:
        return node.vocabulary.array([node.text_of("default_string", "_Unused")])
    if dtype(values.dtype).is_float:
        return np.asarray([node.float_of("default_float", -0.0)], values.dtype)
    default = -1 if node.attribute("values_tensor") is None else 0
    return np.asarray([node.int_of("default_int64", default)], values.dtype)


def _label_encoder(node: Node) -> Value:
    if node.version < 2:
        return _label_encoder_1(node)
    keys, values = _table(node, "keys"), _table(node, "values")
    if len(keys[0]) != len(values[0]):
        raise UnityError(f"has {len(keys[0])} keys and {len(values[0])} values")
    x = node.tensor(0)
    kind = node.dtype_of(x)
    if keys[1] != node.has_strings(0) or (not keys[1] and dtype(keys[0].dtype) != kind):
        raise UnityError(f"keys of {_kind(*keys)} for an input of {kind}")
    default = _default(node, values[0], values[1])
    if default.dtype != values[0].dtype or default.size != 1:
        raise UnityError(f"a default of {default.dtype} for values of {_kind(*values)}")
    if values[1]:
        node.string_outputs.add(0)
    return _mapped(node, x, keys[0], values[0], default)


def _mapped(node: Node, x: Expr, keys: Array, values: Array, default: Array) -> Expr:
    """The values of keys, the first of equal ones, and a default for what has none."""
    place, known = _found(node, x, keys)
    value = node.op("take", Constant(values), place, axis=0)
    return node.op("where", known, value, Constant(default.reshape(())))


def _kind(table: Array, strings: bool) -> str:
    return "strings" if strings else str(table.dtype)


def _label_encoder_1(node: Node) -> Value:
    """Of version 1: strings to their places, or back."""
    return _by_places(node, np.arange(len(node.texts_of("classes_strings") or ())),
                      node.texts_of("classes_strings") or ())  # fmt: skip


def _category_mapper(node: Node) -> Value:
    numbers = np.asarray(node.ints_of("cats_int64s") or (), np.int64)
    return _by_places(node, numbers, node.texts_of("cats_strings") or ())


def _by_places(node: Node, numbers: Array, texts: tuple[str, ...]) -> Value:
    """Numbers for strings, or strings for numbers."""
    if len(numbers) != len(texts):
        raise UnityError(f"has {len(numbers)} numbers for {len(texts)} strings")
    codes = node.vocabulary.array(texts)
    ints = np.asarray(numbers, np.int64)
    if node.has_strings(0):
        node.ignore("default_string")
        default = np.asarray([node.int_of("default_int64", -1)])
        return _mapped(node, node.tensor(0), codes, ints, default)
    node.ignore("default_int64")
    default = node.vocabulary.array([node.text_of("default_string", "_Unused")])
    node.string_outputs.add(0)
    return _mapped(node, node.cast(node.tensor(0), INT64), ints, codes, default)


def _one_hot_encoder(node: Node) -> Value:
    """A new last axis of categories, 1 at the value's own, float32; other values are all 0."""
    texts, numbers = node.texts_of("cats_strings"), node.ints_of("cats_int64s")
    if (not texts) is (not numbers):
        raise UnityError("needs either cats_strings or cats_int64s")
    x = node.tensor(0)
    if bool(texts) != node.has_strings(0):
        raise UnityError("looks strings up in numbers, or numbers in strings")
    if not node.int_of("zeros", 1):
        raise node.gap("zeros=0, which refuses values that are no category")
    keys = node.vocabulary.array(texts) if texts else np.asarray(numbers, np.int64)
    kind = node.dtype_of(x)
    if kind.is_float:
        x = node.op("trunc", x)
        keys = keys.astype(kind.numpy)
    else:
        x = node.cast(x, INT64)
    same = node.op("equal", node.op("expand_dims", x, axis=-1), Constant(keys))
    assert node.dtype_of(same) == BOOL
    return node.op("astype", same, dtype=FLOAT32)


CONVERTERS: dict[str, Converter] = {
    "LabelEncoder": _label_encoder,
    "CategoryMapper": _category_mapper,
    "OneHotEncoder": _one_hot_encoder,
}
