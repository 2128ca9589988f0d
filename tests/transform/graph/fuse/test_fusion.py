"""FuseOps and FuseTir: which ops end up in one kernel, and what the kernel looks like."""

from __future__ import annotations

import pytest

from tests.transform.cases import apply, becomes, floats, keeps_meaning
from unity.ir.graph import CallTir
from unity.ir.module import IRModule
from unity.ir.stmt import Allocate, Block, Let
from unity.ir.visit import walk_bindings, walk_stmt
from unity.transform import Pass
from unity.transform.graph import (
    EliminateDeadCode,
    FuseOps,
    FuseTir,
    LegalizeOps,
    LiftTemporaries,
    Normalize,
)
from unity.transform.schedule import ScheduleDefault

FUSE: list[Pass] = [LegalizeOps(), FuseOps(), FuseTir(), EliminateDeadCode()]
HEAD = """
n = dim("n")
@script.function
def main({params}) -> f32[Tensor, {out}]:
    with R.dataflow():
"""


def program(params: str, out: str, *lines: str) -> str:
    body = "".join(f"        {line}\n" for line in lines)
    return HEAD.format(params=params, out=out) + body + "    return y\n"


def kernels(module: IRModule) -> list[str]:
    main = module.graph_functions()["main"]
    return [b.value.callee.name for b in walk_bindings(main) if isinstance(b.value, CallTir)]


MATRICES = "x: f32[Tensor, n, 8], w: f32[Tensor, 8, 8], b: f32[Tensor, 8]"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(
            ["y = R.nn.relu(R.add(R.exp(x), b))"], ["fused_exp_add_relu"], id="elementwise chain"
        ),
        pytest.param(
            ["y = R.nn.relu(R.add(R.matmul(x, w), b))"],
            ["fused_matmul_add_relu"],
            id="epilogue of a contraction",
        ),
        pytest.param(
            ["s = R.negative(x)", "a = R.add(R.matmul(x, w), s)", "y = R.multiply(a, s)"],
            ["fused_negative_matmul_add_multiply"],
            id="a value that an epilogue reads twice",
        ),
        pytest.param(
            ["c = R.matmul(x, w)", "d = R.matmul(R.nn.relu(x), w)", "y = R.add(c, d)"],
            ["relu", "matmul", "fused_matmul_add"],
            id="one contraction in a group, nothing before it",
        ),
        pytest.param(
            ["a = R.exp(x)", "y = R.add(R.nn.relu(a), R.negative(a))"],
            ["fused_exp_relu_negative_add"],
            id="diamond",
        ),
        pytest.param(
            [
                "a = R.exp(x)",
                "s = R.add(a, 1.0)",
                "y = R.matmul(s, R.matmul(R.permute_dims(a), s))",
            ],
            ["exp", "add", "fused_permute_dims_matmul", "matmul_1"],
            id="no common post-dominator",
        ),
        pytest.param(
            ["c = R.matmul(x, w)", "y = R.permute_dims(R.nn.relu(c))"],
            ["fused_matmul_relu", "permute_dims"],
            id="a contraction is not gathered from",
        ),
        pytest.param(
            ["y = R.permute_dims(R.nn.relu(x))"], ["fused_relu_permute_dims"], id="injective sink"
        ),
        pytest.param(
            ["y = R.nn.softmax(R.multiply(x, 0.5))"],
            ["fused_multiply_softmax"],
            id="a cheap producer of a reduction in stages",
        ),
        pytest.param(
            ["y = R.nn.softmax(R.exp(x))"],
            ["exp", "softmax"],
            id="a costly one would be computed in each stage",
        ),
        pytest.param(
            ["y = R.add(x, R.exp(b))"], ["exp", "add"], id="a costly one would be computed n times"
        ),
        pytest.param(
            ["y = R.add(x, R.negative(b))"], ["fused_negative_add"], id="a cheap one may be"
        ),
        pytest.param(
            [
                "a = R.nn.relu(R.add(x, b))",
                "r = R.reshape(a, (8, n))",
                "y = R.reshape(R.exp(r), (n, 8))",
            ],
            ["fused_add_relu", "exp"],
            id="views separate",
        ),
    ],
)  # fmt: skip
def test_groups(lines: list[str], expected: list[str]) -> None:
    out = "8, n" if "y = R.permute_dims" in lines[-1] else "n, 8"
    got = keeps_meaning(FUSE, program(MATRICES, out, *lines), floats(0, (3, 8), (8, 8), (8,)))
    assert kernels(got) == expected


