"""A program as a tutorial shows it; `test_typing` runs mypy and pyright on it, and runs it."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from unity import script
from unity.script import Buffer, R, T, Tensor, boolean, dim, f32, i64

n = dim("n")
m = dim("m", min=1, max=64, multiple_of=8)
weights = np.ones((128, 64), np.float32)


@script.prim_func
def matmul(a: f32[Buffer, n, 128], b: f32[Buffer, 128, 64], c: f32[Buffer, n, 64]) -> None:
    for i, j, k in T.grid(n, 64, 128):
        with T.block("matmul"):
            vi, vj, vk = T.axis.remap("SSR", i, j, k)
            with T.init():
                c[vi, vj] = 0.0
            c[vi, vj] += a[vi, vk] * b[vk, vj]


@script.prim_func(attrs={"num_outputs": 1})
def smooth(a: f32[Buffer, n * 2 + 1], c: f32[Buffer, n], s: f32[T.Scalar, ()], k: T.size) -> None:
    tmp = T.alloc((n, 2), "float32", scope="local")
    for i in T.parallel(n):
        with T.block("smooth"):
            vi = T.axis.spatial((0, n), i)
            T.where(vi < k)
            T.reads(a[vi * 2])
            T.writes(c[vi])
            x = T.let(a[vi * 2] * 2.0)
            tmp[vi, 0] = T.exp(x) + T.max(x, 0.0)
            c[vi] = T.select(x > 0.0, tmp[vi, 0], -x) / s
    for j in T.vectorized(8):
        if j < n - 1:
            c[j] = T.cast("float32", j)


@script.function
def residual(x: f32[Tensor, n, 64]) -> f32[Tensor, n, 64]:
    return R.nn.relu(x) + x


@script.function(pure=True)
def main(x: f32[Tensor, n, 128], flag: boolean[Tensor, ()]) -> f32[Tensor, n, 64]:
    with R.dataflow():
        y = R.call_tir(matmul, (x, R.const(weights)), out=f32[Tensor, n, 64])
        z: f32[Tensor, n, 64] = R.nn.relu(y)
    if flag:
        z = residual(z)
        z = z * 2.0
    else:
        z = -z
    a, b = R.split(z, 2, axis=1)
    joined = R.concat((a, b), axis=1)
    i = R.const(0, "int64")
    while R.less(i, 3):
        i = i + 1
        joined = R.exp(joined)
    return R.match_cast(joined, f32[Tensor, n, 64])


@script.function
def several(x: f32[Tensor, n, m], k: i64[Tensor, ()]) -> tuple[f32[Tensor, n, m], i64[Tensor, ()]]:
    return x, k


def run() -> None:
    module = script.module(main)
    main.show()
    text = script.print_module(module)
    script.parse(text, script.constants_of(module))
    out = np.zeros((4, 64), np.float32)
    matmul(np.ones((4, 128), np.float32), weights, out)
    result = main(np.ones((4, 128), np.float32), np.array(True))
    print(result)


@script.function
def scaled(
    x: f32[Tensor, n, 8],
    by: Annotated[float, R.Prim("float32")],
    count: Annotated[int, R.Prim("int64")],
) -> tuple[f32[Tensor, n, 8], i64[Tensor, n, 2], f32[Tensor, R.rank(1)]]:
    """Scalars are Python's numbers for a type checker."""
    first, *rest = R.split(x, 2, axis=1)
    values, places = R.topk(R.concat((first, *rest), axis=1), 2, axis=1)
    y = x * by + count - n
    for i in range(n):
        if 0 < i <= count and by > 1.0:
            y = y + float(i) * R.max(values)
    for i in range(count, 0, -2):
        y = y + abs(by) * float(min(i, count))
    return y, places, R.full((count + 1,), by)


@script.prim_func
def counted(a: f32[Buffer, n, 4], c: f32[Buffer, n, 4], s: f32[T.Scalar, ()]) -> None:
    for i in range(n):
        for j in range(4):
            with T.block("counted"):
                vi, vj = T.axis.remap("SS", i, j)
                c[vi, vj] = T.max(a[vi, vj], 0.0) * s
    for k in range(n):
        for j in range(4):
            with T.block("again"):
                vk, vj = T.axis.remap("SS", [k, j])
                c[vk, vj] = c[vk, vj] + 1.0


@script.function
def numbers(
    x: f32[Tensor, n, 4], k: i64[int, R.Prim], s: f32[float, R.Prim], b: boolean[bool, R.Prim]
) -> f32[Tensor, n, 4]:
    y = x * (0.5 * n) + k * x - n // 2 * x + s * (n + 1.5) / (2.0 * n)
    for i in range(n):
        y = y * i + x[i] * (i + 1) + x[k] - (n - i) ** 2 + x[i:].shape[0]
    for j in range(n - 1, -1, -1):
        if (j % 2 == 0 and j > k) or b:
            y = y + j
    if n > 4:
        y = y - 1.0
    elif n == 2 or n * 2 <= 7 or n != k:
        y = y * -n
    z = -y if k < n else abs(y)
    while k > 0:
        z = z / float(n) + R.sum(z) - R.sum(x[:k, 0, None])
        k -= 1
    assert n > 0, f"none: {n}"
    print(n, k, z)
    return z @ R.ones((4, 4)) if 0 < n < 3 else max(z, y)


@script.function
def leaves(x: f32[Tensor, n, 128], k: i64[Tensor, ()]) -> f32[Tensor, n, 128]:
    assert n > 1, f"too few rows: {n}"
    if n > 64 and R.sum(x) > 0.0:
        return x
    for i in range(n):
        for j in range(k):
            if j == 3:
                break
            if j != 1 and i >= j:
                continue
            print("at", i, j, f"{R.sum(x):.2f}")
            x = x * 2.0 + 1.0
        if x.shape[0] == 4:
            return -x
    return x
