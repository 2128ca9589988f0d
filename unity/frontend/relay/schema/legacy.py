"""Operators of older versions of TVM, said in those of 0.18."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..syntax import Attributes, AttrValue
from .check import signature

_RENAMED = {
    "contrib.adaptive_avg_pool2d": "nn.adaptive_avg_pool2d",
    "contrib.adaptive_max_pool2d": "nn.adaptive_max_pool2d",
    "contrib.ndarray_size": "ndarray_size",
    "nn.bitpack_start": "annotation.bitpack_start",
    "qnn.op.add": "qnn.add",
    "scatter": "scatter_elements",
    "scatter_add": "scatter_elements",
    "image.resize": "image.resize2d",
}
_METHODS = {"bilinear": "linear", "bicubic": "cubic"}


@dataclass(frozen=True, slots=True)
class Upgraded:
    """A call in today's operators.

    Attributes:
        operator: What is called.
        attributes: Its attributes.
        appended: A number that is one more argument.
    """

    operator: str
    attributes: Attributes
    appended: float | None = None


def is_operator(name: str) -> bool:
    """Whether an operator is called so, in 0.18 or before."""
    return name in _RENAMED or signature(name) is not None


def upgraded(operator: str, attributes: Attributes, arguments: int, before_0_8: bool) -> Upgraded:
    """What a call means in the operators of 0.18.

    Args:
        operator: What is called.
        attributes: Those that the source gives.
        arguments: How many arguments there are.
        before_0_8: Whether the source is surely of TVM 0.7 or older.

    >>> upgraded("nn.pad", {"pad_width": ((0, 1),), "pad_value": 2.0}, 1, False).appended
    2.0
    """
    name = _RENAMED.get(operator, operator)
    if operator == "scatter_add":
        attributes = {**attributes, "reduction": "add"}
    if operator == "image.resize":
        attributes = _resized(attributes)
    if name == "nn.batch_matmul" and before_0_8 and "transpose_b" not in attributes:
        return Upgraded(name, {**attributes, "transpose_b": True})  # all it could do then
    if name == "nn.pad" and arguments == 1:
        value = attributes.get("pad_value", 0.0)
        if isinstance(value, int | float):
            rest = {k: v for k, v in attributes.items() if k != "pad_value"}
            return Upgraded(name, rest, float(value))
    return Upgraded(name, attributes)


def _resized(attributes: Attributes) -> Mapping[str, AttrValue]:
    """Attributes of ``image.resize``, which had other defaults than ``image.resize2d``."""
    found = dict(attributes)
    method = found.get("method", "bilinear")
    found["method"] = _METHODS.get(method, method) if isinstance(method, str) else method
    if found.pop("align_corners", None):
        found.setdefault("coordinate_transformation_mode", "align_corners")
    found.setdefault("coordinate_transformation_mode", "half_pixel")
    return found
