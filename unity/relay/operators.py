"""Operators as functions, made of the schema: ``relay.add``, ``relay.nn.conv2d`` ...

A function takes what Relay's Python took: operands, then attributes in order, by name as well.
Where that differed from the schema stands in the tables here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from unity.errors import UnityError
from unity.frontend.relay import syntax
from unity.frontend.relay.operators.refused import REFUSED
from unity.frontend.relay.schema import Signature, names, signature

from .attributes import attribute_of
from .expr import Expr, Op, TupleWrapper, const, node_of, operation, wrap
from .places import here

ORDERS: dict[str, str] = {
    "take": "data indices axis batch_dims mode",
    "gather": "data axis indices",
    "strided_slice": "data begin end strides axes slice_mode",
    "nn.pad": "data pad_width pad_value pad_mode",
    "nn.lrn": "data size axis bias alpha beta",
    "image.resize2d": "data size roi layout method coordinate_transformation_mode rounding_method "
    "cubic_alpha cubic_exclude extrapolation_value out_dtype",
    "qnn.quantize": "data output_scale output_zero_point axis out_dtype",
    "qnn.conv2d": "data kernel input_zero_point kernel_zero_point input_scale kernel_scale "
    "kernel_size channels strides padding dilation groups data_layout kernel_layout out_layout "
    "out_dtype",
    "qnn.conv2d_transpose": "data weight input_zero_point kernel_zero_point input_scale "
    "kernel_scale strides padding dilation groups channels kernel_size data_layout kernel_layout "
    "out_layout output_padding out_dtype",
    "qnn.dense": "data weight input_zero_point kernel_zero_point input_scale kernel_scale units "
    "out_dtype",
    "qnn.batch_matmul": "x y x_zero_point y_zero_point x_scale y_scale out_dtype",
    "vision.get_valid_counts": "data score_threshold id_index score_index",
    "vision.non_max_suppression": "data valid_count indices max_output_size iou_threshold "
    "force_suppress top_k coord_start score_index id_index return_indices invalid_to_bottom",
    "argmax": "data axis keepdims exclude select_last_index",
    "argmin": "data axis keepdims exclude select_last_index",
}
"""How Python's functions were called, where the schema has another order."""
RENAMED: dict[str, dict[str, str]] = {
    "nn.pad": {"pad_value": "pad_val"},
    "clip": {"a": "data"},
    "nn.batch_matmul": {"x": "tensor_a", "y": "tensor_b"},
    "image.resize2d": {"bicubic_alpha": "cubic_alpha", "bicubic_exclude": "cubic_exclude"},
    **{
        name: {
            "kernel": "weight",
            "kernel_zero_point": "weight_zero_point",
            "kernel_scale": "weight_scale",
        }
        for name in ("qnn.conv2d", "qnn.dense", "qnn.conv2d_transpose")
    },
}
"""What Python called operands and attributes, where the schema calls them otherwise."""
DEFAULTS: dict[str, dict[str, object]] = {
    "nn.batch_matmul": {"transpose_b": True},
    "nn.pad": {"pad_val": 0.0},
    "nn.l2_normalize": {"axis": ()},
    "arange": {"dtype": "float32"},
    "full": {"shape": ()},
    "strided_slice": {"strides": (1,)},
    "qnn.quantize": {"out_dtype": "int8"},
    "qnn.requantize": {"out_dtype": "int8"},
    "topk": {"k": 1, "dtype": "int32"},
    "argsort": {"dtype": "int32"},
    "vision.get_valid_counts": {"score_threshold": 0.0},
    "vision.non_max_suppression": {"max_output_size": -1, "iou_threshold": 0.5},
    "vision.all_class_non_max_suppression": {
        "max_output_boxes_per_class": -1,
        "iou_threshold": -1.0,
        "score_threshold": -1.0,
    },
    **{f"nn.{kind}_pool{n}d": {"pool_size": 1} for kind in ("max", "avg") for n in (1, 2, 3)},
    **{
        f"image.resize{n}d": {"roi": (0.0,) * (2 * n), "extrapolation_value": 0.0}
        for n in (1, 2, 3)
    },
}
"""Defaults of Python's functions that are not those of the format."""
_PER_DIM = ("kernel_size", "strides", "dilation", "pool_size")
_OF_ATTRIBUTES = ("strided_slice",)
"""What may be left out is an attribute where it is known; of others, it is an operand."""
_RESULTS = {
    "nn.batch_norm": 3,
    "vision.get_valid_counts": 3,
    "vision.multibox_transform_loc": 2,
    "sparse_fill_empty_rows": 3,
    "sparse_reshape": 2,
}


