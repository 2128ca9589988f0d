"""Programs that use every name of the language once or more; `mutations` make them wrong."""

from __future__ import annotations

from collections.abc import Mapping

from unity.ir.dtype import Array

KERNELS = {
    "loops": """
n = dim("n", min=1, max=64, multiple_of=1, typical=8)

@script.prim_func(attrs={"num_outputs": 1})
def main(a: f32[Buffer, n, 8, T.strides(8, 1), T.scope("global"), T.align(16)],
    s: T.scalar("float32"), k: T.size, y: f32[Buffer, n, 8]) -> None:
    for i in T.serial(0, n, attrs={"note": 1}):
        for j in T.vectorized(0, 8, attrs={"note": 1}):
            y[i, j] = a[i, j] * s
    for i in T.parallel(0, n, attrs={"note": 1}):
        for j in T.unroll(0, 8, attrs={"note": 1}):
            y[i, j] += 1.0
    for i in T.thread(0, n, "threadIdx.x", attrs={"note": 1}):
        y[i, 0] = 2.0
    for i, j in T.grid(n, 8):
        y[i, j] += 0.5
    for i in range(0, n):
        y[i, 1] = T.cast("float32", k)
""",
    "blocks": """
n = dim("n")

@script.prim_func
def main(a: f32[Buffer, n, 8], y: f32[Buffer, n]) -> None:
    for i, k in T.grid(n, 8):
        with T.block("sums", attrs={"note": 1}):
            vi = T.axis.spatial((0, n), i)
            vk = T.axis.reduce(8, k)
            T.where(vk < 8)
            T.reads(a[vi, vk])
            T.writes(y[vi])
            with T.init():
                y[vi] = 0.0
            y[vi] += a[vi, vk]
    for i, k in T.grid(n, 8):
        with T.block("again"):
            vi, vk = T.axis.remap("SR", i, k)
            with T.init():
                y[vi] = 0.0
            y[vi] = T.max(y[vi], a[vi, vk])
    for i in range(n):
        with T.block("opaque"):
            vi = T.axis.opaque(n, i)
            t = T.block_alloc((4,), "float32", scope="local", strides=(1,), align=32, separators=())
            t[0] = a[vi, 0]
            y[vi] = t[0]
""",
    "statements": """
@script.prim_func
def main(a: f32[Buffer, 16], b: boolean[Buffer, 16], y: f32[Buffer, 16]) -> None:
    t = T.alloc((16, 2), "float32", scope="shared", strides=(2, 1), align=128, separators=(1,))
    with T.suite():
        v = T.let(a[0] + 1.0, dtype="float32")
        t[0, 0] = v
    with T.seq():
        y[1] = t[0, 0]
    T.store(y, (T.ramp(0, 1, 4),), T.broadcast(1.0, 4), T.broadcast(b[0], 4))
    y[T.ramp(4, 1, 4)] = T.load(a, (T.ramp(0, 1, 4),), T.broadcast(b[1], 4))
    T.evaluate(T.prefetch(a[3], dtype="float32"))
    T.assert_(T.not_(b[2]), "no")
    y[2] = T.imm("float32", "inf")
    y[3] = T.imm("float32", 1.5)
    y[4] = T.cast("float32", 3) + T.reinterpret("float32", T.reinterpret("int32", a[4]))
    y[5] = T.call("exp", a[5], dtype="float32")
    y[6] = T.select(b[6], a[6], 0.0, dtype="float32")
    y[7] = T.if_then_else(b[7], a[7], 0.0, dtype="float32")
    c = T.call_extern("f", T.address_of(a[8]), 1, dtype="int32")
    y[8] = T.cast("float32", c)
    while b[9]:
        y[9] = 1.0
""",
    "formulas": """
@script.prim_func
def main(a: f32[Buffer, 16], i: i32[Buffer, 16], b: boolean[Buffer, 16], y: f32[Buffer, 16],
    z: i32[Buffer, 16], w: boolean[Buffer, 16]) -> None:
    y[0] = T.min(a[0], a[1], dtype="float32")
    y[1] = T.max(a[0], a[1], dtype="float32")
    z[0] = T.truncdiv(i[0], i[1], dtype="int32")
    z[1] = T.truncmod(i[0], i[1], dtype="int32")
    z[2] = T.floordiv(i[0], i[1], dtype="int32")
    z[3] = T.floormod(i[0], i[1], dtype="int32")
    z[4] = T.shl(i[0], i[1], dtype="int32")
    z[5] = T.shr(i[0], i[1], dtype="int32")
    z[6] = T.xor(i[0], i[1], dtype="int32")
    w[0] = T.and_(b[0], b[1], dtype="bool")
    w[1] = T.or_(b[0], b[1], dtype="bool")
    y[2] = T.exp(a[2], dtype="float32")
    y[3] = T.tanh(a[3])
    y[4] = T.fma(a[1], a[2], a[3], dtype="float32")
    y[5] = min(a[1], a[2])
    y[6] = abs(a[1])
""",
}
"""Kernels, by what they show."""

