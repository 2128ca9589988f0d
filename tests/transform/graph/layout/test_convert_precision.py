"""ConvertPrecision: which ops become narrow, what memory holds, and who is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import ml_dtypes
import numpy as np
import pytest

import unity
from tests.transform.cases import floats
from unity.codegen.llvm.host import host_target
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.dtype import BFLOAT16, FLOAT16, FLOAT32, INT8, DType
from unity.ir.equality import first_difference
from unity.ir.module import IRModule
from unity.ir.well_formed.verify import verify
from unity.machine.target import Target
from unity.op.accumulate import real
from unity.op.check import check_types
from unity.script import parse, print_module
from unity.transform import Context, Precision, pipeline
from unity.transform.graph import ConvertPrecision, EliminateDeadCode

W = floats(0, (6, 8))[0]
CONSTANTS = {"w": W, "w_bfloat16": W.astype(ml_dtypes.bfloat16), "bias": floats(1, (8,))[0]}
ABLE = replace(Context().target, features=("avx512bf16", "f16c"))


def converted(text: str, to: DType = BFLOAT16) -> IRModule:
    context = Context(ABLE)
    before = parse(text, CONSTANTS)
    after = EliminateDeadCode()(ConvertPrecision(to)(before, context), context)
    verify(after)
    check_types(after)
    return after


def becomes(before: str, expected: str) -> None:
    wrong = first_difference(converted(before), parse(expected, CONSTANTS))
    assert wrong is None, wrong


def test_what_a_contraction_reads_is_kept_narrow_and_widened_for_each_other_reader() -> None:
    becomes(
        """
@script.function
def main(x: f32[Tensor, 4, 6], v: f32[Tensor, 8, 6]) -> f32[Tensor, 4, 6]:
    a = R.exp(x)
    b = R.matmul(a, R.const("w"))
    c = R.matmul(R.add(b, R.const("bias")), v)
    return R.add(c, a)
""",
        """
@script.function
def main(x: f32[Tensor, 4, 6], v: f32[Tensor, 8, 6]) -> f32[Tensor, 4, 6]:
    wide = R.exp(x)
    a = R.astype(wide, "bfloat16")
    b = R.matmul(a, R.const("w_bfloat16"), out_dtype="float32")
    sum = R.add(b, R.const("bias"))
    rounded = R.astype(sum, "bfloat16")
    v16 = R.astype(v, "bfloat16")
    c = R.matmul(rounded, v16, out_dtype="float32")
    again = R.astype(a, "float32")
    return R.add(c, again)
""",
    )


def test_moves_between_contractions_are_narrow() -> None:
    becomes(
        """
@script.function
def main(x: f32[Tensor, 6, 4], v: f32[Tensor, 8, 2]) -> f32[Tensor, 4, 2]:
    y = R.matmul(R.permute_dims(x, axes=(1, 0)), R.const("w"))
    return R.matmul(y, R.concat((v,), axis=0))
""",
        """
@script.function
def main(x: f32[Tensor, 6, 4], v: f32[Tensor, 8, 2]) -> f32[Tensor, 4, 2]:
    x16 = R.astype(x, "bfloat16")
    turned = R.permute_dims(x16, axes=(1, 0))
    y = R.matmul(turned, R.const("w_bfloat16"), out_dtype="float32")
    y16 = R.astype(y, "bfloat16")
    v16 = R.astype(v, "bfloat16")
    joined = R.concat((v16,), axis=0)
    return R.matmul(y16, joined, out_dtype="float32")
""",
    )


def test_moves_that_no_contraction_reads_stay() -> None:
    text = """
@script.function
def main(x: f32[Tensor, 4, 6]) -> f32[Tensor, 6, 4]:
    return R.nn.softmax(R.permute_dims(x, axes=(1, 0)))
"""
    becomes(text, text)


def test_other_dtypes_stay() -> None:
    text = """
