"""Spellings of TVM's that ours has other words for, held against numpy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from unity import script
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.script import tvmscript

RNG = np.random.default_rng(0)
Floats = npt.NDArray[np.float32]


def run(text: str, *args: npt.NDArray[np.float32 | np.integer]) -> Floats:
    return np.asarray(interpret(tvmscript.parse(text), "main", list(args)), np.float32)


def graph(result: str, **shapes: tuple[int, ...]) -> str:
    params = ", ".join(f'{name}: R.Tensor({shape}, "float32")' for name, shape in shapes.items())
    return f"@R.function\ndef main({params}):\n    return {result}\n"


def plain_convolution(x: Floats, w: Floats, groups: int = 1) -> Floats:
    text = graph(f"R.nn.conv2d(x, w, padding=1, groups={groups})", x=x.shape, w=w.shape)
    return run(text, x, w)


@pytest.mark.parametrize(
    ("data", "kernel", "out"),
    [
        ("NHWC", "OHWI", None),
        ("NHWC", "HWIO", "NCHW"),
        ("NCHW", "OIHW", "NHWC"),
        ("CHWN", "IOHW", ""),
    ],
)
def test_layouts_are_orders_of_axes(data: str, kernel: str, out: str | None) -> None:
    x, w = (
        RNG.standard_normal((2, 3, 5, 4), np.float32),
        RNG.standard_normal((6, 3, 3, 3), np.float32),
    )
    theirs = x.transpose(["NCHW".index(a) for a in data])
    weight = w.transpose(["OIHW".index(a) for a in kernel])
    said = "" if out is None else f', out_layout="{out}"'
    call = f'R.nn.conv2d(x, w, padding=1, data_layout="{data}", kernel_layout="{kernel}"{said})'
    found = run(graph(call, x=theirs.shape, w=weight.shape), theirs, weight)
    expected = plain_convolution(x, w).transpose(["NCHW".index(a) for a in out or data])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_depthwise_convolutions_and_pools_in_other_layouts() -> None:
    x, w = (
        RNG.standard_normal((1, 4, 5, 6), np.float32),
        RNG.standard_normal((4, 1, 3, 3), np.float32),
    )
    call = 'R.nn.conv2d(x, w, padding=1, groups=4, data_layout="NHWC", kernel_layout="HWOI")'
    turned = x.transpose(0, 2, 3, 1), w.transpose(2, 3, 0, 1)
    found = run(graph(call, x=turned[0].shape, w=turned[1].shape), *turned)
    expected = plain_convolution(x, w, 4).transpose(0, 2, 3, 1)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    pool = 'R.nn.avg_pool2d(x, pool_size=(2, 3), strides=(2, 3), layout="NHWC")'
    means = x[:, :, :4].reshape(1, 4, 2, 2, 2, 3).mean((3, 5)).transpose(0, 2, 3, 1)
    np.testing.assert_allclose(run(graph(pool, x=turned[0].shape), turned[0]), means, rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ('R.nn.conv2d(x, x, data_layout="NCHW4d")', "data_layout: the axes are those of 'NCHW'"),
        ('R.nn.conv2d(x, x, data_layout="NCHW4c2c")', "data_layout: the axes are those of"),
        (
            'R.nn.conv2d(x, x, kernel_layout="OIHW0o")',
            "kernel_layout: the axes are those of 'OIHW'",
        ),
        ('R.nn.conv2d(x, x, data_layout="CHW8n")', "data_layout: the axes are those of 'NCHW'"),
        ('R.nn.max_pool2d(x, layout="NHCC")', "layout: the axes are those of 'NCHW' in any order"),
        ('R.nn.conv2d(x, weight=x, data_layout="NHWC")', "are given by place"),
    ],
)
def test_layouts_with_other_axes_are_refused(call: str, message: str) -> None:
    with pytest.raises(UnityError, match=message) as caught:
        tvmscript.parse(graph(call, x=(1, 4, 8, 8)))
    assert caught.value.span is not None


def test_builders_names_are_operators() -> None:
    x = RNG.standard_normal((2, 3), np.float32)
    np.testing.assert_array_equal(run(graph("relax.op.nn.relu(x)", x=(2, 3)), x), np.maximum(x, 0))


def test_values_of_attributes_and_constants() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    clipped = "R.clip(x, R.prim_value(T.float64(2.5)), R.prim_value(T.float64('inf')))"
    np.testing.assert_array_equal(run(graph(clipped, x=(3, 4)), x), np.maximum(x, 2.5))
    part = "R.strided_slice(x, (R.prim_value(1),), (R.prim_value(1),), (R.prim_value(3),))"
    np.testing.assert_array_equal(run(graph(part, x=(3, 4)), x), x[:, 1:3])
    text = """
