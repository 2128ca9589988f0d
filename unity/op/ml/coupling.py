"""Probabilities of classes from those of their pairs: what support vector machines end with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dtype import INT64, Array
from unity.ir.prim_expr import Load, PrimExpr, PrimVar, imm
from unity.ir.stmt import Allocate, Buffer, For, IfThen, Let, PrimWhile, Seq, Stmt, Store
from unity.ir.types import TensorType, Type
from unity.op.accumulate import narrowed, widened, working_dtype
from unity.op.argument import float_tensor, ranked, require_equal
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample
from unity.op.sampling import Sampler, sample

_PARAMS = (Param("x"),)
_ROUNDS = 100
_NEAR = 0.005
"""By which, divided by the number of classes, conditions are met well enough."""


def _infer(call: OpCall) -> Type:
    float_tensor(call, 0)
    x = ranked(call, 0, 3)
    if not isinstance(x.shape, tuple):
        return TensorType(2, x.dtype)
    require_equal(call, x.shape[2], x.shape[1], "there is a probability for each pair of classes")
    return TensorType(x.shape[:2], x.dtype)


def _compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    (x,) = args
    assert isinstance(x, te.Tensor)
    wide = working_dtype(x.dtype)

    def body(inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> Stmt:
        return _coupled(inputs[0], outputs[0])

    (found,) = te.extern([(x.shape[:2], wide)], [x], body, "pairwise_coupling")
    return narrowed(found, x.dtype)


def _coupled(pairs: Buffer, result: Buffer) -> Stmt:
    """Each row by itself: a class at a time is set right, the others scaled, until all are."""
    rows, classes, _ = pairs.shape
    wide = result.dtype
    n, first, other, t, j = (PrimVar(name) for name in ("n", "first", "other", "t", "j"))
    forms = Buffer("forms", (classes, classes), wide)
    products = Buffer("products", (classes,), wide)
    state = Buffer("state", (imm(3),), wide, scope="local")
    rounds = Buffer("rounds", (imm(1),), INT64, scope="local")
    total, far, each = (Load(state, (imm(k),)) for k in range(3))
    count = te.cast(classes, wide)

    def put(k: int, value: PrimExpr) -> Stmt:
        return Store(state, (imm(k),), value)

    def of(a: PrimExpr, b: PrimExpr) -> PrimExpr:
        return widened(Load(pairs, (n, a, b)))

    def add(target: Buffer, at: tuple[PrimExpr, ...], value: PrimExpr) -> Stmt:
        return Store(target, at, Load(target, at) + value)

    zero, one = imm(0.0, wide), imm(1.0, wide)
    own = (first, first)
    square = add(forms, own, of(other, first) * of(other, first))
    crossed = Store(forms, (first, other), zero - of(other, first) * of(first, other))
    begun = Seq(
        (
            Store(result, (n, first), one / count),
            Store(forms, own, zero),
            For(
                other,
                imm(0),
                classes,
                IfThen(te.not_(te.eq(first, other)), Seq((square, crossed))),
            ),
        )
    )
    product = add(products, (t,), Load(forms, (t, j)) * Load(result, (n, j)))
    multiplied = Seq(
        (
            Store(products, (t,), zero),
            For(j, imm(0), classes, product),
            put(0, total + Load(result, (n, t)) * Load(products, (t,))),
        )
    )
    s, u, v = PrimVar("s"), PrimVar("u"), PrimVar("v")
    apart = Load(products, (s,)) - total
    measured = put(1, te.max_(far, te.max_(apart, zero - apart)))
    mine, by = Load(forms, (u, u)), PrimVar("by", wide)
    scaled = Seq(
        (
            Store(
                products,
                (v,),
                (Load(products, (v,)) + by * Load(forms, (u, v))) / (one + by),
            ),
            Store(result, (n, v), Load(result, (n, v)) / (one + by)),
        )
    )
    grown = total + by * (by * mine + imm(2.0, wide) * Load(products, (u,)))
    moved = Seq(
        (
            put(2, (total - Load(products, (u,))) / mine),
            Let(
                by,
                each,
                Seq(
                    (
                        add(result, (n, u), by),
                        put(0, grown / (one + by) / (one + by)),
                        For(v, imm(0), classes, scaled),
                    )
                ),
            ),
        )
    )
    near = imm(_NEAR, wide) / count
    more = Load(rounds, (imm(0),))
    again = Seq(
        (
            put(0, zero),
            put(1, zero),
            For(t, imm(0), classes, multiplied),
            For(s, imm(0), classes, measured),
            Store(rounds, (imm(0),), te.select(far < near, imm(_ROUNDS), more + 1)),
            IfThen(te.not_(far < near), For(u, imm(0), classes, moved)),
        )
    )
    stmt: Stmt = Seq(
        (
            For(first, imm(0), classes, begun),
            Store(rounds, (imm(0),), imm(0)),
            PrimWhile(more < _ROUNDS, again),
        )
    )
    for buffer in (forms, products, state, rounds):
        stmt = Allocate(buffer, stmt)
    return For(n, imm(0), rows, stmt, "parallel")


def _reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    (x,) = args
    assert isinstance(x, np.ndarray)
    wide = _working(x)
    rows, classes, _ = x.shape
    result = np.full((rows, classes), 1 / max(classes, 1), wide)
    for row, p in zip(x.astype(wide), result, strict=True):
        forms = -row * row.T
        np.fill_diagonal(forms, 0)
        np.fill_diagonal(forms, np.square(row - np.diag(np.diag(row))).sum(0))
        for _ in range(_ROUNDS):
            products = forms @ p
            total = p @ products
            if np.abs(products - total).max(initial=0) < _NEAR / classes:
                break
            for t in range(classes):
                by = (total - products[t]) / forms[t, t]
                p[t] += by
                total = (total + by * (by * forms[t, t] + 2 * products[t])) / (1 + by) / (1 + by)
                products = (products + by * forms[t]) / (1 + by)
                p /= 1 + by
    return result.astype(x.dtype)


def _working(x: Array) -> np.dtype[np.floating]:
    """The dtype that a row is worked out in."""
    return np.dtype(np.float64 if x.dtype == np.float64 else np.float32)


def _samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)

    def pairs(rows: int, classes: int, kind: str) -> Sample:
        half = np.triu(s.array((rows, classes, classes), "float64", 0.05, 0.95), 1)
        other = np.tril(np.subtract(1, np.swapaxes(half, 1, 2)), -1)
        return sample(_PARAMS, (np.add(half, other).astype(kind),))

    kinds = ((4, 3, "float32"), (2, 2, "float32"), (3, 5, "float64"), (0, 3, "float32"))
    return [pairs(*kind) for kind in kinds]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "pairwise_coupling",
        _PARAMS,
        _infer,
        _reference,
        """The probabilities of classes, (rows, classes), that fit those of pairs best.

        ``x[n, i, j]``, (rows, classes, classes), is how probable i is where it is i or j; what it
        is of a class and itself does not count. Iterated until all conditions hold to 0.005 by the
        number of classes, at most a hundred times (Wu, Lin and Weng 2004, their second method, as
        libsvm and onnxruntime do for support vector machines).
        """,
        compute=_compute,
        samples=_samples,
    ),
)