GRAPHS = {
    "tensors": """
n = dim("n")

@script.function(pure=True, attrs={"note": 1})
def main(x: f32[Tensor, n, 4], w: f32[Tensor, 4, 4]) -> f32[Tensor, n, 4]:
    with R.dataflow():
        c = R.const([1.0, 2.0, 3.0, 4.0], "float32", shape=(4,))
        y = R.matmul(x, w, out_dtype="float32")
        z = R.nn.softmax(R.add(y, c), axis=-1)
    return z
""",
    "calls": """
n = dim("n")

@script.prim_func
def k(x: f32[Buffer, n], y: f32[Buffer, n]) -> None:
    for i in range(n):
        y[i] = x[i]

@script.prim_func
def sized(x: f32[Buffer, 4], count: T.size, y: f32[Buffer, 4]) -> None:
    for i in range(4):
        y[i] = x[i] * T.cast("float32", count)

@script.function
def sub(x: f32[Tensor, n]) -> f32[Tensor, n]:
    return R.exp(x)

@script.function
def main(x: f32[Tensor, n], v: f32[Tensor, 4]) -> f32[Tensor, n]:
    a = R.call_tir(k, (x,), f32[Tensor, n], inplace=(-1,))
    s = R.call_tir(sized, (v,), f32[Tensor, 4], sym_args=(n,))
    b = R.call_library("lib_f", (a,), f32[Tensor, n], attrs={"note": 1})
    c = R.call_engine("onnxruntime", sub, (b,), f32[Tensor, n], attrs={"note": 1})
    d = R.call_python(host, (c,), f32[Tensor, n])
    return sub(d)
""",
    "flow": """
n = dim("n")

@script.function
def main(x: f32[Tensor, n, 4], p: R.Prim("int64"), q: R.Tuple(f32[Tensor, 2], R.Object),
    h: R.Shape(n, 2), f: R.Func([f32[Tensor, 2]], f32[Tensor, 2],
        pure=True)) -> R.Tuple(f32[Tensor, 4], f32[Tensor, n, 4]):
    zero = R.zeros((4,), dtype="float32")

    def step(total, row):
        more = R.add(total, row)
        return (more, more)

    sums = R.scan(step, init=(zero,), inputs=(x,))

    def going(total):
        return R.less(R.sum(total), 10.0)

    def twice(total):
        return (R.multiply(total, 2.0),)

    last = R.while_loop(going, twice, (zero,))
    shape = R.shape(n, 4)
    number = R.prim(3, "int64")
    casted = R.match_cast(x, f32[Tensor, n, 4])
    return (sums[0], sums[1])
""",
    "effects": """
@script.function(pure=False)
def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    R.print(x, 1, format="{} {}")
    R.assert_op(R.greater(R.sum(x), 0.0), x, format="got {}")
    a = R.call_packed("host.f", x, R.text("fast"), R.dtype("float32"), out=f32[Tensor, 4])
    b = R.call_pure_packed("host.g", a, 2, out=f32[Tensor, 4])
    return b
""",
    "types": """
@script.function
def main(a: f32[Tensor, R.rank(2)], b: f32[Tensor, ...], c: R.any_dtype[Tensor, 2],
    d: R.Shape(R.rank(2)), e: R.Shape(...), g: R.Prim("int64", 3)) -> f32[Tensor, R.rank(2)]:
    return R.exp(a)
""",
}
"""Graph functions, by what they show; `HOSTS` has the functions of Python that they call."""


def copied(x: Array, y: Array) -> None:
    """What ``host`` is in the programs."""
    y[...] = x


HOSTS: Mapping[str, object] = {"host": copied}
