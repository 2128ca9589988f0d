"""What Relax writes in graph functions: scalars of TIR, sizes among arguments, narrower results."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import unity
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.equality import first_difference
from unity.ir.module import IRModule
from unity.script import parse, print_module, tvmscript

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def checked(module: IRModule, *args: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """What the interpreter and the compiled program say, of the module and of what it prints."""
    found = np.asarray(interpret(module, "main", list(args)))
    np.testing.assert_allclose(np.asarray(unity.compile(module)(*args)), found, rtol=1e-6)
    assert first_difference(module, parse(print_module(module))) is None
    return found


def test_scalars_of_tir_are_numbers_and_sizes() -> None:
    module = tvmscript.parse("""
@R.function
def main(x: R.Tensor(("m", "n"), "float32")) -> R.Tensor(("m", "T.max(2, 1)"), "float32"):
    m, n, two = T.int64(), T.int64(), I.meta_var(T.int64(2))
    low = T.FloatImm("float32", 1.5)
    with R.dataflow():
        y = R.strided_slice(x, [1], [0], [T.FloorDiv(T.int64(8), T.int64(4))])
        z = R.match_cast(R.clip(y, T.meta_var(low), 9.0), R.Tensor((m, two), "float32"))
        return z.astype("float32")
""")
    np.testing.assert_array_equal(checked(module, X), np.clip(X[:, :2], 1.5, 9))


def test_sizes_among_the_arguments_of_a_kernel() -> None:
    module = tvmscript.parse("""
@I.ir_module
class Sizes:
    @T.prim_func
    def row(A: T.Buffer((2, 3), "float32"), k: T.int64, B: T.Buffer((3,), "float32")):
        for i in range(3):
            B[i] = A[k, i]

    @R.function
    def main(x: R.Tensor((2, 3), "float32"), s: R.Shape(["n"])):
        n = T.int64()
        cls = Sizes
        return R.call_tir(cls.row, (x, n), out_ty=R.Tensor((3,), "float32"))
""")
    found = np.asarray(interpret(module, "main", [X, (1,)]))
    np.testing.assert_array_equal(found, X[1])
    np.testing.assert_array_equal(np.asarray(unity.compile(module)(X, (1,))), X[1])


NARROW = """
@R.function
def main(x: R.Tensor(ndim=2, dtype="float32")) -> R.Tensor((2, 3), "float32"):
    return R.add(x, x)
"""


def test_a_result_that_is_declared_more_narrowly_is_asserted() -> None:
    module = tvmscript.parse(NARROW)
    np.testing.assert_array_equal(checked(module, X), X + X)
    for run in (lambda x: interpret(module, "main", [x]), unity.compile(module)):
        with pytest.raises(UnityError):
            run(X.T)


def test_a_product_of_bools_is_whether_both_hold() -> None:
    """As TVM's importers write whether numbers are finite."""
    module = tvmscript.parse("""
@R.function
def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "bool"):
    return R.multiply(R.less(x, R.const(4.0)), x > R.const(1.0))
""")
    np.testing.assert_array_equal(checked(module, X), (X < 4) & (X > 1))
    with pytest.raises(UnityError, match="multiply: operands must be numbers, got bool"):
        parse("@script.function\ndef f(x: boolean[Tensor, 2]):\n    return R.multiply(x, x)\n")


def test_a_result_that_may_have_other_sizes_is_asserted() -> None:
    """That a slice of one row has one row is known where the index is."""
    module = tvmscript.parse("""
@R.function
def main(x: R.Tensor((2, 3), "float32"), s: R.Shape(["k"])) -> R.Tensor((1, 3)):
    k = T.int64()
    return R.strided_slice(x, [0], [k], [k + 1], assume_inbound=True)
""")
    exe = unity.compile(module)
    for run in (lambda k: interpret(module, "main", [X, (k,)]), lambda k: exe(X, (k,))):
        np.testing.assert_array_equal(np.asarray(run(1)), X[1:])
        with pytest.raises(UnityError, match="1, got 0"):
            run(2)


def test_a_result_of_another_dtype_than_declared_is_refused() -> None:
    with pytest.raises(UnityError, match=r"returns float32\(2, n\), declared as float16"):
        tvmscript.parse("""
@R.function
def main(x: R.Tensor((2, "n"), "float32")) -> R.Tensor((2, 3), "float16"):
    return R.add(x, x)
""")


def test_attributes_that_are_dicts_are_pairs() -> None:
    module = tvmscript.parse("""
@R.function
def main(x: R.Tensor(("n",), "float32")):
    R.func_attr({"tir_var_upper_bound": {"n": 64}, "of": {"a": {"b": 1}, "c": "d"}})
    return x
""")
    attrs = module.graph_functions()["main"].attrs
    assert attrs["tir_var_upper_bound"] == (("n", 64),)
    assert attrs["of"] == (("a", (("b", 1),)), ("c", "d"))
    checked(module, X[0])


def test_closures_that_call_themselves() -> None:
    module = tvmscript.parse("""
@R.function
def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
    by = R.multiply(x, R.const(2.0, "float32"))

    @R.function
    def grown(
        y: R.Tensor((2, 3), "float32"), i: R.Tensor((), "int64")
    ) -> R.Tensor((2, 3), "float32"):
        again = R.less(i, R.const(3, "int64"))
        if again:
            z = R.add(y, by)
            j = R.add(i, R.const(1, "int64"))
            result = grown(z, j)
        else:
            result = y
        return result

    out = grown(x, R.const(0, "int64"))
    return out
""")
    np.testing.assert_array_equal(checked(module, X), X + 6 * X)
    assert set(unity.compile(module).native().values()) == {"native"}


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        ("0", "int32"),
        ("1.5", "float32"),
        ("True", "bool"),
        ("[1, 2]", "int32"),
        ("0, 'int64'", "int64"),
        ("1.5, dtype='float64'", "float64"),
    ],
)
def test_a_constant_without_a_dtype_is_of_32_bits(made: str, kind: str) -> None:
    module = tvmscript.parse(f"""
@R.function
def main():
    return R.const({made})
""")
    assert checked(module).dtype == kind


def test_a_constant_that_32_bits_can_not_hold_is_refused() -> None:
    with pytest.raises(UnityError, match=r"R.const: .*int32"):
        tvmscript.parse("@R.function\ndef main():\n    return R.const(1099511627776)\n")
