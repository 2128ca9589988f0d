"""Attention: ``softmax(q k^T * scale + bias) v`` for each head, operands read where they lie."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity import te
from unity.ir.attrs import Attrs, AttrValue
from unity.ir.dims import Dim, SymDim, always_ge, dim_text, equal
from unity.ir.dtype import BFLOAT16, BOOL, Array, DType
from unity.ir.prim_expr import Binary, Imm, PrimExpr, imm
from unity.ir.symbols.convert import to_prim_expr
from unity.ir.types import TensorType, Type
from unity.op.accumulate import Real, real, working_dtype
from unity.op.argument import common_dtype, has, require_equal, tensor, type_text
from unity.op.attribute import FLAG, INT, INTS, NUMBER, SIZE, TEXT, TEXTS
from unity.op.reduction.softmax import exp_below
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, attr
from unity.op.sampling import Sampler, sample

_PARAMS = (
    Param("q"),
    Param("k"),
    Param("v"),
    Param("bias", "tensor", None),
    Param("mask", "tensor", None),
    attr("scale", NUMBER, None),
    attr("fill", NUMBER, -1e9),
    attr("layouts", TEXTS, ("BLHD", "BLHD", "BLHD", "BLHD")),
    attr("heads", INT, None),
    attr("kv_heads", INT, None),
    attr("first", INTS, (0, 0, 0)),
    attr("keys", SIZE, None),
    attr("zero_unseen", FLAG, False),
    attr("causal_mask", TEXT, None),
)
_AXES = "BLHD"
_SCORED = "BHLD"
"""The order in which scores are made."""
CAUSAL = ("TopLeft", "BottomRight", "BottomRightAbs")
"""Which query sees the first key alone: the first one, or the one with which the last sees all;
with the third, Relax's, query i sees keys up to i and the difference of their numbers."""


def later_of(causal: AttrValue, queries: int, keys: int) -> int:
    """How many keys behind that of its own place a query sees, of two numbers that are known.

    >>> [later_of(c, 6, 4) for c in (*CAUSAL, None)]
    [0, -2, 2, 0]
    """
    return {"BottomRight": keys - queries, "BottomRightAbs": abs(keys - queries)}.get(
        str(causal), 0
    )


def _layouts(attrs: Attrs) -> tuple[str, ...]:
    found = attrs["layouts"]
    assert isinstance(found, tuple)
    return tuple(str(x) for x in found)


def _first(attrs: Attrs) -> tuple[int, ...]:
    found = attrs["first"]
    assert isinstance(found, tuple)
    return tuple(n for n in found if isinstance(n, int))


def _checked_attrs(call: OpCall) -> None:
    layouts = call.attrs["layouts"]
    good = isinstance(layouts, tuple) and len(layouts) == 4
    if not good or any(sorted(str(x)) != sorted(_AXES) for x in _layouts(call.attrs)):
        raise call.error(
            f"'layouts' must be four orders of the letters BLHD, for q, k, v and the result, "
            f"got {layouts!r}"
        )
    if len(call.ints("first")) != 3 or any(n < 0 for n in call.ints("first")):
        raise call.error(f"'first' must be three heads, got {call.attrs['first']!r}")
    for name in ("heads", "kv_heads"):
        if call.attrs[name] is not None and call.integer(name) < 1:
            raise call.error(f"{name!r} must be at least 1, got {call.attrs[name]!r}")
    if call.attrs["causal_mask"] not in (None, *CAUSAL):
        raise call.error(
            f"'causal_mask' must be {', '.join(map(repr, CAUSAL))} or None, "
            f"got {call.attrs['causal_mask']!r}"
        )
    keys = call.attrs["keys"]
    if keys is not None and (isinstance(keys, bool) or not isinstance(keys, int | SymDim)):
        raise call.error(f"'keys' must be a dim or None, got {keys!r}")
    if isinstance(keys, int) and keys < 0:
        raise call.error(f"'keys' must not be negative, got {keys}")


