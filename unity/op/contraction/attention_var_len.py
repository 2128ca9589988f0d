"""Attention of sequences of several lengths that lie one behind the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from unity.ir.attrs import Attrs
from unity.ir.dims import Dim
from unity.ir.dtype import INT64, Array
from unity.ir.graph import Constant, Expr
from unity.ir.types import TensorType, Type
from unity.op.accumulate import real, rounded
from unity.op.argument import common_dtype, has, int_tensor, ranked, require_equal
from unity.op.attribute import INT, NUMBER, TEXT
from unity.op.registry import OpCall, OpDef, Param, RefArg, Sample, attr, int_attr
from unity.op.sampling import Sampler, sample

from .attention import later_of
from .attention_bias import check_masks

if TYPE_CHECKING:
    from unity.op.emitter import Emitter

_PARAMS = (
    Param("queries"),
    Param("keys"),
    Param("values"),
    Param("seqstart_q"),
    Param("max_seqlen_q"),
    Param("seqstart_k", "tensor", None),
    Param("max_seqlen_k", "tensor", None),
    attr("scale", NUMBER, None),
    attr("causal_mask", TEXT, None),
    attr("window_size", INT, None),
)


def _infer(call: OpCall) -> Type:
    q, k, v = (ranked(call, i, 4) for i in range(3))
    kind = common_dtype(call, (q, k, v))
    check_masks(call)
    for i in (3, 5):
        if has(call, i):
            ranked(call, i, 1)
            int_tensor(call, i)
    for i in (4, 6):
        if has(call, i):
            ranked(call, i, 0, 1)
            int_tensor(call, i)
    starts = [ranked(call, i, 1).shape for i in (3, 5) if has(call, i)]
    if len(starts) == 2 and isinstance(starts[0], tuple) and isinstance(starts[1], tuple):
        require_equal(call, starts[1][0], starts[0][0], "the number of 'seqstart_k'")
    if not all(isinstance(t.shape, tuple) for t in (q, k, v)):
        return TensorType(4, kind)
    assert isinstance(q.shape, tuple)
    assert isinstance(k.shape, tuple)
    assert isinstance(v.shape, tuple)
    require_equal(call, q.shape[0], 1, "the batch of 'queries'")
    for d, what in ((0, "batch"), (2, "number of heads"), (3, "length of a row")):
        require_equal(call, k.shape[d], q.shape[d], f"the {what} of 'keys'")
    for d, what in ((0, "batch"), (1, "number"), (2, "number of heads")):
        require_equal(call, v.shape[d], k.shape[d], f"the {what} of 'values'")
    if not has(call, 5):
        require_equal(
            call, k.shape[1], q.shape[1], "the number of 'keys'", "give 'seqstart_k' for others"
        )
    return TensorType((*q.shape[:3], v.shape[3]), kind)


def _expand(e: Emitter, args: Sequence[Expr], attrs: Attrs, result: Type) -> Expr:
    q, k, v, starts, _, *more = args
    own, place, inside = _places(e, starts, e.shape_of(q)[1])
    key_starts = more[0] if more else starts
    of_key, key_place, _ = _places(e, key_starts, e.shape_of(k)[1])

    def of(name: str, a: Expr, b: Expr) -> Expr:
        """Of each query and each key."""
        return e.op(name, e.op("expand_dims", a, 1), e.op("expand_dims", b, 0))

    seen = of("equal", own, of_key)
    seen = e.op("logical_and", seen, e.op("expand_dims", inside, 1))
    if attrs["causal_mask"] is not None:
        at = place
        if attrs["causal_mask"] in ("BottomRight", "BottomRightAbs"):
            longer = e.op("subtract", _lengths(e, key_starts, own), _lengths(e, starts, own))
            if attrs["causal_mask"] == "BottomRightAbs":
                longer = e.op("abs", longer)
            at = e.op("add", at, longer)
        behind = of("subtract", at, key_place)
        seen = e.op("logical_and", seen, e.op("greater_equal", behind, _integer(0)))
        if attrs["window_size"] is not None:
            size = _integer(int_attr(attrs, "window_size"))
            seen = e.op("logical_and", seen, e.op("less", behind, size))
    zero, far = e.number(0, q), e.number(-np.inf, q)
    return e.op(
        "nn.attention", q, k, v, e.op("where", seen, zero, far),
        scale=attrs["scale"], zero_unseen=True,
    )  # fmt: skip


def _integer(value: int) -> Constant:
    return Constant(np.array(value, np.int64))


def _places(e: Emitter, starts: Expr, count: Dim) -> tuple[Expr, Expr, Expr]:
    """Of each token its sequence, its place in it, and whether it is of one at all."""
    bounds = e.cast(starts, INT64)
    at = e.op("arange", 0, count, 1, dtype=INT64)
    own = e.op("subtract", e.op("bucketize", at, bounds, right=True), _integer(1))
    place = e.op("subtract", at, e.op("take", bounds, own, axis=0))
    last = e.op("dims", e.shape_of(bounds)[0] - 1, dtype=INT64)
    return own, place, e.op("less", own, last)


def _lengths(e: Emitter, starts: Expr, own: Expr) -> Expr:
    """How long the sequence of each token is."""
    bounds = e.cast(starts, INT64)
    end = e.op("take", bounds, e.op("add", own, _integer(1)), axis=0)
    return e.op("subtract", end, e.op("take", bounds, own, axis=0))


def _reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    q, k, v, starts, _, *more = (a for a in args if isinstance(a, np.ndarray))
    bounds = starts.tolist(), (more[0] if more else starts).tolist()
    scale = attrs["scale"]
    factor = float(scale) if isinstance(scale, int | float) else max(q.shape[3], 1) ** -0.5
    found = np.zeros((*q.shape[:3], v.shape[3]))
    for n in range(len(bounds[0]) - 1):
        rows, keys = (slice(b[n], b[n + 1]) for b in bounds)
        scores = np.einsum("ihd,jhd->hij", real(q)[0, rows], real(k)[0, keys]) * factor
        i, j = np.ogrid[: scores.shape[1], : scores.shape[2]]
        later = later_of(attrs["causal_mask"], *scores.shape[1:])
        seen = np.full(scores.shape[1:], True)
        if attrs["causal_mask"] is not None:
            seen &= j <= i + later
        if attrs["window_size"] is not None:
            seen &= i + later - j < int_attr(attrs, "window_size")
        peak = np.max(np.where(seen, scores, -1e30), axis=2, keepdims=True, initial=-1e30)
        weight = np.where(seen, np.exp(np.minimum(scores - peak, 0)), 0)
        total = weight.sum(axis=2, keepdims=True)
        weight = weight / np.where(total == 0, 1, total)
        found[0, rows] = np.einsum("hij,jhe->ihe", weight, real(v)[0, keys])
    return rounded(found, q)


def _samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    q, k, v = (s.array((1, 9, 2, d)) for d in (4, 4, 3))
    other = s.array((1, 7, 2, 4)), s.array((1, 7, 2, 5))
    starts, most = np.array([0, 2, 6, 9], np.int32), np.array(4, np.int32)
    others = np.array([0, 3, 4, 7], np.int32)
    crossed = (q, *other, starts, most, others, np.array(3, np.int32))
    return [
        sample(_PARAMS, (q, k, v, starts, most)),
        sample(_PARAMS, (q, k, v, starts, most), causal_mask="TopLeft", window_size=2, scale=0.7),
        sample(_PARAMS, crossed),
        sample(_PARAMS, crossed, causal_mask="BottomRight"),
        sample(_PARAMS, crossed, causal_mask="BottomRightAbs"),
        sample(_PARAMS, (q, k, v, np.array([0, 0, 5], np.int64), most)),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "nn.attention_var_len",
        _PARAMS,
        _infer,
        _reference,
        """`nn.attention` of sequences that lie one behind the other, each with itself alone.

        Of queries ``(1, n, h, d)``, keys ``(1, m, h, d)`` and values ``(1, m, h, e)``, in one float
        dtype, gives ``(1, n, h, e)``. Sequence i is ``seqstart_q[i]`` to ``seqstart_q[i + 1]``,
        integers ``(sequences + 1,)`` that ascend from 0, of keys those of `seqstart_k`, by default
        the same; what lies behind the last gives 0. `max_seqlen_q` and `max_seqlen_k`, integers,
        tell nothing more. `scale` is one over the root of d by default; `causal_mask` and
        `window_size` as in `nn.attention_bias`, of each sequence (R.nn.attention_var_len). The
        scores of all queries and keys are computed, so that n and m ought to be a few thousand.
        """,
        expand=_expand,
        samples=_samples,
        precision="operands",
    ),
)
