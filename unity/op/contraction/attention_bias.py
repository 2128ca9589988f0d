"""Attention by the names of its operands: a bias, a causal mask, a window of keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from unity.ir.attrs import Attrs
from unity.ir.dims import dim_max, dim_text, equal
from unity.ir.dtype import INT64, Array
from unity.ir.graph import Constant, Expr
from unity.ir.types import TensorType, Type
from unity.op.argument import common_dtype, has, ranked, require_equal, tensor, type_text
from unity.op.attribute import INT, NUMBER, TEXT
from unity.op.registry import OpCall, OpDef, Param, RefArg, Sample, attr, int_attr
from unity.op.sampling import Sampler, sample

from .attention import CAUSAL, later_of
from .attention import OPS as ATTENTION

if TYPE_CHECKING:
    from unity.op.emitter import Emitter

_PARAMS = (
    Param("query"),
    Param("key"),
    Param("value"),
    Param("bias", "tensor", None),
    attr("scale", NUMBER, None),
    attr("causal_mask", TEXT, None),
    attr("window_size", INT, None),
)


def check_masks(call: OpCall) -> None:
    """Check a call's `causal_mask` and `window_size`.

    Raises:
        UnityError: One is unknown, or the window does not stand beside a mask.
    """
    causal, window = call.attrs["causal_mask"], call.attrs["window_size"]
    if causal not in (None, *CAUSAL):
        raise call.error(
            f"'causal_mask' must be {', '.join(map(repr, CAUSAL))} or None, got {causal!r}"
        )
    if window is not None and (causal is None or call.integer("window_size") < 1):
        raise call.error(
            f"'window_size' must be a positive int beside a causal mask, got {window!r} beside "
            f"{causal!r}"
        )


def _infer(call: OpCall) -> Type:
    q, k, v = (ranked(call, i, 4) for i in range(3))
    kind = common_dtype(call, (q, k, v))
    check_masks(call)
    if not all(isinstance(t.shape, tuple) for t in (q, k, v)):
        return TensorType(4, kind)
    assert isinstance(q.shape, tuple)
    assert isinstance(k.shape, tuple)
    assert isinstance(v.shape, tuple)
    for d, what in ((0, "batch"), (2, "number of heads"), (3, "length of a row")):
        require_equal(call, k.shape[d], q.shape[d], f"the {what} of 'key'")
    for d, what in ((0, "batch"), (1, "number"), (2, "number of heads")):
        require_equal(call, v.shape[d], k.shape[d], f"the {what} of 'value'")
    if has(call, 3):
        bias = tensor(call, 3)
        wanted = (q.shape[0], q.shape[2], q.shape[1], k.shape[1])
        own = bias.shape if isinstance(bias.shape, tuple) else ()
        fits = zip(reversed(own), reversed(wanted), strict=False)
        if len(own) > 4 or not all(equal(a, b) or equal(a, 1) for a, b in fits):
            shown = ", ".join(dim_text(d) for d in wanted)
            raise call.error(f"'bias' must broadcast to ({shown}), got {type_text(bias)}")
    return TensorType((*q.shape[:3], v.shape[3]), kind)


def _expand(e: Emitter, args: Sequence[Expr], attrs: Attrs, result: Type) -> Expr:
    q, k, v, *bias = args
    given = {"scale": attrs["scale"], "causal_mask": attrs["causal_mask"]}
    if attrs["window_size"] is None:
        return e.op("nn.attention", q, k, v, *bias, **given)
    rows, keys = e.shape_of(q)[1], e.shape_of(k)[1]
    at = e.op("reshape", e.op("arange", 0, rows, 1, dtype=INT64), (rows, 1))
    place = e.op("arange", 0, keys, 1, dtype=INT64)
    later = keys - rows
    if attrs["causal_mask"] == "BottomRightAbs":
        later = dim_max(later, rows - keys)
    if attrs["causal_mask"] in ("BottomRight", "BottomRightAbs"):
        at = e.op("add", at, e.op("dims", later, dtype=INT64))
    behind = e.op("subtract", at, place)
    size = Constant(np.array(int_attr(attrs, "window_size"), np.int64))
    seen = e.op("less", behind, size)
    added = bias[0] if bias else e.op("zeros", (1,), dtype=e.dtype_of(q))
    far = e.op("full", (1,), e.number(-np.inf, added), dtype=e.dtype_of(added))
    return e.op("nn.attention", q, k, v, e.op("where", seen, added, far), **given)


def _reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    row, arrays = ATTENTION[0], [a for a in args if isinstance(a, np.ndarray)]
    assert row.reference is not None
    if attrs["window_size"] is not None:
        q, k = arrays[:2]
        later = later_of(attrs["causal_mask"], q.shape[1], k.shape[1])
        behind = np.arange(q.shape[1])[:, None] + later - np.arange(k.shape[1])
        added = arrays[3] if len(arrays) > 3 else np.zeros(1, q.dtype)
        seen = behind < int_attr(attrs, "window_size")
        arrays[3:] = [np.where(seen, added, -np.inf).astype(added.dtype)]
    call = sample(row.params, arrays, scale=attrs["scale"], causal_mask=attrs["causal_mask"])
    found = row.reference(call.args, call.attrs)
    assert isinstance(found, np.ndarray)
    return found


def _samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    q, k, v = (s.array((2, n, 3, d)) for n, d in ((4, 5), (6, 5), (6, 7)))
    same = (q, s.array((2, 4, 3, 5)), s.array((2, 4, 3, 5)))
    return [
        sample(_PARAMS, (q, k, v)),
        sample(_PARAMS, (q, k, v, s.array((2, 3, 4, 6))), scale=0.5),
        sample(_PARAMS, (*same, s.array((4, 4))), causal_mask="TopLeft"),
        sample(_PARAMS, same, causal_mask="TopLeft", window_size=2),
        sample(_PARAMS, (q, k, v, s.array((1, 1, 6))), causal_mask="BottomRight", window_size=3),
        sample(_PARAMS, (q, k[:, :2], v[:, :2]), causal_mask="BottomRightAbs", window_size=4),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "nn.attention_bias",
        _PARAMS,
        _infer,
        _reference,
        """`nn.attention` of ``(b, n, h, d)``, ``(b, m, h, d)`` and ``(b, m, h, e)``, a bias added.

        The bias broadcasts to ``(b, h, n, m)``; `scale` is one over the root of d by default.
        With `window_size` w, beside a causal mask, a query sees the last w keys that the mask
        leaves it (R.nn.attention_bias).
        """,
        expand=_expand,
        samples=_samples,
        precision="operands",
    ),
)