@R.function
def main(x: R.Tensor((3,), "int64")):
    return R.one_hot(x, R.prim_value(T.float32(2)), R.prim_value(T.float32(-1)), depth=4, axis=-1)
"""
    expected = np.where(np.eye(4, dtype=bool)[[2, 0, 1]], np.float32(2), np.float32(-1))
    np.testing.assert_array_equal(run(text, np.asarray([2, 0, 1])), expected)


def test_types_without_arguments() -> None:
    text = """
@R.function
def main(s: R.Shape, o: R.Any, t: R.Tensor(None, dtype=None)) -> R.Tuple:
    return (s, t)
"""
    printed = script.print_module(tvmscript.parse(text))
    assert "s: R.Shape(...), o: R.Object, t: R.any_dtype[Tensor, ...]" in printed


SCALARS = """
@T.prim_func
def kernel(a: T.handle, n: T.int32, b: T.handle):
    T.func_attr({"target": T.target("llvm -mcpu=skylake")})
    A = T.match_buffer(a, (n, 4), "int32")
    B = T.match_buffer(b, (n, 4))
    t = T.decl_buffer((4,), "float32")
    for i in range(n):
        for j in range(4):
            t[j] = A[i, j].astype("float32") + T.FloatImm("float32", 0.5)
        for j in range(4):
            B[i, j] = t[j] + T.cast(T.ceildiv(T.Add(j, 5), 3), "float32")

@R.function
def main(a: R.Tensor(("n", 4), "int32")):
    n = T.int64(is_size_var=True)
    return R.call_tir(kernel, (a,), out_sinfo=R.Tensor((n, 4), "float32"), tir_vars=R.shape([n]))
"""


def test_scalars_constructors_and_sizes_as_parameters() -> None:
    module = tvmscript.parse(SCALARS)
    assert module.prim_funcs()["kernel"].attrs["target"] == "llvm -mcpu=skylake"
    a = RNG.integers(-9, 9, (3, 4), np.int32)
    expected = a + np.float32(0.5) + np.asarray([2, 2, 3, 3], np.float32)
    np.testing.assert_array_equal(run(SCALARS, a), expected)
    with pytest.raises(UnityError, match="Unity has no target 'cuda'"):
        tvmscript.parse(SCALARS.replace("llvm -mcpu=skylake", "cuda"))


def test_asserts_say_their_texts() -> None:
    text = SCALARS.replace(
        "    for i in range(n):\n",
        '    assert n > 2, ("ValueError", ["too ", "few"])\n    for i in range(n):\n',
        1,
    )
    with pytest.raises(UnityError, match="too few"):
        run(text, np.zeros((1, 4), np.int32))


def test_kernels_that_write_in_place() -> None:
    text = """
@T.prim_func
def twice(A: T.Buffer((4,), "float32")):
    for i in range(4):
        A[i] = A[i] * 2.0

@R.function
def main(x: R.Tensor((4,), "float32")):
    y = R.nn.relu(x)
    return R.call_tir_inplace(twice, (y,), inplace_indices=[0], out_sinfo=R.Tensor((4,), "float32"))
"""
    x = RNG.standard_normal(4, np.float32)
    np.testing.assert_array_equal(run(text, x), 2 * np.maximum(x, 0))
