"""Scales and zero points: of activations by their range, of weights by their channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from unity.ir.dtype import INT8, UINT8, Array
from unity.op.elementwise.quantize import limits

Activations: TypeAlias = Literal["uint8", "int8"]
"""What activations may become: uint8 with a zero point, or int8 without."""
BIAS_STEPS = 1 << 30
"""The most steps that a bias is from 0, so that int32 holds it and the sums."""
_TINY = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True, slots=True)
class Parameters:
    """How reals are integers: ``real = (integer - zero) * scale``.

    Attributes:
        scale: One number, or one for each channel, float32.
        zero: Of the integers' type.
    """

    scale: Array
    zero: Array


def of_range(low: float, high: float, kind: Activations) -> Parameters:
    """The parameters of reals from `low` to `high`; 0 is one of the integers.

    >>> of_range(-1.0, 4.1, "uint8")
    Parameters(scale=array(0.02, dtype=float32), zero=array(50, dtype=uint8))
    >>> of_range(-1.0, 2.54, "int8")
    Parameters(scale=array(0.02, dtype=float32), zero=array(0, dtype=int8))
    """
    low, high = min(low, 0.0), max(high, 0.0)
    if kind == "int8":
        scale = max(-low, high) / limits(INT8)[1]
        return Parameters(np.asarray(_positive(scale)), np.zeros((), np.int8))
    most = limits(UINT8)[1]
    step = _positive((high - low) / most)
    zero = np.clip(np.rint(-low / step), 0, most)
    return Parameters(np.asarray(step), np.asarray(zero, np.uint8))


def _positive(scale: float) -> np.float32:
    """A scale that has an inverse; 1 where all is 0."""
    return np.float32(max(scale, _TINY) if scale else 1.0)


def of_weight(weight: Array, axis: int | None, least: Array | float = 0.0) -> Parameters:
    """The parameters of weights in int8 without zero points.

    Args:
        weight: The weights.
        axis: The axis whose indices have scales of their own; None for one scale.
        least: What scales are at least, one or one for each.

    >>> of_weight(np.array([[1.27, 0.5], [0.0, -2.54]], np.float32), 0).scale
    array([0.01, 0.02], dtype=float32)
    """
    others = tuple(k for k in range(weight.ndim) if k != axis) if axis is not None else None
    most = np.abs(weight.astype(np.float64)).max(axis=others)
    scale = np.maximum(np.maximum(most / limits(INT8)[1], least), _TINY)
    scale = np.where((most > 0) | (np.asarray(least) > 0), scale, 1.0).astype(np.float32)
    return Parameters(np.asarray(scale), np.zeros(scale.shape, np.int8))


def rounded(weight: Array, by: Parameters, axis: int) -> Array:
    """Weights as int8."""
    scale = by.scale.astype(np.float64)
    if scale.ndim:
        scale = scale.reshape([-1 if k == axis else 1 for k in range(weight.ndim)])
    most = limits(INT8)[1]
    whole = np.rint(weight.astype(np.float64) / scale)
    return np.asarray(np.clip(whole, -most, most), np.int8)
