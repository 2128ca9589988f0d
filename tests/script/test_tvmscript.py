"""TVMScript modules, as TVM's users have them, mean what ours mean."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

import unity
from unity import script
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.equality import first_difference
from unity.ir.module import IRModule
from unity.ir.well_formed.verify import verify
from unity.script import tvmscript

OURS = """
n = dim("n")

@script.prim_func(attrs={"private": True})
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


def test_shapes_of_one_dim_and_of_none() -> None:
    assert first_difference(tvmscript.parse(kernel()), tvmscript.parse(kernel(shape="16"))) is None
    one = tvmscript.parse(kernel(shape="T.int64(16)"))
    assert first_difference(tvmscript.parse(kernel()), one) is None
    text = """
@R.function
def main(
    a: R.Tensor(None, dtype="float32", ndim=2), b: R.Tensor(None, "float32"),
    c: R.Tensor((2, 3), "float32", ndim=2), d: R.Tensor(dtype="float32", ndim=-1), s: R.Shape(None)
):
    return a
"""
    printed = script.print_module(tvmscript.parse(text))
    assert "a: f32[Tensor, R.rank(2)], b: f32[Tensor, ...], c: f32[Tensor, 2, 3]" in printed
    assert "d: f32[Tensor, ...], s: R.Shape(...)" in printed
    with pytest.raises(UnityError, match="ndim=3, got 2 dims"):
        tvmscript.parse(text.replace('"float32", ndim=2), d', '"float32", ndim=3), d'))
    with pytest.raises(UnityError, match="a shape must be a tuple"):
        tvmscript.parse(kernel(shape="other"))  # a name that may be captured as a tuple


def test_mistakes_are_at_their_place() -> None:
    bad = THEIRS.replace("C[vi, vj] = T.float32(0)", "C[vi] = T.float32(0)")
    with pytest.raises(UnityError, match="C has 2 dims, got 1 index") as caught:
        tvmscript.parse(bad)
    assert caught.value.span is not None
    line = bad.splitlines()[caught.value.span.line - 1]
    assert line.strip() == "C[vi] = T.float32(0)"


def products(kind: str, wide: str) -> str:
    return f"""
@R.function
def main(x: R.Tensor((2, 64), "{kind}"), w: R.Tensor((64, 2), "{kind}")):
    return R.matmul(x, w, out_dtype="{wide}")
"""


@pytest.mark.parametrize(("kind", "wide"), [("float16", "float32"), ("int8", "int32")])
def test_products_are_made_in_the_dtype_that_is_asked_for(kind: str, wide: str) -> None:
    x = np.full((2, 64), 100, kind)
    result = np.asarray(interpret(tvmscript.parse(products(kind, wide)), "main", [x, x.T]))
    np.testing.assert_array_equal(result, np.full((2, 2), 640_000, wide))


def test_what_tvm_leaves_open_is_left_out() -> None:
    module = tvmscript.parse(products("float16", "void"))
    assert "out_dtype" not in script.print_module(module)


def test_defaults_that_differ_are_written_down() -> None:
    text = """
@R.function
def main(x: R.Tensor((2, 8), "float32")):
    return R.topk(x, 2, -1, "both", False)
"""
    printed = script.print_module(tvmscript.parse(text))
    assert 'R.topk(x, k=2, largest=False, dtype="int32")' in printed


def test_causal_masks_have_the_same_words() -> None:
    text = """
@R.function
def main(x: R.Tensor((1, 4, 2, 8), "float32")):
    return R.nn.attention(x, x, x, None, None, "BottomRight")
"""
    printed = script.print_module(tvmscript.parse(text))
    assert 'R.nn.attention(x, x, x, causal_mask="BottomRight")' in printed


