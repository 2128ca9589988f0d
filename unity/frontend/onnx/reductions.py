"""Reductions and ArgMax, ArgMin; axes come as an attribute or, later, as an input."""

from __future__ import annotations

from collections.abc import Callable

from unity.frontend.extremes import extreme_of_all
from unity.frontend.run_time.axes import dropped, mask_of, parted
from unity.frontend.run_time.vectors import vector_of
from unity.frontend.sizes import sizes_of
from unity.ir.dims import product
from unity.ir.dtype import BOOL, FLOAT64
from unity.ir.graph import Expr

from .node import Converter, Node, Value

Reducer = Callable[["Reduction", Expr], Expr]
_SINCE_INPUT = {"ReduceSum": 13}
"""The opset in which axes became an input; 18 for all others."""


class Reduction:
    """The axes of a reducing node, and a way to reduce over them."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.keepdims = bool(node.int_of("keepdims", 1))
        rank = node.rank(0)
        self.late = self._is_late()
        given = () if self.late else self._given()
        self.empty_is_none = bool(node.int_of("noop_with_empty_axes", 0))
        self.identity = not given and self.empty_is_none and not self.late
        self.axes = tuple(node.axis(a, rank) for a in given) if given else tuple(range(rank))

    def _of_input(self) -> bool:
        """Whether axes are an input, and not an attribute."""
        return self.node.version >= _SINCE_INPUT.get(self.node.proto.op_type, 18)

    def _is_late(self) -> bool:
        """Whether axes are given, but known only at run time."""
        node = self.node
        if not self._of_input() or not node.has(1) or node.is_known(1):
            return False
        return node.shape_of(node.tensor(1)) != (0,)

    def _given(self) -> tuple[int, ...]:
        if not self._of_input():
            return self.node.ints_of("axes") or ()
        return self.node.ints(1, "axes") if self.node.has(1) and self.node.is_known(1) else ()

    def apply(self, reducer: Reducer) -> Expr:
        """What a node gives that reduces its first input so.

        Where axes are known only at run time, the reducer gets a tensor whose axes are parted in
        those that are kept and those that go.
        """
        node, x = self.node, self.node.tensor(0)
        if not self.late:
            return reducer(self, x)
        keeps, axes = self.keepdims, node.run_time(1)
        rank, (length,) = node.rank(0), node.shape_of(axes.value)
        if not isinstance(length, int) and not keeps:
            raise node.gap("a number of axes known only at run time, with keepdims=0")
        chosen = mask_of(node, axes, rank)
        if not isinstance(length, int) and not self.empty_is_none:
            chosen = chosen.op("logical_or", vector_of(node, (length,)).equals(0))
        apart, shape = parted(node, x, chosen)
        self.keepdims, self.axes = False, tuple(range(1, 2 * rank, 2))
        found = reducer(self, apart)
        if keeps or not isinstance(length, int):
            return found
        return dropped(node, found, vector_of(node, shape), chosen, length)

    def __call__(self, name: str, x: Expr, keepdims: bool | None = None) -> Expr:
        """Reduce with an operator of Unity."""
        keep = self.keepdims if keepdims is None else keepdims
        if self.identity:
            return x
        if name in ("max", "min") and len(self.axes) == len(self.node.shape_of(x)):
            return extreme_of_all(self.node, name, x, keepdims=keep)
        return self.node.op(name, x, axis=self.axes, keepdims=keep)


def _converter(reducer: Reducer) -> Converter:
    def convert(node: Node) -> Value:
        return Reduction(node).apply(reducer)

    return convert


def _extreme(name: str, on_bools: str) -> Reducer:
    def reduce(r: Reduction, x: Expr) -> Expr:
        return r(on_bools if r.node.dtype_of(x) == BOOL else name, x)

    return reduce


def _mean(r: Reduction, x: Expr) -> Expr:
    kind = r.node.dtype_of(x)
    if kind.is_float:
        return r("mean", x)
    # numpy and ONNX truncate the mean of integers.
    return r.node.cast(r("mean", r.node.cast(x, FLOAT64)), kind)


def _l2(r: Reduction, x: Expr) -> Expr:
    kind = r.node.dtype_of(x)
    wide = x if kind.is_float else r.node.cast(x, FLOAT64)
    return r.node.cast(r.node.op("sqrt", r("sum", r.node.op("square", wide))), kind)


def _log_sum(r: Reduction, x: Expr) -> Expr:
    return r.node.op("log", r("sum", x))


def _log_sum_exp(r: Reduction, x: Expr) -> Expr:
    """Shifted by the maximum, so that exp does not overflow."""
    if r.identity:
        return x
    top = r("max", x, keepdims=True)
    # An infinite maximum would give inf - inf.
    finite = r.node.op("where", r.node.op("isfinite", top), top, r.node.number(0, x))
    total = r("sum", r.node.op("exp", r.node.op("subtract", x, finite)))
    shape = r.node.shape_of(total)
    return r.node.op("add", r.node.op("log", total), r.node.op("reshape", finite, shape))


def _sum(node: Node) -> Value:
    known = node.symbolic(0)
    r = Reduction(node)
    if (
        known is not None
        and known[0].dims.ndim == 1
        and r.axes == (0,)
        and not (r.identity or r.late)
    ):
        total = sum(known[0].flat)
        return sizes_of((total,) if r.keepdims else total, known[0].dtype)
    return r.apply(lambda r, x: r("sum", x))


def _prod(node: Node) -> Value:
    known = node.symbolic(0)
    r = Reduction(node)
    if (
        known is not None
        and known[0].dims.ndim == 1
        and r.axes == (0,)
        and not (r.identity or r.late)
    ):
        count = product(known[0].flat)
        return sizes_of((count,) if r.keepdims else count, known[0].dtype)
    return r.apply(lambda r, x: r("prod", x))


def _arg(name: str) -> Converter:
    def convert(node: Node) -> Value:
        x = node.tensor(0)
        axis = node.axis(node.int_of("axis", 0), node.rank(0))
        keepdims = bool(node.int_of("keepdims", 1))
        if not node.int_of("select_last_index", 0):
            return node.op(name, x, axis=axis, keepdims=keepdims)
        first = node.op(name, node.op("flip", x, axis=axis), axis=axis, keepdims=keepdims)
        last = node.materialize(sizes_of(node.shape_of(x)[axis] - 1))
        return node.op("subtract", last, first)

    return convert


CONVERTERS: dict[str, Converter] = {
    "ReduceSum": _sum,
    "ReduceProd": _prod,
    "ReduceMean": _converter(_mean),
    "ReduceMax": _converter(_extreme("max", "any")),
    "ReduceMin": _converter(_extreme("min", "all")),
    "ReduceSumSquare": _converter(lambda r, x: r("sum", r.node.op("square", x))),
    "ReduceL1": _converter(lambda r, x: r("sum", r.node.op("abs", x))),
    "ReduceL2": _converter(_l2),
    "ReduceLogSum": _converter(_log_sum),
    "ReduceLogSumExp": _converter(_log_sum_exp),
    "ArgMax": _arg("argmax"),
    "ArgMin": _arg("argmin"),
}