@script.function
def main(x: f64[Tensor, 4, 6], v: f64[Tensor, 6, 2], i: i32[Tensor, 6, 6]) -> f64[Tensor, 4, 2]:
    j = R.matmul(i, i)
    return R.matmul(R.matmul(x, R.astype(j, "float64")), v)
"""
    becomes(text, text)


def test_both_branches_of_a_condition() -> None:
    after = converted("""
@script.function
def main(c: boolean[Tensor, ()], x: f32[Tensor, 4, 6]) -> f32[Tensor, 4, 8]:
    a = R.exp(x)
    if c:
        y = R.matmul(a, R.const("w"))
    else:
        y = R.matmul(R.add(a, a), R.const("w"))
    return y
""")
    (x,) = floats(2, (4, 6))
    for c in (True, False):
        want = (np.exp(x) * (1 if c else 2)) @ W
        got = interpret(after, "main", [np.array(c), x])
        assert isinstance(got, np.ndarray)
        assert got.dtype == np.float32
        np.testing.assert_allclose(real(got), want, atol=2e-2 * np.abs(want).max())


def test_constants_are_rounded_to_nearest_even() -> None:
    near = np.array([[1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-8 - 2**-20, 3e38]], np.float32)
    before = parse(
        """
@script.function
def main(x: f32[Tensor, 1, 1]) -> f32[Tensor, 1, 4]:
    return R.matmul(x, R.const("near"))
""",
        {"near": near},
    )
    after = ConvertPrecision()(before, Context(ABLE))
    got = interpret(after, "main", [np.ones((1, 1), np.float32)])
    np.testing.assert_array_equal(got, [[1, 1 + 2**-6, -1 - 2**-7, 2**127 * (1 + 98 / 128)]])


def test_a_target_without_instructions_is_refused() -> None:
    module = parse("@script.function\ndef main(x: f32[Tensor, 1]) -> f32[Tensor, 1]:\n    return x")
    for to in (BFLOAT16, FLOAT16):
        with pytest.raises(UnityError, match=f'no instructions for {to}.*\n.*precision="f32"'):
            ConvertPrecision(to)(module, Context())
    with pytest.raises(UnityError, match="no mixed precision with int8"):
        ConvertPrecision(INT8)(module, Context(ABLE))


def test_options_that_do_not_fit_are_refused() -> None:
    module = parse("@script.function\ndef main(x: f32[Tensor, 1]) -> f32[Tensor, 1]:\n    return x")
    with pytest.raises(UnityError, match=r"'precision': expected one of .*'bf16'.*got 'bf8'"):
        unity.compile(module, precision=cast("Precision", "bf8"))
    with pytest.raises(UnityError, match="a pipeline and precision='f16'"):
        unity.compile(module, pipeline=pipeline(), precision="f16")


def _able(precision: Precision) -> bool:
    target: Target = host_target()
    names = {"bf16": ("amx-bf16", "avx512bf16"), "f16": ("f16c",), "f32": ()}
    return not names[precision] or any(target.has(n) for n in names[precision])


@pytest.mark.rotated(1 / 6)
@pytest.mark.parametrize(("precision", "to"), [("bf16", BFLOAT16), ("f16", FLOAT16)])
def test_compiled_code_computes_with_rounded_operands(precision: Precision, to: DType) -> None:
    if not _able(precision):
        pytest.skip(f"no {precision} on this cpu")
    text = """
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 6], v: f32[Tensor, 8, 5]) -> f32[Tensor, n, 5]:
    y = R.nn.gelu(R.add(R.matmul(x, R.const("w")), R.const("bias")))
    return R.nn.softmax(R.matmul(y, v))
"""
    exe = unity.compile(parse(text, CONSTANTS), precision=precision, check=True)
    after = converted(text, to)
    for n in (1, 7):
        x, v = floats(n, (n, 6), (8, 5))
        got = np.asarray(exe(x, v))
        assert got.dtype == FLOAT32.numpy
        want = np.asarray(interpret(after, "main", [x, v]))
        np.testing.assert_allclose(real(got), real(want), atol=4e-3)


@pytest.mark.parametrize(("precision", "to"), [("bf16", BFLOAT16), ("f16", FLOAT16)])
def test_packed_weights_are_kept_narrow(precision: Precision, to: DType) -> None:
    if not _able(precision):
        pytest.skip(f"no {precision} on this cpu")
    (wide,) = floats(3, (16, 96))
    text = """