@pytest.mark.parametrize("queries", [3, 10, 16])
def test_bottom_right_is_relaxes(queries: int) -> None:
    """Of more queries than keys, too: its diagonal lies the difference later."""
    text = f"""
@R.function
def main(q: R.Tensor((1, {queries}, 2, 8), "float32"), k: R.Tensor((1, 8, 2, 8), "float32")):
    return R.nn.attention(q, k, k, causal_mask="BottomRight")
"""
    module = tvmscript.parse(text)
    rng = np.random.default_rng(queries)
    q, k = (rng.standard_normal((1, n, 2, 8), np.float32) for n in (queries, 8))
    scores = np.einsum("bihd,bjhd->bhij", q, k) / np.sqrt(8)
    scores = np.where(np.tri(queries, 8, abs(8 - queries), bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    want = np.einsum("bhij,bjhd->bihd", weights, k)
    np.testing.assert_allclose(unity.compile(module)(q, k), want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        np.asarray(interpret(module, "main", [q, k])), want, rtol=1e-4, atol=1e-5
    )


def kernel(
    head: str = "", loop: str = "T.serial(16)", value: str = "A[i]", shape: str = "(16,)"
) -> str:
    return f"""
@T.prim_func
def f(a: T.handle, C: T.Buffer({shape}, "float32")):
    offset = T.int32()
    stride = T.int32()
    A = T.match_buffer(a, {shape}, "float32"{head})
    t = T.alloc_buffer({shape}, "float32", scope="global", align=128, strides=[1])
    for i in {loop}:
        C[i] = {value}
"""


def test_promises_that_change_nothing_are_taken() -> None:
    module = tvmscript.parse(kernel(", elem_offset=offset, offset_factor=1, strides=[stride]"))
    assert "T.strides(stride)" in script.print_module(module)
    assert "strides=(1,), align=128" in script.print_module(module)
    same = tvmscript.parse(kernel(value='T.exp(A[i], dtype="float32")'))
    assert first_difference(same, tvmscript.parse(kernel(value="T.exp(A[i])"))) is None


REFUSED = {
    "an offset": (kernel(", elem_offset=4"), "Unity has no elem_offset=4 for T.match_buffer"),
    "separators": (kernel(", axis_separators=[1]"), r"no axis_separators=\[1\]"),
    "another array": (kernel(", data=t.data"), "no data=t.data"),
    "no such thing": (kernel(", sparse=True"), "T.match_buffer has no parameter 'sparse'"),
    "a step": (kernel(loop="T.serial(0, 16, step=0)"), "step is a positive number"),
    "no such option": (kernel(loop="T.serial(16, pace=2)"), "T.serial has no parameter 'pace'"),
    "no such part": (kernel(loop="T.grid(16, tile=2)"), "T.grid has no parameter 'tile'"),
    "a dtype": (kernel(value='T.exp(A[i], dtype="float64")'), "the call says float64"),
    "a keyword": (kernel(value="T.exp(A[i], fast=True)"), "T.exp has no parameter 'fast'"),
    "one argument": (kernel(value="T.cast(A[i])"), "T.cast needs 'dtype'"),
    "no shape": (
        kernel().replace('(16,), "float32")):', 'dtype="float32")):'),
        "T.Buffer needs 'shape'",
    ),
    "an unknown option": (
        kernel().replace("@T.prim_func", "@T.prim_func(persistent=True)"),
        "T.prim_func has no parameter 'persistent'",
    ),
    "a device": (
        products("float32", "void").replace('(2, 64), "float32"', '(2, 64), "float32", "cuda"'),
        "the module has no virtual device 'cuda'",
    ),
    "a mask": (
        """
@R.function
def main(x: R.Tensor((1, 4, 8, 8), "float32")):
    return R.nn.attention(x, x, x, window_size=4)
""",
        "no window_size=4",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_nothing_that_is_said_is_dropped(case: str) -> None:
    text, message = REFUSED[case]
    with pytest.raises(UnityError, match=message) as caught:
        tvmscript.parse(text)
    assert caught.value.span is not None


def test_options_of_the_decorators() -> None:
    assert run(DECORATED.replace("@I.ir_module", "@I.ir_module(s_tir=True)"), "Decorated")
    with pytest.raises(UnityError, match=r"I\.ir_module has no parameter 'pace'"):
        run(DECORATED.replace("@I.ir_module", "@I.ir_module(pace=1)"), "Decorated")
    with pytest.raises(UnityError, match=r"T\.prim_func has no parameter 'pace'"):
        run(ALONE.replace("@T.prim_func", "@T.prim_func(pace=1)"), "fill")


def test_functions_that_leave_out_their_result_are_read_before_they_are_called() -> None:
    module = tvmscript.parse("""
@I.ir_module
class Calls:
    @R.function
    def main(x: R.Tensor((2, 3), "float32")):
        cls = Calls
        y: R.Tensor((3, 2), "float32") = cls.turned(x)
        return y

    @R.function
    def turned(x: R.Tensor((2, 3), "float32")):
        return Calls.again(R.permute_dims(x, (1, 0)))

    @R.function(private=True)
    def again(x: R.Tensor((3, 2), "float32")):
        empty: R.Tuple = R.tuple()
        return R.nn.relu(x)
""")
    assert list(module.functions) == ["main", "turned", "again"]
    x = np.arange(-3, 3, dtype=np.float32).reshape(2, 3)
    found = np.asarray(interpret(module, "main", [x]))
    np.testing.assert_array_equal(found, np.maximum(x.T, 0))
