"""Where a resized axis reads: which elements, and their weights.

The arithmetic is that of operators on a range, in float32: at known extents it folds to constants.
Of a symbol, it becomes part of the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unity.ir.dims import Dim, as_dim, equal, floordiv
from unity.ir.dtype import FLOAT32, INT64
from unity.ir.graph import Constant, Expr

from .emission import Emission
from .run_time.vectors import bound, ints_of

COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
)
CROPPED = "tf_crop_and_resize"
"""Of a part of the input, which may reach beyond it."""
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
PROBE = 6
"""A small extent on which a repetition is recognized; positions are periodic in the input."""


@dataclass(frozen=True, slots=True)
class Method:
    """How positions of the output are found in the input, and what is read there."""

    mode: str
    coordinates: str
    nearest: str
    cubic_a: float
    exclude_outside: bool
    antialias: bool = False
    extrapolation: float = 0.0


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis resized from `old` to `new` elements; without a scale it is their quotient.

    Attributes:
        node: What it is emitted for.
        method: How positions are found, and what is read there.
        old: The extent.
        new: What it becomes.
        scale: The scale, if it is known.
        late: A float32 vector of one element, the scale that is known only at run time.
        region: Where the part that is resized begins and ends, in parts of the axis, as float32
            vectors of one element; for tf_crop_and_resize.
    """

    node: Emission
    method: Method
    old: Dim
    new: Dim
    scale: float | None
    late: Expr | None = None
    region: tuple[Expr, Expr] | None = None

    def repetition(self) -> int | None:
        """How often each element is repeated, if that is all that nearest does."""
        if self.late is not None or self.region is not None:
            return None
        factor = self.scale if self.scale is not None else self._quotient()
        if factor is None or factor != int(factor) or factor < 1:
            return None
        count = int(factor)
        old = self.old if isinstance(self.old, int) else PROBE
        probe = Axis(self.node, self.method, old, old * count, factor).nearest()
        same = isinstance(probe, Constant) and np.array_equal(
            probe.data, np.repeat(np.arange(old), count)
        )
        return count if same else None

    def nearest(self) -> Expr:
        """The nearest element to each position."""
        at = self._positions()
        base = self._op("floor", at)
        match self.method.nearest:
            case "round_prefer_floor":
                base = self._next(base, self._op("greater", self._op("subtract", at, base), 0.5))
            case "round_prefer_ceil":
                over = self._op("greater_equal", self._op("subtract", at, base), 0.5)
                base = self._next(base, over)
            case "ceil":
                base = self._op("ceil", at)
            case _:
                pass
        return self._index(base)

    def taps(self) -> list[tuple[Expr, Expr]]:
        """The elements that each position is a weighted sum of: indices and float32 weights."""
        at = self._positions()
        base = self._op("floor", at)
        t = self._op("subtract", at, base)
        first = 0 if self.method.mode == "linear" else -1
        found: list[tuple[Expr, Expr]] = []
        for i, given in enumerate(self._weights(t)):
            index, weight = self._op("add", base, float(first + i)), given
            if self.method.exclude_outside:
                inside = self._op(
                    "logical_and",
                    self._op("greater_equal", index, 0.0),
                    self._op("less", index, self._float(self.old)),
                )
                weight = self._op("where", inside, weight, 0.0)
            found.append((self._index(index), weight))
        if not self.method.exclude_outside:
            return found
        total = found[0][1]
        for _, weight in found[1:]:
            total = self._op("add", total, weight)
        return [(i, self._op("divide", w, total)) for i, w in found]

    def outside(self) -> Expr:
        """Which positions lie beyond the input."""
        at = self._positions()
        last = self._op("subtract", self._float(self.old), 1.0)
        return self._op("logical_or", self._op("less", at, 0.0), self._op("greater", at, last))

    def filtered(self) -> tuple[Expr, Expr]:
        """A filter that is as much wider as the axis shrinks (antialiasing).

        Returns:
            Which element each tap reads, beyond the ends the last one; and the float32 weights of
            the taps for each position, (new, taps).
        """
        shrunk = self._op("minimum", self._ratio(), 1.0)
        reach = self._op("ceil", self._op("divide", float(self._reach()), shrunk))
        (around,) = bound(self.node, ints_of(self.node, reach), "taps")
        count = as_dim(self.old + 2 * around)
        first = self._op("subtract", 0.0, self._float(around))
        taps = self.node.op("astype", self.node.op("arange", count), dtype=FLOAT32)
        taps = self._op("add", taps, first)
        at = self.node.op("expand_dims", self._positions(), axis=1)
        distance = self._op("abs", self._op("subtract", taps, at))
        found = self._filter(self._op("multiply", distance, shrunk))
        if self.method.exclude_outside:
            inside = self._op("greater_equal", taps, 0.0)
            inside = self._op("logical_and", inside, self._op("less", taps, self._float(self.old)))
            found = self._op("where", inside, found, 0.0)
        total = self.node.op("sum", found, axis=(1,), keepdims=True)
        return self._index(taps), self._op("divide", found, total)

    def _reach(self) -> int:
        return 1 if self.method.mode == "linear" else 2

    def _filter(self, distance: Expr) -> Expr:
        """The weight at a distance of so many elements."""
        if self.method.mode == "linear":
            return self._op("maximum", self._op("subtract", 1.0, distance), 0.0)
        near, far = self._keys()
        beyond = self._op(
            "where", self._op("less", distance, 2.0), self._polynomial(distance, far), 0.0
        )
        return self._op(
            "where", self._op("less_equal", distance, 1.0), self._polynomial(distance, near), beyond
        )

    def _positions(self) -> Expr:
        """Where each output element lies among the input's."""
        x = self.node.op("astype", self.node.op("arange", self.new), dtype=FLOAT32)
        centres = self._op("add", x, 0.5)
        match self.method.coordinates:
            case "tf_crop_and_resize":
                assert self.region is not None
                first, end = self.region
                last = self._op("subtract", self._float(self.old), 1.0)
                steps = self._op("maximum", self._op("subtract", self._float(self.new), 1.0), 1.0)
                part = self._op("multiply", self._op("subtract", end, first), last)
                moved = self._op("multiply", x, self._op("divide", part, steps))
                at = self._op("add", self._op("multiply", first, last), moved)
                middle = self._op("multiply", self._op("add", first, end), 0.5)
                middle = self._op("multiply", middle, last)
                several = self._op("greater", self._float(self.new), 1.0)
                return self._op("where", several, at, middle)
            case "align_corners":
                last = self._op("maximum", self._op("subtract", self._float(self.new), 1.0), 1.0)
                reach = self._op("subtract", self._float(self.old), 1.0)
                return self._op("divide", self._op("multiply", x, reach), last)
            case "asymmetric":
                return self._op("divide", x, self._ratio())
            case "tf_half_pixel_for_nn":
                same = self._op("equal", self._ratio(), 1.0)  # then it is a copy
                return self._op("where", same, x, self._op("divide", centres, self._ratio()))
            case "half_pixel_symmetric":
                old, new = self._float(self.old), self._float(self.new)
                missed = self._op("divide", new, self._op("multiply", self._ratio(), old))
                centre = self._op("divide", old, 2.0)
                offset = self._op("multiply", centre, self._op("subtract", 1.0, missed))
                pixels = self._op("divide", centres, self._ratio())
                return self._op("subtract", self._op("add", offset, pixels), 0.5)
            case "pytorch_half_pixel":
                pixels = self._op("subtract", self._op("divide", centres, self._ratio()), 0.5)
                several = self._op("greater", self._float(self.new), 1.0)
                return self._op("where", several, pixels, 0.0)
            case _:
                return self._op("subtract", self._op("divide", centres, self._ratio()), 0.5)

    def _weights(self, t: Expr) -> list[Expr]:
        rest = self._op("subtract", 1.0, t)
        if self.method.mode == "linear":
            return [rest, t]
        near, far = self._keys()
        return [  # at distances 1 + t, t, 1 - t, 2 - t
            self._polynomial(self._op("add", t, 1.0), far),
            self._polynomial(t, near),
            self._polynomial(rest, near),
            self._polynomial(self._op("add", rest, 1.0), far),
        ]

    def _keys(self) -> tuple[Sequence[float], Sequence[float]]:
        """Keys' cubic convolution (1981) up to a distance of 1, and from there to 2."""
        a = self.method.cubic_a
        return (a + 2, -(a + 3), 0.0, 1.0), (a, -5 * a, 8 * a, -4 * a)

    def _polynomial(self, x: Expr, coefficients: Sequence[float]) -> Expr:
        """By Horner's rule, the highest power first."""
        value = self._op("multiply", x, coefficients[0])
        for c in coefficients[1:-1]:
            value = self._op("multiply", self._op("add", value, c), x)
        return self._op("add", value, coefficients[-1])

    def _next(self, base: Expr, over: Expr) -> Expr:
        return self._op("add", base, self.node.op("astype", over, dtype=FLOAT32))

    def _index(self, at: Expr) -> Expr:
        last = self._op("subtract", self._float(self.old), 1.0)
        inside = self._op("minimum", self._op("maximum", at, 0.0), last)
        return self.node.op("astype", inside, dtype=INT64)

    def _ratio(self) -> Expr:
        if self.late is not None:
            return self.late
        if self.scale is not None:
            return _vector(self.scale)
        return self._op("divide", self._float(self.new), self._float(self.old))

    def _quotient(self) -> int | None:
        found = floordiv(self.new, self.old)
        whole = isinstance(found, int) and equal(found * self.old, self.new)
        return found if isinstance(found, int) and whole else None

    def _float(self, value: Dim) -> Expr:
        if isinstance(value, int):
            return _vector(value)
        return self.node.op("dims", (value,), dtype=FLOAT32)

    def _op(self, name: str, *args: Expr | float) -> Expr:
        """An operator on float32, of expressions and numbers."""
        operands = [_vector(a) if isinstance(a, float) else a for a in args]
        return self.node.op(name, *operands)


def _vector(value: float) -> Constant:
    """One element, of which folding makes constants again."""
    return Constant(np.array([value], np.float32))
