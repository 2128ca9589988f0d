"""Reductions over axes, which ``exclude`` turns into all the others."""

from __future__ import annotations

from math import prod

from unity.errors import UnityError
from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.ir.dims import product
from unity.ir.dtype import INT32, INT64
from unity.ir.graph import Expr

from .elementwise import as_bool


def axes_of(c: RelayCall) -> tuple[int, ...]:
    """The axes that a reduction goes over; none given are all."""
    rank = c.rank()
    given = c.optional_integers("axis")
    axes = tuple(c.axis(a, rank) for a in given) if given else tuple(range(rank))
    if not c.flag("exclude"):
        return axes
    if not given:
        raise UnityError("excludes all axes")
    return tuple(a for a in range(rank) if a not in axes)


def _reduction(name: str) -> Converter:
    def convert(c: RelayCall) -> Expr:
        x = c.tensor(0)
        return c.op(name, x, axis=axes_of(c), keepdims=c.flag("keepdims"))

    return convert


def _logical(name: str) -> Converter:
    def convert(c: RelayCall) -> Expr:
        x = as_bool(c, c.tensor(0))
        return c.op(name, x, axis=axes_of(c), keepdims=c.flag("keepdims"))

    return convert


def _mean(c: RelayCall) -> Expr:
    return mean(c, c.tensor(0), axes_of(c), c.flag("keepdims"))


def mean(c: RelayCall, x: Expr, axes: tuple[int, ...], keepdims: bool) -> Expr:
    """Of integers the sum, which may wrap, divided towards zero."""
    if c.dtype_of(x).is_float:
        return c.op("mean", x, axis=axes, keepdims=keepdims)
    total = c.op("sum", x, axis=axes, keepdims=keepdims)
    shape = c.extents(x, "a mean of integers")
    return c.op("divide", total, c.number(prod(shape[a] for a in axes), x))


def _variance(c: RelayCall) -> Expr:
    """The mean of squared distances from the mean, which is an operand."""
    axes, keepdims, unbiased = axes_of(c), c.flag("keepdims"), c.flag("unbiased")
    x, centre = c.of(c.tensor(0), c.tensor(1))
    squares = c.op("square", c.op("subtract", x, centre))
    if not unbiased:
        return mean(c, squares, axes, keepdims)
    count = product(c.shape_of(x)[a] for a in axes)
    if not isinstance(count, int):
        raise c.symbolic_gap("unbiased=True over unknown extents", count)
    total = c.op("sum", squares, axis=axes, keepdims=keepdims)
    return c.op("divide", total, c.number(count - 1, x))


def _arg(name: str) -> Converter:
    """The place of an extreme in int32, the first or the last of several."""

    def convert(c: RelayCall) -> Expr:
        x, axes, keepdims = c.tensor(0), axes_of(c), c.flag("keepdims")
        last, rank = c.flag("select_last_index"), c.rank()
        shape = c.shape_of(x)
        if len(axes) != 1:
            if len(axes) != rank:
                raise c.gap(f"axis={axes}: one place in several axes")
            flat = c.op("reshape", x, (product(shape),))
            found = _place(c, name, flat, 0, last, keepdims=False)
            return c.op("reshape", found, (1,) * rank) if keepdims else found
        return _place(c, name, x, axes[0], last, keepdims)

    return convert


def _place(c: RelayCall, name: str, x: Expr, axis: int, last: bool, keepdims: bool) -> Expr:
    if not last:
        return c.cast(c.op(name, x, axis=axis, keepdims=keepdims), INT32)
    extent = c.shape_of(x)[axis]
    turned = c.op(name, c.op("flip", x, axis=axis), axis=axis, keepdims=keepdims)
    return c.cast(c.op("subtract", c.op("dims", extent - 1), turned), INT32)


def _log_sum_exp(c: RelayCall) -> Expr:
    """Shifted by the maximum, so that exp does not overflow."""
    x, axes, keepdims = c.tensor(0), axes_of(c), c.flag("keepdims")
    top = c.op("max", x, axis=axes, keepdims=True)
    finite = c.op("where", c.op("isfinite", top), top, 0.0)
    total = c.op("sum", c.op("exp", c.op("subtract", x, finite)), axis=axes, keepdims=True)
    found = c.op("add", c.op("log", total), finite)
    return found if keepdims else c.op("squeeze", found, axis=axes)


def _nll_loss(c: RelayCall) -> Expr:
    """Minus the predictions of the targets, each weighted by its class: (N, C, ...) by (N, ...)."""
    predicted, target, weights = (c.tensor(i) for i in range(3))
    if c.rank() < 2:
        raise c.gap("predictions of one sample")
    ignored = c.op("equal", target, c.number(c.integer("ignore_index"), target))
    at = c.cast(c.op("where", ignored, c.number(0, target), target), INT64)
    share = c.op("take", weights, at, axis=0)
    share = c.op("where", ignored, c.number(0, share), share)
    own = c.op("gather_elements", predicted, c.op("expand_dims", at, axis=1), axis=1)
    own = c.op("squeeze", own, axis=(1,))
    loss = c.op("negative", c.op("multiply", own, share))
    match c.text("reduction"):
        case "none":
            return loss
        case "sum":
            return c.op("sum", loss, axis=None)
        case "mean":
            return c.op("divide", c.op("sum", loss, axis=None), c.op("sum", share, axis=None))
        case other:
            raise c.gap(f"reduction={other!r}")


CONVERTERS: dict[str, Converter] = {
    "nn.nll_loss": _nll_loss,
    "sum": _reduction("sum"),
    "prod": _reduction("prod"),
    "max": _reduction("max"),
    "min": _reduction("min"),
    "all": _logical("all"),
    "any": _logical("any"),
    "mean": _mean,
    "variance": _variance,
    "argmax": _arg("argmax"),
    "argmin": _arg("argmin"),
    "logsumexp": _log_sum_exp,
}
