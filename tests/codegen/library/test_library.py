"""Library calls: OpenBLAS against numpy on random shapes; functions that users describe."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

import unity
from unity import script
from unity.codegen.library import (
    LIBRARY_FUNCTIONS,
    LibraryFunction,
    SharedLibrary,
    fixed_kernel,
    register_library_function,
)
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.dtype import Array
from unity.ir.module import IRModule
from unity.script import Buffer, T, f32, parse, print_module
from unity.transform import Context
from unity.transform.graph.resolve import LowerLibraryCalls
from unity.transform.pattern import any_, op

LIBM = ctypes.util.find_library("m")


def product(a: str, b: str, c: str, *, symbols: str = "", transposed: bool = False) -> IRModule:
    lines = [
        *(f'{s} = dim("{s}")' for s in symbols.split()),
        "@script.function",
        f"def main(x: {a}, w: {b}) -> {c}:",
        f'    y = R.call_library("openblas.gemm", (x, w), out={c}, '
        f'attrs={{"transposed": {transposed}}})',
        "    return y",
    ]
    return parse("\n".join(lines))


@pytest.mark.rotated(4)
@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    "shape",
    [((1,), 5, 7), ((3,), 1, 4), ((70,), 33, 65), ((2, 9), 16, 3), ((300,), 200, 100)],
)
def test_products_equal_numpy(
    width: int, transposed: bool, shape: tuple[tuple[int, ...], int, int]
) -> None:
    lead, k, n = shape
    rows = ", ".join(map(str, lead))
    right = f"{n}, {k}" if transposed else f"{k}, {n}"
    module = product(
        f"f{width}[Tensor, {rows}, {k}]",
        f"f{width}[Tensor, {right}]",
        f"f{width}[Tensor, {rows}, {n}]",
        transposed=transposed,
    )
    rng = np.random.default_rng(k)
    kind = np.dtype(f"float{width}")
    x = rng.standard_normal((*lead, k)).astype(kind)
    w = rng.standard_normal((n, k) if transposed else (k, n)).astype(kind)
    got = unity.compile(module)(x, w)
    tight = 1e-4 if width == 32 else 1e-10
    np.testing.assert_allclose(got, x @ (w.T if transposed else w), rtol=tight, atol=tight)


def test_symbolic_rows_and_batches() -> None:
    exe = unity.compile(
        product("f32[Tensor, b, m, 8]", "f32[Tensor, b, 8, n]", "f32[Tensor, b, m, n]",
                symbols="b m n")
    )  # fmt: skip
    assert exe.native() == {"main": "native"}
    rng = np.random.default_rng(1)
    for b, m, n in ((1, 1, 1), (3, 5, 7), (4, 20, 2)):
        x = rng.standard_normal((b, m, 8)).astype(np.float32)
        w = rng.standard_normal((b, 8, n)).astype(np.float32)
        np.testing.assert_allclose(exe(x, w), x @ w, rtol=1e-4, atol=1e-5)


def test_the_interpreter_calls_the_same_function() -> None:
    module = product("f32[Tensor, 6, 8]", "f32[Tensor, 8, 5]", "f32[Tensor, 6, 5]")
    lowered = LowerLibraryCalls()(module, Context())
    rng = np.random.default_rng(2)
    x = rng.standard_normal((6, 8)).astype(np.float32)
    w = rng.standard_normal((8, 5)).astype(np.float32)
    got = np.asarray(interpret(lowered, "main", [x, w]))
    np.testing.assert_allclose(got, x @ w, rtol=1e-5, atol=1e-5)
    assert print_module(parse(print_module(lowered))) == print_module(lowered)


def test_numpy_keeps_its_threads() -> None:
    from unity.codegen.library.openblas import OPENBLAS

    threads = ctypes.CFUNCTYPE(ctypes.c_int)(OPENBLAS.address("openblas_get_num_threads"))
    before = threads()
    exe = unity.compile(
        product("f32[Tensor, 64, 64]", "f32[Tensor, 64, 64]", "f32[Tensor, 64, 64]")
    )
    x = np.ones((64, 64), np.float32)
    exe(x, x)
    assert threads() == before


def test_sums_that_may_have_no_products_are_left_to_us() -> None:
    module = product("f32[Tensor, 1, k]", "f32[Tensor, k, 3]", "f32[Tensor, 1, 3]", symbols="k")
    with pytest.raises(UnityError, match="k may be 0"):
        unity.compile(module)


def test_no_columns_and_no_rows() -> None:
    exe = unity.compile(
        product("f32[Tensor, m, 4]", "f32[Tensor, 4, n]", "f32[Tensor, m, n]", symbols="m n")
    )
    for m, n in ((0, 3), (3, 0), (2, 3)):
        x, w = np.ones((m, 4), np.float32), np.ones((4, n), np.float32)
        np.testing.assert_array_equal(exe(x, w), np.full((m, n), 4, np.float32))


def test_dtypes_that_it_has_not_are_refused() -> None:
    module = product("i32[Tensor, 4, 4]", "i32[Tensor, 4, 4]", "i32[Tensor, 4, 4]")
    with pytest.raises(UnityError, match=r"openblas.gemm: takes float32 or float64"):
        unity.compile(module)


COSINES = """
n = dim("n")