def test_no_kernel_is_called_what_printed_sizes_call() -> None:
    text = program("x: f32[Tensor, n, 8]", "n", "y = R.max(x, axis=1)")
    (name,) = kernels(keeps_meaning(FUSE, text, floats(0, (3, 8))))
    assert name == "max_1"


def test_a_value_used_elsewhere_is_not_hidden() -> None:
    text = """
@script.function
def main(x: f32[Tensor, 4]) -> R.Tuple(f32[Tensor, 4], f32[Tensor, 4]):
    with R.dataflow():
        a = R.exp(x)
        y = R.negative(a)
        pair = (a, y)
    return pair
"""
    got = keeps_meaning(FUSE, text, floats(0, (4,)))
    assert kernels(got) == ["exp", "negative"]


def test_blocks_bound_groups() -> None:
    text = """
@script.function
def main(x: f32[Tensor, 4], flag: boolean[Tensor, ()]) -> f32[Tensor, 4]:
    with R.dataflow():
        a = R.exp(x)
    if flag:
        with R.dataflow():
            b = R.negative(R.nn.relu(a))
    else:
        b = a
    return b
"""
    got = apply(FUSE, text)
    assert set(got.prim_funcs()) == {"exp", "fused_relu_negative"}


def test_equal_groups_share_a_kernel() -> None:
    text = program(
        MATRICES,
        "n, 8",
        "a = R.nn.relu(R.add(R.matmul(x, w), b))",
        "y = R.nn.relu(R.add(R.matmul(a, w), b))",
    )
    got = keeps_meaning(FUSE, text, floats(0, (3, 8), (8, 8), (8,)))
    assert list(got.prim_funcs()) == ["fused_matmul_add_relu"]
    assert kernels(got) == ["fused_matmul_add_relu"] * 2


@pytest.mark.parametrize("order", ["often first", "often last"])
def test_of_two_contractions_that_called_more_often_takes_what_follows(order: str) -> None:
    two = ["c = R.matmul(a, w)", "d = R.matmul(z, v)"]
    lines = [
        "a = R.nn.relu(R.add(R.matmul(R.exp(x), w), x))",
        *(two if order == "often first" else reversed(two)),
        "y = R.nn.relu(R.add(c, d))",
    ]
    params = (
        "x: f32[Tensor, n, 8], w: f32[Tensor, 8, 8], z: f32[Tensor, n, 9], v: f32[Tensor, 9, 8]"
    )
    text = program(params, "n, 8", *lines)
    got = keeps_meaning(FUSE, text, floats(0, (3, 8), (8, 8), (3, 9), (9, 8)))
    assert kernels(got) == ["exp", "fused_matmul_add_relu", "matmul_1", "fused_matmul_add_relu"]


def test_groups_share_a_kernel_up_to_names_of_symbols() -> None:
    got = apply(
        FUSE,
        """
n = dim("n")
m = dim("m")
@script.function
def main(
    x: f32[Tensor, n + 1], z: f32[Tensor, m + 1]
) -> R.Tuple(f32[Tensor, n + 1], f32[Tensor, m + 1]):
    with R.dataflow():
        a = R.nn.relu(R.exp(x))
        b = R.nn.relu(R.exp(z))
        y = (a, b)
    return y
""",
    )
    assert kernels(got) == ["fused_exp_relu"] * 2


def test_elementwise_kernels_merge_into_one_block() -> None:
    becomes(
        FUSE,
        program(
            "x: f32[Tensor, n, 4], b: f32[Tensor, 4]", "n, 4", "y = R.exp(R.nn.relu(R.add(x, b)))"
        ),
        """
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 4], b: f32[Tensor, 4]) -> f32[Tensor, n, 4]:
    with R.dataflow():
        y = R.call_tir(fused_add_relu_exp, (x, b), out=f32[Tensor, n, 4])
    return y

@script.prim_func(attrs={"num_outputs": 1, "pattern": "broadcast", "private": True})
def fused_add_relu_exp(x: f32[Buffer, n, 4], b: f32[Buffer, 4], y: f32[Buffer, n, 4]) -> None:
    for i0, i1 in T.grid(n, 4):
        with T.block("exp"):
            vi0, vi1 = T.axis.remap("SS", i0, i1)
            y[vi0, vi1] = T.exp(T.max(x[vi0, vi1] + b[vi1], 0.0))
""",
    )  # fmt: skip