@script.function
def main(x: f32[Tensor, 5, 16]) -> f32[Tensor, 5, 96]:
    return R.matmul(x, R.const("wide"))
"""
    exe = unity.compile(parse(text, {"wide": wide}), precision=precision, check=True)
    assert [c.dtype for c in exe.constants] == [to.numpy]
    (x,) = floats(4, (5, 16))
    want = real(x.astype(to.numpy)) @ real(wide.astype(to.numpy))
    np.testing.assert_allclose(real(np.asarray(exe(x))), want, rtol=1e-5, atol=1e-5)


def test_convolutions_in_blocks_take_rounded_operands() -> None:
    if not _able("bf16"):
        pytest.skip("no bf16 on this cpu")
    (weight,) = floats(5, (32, 32, 1, 1))
    text = """
@script.function
def main(x: f32[Tensor, 1, 32, 8, 8]) -> f32[Tensor, 1, 32, 8, 8]:
    return R.nn.conv2d(x, R.const("weight"))
"""
    exe = unity.compile(parse(text, {"weight": weight}), precision="bf16", check=True)
    assert [c.dtype for c in exe.constants] == [BFLOAT16.numpy]
    (x,) = floats(6, (1, 32, 8, 8))
    rounded = (real(a.astype(BFLOAT16.numpy)) for a in (x, weight[:, :, 0, 0]))
    want = np.einsum("nchw,oc->nohw", *rounded)
    np.testing.assert_allclose(real(np.asarray(exe(x))), want, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize(
    ("length", "features", "narrow"),
    [
        ("64", ("amx-bf16", "amx-tile"), True),
        ("64", ("avx512bf16",), False),
        ("1", ("amx-bf16", "amx-tile"), False),
        ("n", ("amx-bf16", "amx-tile"), False),
    ],
)
def test_attention_is_narrow_where_it_is_done_on_tiles(
    length: str, features: tuple[str, ...], narrow: bool
) -> None:
    before = parse(f"""
n = dim("n")
@script.function
def main(
    q: f32[Tensor, 1, {length}, 2, 32], k: f32[Tensor, 1, 64, 2, 32], m: f32[Tensor, 64]
) -> f32[Tensor, 1, {length}, 2, 32]:
    return R.nn.attention(q, k, k, m)
""")
    context = Context(replace(Context().target, features=features))
    after = ConvertPrecision()(before, context)
    verify(after)
    check_types(after)
    text = print_module(after)
    call = "R.nn.attention(q_bfloat16, k_bfloat16, k_bfloat16, m"
    assert (call in text) == narrow
    assert narrow or "astype" not in text


def test_the_second_of_two_products_that_are_added_is_kept_narrow() -> None:
    becomes(
        """
@script.function
def main(x: f32[Tensor, 4, 6], v: f32[Tensor, 6, 8]) -> f32[Tensor, 4, 8]:
    a = R.add(R.matmul(x, R.const("w")), R.const("bias"))
    b = R.nn.relu(R.matmul(x, v))
    return R.exp(R.add(b, a))
""",
        """
@script.function
def main(x: f32[Tensor, 4, 6], v: f32[Tensor, 6, 8]) -> f32[Tensor, 4, 8]:
    x16 = R.astype(x, "bfloat16")
    first = R.matmul(x16, R.const("w_bfloat16"), out_dtype="float32")
    a = R.add(first, R.const("bias"))
    v16 = R.astype(v, "bfloat16")
    second = R.matmul(x16, v16, out_dtype="float32")
    wide = R.nn.relu(second)
    rounded = R.astype(wide, "bfloat16")
    b = R.astype(rounded, "float32")
    return R.exp(R.add(b, a))
""",
    )