class Operator:
    """An operator as a function."""

    def __init__(self, name: str) -> None:
        found = signature(name)
        if found is None:
            raise UnityError(f"Relay has no operator {name!r}", here())
        self.name = name
        self._signature: Signature = found

    def __repr__(self) -> str:
        return f"<operator {self.name}({', '.join(self.order)})>"

    @property
    def fields(self) -> Mapping[str, object]:
        """Its attributes by name."""
        return self._signature.fields or {}

    @property
    def order(self) -> tuple[str, ...]:
        """Its arguments and attributes, in the order in which Python takes them."""
        if self.name in ORDERS:
            return tuple(ORDERS[self.name].split())
        operands = self._signature.arguments or ()
        optional = self._signature.optional
        fields = self._signature.fields or {}
        return (*operands[: len(operands) - optional], *(f for f in fields if f not in operands))

    def __call__(self, *args: object, **named: object) -> Any:
        """A call: an expression, or a `TupleWrapper` of those that have several results."""
        if self.name in REFUSED:
            raise UnityError(f"{self.name} is refused: {REFUSED[self.name]}", here())
        given = self._bound(args, named)
        operands = self._signature.arguments or ()
        dynamic = f"dyn.{self.name}"
        needed = operands[: len(operands) - self._signature.optional]
        unknown = [k for k, v in given.items() if k not in needed and _is_attribute(self, k, v)]
        if unknown and dynamic in names():
            return Operator(dynamic)._made(given)
        if unknown:
            raise UnityError(f"{self.name}: {unknown[0]} must be known, and is computed", here())
        return self._made(given)

    def _bound(self, args: tuple[object, ...], named: Mapping[str, object]) -> dict[str, object]:
        renamed = RENAMED.get(self.name, {})
        if len(args) > len(self.order):
            raise UnityError(
                f"{self.name} takes {len(self.order)} arguments, got {len(args)}",
                here(),
                f"they are {', '.join(self.order)}",
            )
        given = {
            renamed.get(k, k): v
            for k, v in (*zip(self.order, args, strict=False), *named.items())
            if v is not None
        }
        rank = re.search(r"(\d)d", self.name)
        for name in _PER_DIM:
            if rank is not None and isinstance(given.get(name), int):
                given[name] = (given[name],) * int(rank[1])
        return {**DEFAULTS.get(self.name, {}), **given}

    def _made(self, given: Mapping[str, object]) -> Any:
        arguments = self._signature.arguments or ()
        fields = self._signature.fields or {}
        needed = arguments[: len(arguments) - self._signature.optional]
        missing = [o for o in needed if o not in given]
        if missing:
            raise UnityError(f"{self.name} lacks {', '.join(missing)}", here())
        known = fields if self.name in _OF_ATTRIBUTES else ()
        operands = [o for o in arguments if o in given and (o in needed or o not in known)]
        nodes = [_operand(given[o]) for o in operands]
        attributes = {k: attribute_of(v) for k, v in given.items() if k not in operands}
        made = operation(self.name, *nodes, **attributes)
        count = _results(self.name, given, made)
        if self.name == "nn.dropout":
            return TupleWrapper(made, 2)[0]
        return made if count is None else TupleWrapper(made, count)


def _operand(value: object) -> Expr:
    """An operand; numbers and arrays are constants here, as sizes and fill values are given so."""
    if isinstance(value, bool | int | float | np.ndarray):
        return const(value)
    if isinstance(value, list | tuple) and all(isinstance(v, int) for v in value):
        return const(np.array(value, np.int64))
    return wrap(node_of(value))


def _is_attribute(operator: Operator, name: str, value: object) -> bool:
    """Whether a value is computed, and given for what the operator knows beforehand."""
    computed = isinstance(value, Expr) and not isinstance(value.node, syntax.Constant)
    return computed and name in operator.fields


def _results(name: str, given: Mapping[str, object], made: Expr) -> int | None:
    """How many results a call has, or None for one that is no tuple."""
    assert isinstance(made.node, syntax.Call)
    attributes = made.node.attributes
    match name:
        case "split":
            parts = attributes["indices_or_sections"]
            return len(parts) + 1 if isinstance(parts, tuple) else int(str(parts))
        case "topk" | "dyn.topk":
            return 2 if attributes["ret_type"] == "both" else None
        case "meshgrid":
            data = given["data"]
            return len(data) if isinstance(data, list | tuple) else None
        case "vision.non_max_suppression":
            return 2 if attributes["return_indices"] else None
        case "vision.all_class_non_max_suppression":
            return 2 if attributes["output_format"] == "onnx" else 3
        case "unique":
            return 4 if not attributes["return_counts"] else 5
        case _:
            return _RESULTS.get(name)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: object = "float32") -> Expr:
    """Numbers from a start to before a stop."""
    first, last = (0, start) if stop is None else (start, stop)
    bounds = [v if isinstance(v, Expr) else const(v, dtype) for v in (first, last, step)]
    return operation("arange", *bounds, dtype=attribute_of(dtype))


def variance(
    data: Expr, axis: Any = None, keepdims: bool = False, exclude: bool = False,
    unbiased: bool = False, with_mean: Expr | None = None,
) -> Expr:  # fmt: skip
    """The mean square distance from the mean."""
    around = with_mean or Operator("mean")(data, axis, True, exclude)
    found = Operator("variance")(data, around, axis, keepdims, exclude, unbiased)
    assert isinstance(found, Expr)
    return found


def std(
    data: Expr, axis: Any = None, keepdims: bool = False, exclude: bool = False,
    unbiased: bool = False,
) -> Expr:  # fmt: skip
    """The root of the variance."""
    return operation("sqrt", variance(data, axis, keepdims, exclude, unbiased))


@cache
def _namespaces() -> frozenset[str]:
    """What stands before a dot in operators' names."""
    found = {n.rpartition(".")[0] for n in names()}
    return frozenset(found | {n.rpartition(".")[0] for n in found} - {""})


class Namespace:
    """The operators whose names begin alike: ``relay.nn``.

    Args:
        prefix: What they begin with: ``"nn."``.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        full = f"{self._prefix}{name}"
        if full in names():
            return _SPECIAL.get(full) or Operator(full)
        if full in _namespaces():
            return Namespace(f"{full}.")
        if full == "qnn.op":  # as Python had it: relay.qnn.op.conv2d
            return self
        if full in _SPECIAL:
            return _SPECIAL[full]
        raise AttributeError(f"Relay has no operator {full!r}")

    def __dir__(self) -> list[str]:
        found = (n.removeprefix(self._prefix) for n in names() if n.startswith(self._prefix))
        return sorted(n for n in found if "." not in n)


_SPECIAL: dict[str, Any] = {"arange": arange, "get": Op.get, "std": std, "variance": variance}
ROOT = Namespace("")
