"""Discrete Fourier transforms by matrix products.

A known length is parted into factors as long as that saves work (Cooley and Tukey): a transform of
``a * b`` elements is `b` transforms of `a` elements, a turn of each, and `a` transforms of `b`. Of
an unknown length the matrix is made at run time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt, pi
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from unity.ir.dims import Dim
from unity.ir.dtype import FLOAT64, INT64
from unity.ir.graph import Constant, Expr

from .emission import Emission
from .sizes import sizes_of

Angles: TypeAlias = "npt.NDArray[np.float64]"
_WHOLE = 32
"""Transforms of at most so many elements are one product."""


@dataclass(frozen=True, slots=True)
class Complex:
    """A complex tensor; without an imaginary part, that is 0."""

    real: Expr
    imaginary: Expr | None


def transformed(c: Emission, x: Complex, length: Dim, *, inverse: bool = False) -> Complex:
    """The transform along the last axis, unscaled.

    Args:
        c: The node.
        x: The tensor.
        length: The last axis'.
        inverse: Whether angles turn the other way.
    """
    if not isinstance(length, int):
        return _product(c, x, _matrices_at_run_time(c, length, x.real, inverse=inverse))
    a = _factor(length) if length > _WHOLE else 1
    if a == 1:
        angle = _angles(np.outer(np.arange(length), np.arange(length)), length, inverse=inverse)
        return _product(c, x, _constants(c, angle, x.real))
    # Element b * n1 + n2 comes in, k1 + a * k2 goes out.
    b = length // a
    rank = len(c.shape_of(x.real))
    head = c.shape_of(x.real)[:-1]
    turned = (*range(rank - 1), rank, rank - 1)

    def swapped(v: Expr) -> Expr:
        return c.op("permute_dims", v, axes=turned)

    columns = each(x, lambda v: swapped(c.op("reshape", v, (*head, a, b))))
    first = transformed(c, columns, a, inverse=inverse)
    twiddle = _angles(np.outer(np.arange(b), np.arange(a)), length, inverse=inverse)
    moved = _turned(c, first, *_constants(c, twiddle, x.real))
    second = transformed(c, each(moved, swapped), b, inverse=inverse)
    return each(second, lambda v: c.op("reshape", swapped(v), (*head, length)))


def mirrored(c: Emission, x: Complex, length: Dim) -> Complex:
    """All frequencies of a real signal of a length, of the first half of them (and one more)."""
    axis = len(c.shape_of(x.real)) - 1
    place = c.op("arange", 0, length, 1, dtype=INT64)
    whole = c.materialize(sizes_of(length))
    back = c.op("subtract", whole, place)
    from_end = c.op("less", back, place)
    at = c.op("where", from_end, back, place)
    real = c.op("take", x.real, at, axis=axis)
    if x.imaginary is None:
        return Complex(real, None)
    imaginary = c.op("take", x.imaginary, at, axis=axis)
    negative = c.op("negative", imaginary)
    return Complex(real, c.op("where", from_end, negative, imaginary))


def _factor(length: int) -> int:
    """The divisor that parts a length most evenly; 1 of a prime."""
    return max(a for a in range(1, isqrt(length) + 1) if length % a == 0)


def each(x: Complex, change: Callable[[Expr], Expr]) -> Complex:
    """Both parts changed alike."""
    return Complex(change(x.real), None if x.imaginary is None else change(x.imaginary))


def _angles(places: npt.NDArray[np.int64], length: int, *, inverse: bool) -> Angles:
    """How far each product of places turns, less than once around: exact for large ones."""
    share: Angles = (places % max(length, 1)).astype(np.float64) / max(length, 1)
    return share * ((2 if inverse else -2) * pi)


def _constants(c: Emission, angle: Angles, like: Expr) -> tuple[Expr, Expr]:
    kind = c.dtype_of(like).numpy
    return Constant(np.cos(angle).astype(kind)), Constant(np.sin(angle).astype(kind))


def _matrices_at_run_time(
    c: Emission, length: Dim, like: Expr, *, inverse: bool
) -> tuple[Expr, Expr]:
    place = c.op("arange", 0, length, 1, dtype=INT64)
    whole = c.materialize(sizes_of(length))
    products = c.op("multiply", c.op("expand_dims", place, axis=1), place)
    turns = c.cast(c.op("floor_mod", products, whole), FLOAT64)
    share = c.op("divide", turns, c.cast(whole, FLOAT64))
    angle = c.op("multiply", share, c.number((2 if inverse else -2) * pi, share))
    kind = c.dtype_of(like)
    return c.cast(c.op("cos", angle), kind), c.cast(c.op("sin", angle), kind)


def _product(c: Emission, x: Complex, matrices: tuple[Expr, Expr]) -> Complex:
    cosine, sine = matrices
    real, imaginary = (c.op("matmul", x.real, m) for m in matrices)
    if x.imaginary is None:
        return Complex(real, imaginary)
    across, along = c.op("matmul", x.imaginary, sine), c.op("matmul", x.imaginary, cosine)
    return Complex(c.op("subtract", real, across), c.op("add", imaginary, along))


def _turned(c: Emission, x: Complex, cosine: Expr, sine: Expr) -> Complex:
    real, imaginary = c.op("multiply", x.real, cosine), c.op("multiply", x.real, sine)
    if x.imaginary is None:
        return Complex(real, imaginary)
    across = c.op("multiply", x.imaginary, sine)
    along = c.op("multiply", x.imaginary, cosine)
    return Complex(c.op("subtract", real, across), c.op("add", imaginary, along))
