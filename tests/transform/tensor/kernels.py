"""Kernels of every shape that the tensor passes meet, made with te; shared by the tests here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from unity import interpreter, te
from unity.ir.dims import dim
from unity.ir.dtype import Array
from unity.ir.module import IRModule
from unity.ir.prim_expr import PrimExpr, PrimVar, SizeVar
from unity.ir.stmt import PrimFunc
from unity.ir.visit import leaves
from unity.ir.well_formed.verify import verify
from unity.machine.target import Target
from unity.transform.passes import Context, Pass

CPU = Target("cpu", "x86_64-unknown-linux-gnu", "generic", ("avx2",), 256, 16, threads=4)
CTX = Context(CPU)
N, M = dim("n"), dim("m")


@dataclass(frozen=True, slots=True)
class Kernel:
    """A prim func and sets of sizes to run it at."""

    name: str
    make: Callable[[], PrimFunc]
    sizes: Sequence[Mapping[str, int]] = ({},)


def shape_of(func: PrimFunc, sizes: Mapping[str, int]) -> list[tuple[int, ...]]:
    """The shapes of the buffers at some sizes."""
    from unity.ir.dims import evaluate, symbols_of
    from unity.ir.symbols.convert import to_dim

    shapes = []
    for buffer in func.buffers:
        dims = [to_dim(e) for e in buffer.shape]
        shapes.append(
            tuple(
                evaluate(d, {s: sizes[s.name] for s in symbols_of(d)})
                for d in dims
                if d is not None
            )
        )
    return shapes


class Itself:
    """A function as a key: found again by identity, as comparing whole kernels costs more."""

    def __init__(self, func: PrimFunc) -> None:
        self.func = func

    def __hash__(self) -> int:
        return id(self.func)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Itself) and self.func is other.func


@lru_cache(maxsize=8)
def interpreted(func: Itself) -> interpreter.Kernel:
    """A function made ready once for all sizes that a test calls it at."""
    return interpreter.Kernel(func.func)


@lru_cache(maxsize=8)
def outputs(func: Itself, like: Itself, sizes: tuple[tuple[str, int], ...]) -> tuple[Array, ...]:
    """The outputs of a function on seeded arrays of the shapes that another has at some sizes."""
    rng = np.random.default_rng(0)
    arrays: list[Array] = []
    for buffer, shape in zip(like.func.buffers, shape_of(like.func, dict(sizes)), strict=True):
        if buffer.dtype.is_float:
            arrays.append(rng.standard_normal(shape).astype(buffer.dtype.numpy))
        elif buffer.dtype.kind == "bool":
            arrays.append(rng.integers(0, 2, shape).astype(np.bool_))
        else:
            arrays.append(rng.integers(0, 4, shape).astype(buffer.dtype.numpy))
    symbols = {v for b in like.func.buffers for d in b.shape for v in leaves(d).sizes}
    named = dict(sizes)
    known = {v: named[v.name] for v in symbols if v.name in named}
    return interpreted(func)(arrays, {SizeVar(n): k for n, k in named.items()} | known)


def assert_same(before: PrimFunc, after: PrimFunc, sizes: Mapping[str, int]) -> None:
    """Both compute the same, up to the order of sums."""
    like, at = Itself(before), tuple(sorted(sizes.items()))
    for a, b in zip(outputs(like, like, at), outputs(Itself(after), like, at), strict=True):
        np.testing.assert_allclose(
            np.asarray(b, np.float64).reshape(a.shape), np.asarray(a, np.float64), 1e-4, 1e-5
        )


def after(func: PrimFunc, *passes: Pass) -> PrimFunc:
    """The prim func after some passes, verified after each that changes it."""
    module = IRModule({"main": func})
    for step in passes:
        before, module = module, step(module, CTX)
        if module is not before:
            verify(module)
    return module.prim_funcs()["main"]


def elementwise() -> PrimFunc:
    a, b = te.placeholder((N, 5), "float32", "a"), te.placeholder((5,), "float32", "b")
    return te.create_prim_func([a, b, te.compute((N, 5), lambda i, j: te.exp(a[i, j]) + b[j], "c")])


def same_shape() -> PrimFunc:
    a, b = te.placeholder((N, M), "float32", "a"), te.placeholder((N, M), "float32", "b")
    return te.create_prim_func([a, b, te.compute((N, M), lambda i, j: a[i, j] * b[i, j], "c")])


def channels() -> PrimFunc:
    x, s = te.placeholder((2, 3, N, 7), "float32", "x"), te.placeholder((3,), "float32", "s")
    y = te.compute((2, 3, N, 7), lambda n, c, h, w: te.max_(x[n, c, h, w] * s[c], 0.0), "y")
    return te.create_prim_func([x, s, y])


def transpose() -> PrimFunc:
    a = te.placeholder((N, M), "float32", "a")
    return te.create_prim_func([a, te.compute((M, N), lambda i, j: a[j, i], "c")])


def reshape() -> PrimFunc:
    a = te.placeholder((N, 6), "float32", "a")
    return te.create_prim_func(
        [a, te.compute((N * 2, 3), lambda i, j: a[(i * 3 + j) // 6, (i * 3 + j) % 6], "c")]
    )


def padded() -> PrimFunc:
    a = te.placeholder((N, 4), "float32", "a")

    def at(i: PrimVar, j: PrimVar) -> PrimExpr:
        inside = te.all_true(i >= 1, i < a.shape[0] + 1, j >= 2, j < 6)
        return te.select(inside, a[i - 1, j - 2], 0.0)

    return te.create_prim_func([a, te.compute((N + 2, 9), at, "c")])


def gather() -> PrimFunc:
    t, x = te.placeholder((4, M), "float32", "t"), te.placeholder((N,), "int32", "x")
    return te.create_prim_func([t, x, te.compute((N, M), lambda i, j: t[x[i], j], "c")])


def compare() -> PrimFunc:
    a, b = te.placeholder((N,), "int8", "a"), te.placeholder((1,), "int8", "b")
    return te.create_prim_func([a, b, te.compute((N,), lambda i: a[i] < b[0], "c")])


def scalar() -> PrimFunc:
    a = te.placeholder((), "float32", "a")
    return te.create_prim_func([a, te.compute((), lambda: a[()] + 1.0, "c")])


def matmul() -> PrimFunc:
    a, b = te.placeholder((N, M), "float32", "a"), te.placeholder((M, 19), "float32", "b")
    k = te.reduce_axis(M, "k")
    c = te.compute((N, 19), lambda i, j: te.sum(a[i, k] * b[k, j], [k]), "c")
    return te.create_prim_func([a, b, c])


def matmul_bias() -> PrimFunc:
    a, b = te.placeholder((N, 8), "float32", "a"), te.placeholder((8, M), "float32", "b")
    s = te.placeholder((M,), "float32", "s")
    k = te.reduce_axis(8, "k")
    c = te.compute((N, M), lambda i, j: te.sum(a[i, k] * b[k, j], [k]), "c")
    d = te.compute((N, M), lambda i, j: te.max_(c[i, j] + s[j], 0.0), "d")
    return te.create_prim_func([a, b, s, d])


def matmul_nt() -> PrimFunc:
    a, b = te.placeholder((N, M), "float32", "a"), te.placeholder((7, M), "float32", "b")
    k = te.reduce_axis(M, "k")
    c = te.compute((N, 7), lambda i, j: te.sum(a[i, k] * b[j, k], [k]), "c")
    return te.create_prim_func([a, b, c])


def batch_matmul() -> PrimFunc:
    a, b = te.placeholder((2, N, 5), "float32", "a"), te.placeholder((2, 5, M), "float32", "b")
    k = te.reduce_axis(5, "k")
    c = te.compute((2, N, M), lambda h, i, j: te.sum(a[h, i, k] * b[h, k, j], [k]), "c")
    return te.create_prim_func([a, b, c])


def conv(stride: int = 1, channels: int = 4) -> PrimFunc:
    x = te.placeholder((N, 3, 7, 8), "float32", "x")
    w = te.placeholder((channels, 3, 3, 3), "float32", "w")
    c, p, q = te.reduce_axis(3, "c"), te.reduce_axis(3, "p"), te.reduce_axis(3, "q")
    padded = te.compute(
        (N, 3, 9, 10),
        lambda n, c, h, w: te.select(
            te.all_true(h >= 1, h < 8, w >= 1, w < 9), x[n, c, h - 1, w - 1], 0.0
        ),
        "pad",
    )
    rows, cols = (9 - 3) // stride + 1, (10 - 3) // stride + 1
    y = te.compute(
        (N, channels, rows, cols),
        lambda n, o, h, v: te.sum(
            padded[n, c, h * stride + p.var, v * stride + q.var] * w[o, c, p, q], [c, p, q]
        ),
        "y",
    )
    return te.create_prim_func([x, w, y])


def strided_conv() -> PrimFunc:
    return conv(2, 5)


def depthwise() -> PrimFunc:
    x = te.placeholder((N, 3, 9, 10), "float32", "x")
    w = te.placeholder((3, 1, 3, 3), "float32", "w")
    p, q = te.reduce_axis(3, "p"), te.reduce_axis(3, "q")
    y = te.compute(
        (N, 3, 7, 8),
        lambda n, c, h, v: te.sum(x[n, c, h + p.var, v + q.var] * w[c, 0, p, q], [p, q]),
        "y",
    )
    return te.create_prim_func([x, w, y])


def row_sum() -> PrimFunc:
    a = te.placeholder((N, M), "float32", "a")
    k = te.reduce_axis(M, "k")
    return te.create_prim_func([a, te.compute((N,), lambda i: te.sum(a[i, k], [k]), "c")])


def column_max() -> PrimFunc:
    a = te.placeholder((M, N), "float32", "a")
    k = te.reduce_axis(M, "k")
    return te.create_prim_func([a, te.compute((N,), lambda i: te.max(a[k, i], [k]), "c")])


def whole_sum() -> PrimFunc:
    a = te.placeholder((N, M), "float32", "a")
    i, k = te.reduce_axis(N, "i"), te.reduce_axis(M, "k")
    return te.create_prim_func([a, te.compute((), lambda: te.sum(a[i, k], [i, k]), "c")])


def integer_sum() -> PrimFunc:
    a = te.placeholder((N, M), "int8", "a")
    k = te.reduce_axis(M, "k")
    return te.create_prim_func(
        [a, te.compute((N,), lambda i: te.sum(te.cast(a[i, k], "int32"), [k]), "c")]
    )


def any_true() -> PrimFunc:
    a = te.placeholder((N, M), "bool", "a")
    k = te.reduce_axis(M, "k")
    return te.create_prim_func([a, te.compute((N,), lambda i: te.any(a[i, k], [k]), "c")])


def argmax() -> PrimFunc:
    a = te.placeholder((N, M), "float32", "a")
    k = te.reduce_axis(M, "k")
    at, best = te.compute_many((N,), lambda i: te.argmax(k, a[i, k], [k]), ("at", "best"))
    return te.create_prim_func([a, at, best])


def softmax() -> PrimFunc:
    a = te.placeholder((N, M), "float32", "a")
    k, r = te.reduce_axis(M, "k"), te.reduce_axis(M, "r")
    top = te.compute((N,), lambda i: te.max(a[i, k], [k]), "top")
    e = te.compute((N, M), lambda i, j: te.exp(a[i, j] - top[i]), "e")
    total = te.compute((N,), lambda i: te.sum(e[i, r], [r]), "total")
    return te.create_prim_func([a, te.compute((N, M), lambda i, j: e[i, j] / total[i], "c")])


def max_pool() -> PrimFunc:
    x = te.placeholder((N, 3, 6, 8), "float32", "x")
    p, q = te.reduce_axis(2, "p"), te.reduce_axis(2, "q")
    y = te.compute(
        (N, 3, 3, 4),
        lambda n, c, h, w: te.max(x[n, c, h * 2 + p.var, w * 2 + q.var], [p, q]),
        "y",
    )
    return te.create_prim_func([x, y])


def concat() -> PrimFunc:
    a, b = te.placeholder((N, 3), "float32", "a"), te.placeholder((N, 4), "float32", "b")
    return te.create_prim_func(
        [a, b, te.compute((N, 7), lambda i, j: te.select(j < 3, a[i, j], b[i, j - 3]), "c")]
    )


NM = ({"n": 3, "m": 4}, {"n": 1, "m": 1}, {"n": 0, "m": 3}, {"n": 17, "m": 0}, {"n": 5, "m": 37})
JUST_N = ({"n": 0}, {"n": 1}, {"n": 3}, {"n": 18})
KERNELS = tuple(
    Kernel(make.__name__, make, sizes)
    for make, sizes in (
        (elementwise, JUST_N),
        (same_shape, NM),
        (channels, JUST_N[:3]),
        (transpose, NM),
        (reshape, JUST_N),
        (padded, JUST_N),
        (gather, NM),
        (compare, JUST_N),
        (scalar, ({},)),
        (matmul, NM),
        (matmul_bias, NM),
        (matmul_nt, NM),
        (batch_matmul, NM[:4]),
        (conv, JUST_N[:2]),
        (strided_conv, JUST_N[1:2]),
        (depthwise, JUST_N[:2]),
        (row_sum, NM),
        (column_max, NM[:2] + NM[3:]),
        (whole_sum, NM),
        (integer_sum, NM),
        (any_true, NM),
        (argmax, NM[:3]),
        (softmax, NM[:3] + NM[4:]),
        (max_pool, JUST_N[:3]),
        (concat, JUST_N),
    )
)