def _infer(call: OpCall) -> Type:
    _checked_attrs(call)
    operands = [tensor(call, i) for i in range(3)]
    dtype = common_dtype(call, operands)
    for name, t in zip("qkv", operands, strict=True):
        if t.ndim not in (None, 4):
            raise call.error(f"{name!r} must have rank 4, got {type_text(t)}")
    layouts = _layouts(call.attrs)
    if any(not isinstance(t.shape, tuple) for t in operands):
        return TensorType(4, dtype)
    q, k, v = (
        dict(zip(layout, t.shape, strict=True))
        for layout, t in zip(layouts, operands, strict=False)
        if isinstance(t.shape, tuple)
    )
    require_equal(call, k["D"], q["D"], "the lengths of a query and a key differ")
    require_equal(call, k["B"], q["B"], "the batches of 'q' and 'k' differ")
    require_equal(call, v["B"], q["B"], "the batches of 'q' and 'v' differ")
    if call.attrs["keys"] is None:
        require_equal(call, v["L"], k["L"], "the numbers of keys and values differ")
    heads = _counts(call.attrs, q["H"])
    for name, dims, first, count in zip(
        "qkv", (q, k, v), _first(call.attrs), (heads[0], heads[1], heads[1]), strict=True
    ):
        there = dims["H"]
        if isinstance(there, int) and isinstance(count, int) and first + count > there:
            raise call.error(f"{name!r} has {there} heads, not {first} + {count}")
        if call.attrs["heads"] is None and call.attrs["kv_heads"] is None:
            require_equal(call, there, q["H"], f"the numbers of heads of 'q' and {name!r} differ")
    if call.attrs["kv_heads"] is not None:
        whole, shared = heads
        if not isinstance(whole, int) or not isinstance(shared, int) or whole % shared:
            raise call.error(
                f"{dim_text(whole)} heads can't share {dim_text(shared)} heads of keys evenly"
            )
    keys = k["L"] if call.attrs["keys"] is None else call.attrs["keys"]
    assert isinstance(keys, int | SymDim)
    for name, rows in (("k", k["L"]), ("v", v["L"])):
        if not always_ge(rows, keys):
            raise call.error(
                f"can't prove that {name!r} has {dim_text(keys)} rows, it has {dim_text(rows)}"
            )
    points = (q["B"], heads[0], q["L"], keys)
    for i, name in ((3, "bias"), (4, "mask")):
        if has(call, i):
            _check_scores(call, name, tensor(call, i), points)
    if has(call, 4) and tensor(call, 4).dtype not in (None, BOOL):
        raise call.error(f"'mask' must be bool, got {type_text(tensor(call, 4))}")
    sizes = {"B": q["B"], "L": q["L"], "H": heads[0], "D": v["D"]}
    return TensorType(tuple(sizes[a] for a in layouts[3]), dtype)


def _check_scores(call: OpCall, name: str, t: TensorType, points: Sequence[object]) -> None:
    """A tensor that broadcasts to the scores, (batch, heads, queries, keys)."""
    if not isinstance(t.shape, tuple):
        return
    if len(t.shape) > 4:
        raise call.error(f"{name!r} must have at most rank 4, got {type_text(t)}")
    for mine, wanted in zip(reversed(t.shape), reversed(points), strict=False):
        if not equal(mine, 1):
            assert isinstance(wanted, int | SymDim)
            require_equal(call, mine, wanted, f"{name!r} doesn't broadcast to the scores")


def _counts(attrs: Attrs, axis: Dim) -> tuple[Dim, Dim]:
    """The number of heads of queries, and of keys."""
    heads, shared = attrs["heads"], attrs["kv_heads"]
    count: Dim = heads if isinstance(heads, int) else axis
    return count, shared if isinstance(shared, int) else count


