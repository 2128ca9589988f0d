"""Prim funcs as written parse to the IR one would build by hand."""

from __future__ import annotations

from unity import script
from unity.ir.attrs import Attrs
from unity.ir.dims import dim as symbol
from unity.ir.dtype import BOOL, FLOAT32, INT32, INT64, dtype
from unity.ir.equality import first_difference
from unity.ir.prim_expr import (
    Binary,
    Cast,
    Compare,
    Imm,
    Intrinsic,
    Load,
    Not,
    PrimVar,
    Ramp,
    Select,
    SizeVar,
    imm,
)
from unity.ir.stmt import (
    Allocate,
    Assert,
    Block,
    BlockAxis,
    Evaluate,
    For,
    IfThen,
    Let,
    PrimFunc,
    PrimWhile,
    Range,
    Region,
    Seq,
    Store,
)
from unity.ir.stmt import (
    Buffer as IRBuffer,
)
from unity.ir.symbols.convert import size_var
from unity.script import Buffer, T, dim, f32, i32, i64

n = dim("n")
N = SizeVar("n")
ONE = imm(1)
ZERO = imm(0)


def same(got: script.ScriptPrimFunc[...], expected: PrimFunc) -> None:
    assert first_difference(got.func, expected) is None


def point(*indices: PrimVar) -> tuple[Range, ...]:
    return tuple(Range(i, ONE) for i in indices)


def test_matmul() -> None:
    @script.prim_func
    def matmul(a: f32[Buffer, n, 128], b: f32[Buffer, 128, 64], c: f32[Buffer, n, 64]) -> None:
        for i, j, k in T.grid(n, 64, 128):
            with T.block("matmul"):
                vi, vj, vk = T.axis.remap("SSR", i, j, k)
                with T.init():
                    c[vi, vj] = 0.0
                c[vi, vj] += a[vi, vk] * b[vk, vj]

    a = IRBuffer("a", (N, imm(128)), FLOAT32)
    b = IRBuffer("b", (imm(128), imm(64)), FLOAT32)
    c = IRBuffer("c", (N, imm(64)), FLOAT32)
    i, j, k = PrimVar("i"), PrimVar("j"), PrimVar("k")
    vi, vj, vk = PrimVar("vi"), PrimVar("vj"), PrimVar("vk")
    block = Block(
        "matmul",
        (
            BlockAxis(vi, "S", Range(ZERO, N), i),
            BlockAxis(vj, "S", Range(ZERO, imm(64)), j),
            BlockAxis(vk, "R", Range(ZERO, imm(128)), k),
        ),
        (Region(a, point(vi, vk)), Region(b, point(vk, vj))),
        (Region(c, point(vi, vj)),),
        Store(c, (vi, vj), Load(c, (vi, vj)) + Load(a, (vi, vk)) * Load(b, (vk, vj))),
        init=Store(c, (vi, vj), Imm(0.0, FLOAT32)),
    )
    nest = For(i, ZERO, N, For(j, ZERO, imm(64), For(k, ZERO, imm(128), block)))
    same(matmul, PrimFunc((a, b, c), nest))


def test_every_kind_of_loop() -> None:
    @script.prim_func
    def loops(c: f32[Buffer, n, 8, 4]) -> None:
        for i in T.parallel(n):
            for j in T.vectorized(8):
                for k in T.unroll(1, 4):
                    c[i, j, k] = 1.0
        for t in T.thread(n, "threadIdx.x", attrs={"hint": 2}):
            c[t, 0, 0] = 2.0
        for s in range(n):
            for u in T.serial(s, s + 3):
                c[s, u, 0] = 3.0

    c = IRBuffer("c", (N, imm(8), imm(4)), FLOAT32)
    i, j, k, t, s, u = (PrimVar(x) for x in "ijktsu")
    inner = For(k, ONE, imm(3), Store(c, (i, j, k), Imm(1.0, FLOAT32)), "unrolled")
    first = For(i, ZERO, N, For(j, ZERO, imm(8), inner, "vectorized"), "parallel")
    second = For(
        t,
        ZERO,
        N,
        Store(c, (t, ZERO, ZERO), Imm(2.0, FLOAT32)),
        "thread",
        "threadIdx.x",
        Attrs(hint=2),
    )
    third = For(s, ZERO, N, For(u, s, imm(3), Store(c, (s, u, ZERO), Imm(3.0, FLOAT32))))
    same(loops, PrimFunc((c,), Seq((first, second, third))))


