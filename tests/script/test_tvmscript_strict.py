"""TVMScript: what is said is kept or refused, and the numbers are TVM's."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity import script
from unity.errors import UnityError
from unity.ir.dtype import Array
from unity.script import tvmscript
from unity.transform import Context
from unity.transform.graph import EliminateDeadCode


def kernel(head: str = "", attrs: str = "{}", body: str = "A[0] = T.float32(1)") -> str:
    return f"""
@T.prim_func{head}
def f(A: T.Buffer((4,), "float32")):
    T.func_attr({attrs})
    {body}
"""


def returning(last: str) -> str:
    return f"""
@T.prim_func
def f(x: T.int32, y: T.int32) -> T.int32:
    {last}
"""


def graph(value: str, head: str = "", dtype: str = "int64") -> str:
    return f"""
@R.function{head}
def main(x: R.Tensor((4, 8), "{dtype}")):
    r = {value}
    return r
"""


def turned(rest: str) -> str:
    return graph(f"R.layout_transform(x, index_map=T.index_map(lambda i, j: (j, i), {rest}))")


def module(options: str) -> str:
    return f"@I.ir_module({options})\nclass M:" + kernel().replace("\n", "\n    ")


CALLING = """
@I.ir_module
class M:
    @T.prim_func
    def copied(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[i]

    {function}
"""
DIRECTLY = """@R.function
    def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
        z = M.copied(x, y)
        return z
"""
OF_PYTHON = """@I.pyfunc
    def main(self, x):
        return x
"""
WITH_PYTHON = """@R.function
    def main(x: R.Tensor((4,), "float32")):
        z = R.call_py_func("f", (x,), out_sinfo=R.Tensor((4,), "float32"))
        return z
"""
REFUSED = {
    "a kernel as a function": (
        CALLING.format(function=DIRECTLY),
        "'copied' is a prim_func: it can't be called like a fu",
    ),
    "a function of Python": (
        CALLING.format(function=OF_PYTHON),
        "Unity has no I.pyfunc: functions of Python are regis",
    ),
    "a call of Python": (
        CALLING.format(function=WITH_PYTHON),
        "Unity has no R.call_py_func: functions of Python a",
    ),
    "ret, a keyword": (returning("T.ret(x * y, zzz=1)"), "T.ret has no parameter 'zzz'"),
    "ret, a dtype": (returning("T.ret(x * y, dtype=-7)"), "returns int32, T.ret says -7"),
    "ret, another dtype": (returning('T.ret(x, dtype="int8")'), "T.ret says 'int8'"),
    "ret, a span": (returning("T.ret(x, 3)"), "T.ret: 'span' is None"),
    "ret, nothing": (returning("T.ret()"), "T.ret needs 'val'"),
    "evaluate": (returning("T.evaluate(T.ret(x), zzz=1)"), "T.evaluate takes one value, got zzz=1"),
    "evaluate, inner": (returning("T.evaluate(T.ret(x, zzz=1))"), "no parameter 'zzz'"),
    "a private text": (kernel("(private='zz')"), "'private' must be True or False, got 'zz'"),
    "s_tir": (kernel("(s_tir=1.75)"), "'s_tir' must be True or False, got 1.75"),
    "a private number": (graph("x", "(private=1.75)"), "R.function: 'private' must be True or"),
    "a module": (module("s_tir='zz'"), "I.ir_module: 's_tir' must be True or False"),
    "a module, by place": (module("True"), "I.ir_module takes its options by name"),
    "a module, unknown": (module("zz=True"), "I.ir_module has no parameter 'zz'"),
    "an index dtype": (turned("index_dtype=1.75"), '\'index_dtype\' is "int32" or "int64"'),
    "an inverse": (turned("inverse_index_map=3"), "'inverse_index_map' is a function"),
    "one too many": (turned("3"), "T.index_map takes 1 argument, got 2"),
    "noalias": (kernel(attrs="{'tir.noalias': 'yes'}"), "'tir.noalias' is True or False"),
    "a symbol": (kernel(attrs="{'global_symbol': 3}"), "'global_symbol' is a text, got 3"),
    "a key": (kernel(attrs="{x: 3}"), "the keys of attributes are texts"),
    "a mean of integers": (graph("R.mean(x)"), "R.mean of int64 is computed in whole numbers"),
    "a variance of bools": (graph("R.variance(x)", dtype="bool"), "R.variance of bool is"),
    "std": (graph("R.std(x)", dtype="uint8"), "R.std of uint8"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_dropped_otherwise_is_refused(case: str) -> None:
    text, said = REFUSED[case]
    with pytest.raises(UnityError, match=said) as caught:
        tvmscript.parse(text)
    assert caught.value.span is not None


TAKEN = {
    "ret": returning('T.evaluate(T.ret(val=x * y, dtype="int32", span=None))'),
    "options": kernel("(private=True, s_tir=False)", "{'tir.noalias': T.bool(True)}"),
    "a module": module("check_well_formed=False, s_tir=True"),
    "an index map": turned('index_dtype="int32", inverse_index_map=lambda i, j: (j, i)'),
    "a mean of floats": graph("R.mean(x)", dtype="float32"),
}


@pytest.mark.parametrize("case", TAKEN)
def test_what_is_meant_is_read(case: str) -> None:
    assert tvmscript.parse(TAKEN[case])


def test_a_private_function_says_so_when_it_is_printed() -> None:
    read = tvmscript.parse(graph("R.add(x, x)", "(private=True)"))
    printed = script.print_module(read)
    assert '@script.function(attrs={"private": True})' in printed
    assert script.print_module(script.parse(printed)) == printed
    both = tvmscript.parse(
        graph("R.add(x, x)", "(private=True)").replace(
            "    r =", '    R.func_attr({"note": 1})\n    r ='
        )
    )
    assert '{"note": 1, "private": True}' in script.print_module(both)
    assert "private" not in script.print_module(tvmscript.parse(graph("x", "(private=False)")))


BLOCK = """
@R.function
def main(x: R.Tensor((4,), "float32")):
    with R.dataflow():
        a = R.add(x, x)
        b = R.add(a, a)
        R.output({told})
    {after}
"""


@pytest.mark.parametrize(
    ("told", "after"),
    [
        ("b", "return a"),
        ("b", "c = R.add(a, b)\n    return c"),
        ("b", "with R.dataflow():\n        c = R.add(a, b)\n        R.output(c)\n    return c"),
    ],
)
def test_what_a_block_does_not_put_out_is_not_seen(told: str, after: str) -> None:
    with pytest.raises(UnityError, match="'a' is bound in a dataflow block whose outputs it is"):
        tvmscript.parse(BLOCK.format(told=told, after=after))


@pytest.mark.parametrize("after", ["return b", "c = R.exp(a)\n    return c"])
def test_of_a_block_without_output_nothing_is_seen(after: str) -> None:
    text = BLOCK.replace("        R.output({told})\n", "").format(after=after)
    with pytest.raises(
        UnityError, match="is bound in a dataflow block whose outputs it is"
    ) as told:
        tvmscript.parse(text)
    assert told.value.hint in (
        "R.output(a) in the block lets it be seen behind it",
        "R.output(b) in the block lets it be seen behind it",
    )
    assert tvmscript.parse(BLOCK.replace("R.output({told})", "pass").format(after="return x"))


def test_a_private_kernel_is_one_where_it_is_called_alone() -> None:
    text = """
@I.ir_module
class M:
    @T.prim_func(private=True)
    def twice(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[i] * T.float32(2)

    @T.prim_func(private=True)
    def unused(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[i]

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        y = R.call_tir(M.twice, (x,), out_sinfo=R.Tensor((4,), "float32"))
        return y
"""
    read = tvmscript.parse(text)
    assert all(f.attrs["private"] is True for f in read.prim_funcs().values())
    assert unity.structural_equal(script.parse(script.print_module(read)), read)
    assert EliminateDeadCode()(read, Context()).prim_funcs().keys() == {"twice"}
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(unity.compile(read)(x), x * 2)


@pytest.mark.parametrize(
    ("told", "after"),
    [("a, b", "return a"), ("b", "return b"), ("b", "a = R.add(b, x)\n    return a")],
)
def test_what_a_block_puts_out_is_seen(told: str, after: str) -> None:
    assert tvmscript.parse(BLOCK.format(told=told, after=after))


def run(text: str, *arrays: Array) -> Array:
    result = unity.compile(tvmscript.parse(text))(*arrays)
    assert isinstance(result, np.ndarray)
    return result


@pytest.mark.parametrize("dtype", ["int64", "int8"])
def test_a_negative_index_of_one_hot_is_nowhere(dtype: str) -> None:
    text = f"""
@R.function
def main(x: R.Tensor((4,), "{dtype}")):
    r = R.one_hot(x, R.prim_value(T.float32(1)), R.prim_value(T.float32(0)), 3)
    return r
"""
    found = run(text, np.array([-1, 0, 2, -128], dtype))
    np.testing.assert_array_equal(found, [[0, 0, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0]])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_hypot(dtype: str) -> None:
    text = f"""
@T.prim_func
def f(A: T.Buffer((9,), "{dtype}"), B: T.Buffer((9,), "{dtype}"), C: T.Buffer((9,), "{dtype}")):
    for i in range(9):
        C[i] = T.hypot(A[i], B[i])
"""
    big = float(np.finfo(dtype).max) / 2
    a = np.array([3, 0, big, np.inf, np.nan, 0, -5, 2e-30, 0], dtype)
    b = np.array([4, 0, -big, np.nan, 1, np.nan, 12, 1e-30, -2], dtype)
    found, expected = run(text, a, b).astype(np.float64), np.hypot(a, b).astype(np.float64)
    np.testing.assert_allclose(found, expected, rtol=4 * float(np.finfo(dtype).eps))
