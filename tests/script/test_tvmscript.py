"""TVMScript modules, as TVM's users have them, mean what ours mean."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

from unity import script
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.equality import first_difference
from unity.ir.module import IRModule
from unity.ir.verify import verify
from unity.script import tvmscript

OURS = """
n = dim("n")

@script.prim_func
def matmul(A: f32[Buffer, n, 128], B: f32[Buffer, 128, 64], C: f32[Buffer, n, 64]) -> None:
    for i, j, k in T.grid(n, 64, 128):
        with T.block("matmul", attrs={"tiled": True}):
            vi, vj, vk = T.axis.remap("SSR", i, j, k)
            T.reads(A[vi, vk], B[vk, vj])
            T.writes(C[vi, vj])
            with T.init():
                C[vi, vj] = T.imm("float32", 0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

@script.function
def main(x: f32[Tensor, n, 128], w: f32[Tensor, 128, 64]) -> f32[Tensor, n, 64]:
    with R.dataflow():
        lv = R.call_tir(matmul, (x, w), out=f32[Tensor, n, 64])
        gv: f32[Tensor, n, 64] = R.nn.relu(lv)
    return gv
"""
THEIRS = """
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T

@I.ir_module
class Module:
    I.module_global_infos({"vdevice": []})

    @T.prim_func(private=True)
    def matmul(
        var_A: T.handle, B: T.Buffer((T.int64(128), T.int64(64)), "float32"), var_C: T.handle
    ):
        T.func_attr({"global_symbol": "matmul", "tir.noalias": T.bool(True)})
        n = T.int64()
        A = T.match_buffer(var_A, (n, T.int64(128)))
        C = T.match_buffer(var_C, (n, T.int64(64)), "float32")
        for i, j, k in T.grid(n, T.int64(64), T.int64(128)):
            with T.sblock("matmul"):
                T.sblock_attr({"tiled": T.bool(True)})
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads([A[vi, vk], B[vk, vj]])
                T.writes([C[vi, vj]])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    @R.function
    def main(
        x: R.Tensor(("n", 128), dtype="float32"), w: R.Tensor((128, 64), "float32")
    ) -> R.Tensor(("n", 64), "float32"):
        n = T.int64()
        cls = Module
        with R.dataflow():
            lv = R.call_tir(cls.matmul, (x, w), out_sinfo=R.Tensor((n, 64), dtype="float32"))
            gv: R.Tensor((n, 64), dtype="float32") = R.nn.relu(lv)
            R.output(gv)
        return gv
"""


def test_a_text() -> None:
    module = tvmscript.parse(THEIRS)
    assert first_difference(module, script.parse(OURS)) is None
    verify(module)


DECORATED = """
from unity.script.tvmscript import I, R, T

@I.ir_module
class Decorated:
    @T.prim_func
    def scale(a: T.Buffer((4, 8), "float32"), c: T.Buffer((4, 8), "float32")):
        for i in T.parallel(4):
            for j in T.vectorized(0, 8):
                with T.block("scale"):
                    vi = T.axis.spatial(4, i)
                    vj = T.axis.S(8, j)
                    t = T.alloc_buffer((1,), "float32", scope="local")
                    t[0] = T.max(a[vi, vj], T.float32(0)) * T.float32(2)
                    c[vi, vj] = T.Select(vi < 2, t[0], T.Cast("float32", vj))

    @R.function
    def main(x: R.Tensor((4, 8), "float32")) -> R.Tensor((4, 8), "float32"):
        with R.dataflow():
            gv = R.call_tir(Decorated.scale, (x,), out_sinfo=R.Tensor((4, 8), "float32"))
            R.output(gv)
        return gv
"""
ALONE = """
from unity.script.tvmscript import T

def make(width):
    @T.prim_func
    def fill(c: T.Buffer((width,), "int32")):
        for i in range(width):
            c[i] = T.min_value("int32")
    return fill

fill = make(16)
"""


def run(text: str, name: str) -> IRModule:
    """What a file with this text defines under a name."""
    file = f"<{name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, object] = {}
    exec(compile(text, file, "exec"), names)
    found = names[name]
    assert isinstance(found, IRModule)
    return found


def test_a_decorated_class() -> None:
    module = run(DECORATED, "Decorated")
    verify(module)
    x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)
    wanted = np.maximum(x, 0) * 2
    wanted[2:] = np.arange(8)
    result = np.asarray(interpret(module, "main", [x]), np.float32)
    np.testing.assert_allclose(result, wanted)


def test_a_function_that_stands_alone_and_captures() -> None:
    assert "c: i32[Buffer, 16]" in script.print_module(run(ALONE, "fill"))


def test_results_of_several_outputs() -> None:
    text = """
@I.ir_module
class M:
    @T.prim_func
    def two(
        a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32"), c: T.Buffer((4,), "float32")
    ):
        for i in range(4):
            b[i] = a[i]
            c[i] = a[i]
    @R.function
    def main(
        x: R.Tensor((4,), "float32")
    ) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
        cls = M
        return R.call_tir(
            cls.two, (x,), out_sinfo=[R.Tensor((4,), "float32"), R.Tensor((4,), "float32")]
        )
"""
    module = tvmscript.parse(text)
    assert module.prim_funcs()["two"].attrs["num_outputs"] == 2
    verify(module)


def test_types() -> None:
    text = """
@R.function
def main(
    a: R.Tensor(dtype="float32", ndim=2), b: R.Tensor, s: R.Shape(["m", 2]), p: R.Prim("int64")
) -> R.Shape(ndim=2):
    m = T.int64()
    return R.shape([m, 2 * m])
"""
    printed = script.print_module(tvmscript.parse(text))
    assert "a: f32[Tensor, R.rank(2)], b: R.any_dtype[Tensor, ...], s: R.Shape(m, 2)" in printed
    with pytest.raises(UnityError, match=r"expected a type, got R\.Bogus"):
        tvmscript.parse(text.replace("b: R.Tensor,", "b: R.Bogus,"))


def test_mistakes_are_at_their_place() -> None:
    bad = THEIRS.replace("C[vi, vj] = T.float32(0)", "C[vi] = T.float32(0)")
    with pytest.raises(UnityError, match="C has 2 dims, got 1 index") as caught:
        tvmscript.parse(bad)
    assert caught.value.span is not None
    line = bad.splitlines()[caught.value.span.line - 1]
    assert line.strip() == "C[vi] = T.float32(0)"