def test_a_let_and_an_allocation_hold_the_rest_of_their_suite() -> None:
    @script.prim_func(attrs={"num_outputs": 1})
    def stages(a: f32[Buffer, n], c: f32[Buffer, n]) -> None:
        tmp = T.alloc((n, 2), "float32", scope="local", align=16)
        for i in range(n):
            x = T.let(a[i] * 2)
            tmp[i, 0] = x
            c[i] = tmp[i, 0] + x

    a, c = IRBuffer("a", (N,), FLOAT32), IRBuffer("c", (N,), FLOAT32)
    tmp = IRBuffer("tmp", (N, imm(2)), FLOAT32, scope="local", align=16)
    i, x = PrimVar("i"), PrimVar("x", FLOAT32)
    rest = Seq((Store(tmp, (i, ZERO), x), Store(c, (i,), Load(tmp, (i, ZERO)) + x)))
    body = Let(x, Binary("mul", Load(a, (i,)), Imm(2.0, FLOAT32)), rest)
    expected = PrimFunc((a, c), Allocate(tmp, For(i, ZERO, N, body)), Attrs(num_outputs=1))
    same(stages, expected)


def test_block_with_everything() -> None:
    @script.prim_func
    def kernel(
        a: f32[Buffer, n, 64], c: f32[Buffer, n, 64], s: f32[T.Scalar, ()], k: T.size
    ) -> None:
        for i, j in T.grid(n, 4):
            with T.block("b", attrs={"tag": "x"}):
                vi = T.axis.spatial(n, i)
                vj = T.axis.opaque((1, 5), j * 2 + 1)
                T.where(i * 2 < k)
                T.reads(a[vi, 0:64])
                T.writes(c[vi, vj : vj + 4])
                loc = T.block_alloc((4,), "float32", scope="local")
                loc[0] = a[vi, vj] * s
                c[vi, vj] = loc[0]

    a = IRBuffer("a", (N, imm(64)), FLOAT32)
    c = IRBuffer("c", (N, imm(64)), FLOAT32)
    s, k = PrimVar("s", FLOAT32), SizeVar("k")
    i, j, vi, vj = PrimVar("i"), PrimVar("j"), PrimVar("vi"), PrimVar("vj")
    loc = IRBuffer("loc", (imm(4),), FLOAT32, scope="local")
    block = Block(
        "b",
        (
            BlockAxis(vi, "S", Range(ZERO, N), i),
            BlockAxis(vj, "O", Range(ONE, imm(4)), j * 2 + 1),
        ),
        (Region(a, (Range(vi, ONE), Range(ZERO, imm(64)))),),
        (Region(c, (Range(vi, ONE), Range(vj, imm(4)))),),
        Seq(
            (
                Store(loc, (ZERO,), Load(a, (vi, vj)) * s),
                Store(c, (vi, vj), Load(loc, (ZERO,))),
            )
        ),
        predicate=Compare("lt", i * 2, k),
        allocations=(loc,),
        attrs=Attrs(tag="x"),
    )
    same(kernel, PrimFunc((a, c, s, k), For(i, ZERO, N, For(j, ZERO, imm(4), block))))