def _compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    q, k, v, *extra = (a for a in args if isinstance(a, te.Tensor))
    assert isinstance(result, TensorType)
    assert result.dtype is not None
    assert isinstance(result.shape, tuple)
    layouts, first = _layouts(attrs), _first(attrs)
    out = dict(zip(layouts[3], (to_prim_expr(d) for d in result.shape), strict=True))
    keys = attrs["keys"]
    count = to_prim_expr(keys) if isinstance(keys, int | SymDim) else k.shape[layouts[1].index("L")]
    wide = working_dtype(result.dtype)
    heads, shared = attrs["heads"], attrs["kv_heads"]
    group = 1
    if isinstance(shared, int):
        whole = heads if isinstance(heads, int) else out["H"]
        assert isinstance(whole, int | Imm)
        group = int(whole if isinstance(whole, int) else whole.value) // shared

    def read(which: int, b: PrimExpr, i: PrimExpr, h: PrimExpr, d: PrimExpr) -> PrimExpr:
        if which and group > 1:
            h = h // group
        place = {"B": b, "L": i, "H": h + first[which] if first[which] else h, "D": d}
        x = (q, k, v)[which]
        return te.cast(x[tuple(place[a] for a in layouts[which])], wide)

    size = q.shape[layouts[0].index("D")]
    scale = _scale(attrs, size, wide)
    d = te.reduce_axis(size, "d")
    scores = te.compute(
        (out["B"], out["H"], out["L"], count),
        lambda b, h, i, j: te.sum(read(0, b, i, h, d.var) * read(1, b, j, h, d.var), axis=[d]),
        "scores",
    )

    causal = attrs["causal_mask"]
    later = count - out["L"] if causal in ("BottomRight", "BottomRightAbs") else imm(0)
    if causal == "BottomRightAbs":
        later = Binary("max", later, out["L"] - count)

    def visible(i: Sequence[PrimExpr], value: PrimExpr, hidden: float) -> PrimExpr:
        """A value where the query sees the key."""
        if causal is None:
            return value
        return te.select(i[3] <= i[2] + later, value, imm(hidden, wide))

    def biased(*i: PrimExpr) -> PrimExpr:
        value: PrimExpr = scores[i]
        if scale != 1:
            value = value * scale
        if len(extra) > 1:
            value = te.select(_broadcast(extra[1], i), value, imm(_float(attrs, "fill"), wide))
        if extra:
            value = value + te.cast(_broadcast(extra[0], i), wide)
        return visible(i, value, -np.inf)

    x = te.compute(scores.shape, biased, "biased")
    j = te.reduce_axis(count, "j")
    peak = te.compute(x.shape[:3], lambda *i: te.reduce("fmax", (x[(*i, j.var)],), [j]), "peak")
    if attrs["zero_unseen"]:
        highest, least = peak, imm(float(np.finfo(wide.name).min), wide)
        peak = te.compute(x.shape[:3], lambda *i: te.max_(highest[i], least), "finite")
    weight = te.compute(x.shape, lambda *i: visible(i, exp_below(x[i], peak[i[:3]]), 0.0), "weight")
    j = te.reduce_axis(count, "j")
    total = te.compute(x.shape[:3], lambda *i: te.sum(weight[(*i, j.var)], axis=[j]), "total")
    zero, one = imm(0.0, wide), imm(1.0, wide)
    inverse = te.compute(  # no keys at all: a sum of nothing
        x.shape[:3], lambda *i: te.select(te.eq(total[i], zero), zero, one / total[i]), "inverse"
    )
    j = te.reduce_axis(count, "j")
    shape = tuple(out[a] for a in layouts[3])

    def at(i: Sequence[PrimExpr]) -> tuple[PrimExpr, PrimExpr, PrimExpr, PrimExpr]:
        place = dict(zip(layouts[3], i, strict=True))
        return place["B"], place["H"], place["L"], place["D"]

    def rounded(x: PrimExpr) -> PrimExpr:
        """As matrix units take it."""
        return te.cast(te.cast(x, BFLOAT16), wide) if result.dtype == BFLOAT16 else x

    def summed(*index: PrimExpr) -> te.Reduce:
        b, h, i, e = at(index)
        return te.sum(rounded(weight[b, h, i, j.var]) * read(2, b, j.var, h, e), axis=[j])

    weighted = te.compute(shape, summed, "weighted")
    return te.compute(
        shape,
        lambda *i: te.cast(inverse[at(i)[:3]] * weighted[i], result.dtype or wide),
        "attention",
    )


def _scale(attrs: Attrs, size: PrimExpr, wide: DType) -> PrimExpr | float:
    """What scores are multiplied by: one over the root of a key's length if nothing is said."""
    if attrs["scale"] is not None:
        return _float(attrs, "scale")
    if isinstance(size, Imm):
        return float(size.value) ** -0.5 if size.value else 1.0
    return te.rsqrt(te.cast(size, wide))


def _float(attrs: Attrs, name: str) -> float:
    value = attrs[name]
    assert isinstance(value, int | float)
    return float(value)


def _broadcast(t: te.Tensor, index: Sequence[PrimExpr]) -> PrimExpr:
    """An element of a tensor that broadcasts to the scores."""
    used = index[len(index) - len(t.shape) :]
    zero = imm(0)
    return t[tuple(zero if n == imm(1) else i for n, i in zip(t.shape, used, strict=True))]


