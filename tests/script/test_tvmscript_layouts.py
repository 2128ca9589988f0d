"""Layouts in blocks and index maps: what TVM says of axes, in terms of our operators."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

import unity
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.script import tvmscript

RNG = np.random.default_rng(0)
Floats = npt.NDArray[np.float32]


def graph(result: str, **shapes: tuple[int | str, ...]) -> str:
    params = ", ".join(f'{name}: R.Tensor({shape}, "float32")' for name, shape in shapes.items())
    return f"@R.function\ndef main({params}):\n    return {result}\n"


def run(text: str, *args: Floats) -> Floats:
    """What the interpreter and the compiled program say."""
    module = tvmscript.parse(text)
    found = np.asarray(interpret(module, "main", list(args)))
    compiled = np.asarray(unity.compile(module)(*args))
    np.testing.assert_allclose(compiled, found, rtol=1e-5, atol=1e-5)
    return found


def blocked(x: Floats, layout: str, plain: str) -> Floats:
    """An array with whole axes in a layout that parts some of them."""
    parts: list[tuple[str, int]] = []
    digits = ""
    for letter in layout:
        if letter.isdigit():
            digits += letter
        else:
            parts.append((letter, int(digits or 0)))
            digits = ""
    blocks = {name.upper(): extent for name, extent in parts if name.islower()}
    names: list[str] = []
    shape: list[int] = []
    for name, extent in zip(plain, x.shape, strict=True):
        block = blocks.get(name)
        names += [name] if block is None else [name, name.lower()]
        shape += [extent] if block is None else [extent // block, block]
    return x.reshape(shape).transpose([names.index(name) for name, _ in parts])


LAYOUTS = [
    ("NCHW4c", "OIHW4o", "NCHW4c"),
    ("NHWC4c", "OHWI4o", "NHWC4c"),
    ("NCHW4c", "OIHW2i4o", "NHWC"),
    ("N4cHWC", "O4oHWI", "NCHW"),
    ("N2nHWC4c", "OHWI", "NCHW4c"),
    ("NCHW", "OIHW", "NCHW2c"),
]


@pytest.mark.parametrize(("data", "kernel", "out"), LAYOUTS)
def test_convolutions_of_blocks_of_channels(data: str, kernel: str, out: str) -> None:
    x, w = (RNG.standard_normal(s, np.float32) for s in ((2, 8, 6, 5), (4, 8, 3, 3)))
    plain = run(graph("R.nn.conv2d(x, w, padding=1)", x=x.shape, w=w.shape), x, w)
    given = (blocked(x, data, "NCHW"), blocked(w, kernel, "OIHW"))
    call = (
        f'R.nn.conv2d(x, w, padding=1, data_layout="{data}", kernel_layout="{kernel}", '
        f'out_layout="{out}")'
    )
    found = run(graph(call, x=given[0].shape, w=given[1].shape), *given)
    np.testing.assert_allclose(found, blocked(plain, out, "NCHW"), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("max_pool2d(x, (2, 2), (2, 2)", lambda x: x.reshape(1, 8, 2, 2, 3, 2).max((3, 5))),
        ("adaptive_avg_pool2d(x, (1, 1)", lambda x: x.mean((2, 3), keepdims=True)),
    ],
)
def test_pools_of_blocks_of_channels(call: str, expected: Callable[[Floats], Floats]) -> None:
    x = RNG.standard_normal((1, 8, 4, 6), np.float32)
    given = blocked(x, "NCHW4c", "NCHW")
    found = run(graph(f'R.nn.{call}, layout="NCHW4c")', x=given.shape), given)
    np.testing.assert_allclose(found, blocked(expected(x), "NCHW4c", "NCHW"), rtol=1e-5)


def moved(x: Floats, index_map: str, shape: tuple[int, ...], fill: float) -> Floats:
    """An array whose elements are where a map says, one at a time."""
    place: Callable[..., int | tuple[int, ...]] = eval(index_map)
    result = np.full(shape, fill, np.float32)
    for index in itertools.product(*map(range, x.shape)):
        result[place(*index)] = x[index]
    return result


MAPS = [
    ("lambda n, c, h, w: (n, c // 4, h, w, c % 4)", (2, 8, 3, 2), (2, 2, 3, 2, 4)),
    ("lambda n, c, h, w, b: (n, c * 4 + b, h, w)", (2, 2, 3, 2, 4), (2, 8, 3, 2)),
    ("lambda n, c, h, w, b: (n, b * 2 + c, h, w)", (2, 2, 3, 2, 4), (2, 8, 3, 2)),
    ("lambda n, c, h, w: (n // 2, c // 4, h, w, n % 2, c % 4)", (4, 8, 3, 2), (2, 2, 3, 2, 2, 4)),
    ("lambda a, b, c: (a * 6 + b * 2 + c,)", (4, 3, 2), (24,)),
    ("lambda a: (a // 6, a // 2 % 3, a % 2)", (24,), (4, 3, 2)),
    ("lambda a, b: (b % 4, a, b // 4)", (3, 8), (4, 3, 2)),
    ("lambda a, b: (b, a)", (3, 8), (8, 3)),
    ("lambda a, b: (a // 2 * 8 + b, a % 2)", (6, 8), (24, 2)),
    ("lambda a, b: (a, b // 4, b % 4)", (3, 6), (3, 2, 4)),
    ("lambda a, b: (a // 4, b // 4, b % 4, a % 4)", (3, 6), (1, 2, 4, 4)),
]


@pytest.mark.parametrize(("index_map", "shape", "wanted"), MAPS)
def test_index_maps(index_map: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    x = RNG.standard_normal(shape, np.float32)
    call = f"R.layout_transform(x, index_map=T.index_map({index_map}), pad_value=R.prim_value(2))"
    found = run(graph(call, x=shape), x)
    np.testing.assert_array_equal(found, moved(x, index_map, wanted, 2.0))


def test_an_index_map_of_sizes_that_are_not_known() -> None:
    x = RNG.standard_normal((3, 8), np.float32)
    text = graph("R.layout_transform(R.exp(x), lambda a, b: (b // 4, a, b % 4))", x=("n", 8))
    expected = np.exp(x).reshape(3, 2, 4).transpose(1, 0, 2)
    np.testing.assert_allclose(run(text, x), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("lambda a, b: (a, b * b)", "the map can't compute 'b \\* b'"),
        ("lambda a, b: (a, b + 1)", "the map can't compute 'b \\+ 1'"),
        ("lambda a, b: (a,)", "each part of 'b' must stand in the map once"),
        ("lambda a, b: (a, b // 4)", "each part of 'b' must stand in the map once"),
        ("lambda a, b: (a * 4 + b,)", "axis 1 of 'x' must have 4 elements"),
        ("lambda a, b: (a // 2 + b * 2, a % 2)", "does not tell 'a' apart"),
        ("some_map", "an index map is a function written here"),
    ],
)
def test_maps_that_are_refused(call: str, message: str) -> None:
    with pytest.raises(UnityError, match=message) as caught:
        tvmscript.parse(graph(f"R.layout_transform(x, index_map={call})", x=(4, 8)))
    assert caught.value.span is not None


def test_what_an_index_map_has_beside_is_refused() -> None:
    call = "R.layout_transform(x, lambda a, b: (b, a), axis_separators=[1])"
    with pytest.raises(UnityError, match="Unity has no axis_separators"):
        tvmscript.parse(graph(call, x=(4, 8)))
    call = "R.layout_transform(x, T.index_map(lambda a, b: (b, a), dtype=1))"
    with pytest.raises(UnityError, match=r"T\.index_map has no parameter 'dtype'"):
        tvmscript.parse(graph(call, x=(4, 8)))
