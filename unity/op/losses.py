"""Losses: cross entropy with logits, the negative log likelihood and its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from unity.ir.attrs import Attrs
from unity.ir.dtype import INT64, Array
from unity.ir.graph import Expr
from unity.ir.types import Shape, TensorType, Type

from .accumulate import real, rounded
from .argument import (
    common_dtype,
    float_tensor,
    has,
    int_tensor,
    ranked,
    require_equal,
    type_text,
)
from .attribute import INT, TEXT
from .indexing.gather import clamped
from .registry import OpCall, OpDef, Param, RefArg, Sample, attr, int_attr
from .sampling import Sampler, sample

if TYPE_CHECKING:
    from .emitter import Emitter

_ENTROPY = (Param("predictions"), Param("labels"))
_NLL = (
    Param("predictions"),
    Param("targets"),
    Param("weights", "tensor", None),
    attr("reduction", TEXT, "mean"),
    attr("ignore_index", INT, -100),
)
_REDUCTIONS = ("mean", "sum", "none")


def _arrays(args: Sequence[RefArg]) -> list[Array]:
    return [a for a in args if isinstance(a, np.ndarray)]


def _entropy_infer(call: OpCall) -> Type:
    x, y = float_tensor(call, 0), float_tensor(call, 1)
    kind = common_dtype(call, (x, y))
    if x.ndim is not None and y.ndim is not None and x.ndim != y.ndim:
        raise call.error(f"operands must have one rank, got {type_text(x)} and {type_text(y)}")
    if isinstance(x.shape, tuple) and isinstance(y.shape, tuple):
        for d, (a, b) in enumerate(zip(y.shape, x.shape, strict=True)):
            require_equal(call, a, b, f"'labels' along axis {d}")
    return TensorType((), kind)


def _entropy_expand(e: Emitter, args: Sequence[Expr], attrs: Attrs, result: Type) -> Expr:
    kind, x, y = e.dtype_of(args[0]), e.widened(args[0]), e.widened(args[1])
    total = e.op("negative", e.op("sum", e.op("multiply", x, y)))
    if e.rank_of(x) > 1:
        rows = e.op("dims", e.shape_of(x)[0], dtype=e.dtype_of(x))
        total = e.op("divide", total, rows)
    return e.cast(total, kind)


def _entropy_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, y = _arrays(args)
    count = x.shape[0] if x.ndim > 1 else 1
    return rounded(np.asarray(-np.sum(real(x) * real(y)) / count), x)


def _entropy_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b = s.shape(2, 2, 5)
    return [
        sample(_ENTROPY, (s.array((a, b)), s.array((a, b)))),
        sample(_ENTROPY, (s.array((b,), "float64"), s.array((b,), "float64"))),
        sample(_ENTROPY, (s.array((a, b, 3)), s.array((a, b, 3)))),
    ]


def _nll_infer(call: OpCall) -> Type:
    x, found = _nll_types(call, 0)
    return TensorType(found, x.dtype)


def _nll_types(call: OpCall, first: int) -> tuple[TensorType, Shape | int | None]:
    """The type of the predictions, from the argument `first` on, and the shape of the losses."""
    x, y = float_tensor(call, first), int_tensor(call, first + 1)
    how = call.attrs["reduction"]
    if how not in _REDUCTIONS:
        raise call.error(f"'reduction' must be 'mean', 'sum' or 'none', got {how!r}")
    w = ranked(call, first + 2, 1) if has(call, first + 2) else None
    if w is not None:
        common_dtype(call, (x, w))
    if isinstance(x.shape, tuple) and isinstance(y.shape, tuple):
        if not x.shape or len(y.shape) != len(x.shape) - 1:
            raise call.error(
                f"'predictions' must have one axis more than 'targets', got {type_text(x)} and "
                f"{type_text(y)}",
                hint="(n, classes, ...) and (n, ...), or (classes,) and ()",
            )
        rest = (x.shape[0], *x.shape[2:]) if len(x.shape) > 1 else ()
        for d, (a, b) in enumerate(zip(y.shape, rest, strict=True)):
            require_equal(call, a, b, f"'targets' along axis {d}")
        classes = x.shape[1 if len(x.shape) > 1 else 0]
        if w is not None and isinstance(w.shape, tuple):
            require_equal(call, w.shape[0], classes, "the number of 'weights'")
    return x, y.shape if how == "none" else ()


def _nll_expand(e: Emitter, args: Sequence[Expr], attrs: Attrs, result: Type) -> Expr:
    x, y, *weights = args
    axis = 1 if e.rank_of(x) > 1 else 0
    at = e.op("expand_dims", y, axis)
    picked = e.widened(e.op("squeeze", e.op("gather_elements", x, at, axis=axis), axis))
    weight, counts = _target_weights(e, y, picked, weights, attrs)
    losses = e.op("negative", e.op("multiply", weight, picked))
    if counts is not None:
        losses = e.op("where", counts, losses, e.number(0, picked))
    if attrs["reduction"] != "none":
        losses = e.op("sum", losses)
    if attrs["reduction"] == "mean":
        losses = e.op("divide", losses, e.op("sum", weight))
    return e.cast(losses, e.dtype_of(x))


def _target_weights(
    e: Emitter, y: Expr, like: Expr, weights: Sequence[Expr], attrs: Attrs
) -> tuple[Expr, Expr | None]:
    """What each target counts, as `like` is, and which do at all; None where all do."""
    weight = e.widened(e.op("take", weights[0], y, axis=0)) if weights else e.op("ones_like", like)
    ignored, kind = int_attr(attrs, "ignore_index"), e.dtype_of(y).numpy
    if np.array(ignored).astype(kind) != ignored:  # no target is that, one may wrap to it
        return weight, None
    counts = e.op("not_equal", y, e.number(ignored, y))
    return e.op("where", counts, weight, e.number(0, like)), counts


def _nll_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, y, *weights = _arrays(args)
    axis = 1 if x.ndim > 1 else 0
    counts = y != int_attr(attrs, "ignore_index")
    at = clamped(y, x.shape[axis])
    picked = np.take_along_axis(real(x), np.expand_dims(at, axis), axis).squeeze(axis)
    weight = real(weights[0])[at] if weights else np.ones(y.shape)
    weight = np.where(counts, weight, 0.0)
    losses = np.where(counts, -weight * picked, 0.0)
    if attrs["reduction"] == "none":
        return rounded(losses, x)
    total = np.sum(losses)
    with np.errstate(all="ignore"):
        return rounded(total if attrs["reduction"] == "sum" else total / np.sum(weight), x)


def _nll_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    n, c, d = s.shape(3, 2, 5)
    x, y = s.array((n, c)), s.array((n,), "int64", 0, c - 1)
    return [
        sample(_NLL, (x, y, s.array((c,), low=0.5))),
        sample(_NLL, (x, y), reduction="sum"),
        sample(_NLL, (s.array((n, c, d)), s.array((n, d), "int32", 0, c - 1)), reduction="none"),
        sample(_NLL, (s.array((n, c, d)), s.array((n, d), "int64", 0, c - 1)), ignore_index=0,
               reduction="sum"),
        sample(_NLL, (s.array((c,), "float64"), np.array(c - 1, np.int64))),
    ]  # fmt: skip


def _back_infer(call: OpCall) -> Type:
    grad = float_tensor(call, 0)
    x, losses = _nll_types(call, 1)
    common_dtype(call, (grad, x))
    if isinstance(losses, tuple) and isinstance(grad.shape, tuple):
        if len(grad.shape) != len(losses):
            raise call.error(f"'output_grad' must have rank {len(losses)}, got {type_text(grad)}")
        for d, (a, b) in enumerate(zip(grad.shape, losses, strict=True)):
            require_equal(call, a, b, f"'output_grad' along axis {d}")
    return x


def _back_expand(e: Emitter, args: Sequence[Expr], attrs: Attrs, result: Type) -> Expr:
    grad, x, y, *weights = args
    shape, wide = e.shape_of(x), e.widened(grad)
    axis = 1 if len(shape) > 1 else 0
    ones = e.op("ones", e.shape_of(y), dtype=e.dtype_of(wide))
    weight, _ = _target_weights(e, y, ones, weights, attrs)
    each = e.op("negative", e.op("multiply", weight, wide))
    if attrs["reduction"] == "mean":
        each = e.op("divide", each, e.op("sum", weight))
    places = e.op("arange", 0, shape[axis], 1, dtype=INT64)
    line = tuple(shape[axis] if d == axis else 1 for d in range(len(shape)))
    target = e.cast(y, INT64)
    classes = e.op("dims", shape[axis], dtype=INT64)
    from_end = e.op("add", target, classes)
    target = e.op("where", e.op("less", target, e.number(0, target)), from_end, target)
    last = e.op("subtract", classes, e.number(1, classes))
    target = e.op("minimum", e.op("maximum", target, e.number(0, target)), last)
    here = e.op("equal", e.op("reshape", places, line), e.op("expand_dims", target, axis))
    found = e.op("where", here, e.op("expand_dims", each, axis), e.number(0, each))
    return e.cast(found, e.dtype_of(x))


def _back_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    grad, x, y, *weights = _arrays(args)
    axis = 1 if x.ndim > 1 else 0
    at = clamped(y, x.shape[axis])
    weight = real(weights[0])[at] if weights else np.ones(y.shape)
    weight = np.where(y != int_attr(attrs, "ignore_index"), weight, 0.0)
    each = -weight * real(grad)
    if attrs["reduction"] == "mean":
        with np.errstate(all="ignore"):
            each = each / np.sum(weight)
    found = np.zeros(x.shape)
    np.put_along_axis(found, np.expand_dims(at, axis), np.expand_dims(each, axis), axis)
    return rounded(found, x)


def _back_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    found: list[Sample] = []
    for one in _nll_samples(seed):
        x, y = _arrays(one.args)[:2]
        shape = y.shape if one.attrs["reduction"] == "none" else ()
        grad = s.array(shape, str(x.dtype), 0.5, 2)
        found.append(Sample((grad, *one.args), one.attrs))
    return found


OPS: tuple[OpDef, ...] = (
    OpDef(
        "nn.cross_entropy_with_logits",
        _ENTROPY,
        _entropy_infer,
        _entropy_reference,
        """``-sum(predictions * labels)``, by the first axis's length where there are several.

        The predictions are log-probabilities already (R.nn.cross_entropy_with_logits).
        """,
        expand=_entropy_expand,
        samples=_entropy_samples,
    ),
    OpDef(
        "nn.nll_loss",
        _NLL,
        _nll_infer,
        _nll_reference,
        """The negative log likelihood of targets, ``-weights[t] * predictions[n, t, ...]``.

        Predictions ``(n, classes, ...)`` are log-probabilities, targets ``(n, ...)`` are integers;
        those equal to `ignore_index` count nothing, others are taken as in `R.take`. `reduction`
        is mean (weighted), sum or none (R.nn.nll_loss, torch's nll_loss, ONNX
        NegativeLogLikelihoodLoss).
        """,
        expand=_nll_expand,
        samples=_nll_samples,
    ),
    OpDef(
        "grad.nll_loss_backward",
        (Param("output_grad"), *_NLL),
        _back_infer,
        _back_reference,
        """The gradient of the predictions of `nn.nll_loss`, whose result has `output_grad`.

        `output_grad` is ``(n, ...)`` with `reduction` "none", else ``()``; the other parameters are
        those of `nn.nll_loss`. Gives the shape and the dtype of `predictions`
        (R.grad.nll_loss_backward).
        """,
        expand=_back_expand,
        samples=_back_samples,
    ),
)