def test_expressions() -> None:
    @script.prim_func
    def exprs(a: f32[Buffer, n], x: i32[Buffer, n], c: f32[Buffer, n], d: i32[Buffer, n]) -> None:
        for i in range(n):
            c[i] = T.select(a[i] > 0, T.exp(a[i]), -a[i]) / 2
            c[i] = T.max(a[i], 0.5) if i < n - 1 and not (x[i] > 3) else 0.0
            d[i] = x[i] // 2 % 3 + T.truncdiv(x[i], 5)
            d[i] = T.cast("int32", i) ^ (x[i] << 2)
            c[x[i]] = T.imm("float32", "inf")

    a, c = IRBuffer("a", (N,), FLOAT32), IRBuffer("c", (N,), FLOAT32)
    x, d = IRBuffer("x", (N,), INT32), IRBuffer("d", (N,), INT32)
    i = PrimVar("i")
    ai, xi = Load(a, (i,)), Load(x, (i,))

    def f(v: float) -> Imm:
        return Imm(v, FLOAT32)

    def k(v: int) -> Imm:
        return Imm(v, INT32)

    select = Select(
        Compare("gt", ai, f(0.0)), Intrinsic("exp", (ai,), FLOAT32), Binary("mul", ai, f(-1.0))
    )
    condition = Binary("and", Compare("lt", i, Binary("sub", N, ONE)), Not(Compare("gt", xi, k(3))))
    quotient = Binary("floormod", Binary("floordiv", xi, k(2)), k(3))
    stores = (
        Store(c, (i,), Binary("div", select, f(2.0))),
        Store(c, (i,), Select(condition, Binary("max", ai, f(0.5)), f(0.0))),
        Store(d, (i,), Binary("add", quotient, Binary("truncdiv", xi, k(5)))),
        Store(d, (i,), Binary("xor", Cast(INT32, i), Binary("shl", xi, k(2)))),
        Store(c, (Cast(INT64, xi),), f(float("inf"))),
    )
    same(exprs, PrimFunc((a, x, c, d), For(i, ZERO, N, Seq(stores))))


def test_lowered_form() -> None:
    @script.prim_func
    def lowered(a: f32[Buffer, n], c: f32[Buffer, n], flag: i64[Buffer, ()]) -> None:
        assert n > 0, "empty"
        while flag[()] < 3:
            T.evaluate(T.call("prefetch", a[0], dtype="int32"))
        if n > 8:
            T.store(
                c,
                (T.ramp(0, 1, 8),),
                T.load(a, (T.ramp(0, 1, 8),), T.broadcast(True, 8)) + T.broadcast(1.0, 8),
                T.broadcast(n > 4, 8),
            )
        elif n > 4:
            pass
        else:
            c[0] = 1.0

    from unity.ir.prim_expr import Broadcast

    a, c = IRBuffer("a", (N,), FLOAT32), IRBuffer("c", (N,), FLOAT32)
    flag = IRBuffer("flag", (), INT64)
    ramp = Ramp(ZERO, ONE, 8)
    value = Binary(
        "add",
        Load(a, (ramp,), Broadcast(Imm(True, BOOL), 8)),
        Broadcast(Imm(1.0, FLOAT32), 8),
    )
    store = Store(c, (ramp,), value, Broadcast(Compare("gt", N, imm(4)), 8))
    last = IfThen(Compare("gt", N, imm(4)), Seq(()), Store(c, (ZERO,), Imm(1.0, FLOAT32)))
    body = Seq(
        (
            Assert(Compare("gt", N, ZERO), "empty"),
            PrimWhile(
                Compare("lt", Load(flag, ()), imm(3)),
                Evaluate(Intrinsic("prefetch", (Load(a, (ZERO,)),), INT32)),
            ),
            IfThen(Compare("gt", N, imm(8)), store, last),
        )
    )
    same(lowered, PrimFunc((a, c, flag), body))