@script.prim_func
def cosines(x: f32[Buffer, n], y: f32[Buffer, n]) -> None:
    for i in range(n):
        y[i] = T.call_extern("libm.cosf", x[i], dtype="float32")
"""


@pytest.mark.skipif(LIBM is None, reason="no C library of mathematics")
def test_a_users_function_takes_the_place_of_an_operator() -> None:
    SharedLibrary("libm", lambda: [LIBM or ""]).register()
    register_library_function(
        LibraryFunction(
            "libm.cos",
            fixed_kernel(parse(COSINES).prim_funcs()["cosines"]),
            np.cos,
            pattern=op("cos", any_("x")),
            inputs=("x",),
        )
    )
    module = parse(
        dedent("""
    @script.function
    def main(x: f32[Tensor, 9]) -> f32[Tensor, 9]:
        with R.dataflow():
            y = R.exp(R.cos(x))
        return y
    """)
    )
    exe = unity.compile(module, resolve={"cos": "library:libm"})
    assert exe.explain()["cos"].choice == "library:libm.cos"
    x = np.linspace(-3, 3, 9, dtype=np.float32)
    np.testing.assert_allclose(exe(x), np.exp(np.cos(x)), rtol=1e-5)


@pytest.mark.skipif(LIBM is None, reason="no C library of mathematics")
@pytest.mark.parametrize(
    ("oracle", "name", "why"),
    [
        (np.sin, "sin", "what it computes and its oracle differ"),
        (np.cos, "sin", "its oracle and its pattern differ"),
        (np.sin, "cos", "its oracle and its pattern differ"),
    ],
)
def test_a_function_that_is_not_what_is_said_is_refused(
    oracle: Callable[..., Array], name: str, why: str
) -> None:
    SharedLibrary("libm", lambda: [LIBM or ""]).register()
    kernel = fixed_kernel(parse(COSINES).prim_funcs()["cosines"])
    pattern = op(name, any_("x")) * 2.0
    wrong = LibraryFunction(
        "libm.wrong", kernel, lambda x: np.multiply(2, oracle(x)), pattern, ("x",)
    )
    with pytest.raises(
        UnityError, match=rf"libm.wrong: {why}, for x: float32\[\d+\]: at .*expected"
    ):
        register_library_function(wrong)
    assert "libm.wrong" not in LIBRARY_FUNCTIONS
    register_library_function(wrong, check=False)
    del LIBRARY_FUNCTIONS["libm.wrong"]


def test_inputs_that_the_pattern_does_not_capture_are_refused() -> None:
    kernel = fixed_kernel(parse(COSINES).prim_funcs()["cosines"])
    wrong = LibraryFunction("libm.c", kernel, np.cos, pattern=op("cos", any_("x")), inputs=("y",))
    with pytest.raises(UnityError, match=r"libm.c: its pattern captures no 'y'\nhint: .* x$"):
        register_library_function(wrong)


def test_a_library_that_is_not_there_is_told(tmp_path: Path) -> None:
    SharedLibrary("nowhere", lambda: [tmp_path / "no.so"], hint="get it somewhere").register()
    module = parse(
        dedent("""
    n = dim("n")
    @script.prim_func
    def f(x: f32[Buffer, n], y: f32[Buffer, n]) -> None:
        T.evaluate(T.call_extern("nowhere.f", n, T.address_of(x[0]), T.address_of(y[0])))
    @script.function
    def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
        y = R.call_tir(f, (x,), out=f32[Tensor, n])
        return y
    """)
    )
    with pytest.raises(UnityError, match=r"the library 'nowhere' can't be loaded: .*no\.so"):
        unity.compile(module)


def test_a_function_that_a_library_has_not_is_told() -> None:
    from unity.codegen.library.openblas import OPENBLAS

    with pytest.raises(UnityError, match="has no function 'cblas_nonsense'"):
        OPENBLAS.address("cblas_nonsense")


@script.prim_func
def good(x: f32[Buffer, 8], y: f32[Buffer, 8]) -> None:
    for i in range(8):
        y[i] = T.call_extern("libm.cosf", x[i], dtype="float32")


@script.prim_func
def no_function(x: f32[Buffer, 8], y: f32[Buffer, 8]) -> None:
    for i in range(8):
        y[i] = T.call_extern("libm.cosinus", x[i], dtype="float32")


@script.prim_func
def no_library(x: f32[Buffer, 8], y: f32[Buffer, 8]) -> None:
    for i in range(8):
        y[i] = T.call_extern("lost.cosf", x[i], dtype="float32")


@script.prim_func
def only_a_name(x: f32[Buffer, 8], y: f32[Buffer, 8]) -> None:
    for i in range(8):
        y[i] = T.call_extern("cosf", x[i], dtype="float32")


NOBODY_HAS = (
    (
        no_function,
        r"the kernel 'no_function' calls 'libm.cosinus': the library 'libm' .* has no function "
        r"'cosinus'\nhint: looked for cosinus",
    ),
    (
        no_library,
        r"the kernel 'no_library' calls 'lost.cosf': no library 'lost' is registered\n(.*\n)*"
        r"hint: register it: .*; registered are: .*libm",
    ),
    (
        only_a_name,
        r"the kernel 'only_a_name' calls 'cosf': 'cosf' names no library\n(.*\n)*"
        r"hint: write T.call_extern\('library.cosf', ...\)",
    ),
)


@pytest.mark.skipif(LIBM is None, reason="no C library of mathematics")
def test_a_kernel_called_directly_calls_libraries() -> None:
    SharedLibrary("libm", lambda: [LIBM or ""]).register()
    x, y = np.linspace(-3, 3, 8, dtype=np.float32), np.empty(8, np.float32)
    good(x, y)
    np.testing.assert_allclose(y, np.cos(x), rtol=1e-5)


@pytest.mark.skipif(LIBM is None, reason="no C library of mathematics")
@pytest.mark.parametrize(("kernel", "message"), NOBODY_HAS)
def test_a_function_that_nobody_has_is_told_with_its_kernel(
    kernel: script.ScriptPrimFunc[...], message: str
) -> None:
    SharedLibrary("libm", lambda: [LIBM or ""]).register()
    x = np.ones(8, np.float32)
    with pytest.raises(UnityError, match=message):
        kernel(x, np.empty_like(x))
    main = f"""
@script.function
def main(x: f32[Tensor, 8]) -> f32[Tensor, 8]:
    y = R.call_tir({kernel.name}, (x,), out=f32[Tensor, 8])
    return y
"""
    with pytest.raises(UnityError, match=message):
        unity.compile(parse(print_module(kernel.module()) + main))


def test_one_symbol_called_in_two_ways_is_refused() -> None:
    module = parse(
        dedent("""
    @script.prim_func
    def f(y: f32[Buffer, 1]) -> None:
        T.call_extern("libm.cosf", T.imm("float32", 1.0))
        T.call_extern("libm.cosf", T.imm("float64", 1.0))
        y[0] = 0.0
    @script.function
    def main() -> f32[Tensor, 1]:
        y = R.call_tir(f, (), out=f32[Tensor, 1])
        return y
    """)
    )
    with pytest.raises(UnityError, match="is called as two functions"):
        unity.compile(module)


def test_what_c_functions_are_not_given_is_refused() -> None:
    with pytest.raises(UnityError, match="argument 0 is bool"):
        parse(
            dedent("""
        @script.prim_func
        def f(x: boolean[Buffer, 1], y: f32[Buffer, 1]) -> None:
            T.call_extern("libm.f", x[0])
        """)
        )
