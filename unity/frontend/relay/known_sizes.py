"""Tensors whose elements are sizes: what `shape_of` gives, followed through integer operators.

A reshape to ``concatenate(take(shape_of(x), 0), [4])`` gets the dims of x themselves so, instead of
symbols that nothing is known of.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from unity.frontend.sizes import ARITHMETIC, Sizes, combine, sizes_of, sizes_of_array
from unity.ir.dims import Dim, SymDim, as_dim, product
from unity.ir.dtype import DType
from unity.ir.graph import Constant, Expr, ShapeValue, Tuple, Var
from unity.ir.types import TensorType

Known: TypeAlias = "Mapping[Expr, Sizes]"
_OF_TWO = {
    "add": "Add",
    "subtract": "Sub",
    "multiply": "Mul",
    "divide": "Div",
    "floor_divide": "Div",
    "floor_mod": "Mod",
    "maximum": "Max",
    "minimum": "Min",
}
_OTHER_SHAPES = ("reshape", "expand_dims", "squeeze")


def worked_out(
    name: str,
    args: tuple[object, ...],
    attrs: Mapping[str, object],
    result: TensorType,
    known: Known,
) -> Sizes | None:
    """The elements of what an operator gives as dims, if those of its operands tell.

    Args:
        name: The operator.
        args: Its operands: expressions, tuples of them, shapes, numbers.
        attrs: Its attributes.
        result: The type of what it gives.
        known: Tensors whose elements are known.
    """
    kind = result.dtype
    if kind is None or not kind.is_int:
        return None
    if name == "dims":
        return _of_dims(args[0], kind)
    if not any(_is_known(a, known) for a in args):
        return None
    if name in ("concat", "stack"):
        return _joined(name, args, attrs, kind, known)
    first = _sizes(args[0], known)
    if first is None:
        return None
    if name in _OF_TWO and len(args) == 2:
        second = _sizes(args[1], known)
        return None if second is None else combine(first, second, ARITHMETIC[_OF_TWO[name]])
    if name == "astype":
        return Sizes(first.dims, kind)
    if name == "prod" and first.dims.ndim == 1 and attrs.get("axis") in (None, (0,)):
        total = sizes_of(product(first.flat), kind)
        return Sizes(total.dims.reshape((1,)), kind) if attrs.get("keepdims") else total
    shape = result.shape
    if not isinstance(shape, tuple) or any(isinstance(d, SymDim) for d in shape):
        return None
    if name in _OTHER_SHAPES:
        return Sizes(first.dims.reshape([int(d) for d in shape if isinstance(d, int)]), kind)
    if name == "take" and isinstance(args[1], Constant) and first.dims.ndim == 1:
        places = np.clip(args[1].data.astype(np.int64), -len(first.dims), len(first.dims) - 1)
        found = np.empty(places.shape, dtype=object)
        for index in np.ndindex(places.shape):
            found[index] = first.dims[int(places[index])]
        return Sizes(found, kind)
    if name == "strided_slice" and first.dims.ndim == 1:
        return _sliced(first, attrs)
    return None


def _is_known(arg: object, known: Known) -> bool:
    match arg:
        case Tuple(fields) | tuple(fields) | list(fields):
            return any(_is_known(f, known) for f in fields)
        case Constant() | ShapeValue():
            return False
        case _:
            return isinstance(arg, Var) and arg in known


def _sizes(arg: object, known: Known) -> Sizes | None:
    if isinstance(arg, bool | float):
        return None
    if isinstance(arg, int):
        return sizes_of(arg)
    if isinstance(arg, Constant):
        return sizes_of_array(arg.data)
    return known.get(arg) if isinstance(arg, Var) else None


def _of_dims(given: object, kind: DType) -> Sizes | None:
    match given:
        case ShapeValue(dims):
            return sizes_of(dims, kind)
        case int() | SymDim():
            return sizes_of(as_dim(given), kind)
        case tuple() | list():
            own: list[Dim] = [d for d in given if isinstance(d, int | SymDim)]
            return sizes_of(tuple(own), kind) if len(own) == len(given) else None
        case _:
            return None


def _joined(
    name: str, args: tuple[object, ...], attrs: Mapping[str, object], kind: DType, known: Known
) -> Sizes | None:
    match args[0]:
        case Tuple(fields) | tuple(fields) | list(fields):
            parts = [_sizes(f, known) for f in fields]
        case _:
            return None
    arrays = [p.dims for p in parts if p is not None]
    axis = attrs.get("axis", 0)
    if len(arrays) < len(parts) or not isinstance(axis, int):
        return None
    return Sizes(np.concatenate(arrays, axis) if name == "concat" else np.stack(arrays, axis), kind)


def _sliced(first: Sizes, attrs: Mapping[str, object]) -> Sizes | None:
    ends: list[int | None] = []
    for key in ("begin", "end", "strides"):
        value = attrs.get(key)
        match value:
            case (int() as number,):
                ends.append(number)
            case None | ():
                ends.append(None)
            case _:
                return None
    return Sizes(first.dims[slice(*ends)], first.dtype)