def test_buffer_extras_and_symbol_arithmetic() -> None:
    m = dim("m", min=1, multiple_of=4)

    @script.prim_func
    def strided(
        a: f32[Buffer, n, m // 4, T.strides(m * 2, 1), T.scope("shared"), T.align(16)],
    ) -> None:
        a[n - 1, 0] = 0.0

    size = size_var(symbol("m", min=1, multiple_of=4))
    a = IRBuffer(
        "a",
        (N, Binary("floordiv", size, imm(4))),
        FLOAT32,
        (Binary("mul", size, imm(2)), ONE),
        "shared",
        16,
    )
    body = Store(a, (Binary("sub", N, ONE), ZERO), Imm(0.0, FLOAT32))
    same(strided, PrimFunc((a,), body))


def test_extents_may_call_the_language() -> None:
    text = """
n = dim("n")
@script.prim_func
def kernel(a: f32[Buffer, T.min(1, n), T.strides(T.max(n, 2))], c: f32[Buffer, max(n, 2)]) -> None:
    a[0] = 0.0
"""
    a, c = script.parse(text).prim_funcs()["kernel"].buffers
    assert a.shape == (Binary("min", ONE, N),)
    assert a.strides == (Binary("max", N, imm(2)),)
    assert c.shape == (Binary("max", N, imm(2)),)


def test_a_size_parameter_is_the_symbol_of_its_name() -> None:
    text = """
T_ = dim("T", min=1)
@script.prim_func
def kernel(a: f32[Buffer, 4], T_: T.size, k: T.size) -> None:
    a[0] = T.cast("float32", T_ + k)
"""
    params = script.parse(text).prim_funcs()["kernel"].params
    assert params[1:] == (size_var(symbol("T", min=1)), SizeVar("k"))


def test_captured_values_come_from_the_surroundings() -> None:
    def make(size: int, scale: float, kind: str) -> script.ScriptPrimFunc[...]:
        @script.prim_func
        def kernel(a: f32[Buffer, size], c: f32[Buffer, size]) -> None:  # pyright: ignore
            for i in T.serial(size // 2, size):
                with T.block(kind):
                    vi = T.axis.spatial(size, i)
                    c[vi] = a[vi] * scale

        return kernel

    got = make(8, 0.5, "half")
    a, c = IRBuffer("a", (imm(8),), FLOAT32), IRBuffer("c", (imm(8),), FLOAT32)
    i, vi = PrimVar("i"), PrimVar("vi")
    block = Block(
        "half",
        (BlockAxis(vi, "S", Range(ZERO, imm(8)), i),),
        (Region(a, point(vi)),),
        (Region(c, point(vi)),),
        Store(c, (vi,), Load(a, (vi,)) * 0.5),
    )
    same(got, PrimFunc((a, c), For(i, imm(4), imm(4), block)))


def test_spans_are_absolute() -> None:
    @script.prim_func
    def kernel(c: f32[Buffer, 4]) -> None:
        c[0] = 1.0

    body = kernel.func.body
    assert isinstance(body, Store)
    assert body.span is not None
    assert body.span.file == __file__
    line = test_spans_are_absolute.__code__.co_firstlineno + 3
    assert (body.span.line, body.span.column) == (line, 8)
    assert (body.span.end_line, body.span.end_column) == (line, 18)


def test_explicit_suites_and_sequences() -> None:
    @script.prim_func
    def kernel(c: f32[Buffer, 4]) -> None:
        with T.suite():
            x = T.let(1.0)
            c[0] = x
        with T.seq():
            c[1] = 1.0

    c = IRBuffer("c", (imm(4),), FLOAT32)
    x = PrimVar("x", FLOAT32)
    body = Seq(
        (
            Let(x, Imm(1.0, FLOAT32), Store(c, (ZERO,), x)),
            Seq((Store(c, (ONE,), Imm(1.0, FLOAT32)),)),
        )
    )
    same(kernel, PrimFunc((c,), body))


def test_dtype_names() -> None:
    assert dtype("i32") == INT32
