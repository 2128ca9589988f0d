"""Programs in TVMScript that use what tvmscript mode reads; `mutations` make them wrong."""

from __future__ import annotations

TVM_PROGRAMS = {
    "loops": """
@T.prim_func
def main(A: T.Buffer((16, 8), "float32", strides=None, elem_offset=0, scope="global", align=64,
    offset_factor=1, axis_separators=None), B: T.Buffer((16, 8), "float32")):
    T.func_attr({"tir.noalias": True})
    for i in T.serial(0, 16, annotations={"note": 1}):
        for j in T.vectorized(0, 8):
            B[i, j] = A[i, j]
    for i in T.parallel(0, 16, annotations={"note": 1}):
        for j in T.unroll(0, 8):
            B[i, j] = A[i, j]
    for i in T.thread_binding(0, 16, thread="threadIdx.x", annotations={"note": 1}):
        B[i, 0] = T.float32(1)
    for i, j in T.grid(16, 8):
        B[i, j] = T.max(A[i, j], T.float32(0)) + T.exp(A[i, j])
""",
    "blocks": """
@T.prim_func
def main(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16,), "float32")):
    t = T.alloc_buffer((16, 8), "float32", scope="local")
    u = T.decl_buffer((16, 8), "float32", scope="global")
    for i, k in T.grid(16, 8):
        with T.block("copy"):
            vi = T.axis.spatial(16, i)
            vk = T.axis.spatial(8, k)
            T.reads(A[vi, vk])
            T.writes(t[vi, vk])
            T.block_attr({"note": 1})
            t[vi, vk] = A[vi, vk]
    for i, k in T.grid(16, 8):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.where(i < 16)
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + t[vi, vk]
    for i, k in T.grid(16, 8):
        with T.block("sum2"):
            vi = T.axis.S(16, i)
            vk = T.axis.reduce(8, k)
            with T.init():
                B[vi] = T.min_value("float32")
            B[vi] = T.max(B[vi], T.cast(t[vi, vk], "float32"))
""",
    "handles": """
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n, 8), "float32", offset_factor=1)
    B = T.match_buffer(b, (n, 8), "float32")
    for i, j in T.grid(n, 8):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.if_then_else(vi < 3, A[vi, vj], T.Cast("float32",
                vj)) + T.Select(vi < 2, A[vi, vj], T.float32(0))
""",
    "calls": """
@T.prim_func
def k(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        B[i] = A[i]

@R.function
def main(x: R.Tensor((4,), dtype="float32"), y: R.Tensor((2, 3), "float32", ndim=2),
    s: R.Shape([2, 3]), p: R.Prim("int64"), q: R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,),
        "float32")), z: R.Tensor(ndim=2, dtype="float32")) -> R.Tensor((4,), dtype="float32"):
    R.func_attr({"note": 1})
    with R.dataflow():
        a = R.call_tir(k, (x,), out_sinfo=R.Tensor((4,), dtype="float32"))
        b = R.call_dps_packed("lib_f", (a,), out_sinfo=R.Tensor((4,), dtype="float32"))
        c = R.match_cast(b, R.Tensor((4,), "float32"))
        t = R.tuple(a, c)
        h = R.shape([2, 3])
        w = R.reshape(y, R.shape([3, 2]))
        d = R.const(1.0, "float32")
        e = R.add(c, d)
        R.output(e)
    return e
""",
    "inplace": """
@T.prim_func
def k(A: T.Buffer((4,), "float32")):
    for i in range(4):
        A[i] = A[i] + T.float32(1)

@R.function
def main(x: R.Tensor((4,), dtype="float32")):
    a = R.call_tir_inplace(k, (x,), inplace_indices=[0], out_sinfo=R.Tensor((4,), dtype="float32"))
    return a
""",
    "scalars": """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), I: T.Buffer((16,), "int32"), B: T.Buffer((16,),
    "float32"), J: T.Buffer((16,), "int32")):
    for i in T.serial(T.ceildiv(16, 2)):
        x: T.float32 = A[i]
        B[i] = T.exp(x, dtype="float32") + T.min(A[i], T.float32(2))
        J[i] = T.floordiv(I[i], T.int32(3)) + T.truncmod(I[i], 5) + T.shift_left(I[i],
            1) + T.bitwise_and(I[i], 7)
        B[i + 8] = I[i].astype("float32") + T.max_value("float32") + T.pow(A[i],
            T.FloatImm("float32", 2.0))
        J[i + 8] = T.IntImm("int32", 4) + T.if_then_else(i < 3, I[i], T.int32(0))
""",
    "effects": """
@R.function(pure=False)
def main(x: R.Tensor((4,), dtype="float32")):
    a = R.call_packed("f", x, sinfo_args=R.Tensor((4,), dtype="float32"))
    b = R.call_pure_packed("g", a, sinfo_args=R.Tensor((4,), dtype="float32"))
    return b
""",
    "callable": """
@R.function
def main(x: R.Tensor((4,), dtype="float32"), f: R.Callable((R.Tensor((4,), "float32"),),
    R.Tensor((4,), "float32"), True)):
    y = f(x)
    z = R.one_hot(R.argmax(x, axis=0, keepdims=True), R.prim_value(1), R.prim_value(0), 4)
    w = R.strided_slice(x, axes=[0], begin=[0], end=[2], strides=[1], assume_inbound=False)
    v = R.topk(x, k=1, axis=-1, ret_type="values", largest=True, dtype="int32")
    return v
""",
    "decorated": """
@I.ir_module(check_well_formed=True, s_tir=True)
class Module:
    @T.prim_func(private=False, check_well_formed=True, s_tir=True)
    def k(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        T.func_attr({"tir.noalias": True, "global_symbol": "k", "note": 1})
        for i in range(4):
            B[i] = T.hypot(A[i], T.float32(2))

    @R.function(private=True, check_well_formed=True, pure=True)
    def main(x: R.Tensor((4, 8), "float32")):
        y = R.layout_transform(x, index_map=T.index_map(lambda i, j: (j, i), index_dtype="int64",
            inverse_index_map=None))
        return y
""",
    "returns": """
@T.prim_func
def main(x: T.int32, y: T.int32) -> T.int32:
    if x > y:
        T.ret(x, dtype="int32")
    T.evaluate(T.ret(x * y, span=None))
""",
}
"""By what they show."""
