"""Parts of tensors by index, and what is known of them, in graph functions."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity import script
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.script import R, Tensor, dim, f32, parse

n = dim("n", min=2)
m = dim("m", min=1)


PARTS = """
n = dim("n", min=2)
m = dim("m", min=1)

@script.function
def parts(x: f32[Tensor, n, 5, m]):
    a = x[1:, ..., 0]
    b = x[0, 1:4:2]
    c = x[:, -2][:, None, : m - 1] * 2.0
    return a, b, c, x[n - 1]
"""


def test_parts_are_those_of_numpy() -> None:
    x = np.random.default_rng(0).standard_normal((3, 5, 4), np.float32)
    expected = (x[1:, ..., 0], x[0, 1:4:2], x[:, -2][:, None, :3] * np.float32(2), x[2])
    found = interpret(parse(PARTS), "parts", [x])
    assert isinstance(found, tuple)
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(got), wanted)


@script.function
def flat(x: f32[Tensor, n, 5, m]) -> f32[Tensor, n, 5 * m]:
    y = R.reshape(x, (x.shape[0], x.shape[1] * x.shape[2]))
    return R.astype(y, x.dtype) * float(x.ndim)


def test_shapes_ranks_and_dtypes_are_known() -> None:
    x = np.random.default_rng(0).standard_normal((3, 5, 4), np.float32)
    found = interpret(script.module(flat), "flat", [x])
    np.testing.assert_array_equal(np.asarray(found), 3 * x.reshape(3, 20))


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("x[0, 0, 0, 0]", "an index of 4 axes for a tensor of 3"),
        ("x[::0]", "a slice with a step of 0"),
        ("x[x]", "an index holds a tensor"),
        ("x[1.5]", "an index holds 1.5"),
        ("x[..., ...]", r"an index of 0 axes"),
        ("x[:6, 7]", "index 7 of axis 1, which has 5: it is not known"),
        ("x[3]", "index 3 of axis 0, which has n: it is not known"),
        ("R.shape_of(x)[0]", "is neither a tuple nor a tensor of known sizes"),
        ("y.shape", "the shape of 'y' is not known"),
    ],
)
def test_mistakes_are_told_at_their_place(part: str, message: str) -> None:
    text = f"""
n = dim("n", min=2)

@script.function
def main(x: f32[Tensor, n, 5, 4], y: f32[Tensor, ...]):
    return {part}
"""
    with pytest.raises(UnityError, match=message) as caught:
        parse(text)
    assert caught.value.span is not None


@pytest.mark.parametrize("shape", ["n", "n, m"])
@pytest.mark.parametrize("bounds", [(-3, None), (None, -3), (-3, -1), (-4, 1), (-3, 1), (1, -1)])
def test_slices_from_the_end_of_what_may_be_shorter(
    shape: str, bounds: tuple[int | None, int | None]
) -> None:
    """As Python's, whatever the size turns out to be: nothing is counted from the end twice."""
    begin, end = bounds
    sizes = "".join(f'{s} = dim("{s}")\n' for s in shape.split(", "))
    cut = f"{'' if begin is None else begin}:{'' if end is None else end}"
    head = f"{sizes}@script.function\ndef main(x: f32[Tensor, {shape}]):\n"
    module = parse(f"{head}    return x[{cut}]\n")
    exe = unity.compile(module)
    for size in range(6):
        x = np.arange(size * 3, dtype=np.float32).reshape(size, 3)
        x = x if "m" in shape else np.ascontiguousarray(x[:, 0])
        np.testing.assert_array_equal(exe(x), x[begin:end])
        np.testing.assert_array_equal(np.asarray(interpret(module, "main", (x,))), x[begin:end])


@pytest.mark.parametrize(
    "cut", ["::-1", "3:0:-1", "-2::-2", ":-3:-1", "10::-3", "0:5:-1", "n - 1 : 0 : -2"]
)
def test_slices_backward(cut: str) -> None:
    module = parse(
        'n = dim("n")\nm = dim("m")\n@script.function\ndef main(x: f32[Tensor, n, m]):\n'
        f"    return x[{cut}, ::-1]\n"
    )
    exe = unity.compile(module)
    for n in range(5):
        x = np.arange(n * 3, dtype=np.float32).reshape(n, 3)
        begin, end, step = (eval(part or "None", {"n": n}) for part in cut.split(":"))
        wanted = x[slice(begin, end, step), ::-1]
        np.testing.assert_array_equal(exe(x), wanted)
        np.testing.assert_array_equal(np.asarray(interpret(module, "main", (x,))), wanted)


def test_a_part_that_is_empty_or_of_two_rows() -> None:
    """Wherever it has rows it has two: what is told of them inside a loop doesn't hold outside."""
    module = parse(
        'n = dim("n")\nm = dim("m")\n@script.function\ndef main(x: f32[Tensor, n, m]):\n'
        "    return R.strided_slice(x, axes=(0,), begin=(n - 3,), end=(n - 1,))\n"
    )
    exe = unity.compile(module)
    for size in range(6):
        x = np.arange(size * 3, dtype=np.float32).reshape(size, 3)
        np.testing.assert_array_equal(exe(x), x[size - 3 : size - 1])


@pytest.mark.parametrize("rows", range(4))
def test_neighbours_are_as_many(rows: int) -> None:
    """``x[1:]`` and ``x[:-1]`` have one size, of however few elements."""
    module = parse("""
n = dim("n")
m = dim("m")
@script.function
def main(x: f32[Tensor, n, m]):
    return x[1:] - x[:-1], x[2:, :1] - x[:-2, :1], x[:, 1:] - x[:, :-1]
""")
    x = np.arange(rows * 4, dtype=np.float32).reshape(rows, 4) ** 2
    wanted = (x[1:] - x[:-1], x[2:, :1] - x[:-2, :1], x[:, 1:] - x[:, :-1])
    for found in (interpret(module, "main", [x]), unity.compile(module)(x)):
        assert isinstance(found, tuple)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(np.asarray(a), b)
