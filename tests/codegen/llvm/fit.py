"""``python -m tests.codegen.llvm.fit``: the polynomials of the elementary functions, made again.

Each is the Chebyshev interpolation of a function, in 60 digits, then rounded to its type. What is
printed belongs in ``codegen/llvm/math/coefficients.py``; `test_fit` compares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mpmath
import numpy as np
from mpmath import mpf

from unity.codegen.llvm.math.coefficients import ERF_PIECES_IN_ONE

DIGITS = 60
NOTHING = mpf("1e-30")


@dataclass(frozen=True, slots=True)
class Fit:
    """A polynomial wanted: of which function, where, of which degree, rounded to how many bits.

    Attributes:
        piece: Which row it is of a table of polynomials.
    """

    name: str
    of: Callable[[mpf], mpf]
    low: mpf
    high: mpf
    degree: int
    bits: int
    piece: int | None = None


def polynomial(fit: Fit) -> tuple[float, ...]:
    """The coefficients, highest power first."""
    with mpmath.workdps(DIGITS):
        exact = _interpolate(fit.of, fit.low, fit.high, fit.degree + 1)
        # What is left of a coefficient that is zero would slow the machine as a subnormal.
        numbers = [float(c) if abs(c) > NOTHING else 0.0 for c in reversed(exact)]
    return tuple(float(np.float32(c)) for c in numbers) if fit.bits == 32 else tuple(numbers)


def _interpolate(of: Callable[[mpf], mpf], low: mpf, high: mpf, count: int) -> list[mpf]:
    """Newton's divided differences at the Chebyshev points; lowest power first."""
    points = [
        (low + high) / 2 + (high - low) / 2 * mpmath.cos(mpmath.pi * (2 * k + 1) / (2 * count))
        for k in range(count)
    ]
    divided = [of(x) for x in points]
    for step in range(1, count):
        for i in range(count - 1, step - 1, -1):
            divided[i] = (divided[i] - divided[i - 1]) / (points[i] - points[i - step])
    powers = [mpf(0)] * count
    for x, coefficient in zip(reversed(points), reversed(divided), strict=True):
        shifted = [mpf(0), *powers[:-1]]
        powers = [up - x * old for up, old in zip(shifted, powers, strict=True)]
        powers[0] = powers[0] + coefficient
    return powers


def _near_zero(of: Callable[[mpf], mpf], at_zero: mpf) -> Callable[[mpf], mpf]:
    """A function that is 0 / 0 at zero, with its limit there."""
    return lambda x: at_zero if abs(x) < mpf("1e-15") else of(x)


def _fits() -> tuple[Fit, ...]:
    sqrt, one = mpmath.sqrt, mpf(1)
    exp = _near_zero(lambda r: (mpmath.expm1(r) - r) / r**2, one / 2)
    log = _near_zero(lambda f: (mpmath.log1p(f) - f + f**2 / 2) / f**3, one / 3)
    atanh = _near_zero(lambda z: (2 * mpmath.atanh(sqrt(z)) / sqrt(z) - 2) / z, 2 * one / 3)
    sin = _near_zero(lambda z: (mpmath.sin(sqrt(z)) / sqrt(z) - 1) / z, -one / 6)
    cos = _near_zero(lambda z: (mpmath.cos(sqrt(z)) - 1 + z / 2) / z**2, one / 24)
    atan = _near_zero(lambda z: (mpmath.atan(sqrt(z)) / sqrt(z) - 1) / z, -one / 3)
    asin = _near_zero(lambda z: (mpmath.asin(sqrt(z)) / sqrt(z) - 1) / z, one / 6)
    erf = _near_zero(lambda z: mpmath.erf(sqrt(z)) / sqrt(z) - 1, 2 / sqrt(mpmath.pi) - 1)

    def erfc(t: mpf) -> mpf:
        x = 3 * (1 + t) / (1 - t)
        return mpmath.erfc(x) * mpmath.exp(x**2)

    def erf_piece(k: int) -> Callable[[mpf], mpf]:
        return lambda t: erf(((k + t) / mpf(ERF_PIECES_IN_ONE)) ** 2) + 1

    # A little more than the interval that is reduced to: the reduction rounds.
    half_ln2 = mpmath.log(2) / 2 * mpf(1.01)
    low, high = sqrt(one / 2) - 1, sqrt(2 * one) - 1
    quarter_pi = (mpmath.pi / 4) ** 2 * mpf(1.01)
    eighth = (sqrt(2 * one) - 1) ** 2 * mpf(1.001)
    zero = mpf(0)
    return (
        Fit("EXP", exp, -half_ln2, half_ln2, 4, 32),
        Fit("EXP", exp, -half_ln2, half_ln2, 11, 64),
        Fit("LOG_SINGLE", log, low, high, 8, 32),
        Fit("LOG_DOUBLE", atanh, zero, (low / (2 + low)) ** 2 * mpf(1.01), 7, 64),
        Fit("SIN", sin, zero, quarter_pi, 3, 32),
        Fit("SIN", sin, zero, quarter_pi, 6, 64),
        Fit("COS", cos, zero, quarter_pi, 3, 32),
        Fit("COS", cos, zero, quarter_pi, 6, 64),
        Fit("ATAN", atan, zero, eighth, 5, 32),
        Fit("ATAN", atan, zero, eighth, 11, 64),
        Fit("ASIN", asin, zero, mpf(0.2501), 5, 32),
        Fit("ASIN", asin, zero, mpf(0.2501), 12, 64),
        Fit("ERF_DOUBLE", erf, zero, one, 12, 64),
        Fit("ERFC_DOUBLE", erfc, -one / 2, one / 3, 17, 64),
        *(Fit("ERF_PIECES", erf_piece(k), -one / 2, one / 2, 4, 32, k) for k in range(16)),
    )


def fits() -> tuple[Fit, ...]:
    """All that are fitted; the rational ones are not."""
    with mpmath.workdps(DIGITS):
        return _fits()


if __name__ == "__main__":
    for wanted in fits():
        which = "" if wanted.piece is None else f"[{wanted.piece}]"
        print(f"{wanted.name}{which}, {wanted.bits} bits: {polynomial(wanted)}")