def blocks(module: IRModule, name: str) -> list[str]:
    body = module.prim_funcs()[name].body
    return [s.name for s in walk_stmt(body) if isinstance(s, Block)]


def temporaries(module: IRModule, name: str) -> list[str]:
    body = module.prim_funcs()[name].body
    return [s.buffer.name for s in walk_stmt(body) if isinstance(s, Allocate)]


def test_an_epilogue_is_a_second_block_of_the_kernel() -> None:
    text = program(MATRICES, "n, 8", "m = R.matmul(x, w)", "y = R.nn.relu(R.add(m, b))")
    got = apply(FUSE, text)
    assert blocks(got, "fused_matmul_add_relu") == ["matmul", "relu"]
    assert temporaries(got, "fused_matmul_add_relu") == ["m"]


def test_a_value_read_twice_is_computed_once() -> None:
    text = program("x: f32[Tensor, n]", "n", "a = R.exp(x)", "y = R.multiply(a, a)")
    got = keeps_meaning(FUSE, text, floats(0, (5,)))
    body = got.prim_funcs()["fused_exp_multiply"].body
    assert sum(isinstance(s, Let) for s in walk_stmt(body)) == 1
    assert blocks(got, "fused_exp_multiply") == ["multiply"]


def test_long_chains_of_values_read_twice_stay_linear() -> None:
    lines = [
        "a0 = R.add(x, 1.0)",
        *(f"a{i} = R.multiply(a{i - 1}, a{i - 1})" for i in range(1, 20)),
    ]
    text = program("x: f32[Tensor, n]", "n", *lines, "y = R.negative(a19)")
    got = apply(FUSE, text)
    (kernel,) = got.prim_funcs().values()
    assert sum(isinstance(s, Let) for s in walk_stmt(kernel.body)) == 19


def test_reading_under_a_guard_stays_under_it() -> None:
    text = """
@script.function
def main(x: f32[Tensor, 3], z: f32[Tensor, 2]) -> f32[Tensor, 5]:
    with R.dataflow():
        y = R.concat((R.negative(x), R.nn.relu(z)), 0)
    return y
"""
    got = keeps_meaning(FUSE, text, floats(0, (3,), (2,)))
    assert kernels(got) == ["fused_negative_relu_concat"]
    assert temporaries(got, "fused_negative_relu_concat") == []


def test_convolution_keeps_its_padding_and_takes_its_epilogue() -> None:
    text = """
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 2, 5, 5], w: f32[Tensor, 3, 2, 3, 3]) -> f32[Tensor, n, 3, 5, 5]:
    with R.dataflow():
        y = R.nn.relu(R.nn.conv2d(x, w, padding=1))
    return y
"""
    got = keeps_meaning(FUSE, text, floats(0, (2, 2, 5, 5), (3, 2, 3, 3)))
    assert kernels(got) == ["fused_conv2d_relu"]


def test_normalized_programs_fuse_within_their_blocks() -> None:
    text = """
@script.function
def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    y = R.exp(x)
    return R.negative(y)
"""
    assert set(apply([Normalize(), *FUSE], text).prim_funcs()) == {"fused_exp_negative"}


def test_the_schedule_finds_the_epilogue_of_a_batch_of_one() -> None:
    text = """
n = dim("n")
@script.function
def main(x: f32[Tensor, 1, n, 8], w: f32[Tensor, 8, 8], b: f32[Tensor, 8]) -> f32[Tensor, 1, n, 8]:
    with R.dataflow():
        y = R.nn.gelu(R.add(R.matmul(x, w), b))
    return y
"""
    got = keeps_meaning(
        [*FUSE, ScheduleDefault(), LiftTemporaries()], text, floats(0, (1, 3, 8), (8, 8), (8,))
    )
    (kernel,) = got.prim_funcs().values()
    assert len(kernel.buffers) == 4, "the product is written once, finished"
