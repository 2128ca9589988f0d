"""layout_transform: against numpy's indexing, with sizes unknown, and what is refused."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import unity
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.dims import evaluate
from unity.ir.dtype import Array
from unity.op.movement.index_map import read_index_map
from unity.script import parse


def program(dims: str, call: str) -> str:
    return f"""
n = dim("n")
@script.function
def main(x: f32[Tensor, {dims}]):
    return R.layout_transform(x, {call})
"""


def drawn(rng: random.Random) -> tuple[str, list[int]]:
    """A map of two to four axes, some in blocks, some of whose parts are joined; a shape."""
    names = "abcd"[: rng.randint(2, 4)]
    shape = [rng.randint(1, 6) for _ in names]
    parts: list[tuple[str, int | None]] = []
    for name, extent in zip(names, shape, strict=True):
        block = rng.choice([0, 0, 2, 3])
        if block:
            parts += [(f"{name} // {block}", None), (f"{name} % {block}", block)]
        else:
            parts.append((name, extent))
    rng.shuffle(parts)
    known = [k for k, (_, extent) in enumerate(parts) if extent is not None]
    texts = [text for text, _ in parts]
    if known and rng.random() < 0.7:
        inner = parts[rng.choice(known)]
        others = [p for p in parts if p is not inner]
        if others:
            outer = others.pop(rng.randrange(len(others)))
            texts = [text for text, _ in others]
            texts.insert(rng.randrange(len(texts) + 1), f"({outer[0]}) * {inner[1]} + {inner[0]}")
    return f"{', '.join(names)} -> {', '.join(texts)}", shape


def moved(x: Array, text: str, fill: float) -> Array:
    """What the map says, element by element."""
    names, _, places = text.partition("->")
    place = eval(f"lambda {names}: ({places},)")
    result = np.full([evaluate(n, {}) for n in read_index_map(text).result(x.shape)], fill, x.dtype)
    for index in itertools.product(*map(range, x.shape)):
        result[place(*index)] = x[index]
    return result


@pytest.mark.parametrize("seed", range(12))
def test_random_maps(seed: int) -> None:
    rng = random.Random(seed)
    text, shape = drawn(rng)
    x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    module = parse(program(", ".join(map(str, shape)), f"{text!r}, pad_value=2.5"))
    wanted = moved(x, text, 2.5)
    for found in (interpret(module, "main", [x]), unity.compile(module)(x)):
        np.testing.assert_array_equal(np.asarray(found), wanted, err_msg=text)


@pytest.mark.parametrize("extent", [0, 3, 8])
def test_blocks_of_an_axis_of_unknown_extent(extent: int) -> None:
    text = "i, j -> i, j // 4, j % 4"
    module = parse(program("3, n", repr(text)))
    x = np.random.default_rng(0).standard_normal((3, extent)).astype(np.float32)
    wanted = moved(x, text, 0.0)
    for found in (interpret(module, "main", [x]), unity.compile(module)(x)):
        np.testing.assert_array_equal(np.asarray(found), wanted)


@pytest.mark.parametrize(
    ("dims", "text", "said"),
    [
        ("4, 8", "i, j", "'i, j' is no index map"),
        ("4, 8", "i, i -> i", "is no index map"),
        ("4, 8", "i, j -> i, (", "is no index map"),
        ("4, 8", "i, j -> i", "each part of 'j' must stand in the map once"),
        ("4, 8", "i, j -> i, j, j", "each part of 'j' must stand in the map once"),
        ("4, 8", "i, j -> i, j + 1", r"the map can't compute 'j \+ 1'"),
        ("4, 8", "i, j -> i, j // n", "the map can't compute 'j // n'"),
        ("4, 8", "i, j -> i + j", r"the map can't compute 'i \+ j'"),
        ("4, 8", "i, j -> i * 7 + j", "the axis 'j' must have 7 elements"),
        ("4, n", "i, j -> i * 7 + j", "the axis 'j' must have 7 elements"),
        ("4, 8", "i, j -> i * 6 + j % 4, j // 4", "the map does not tell 'j' apart"),
        ("4, 8", "i -> i", "'x' has rank 2, the map is of rank 1"),
    ],
)
def test_maps_that_are_refused(dims: str, text: str, said: str) -> None:
    with pytest.raises(UnityError, match=said) as told:
        parse(program(dims, repr(text)))
    assert told.value.span is not None