def _reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    q, k, v, *extra = (a for a in args if isinstance(a, np.ndarray))
    layouts, first = _layouts(attrs), _first(attrs)
    heads, shared = _counts(attrs, q.shape[layouts[0].index("H")])
    assert isinstance(heads, int)
    assert isinstance(shared, int)
    keys = attrs["keys"]

    def operand(x: Array, which: int, count: int) -> Real:
        """As (batch, heads, length, dim), in float64."""
        ordered = real(np.transpose(x, [layouts[which].index(a) for a in _SCORED]))
        own = ordered[:, first[which] : first[which] + count]
        if which and isinstance(keys, int):
            own = own[:, :, :keys]
        return np.repeat(own, heads // count, axis=1)

    left, right = operand(q, 0, heads), operand(k, 1, shared)
    usual = max(left.shape[3], 1) ** -0.5
    scale = usual if attrs["scale"] is None else _float(attrs, "scale")
    scores = left @ np.swapaxes(right, 2, 3) * scale
    if len(extra) > 1:
        scores = np.where(extra[1], scores, _float(attrs, "fill"))
    if extra:
        scores = scores + real(extra[0])
    seen: Array = np.array(True)
    if attrs["causal_mask"] is not None:
        rows, count = scores.shape[2:]
        seen = np.tri(rows, count, later_of(attrs["causal_mask"], rows, count), bool)
        scores = np.where(seen, scores, -np.inf)
    peak = scores.max(axis=3, keepdims=True, initial=-np.inf)
    if attrs["zero_unseen"]:
        peak = np.maximum(peak, np.finfo(np.float64).min)
    with np.errstate(invalid="ignore"):  # rows of which nothing is seen
        weight = np.where(seen, np.exp(scores - peak), 0)
    total = weight.sum(axis=3, keepdims=True)
    result = (weight / np.where(total == 0, 1, total)) @ operand(v, 2, shared)
    ordered = np.transpose(result, [_SCORED.index(a) for a in layouts[3]])
    return np.ascontiguousarray(ordered).astype(q.dtype)


def _samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    b, h, d, e = 2, 3, 4, 5
    n, m = 6, 7
    plain = (s.array((b, n, h, d)), s.array((b, m, h, d)), s.array((b, m, h, e)))
    swapped = (s.array((b, h, n, d)), s.array((b, h, d, m)), s.array((b, h, m, e)))
    packed = s.array((1, n, 3 * h, d))
    cache = (s.array((b, h, n, d)), s.array((b, h, 9, d)), s.array((b, h, 9, d)))
    halves = tuple(s.array(x.shape, "float16", -1, 1) for x in plain)
    mask = s.array((n, m), "bool")
    mask[:, 0] = True
    unseen = np.where(mask, 0, -np.inf).astype("float32")
    unseen[1] = -np.inf
    shared = (s.array((b, n, 4, d)), s.array((b, m, 2, d)), s.array((b, m, 2, d)))
    orders = ("BHLD", "BHDL", "BHLD", "BLHD")
    caches = ("BHLD", "BHLD", "BHLD", "BHLD")
    return [
        sample(_PARAMS, plain, scale=0.5),
        sample(_PARAMS, (*plain, s.array((b, 1, 1, m))), scale=0.25),
        sample(_PARAMS, (*plain, s.array((m,)), mask), fill=-50.0),
        sample(_PARAMS, (*swapped, s.array((n, m))), layouts=orders),
        sample(_PARAMS, (packed,) * 3, heads=h, first=(0, h, 2 * h), scale=0.5),
        sample(_PARAMS, cache, layouts=caches, keys=5),
        sample(_PARAMS, shared, kv_heads=2, heads=4),
        sample(_PARAMS, halves, scale=0.5),
        sample(_PARAMS, (*plain, unseen), zero_unseen=True),
        sample(_PARAMS, plain, causal_mask="TopLeft"),
        *(
            sample(_PARAMS, (plain[0], *(x[:, :rows] for x in plain[1:])), causal_mask=causal)
            for causal in CAUSAL[1:]
            for rows in (2, 4)
        ),
        sample(_PARAMS, (plain[0], *(s.array((b, 0, h, d)) for _ in range(2)))),
        sample(_PARAMS, (s.array((b, 0, h, d)), *plain[1:])),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "nn.attention",
        _PARAMS,
        _infer,
        _reference,
        """``softmax(where(mask, q k^T * scale, fill) + bias) v`` for each batch and head.

        Relax's R.nn.attention: `scale` is ``1 / sqrt(D)`` if it is left out. `q` is (B, L, H, D),
        `k` and `v` (B, keys, H, D), the result (B, L, H, Dv); `layouts` tells other orders of these
        axes, for q, k, v and the result. `bias` and the bool `mask` broadcast to (B, H, L, keys).

        Operands may be parts of larger tensors: `heads` heads from `first` on (one tensor may hold
        q, k and v), the first `keys` rows of caches. With `kv_heads`, that many heads of keys and
        values serve as many queries' heads each as fit (grouped queries). Narrow floats are summed
        in float32; the weights of bfloat16 values are rounded to it.

        `causal_mask` hides later keys: with ``"TopLeft"`` query i sees keys up to i, with
        ``"BottomRight"`` the last query sees all, the one before it all but one. Where there are
        more queries than keys, ``"BottomRightAbs"``, which is Relax's BottomRight, lets query i see
        keys up to ``i + L - keys``. Keys that a query does not see count for nothing, whatever they
        hold, and blocks of them are not read.

        A row that sees no keys gives 0; with `zero_unseen` also one of which `bias` leaves nothing,
        whose scores are all -inf, and else NaN.
        """,
        compute=_compute,
        pattern="opaque",
        samples=_samples,
        precision="operands",
    ),
)
