"""WidenProducts: which contractions compute in float32, on what, and what the numbers are."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import unity
from tests.transform.cases import floats
from unity.interpreter import interpret
from unity.ir.dtype import Array
from unity.ir.equality import first_difference
from unity.ir.module import IRModule
from unity.ir.well_formed.verify import verify
from unity.machine.target import Target
from unity.op.check import check_types
from unity.script import parse, print_module
from unity.transform import Context
from unity.transform.graph import WidenProducts

W = floats(0, (128, 64))[0].astype(np.float16)
LARGE = np.zeros((768, 3072), np.float16)
CONSTANTS: dict[str, Array] = {"w": W, "w_wide": W.astype(np.float32), "large": LARGE}
HASWELL = Target("cpu", "x86_64-unknown-linux-gnu", "haswell", ("avx2", "f16c", "fma"), 256)
DOTS = replace(HASWELL, cpu="znver4", features=("avx512bf16", "avx512f"), vector_bits=512)


def widened(text: str, target: Target = HASWELL) -> IRModule:
    after = WidenProducts()(parse(text, CONSTANTS), Context(target))
    verify(after)
    check_types(after)
    return after


def becomes(before: str, expected: str, target: Target = HASWELL) -> None:
    wrong = first_difference(widened(before, target), parse(expected, CONSTANTS))
    assert wrong is None, wrong


def stays(text: str, target: Target = HASWELL) -> None:
    becomes(text, text, target)


def test_an_operand_is_widened_once_and_weights_while_compiling() -> None:
    becomes(
        """
@script.function
def main(x: f16[Tensor, 64, 128]) -> f16[Tensor, 64, 64]:
    a = R.matmul(x, R.const("w"))
    b = R.matmul(x, R.const("w"), out_dtype="float32")
    return R.add(a, R.astype(b, dtype="float16"))
""",
        """
@script.function
def main(x: f16[Tensor, 64, 128]) -> f16[Tensor, 64, 64]:
    wide = R.astype(x, dtype="float32")
    sums = R.matmul(wide, R.const("w_wide"))
    a = R.astype(sums, dtype="float16")
    b = R.matmul(wide, R.const("w_wide"))
    return R.add(a, R.astype(b, dtype="float16"))
""",
    )


def test_what_was_moved_is_moved_wide() -> None:
    becomes(
        """
@script.function
def main(x: f16[Tensor, 128, 64]) -> f16[Tensor, 64, 64]:
    t = R.permute_dims(R.exp(x))
    return R.matmul(t, R.const("w"))
""",
        """
@script.function
def main(x: f16[Tensor, 128, 64]) -> f16[Tensor, 64, 64]:
    e = R.exp(x)
    t = R.permute_dims(e)
    wide = R.astype(e, dtype="float32")
    turned = R.permute_dims(wide)
    return R.astype(R.matmul(turned, R.const("w_wide")), dtype="float16")
""",
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            """
@script.function
def main(x: f16[Tensor, 1, 768]) -> f16[Tensor, 1, 3072]:
    return R.matmul(x, R.const("large"))
""",
            id="one row waits for its weights",
        ),
        pytest.param(
            """
@script.function
def main(x: f16[Tensor, 1, 8], w: f16[Tensor, 8, 8]) -> f16[Tensor, 1, 8]:
    return R.matmul(x, w)
""",
            id="one row waits for a matrix that is given",
        ),
        pytest.param(
            """
n = dim("n")
@script.function
def main(q: f16[Tensor, 3, 1, 8], k: f16[Tensor, 3, 8, n]) -> f16[Tensor, 3, 1, n]:
    return R.matmul(q, k)
""",
            id="so do several, each with a matrix of its own",
        ),
        pytest.param(
            """
k = dim("k")
@script.function
def main(q: f16[Tensor, 1, 1, 2, 8], k: f16[Tensor, 1, k, 2, 8]) -> f16[Tensor, 1, 1, 2, 8]:
    return R.nn.attention(q, k, k)
""",
            id="attention",
        ),
        pytest.param(
            """
@script.function
def main(x: f32[Tensor, 64, 8], w: f32[Tensor, 8, 8]) -> f32[Tensor, 64, 8]:
    return R.matmul(x, w)
""",
            id="float32",
        ),
    ],
)
def test_what_stays(text: str) -> None:
    stays(text)


PLAIN = """
@script.function
def main(x: bf16[Tensor, 64, 8], w: bf16[Tensor, 8, 8]) -> bf16[Tensor, 64, 8]:
    return R.matmul(x, w)
"""


def test_products_of_two_rows_do_not_wait() -> None:
    two = "@script.function\ndef main(x: f16[Tensor, 2, 768]) -> f16[Tensor, 2, 3072]:\n"
    assert "astype" in print_module(widened(two + '    return R.matmul(x, R.const("large"))\n'))


def test_bfloat16_is_widened_where_nothing_multiplies_it() -> None:
    stays(PLAIN, DOTS)
    assert "astype" in print_module(widened(PLAIN))
    assert "astype" in print_module(widened(PLAIN.replace("bf16", "f16"), DOTS))


@pytest.mark.parametrize("sizes", ["7, 9", "h, w"])
@pytest.mark.parametrize("of", ["float16", "bfloat16"])
def test_a_network_of_convolutions_is_in_blocks_and_gives_the_same(of: str, sizes: str) -> None:
    kind = np.dtype(np.float16 if of == "float16" else ml_dtypes.bfloat16)
    short = "f16" if of == "float16" else "bf16"
    weights: dict[str, Array] = {
        "a": np.multiply(floats(0, (16, 16, 3, 3))[0], 0.1).astype(kind),
        "b": np.multiply(floats(1, (16, 16, 1, 1))[0], 0.1).astype(kind),
        "bias": floats(2, (16, 1, 1))[0].astype(kind),
    }
    head = 'h = dim("h")\nw = dim("w")\n' if "h" in sizes else ""
    module = parse(
        head
        + f"""
@script.function
def main(x: {short}[Tensor, 1, 16, {sizes}]) -> {short}[Tensor, 1, 16, {sizes}]:
    a = R.nn.relu(R.add(R.nn.conv2d(x, R.const("a"), padding=(1, 1)), R.const("bias")))
    b = R.nn.conv2d(R.nn.max_pool2d(a, pool_size=(3, 3), padding=(1, 1)), R.const("b"))
    return R.nn.relu(R.add(b, a))
""",
        weights,
    )
    x = floats(3, (1, 16, 7, 9))[0].astype(kind)
    expected = np.asarray(interpret(module, "main", [x]), np.float32)
    exe = unity.compile(module, threads=1, cache=None)
    got = np.asarray(exe(x), np.float32)
    error = 2.0**-10 if of == "float16" else 2.0**-7
    np.testing.assert_allclose(got, expected, rtol=4 * error, atol=4 * error)
    if of == "float16":  # of bfloat16 where there are no dot products alone
        assert sum("blocked" in k or "winograd" in k for k in exe.kernels) == 2
