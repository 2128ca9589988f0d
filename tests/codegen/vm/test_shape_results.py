"""Shapes among results: numbers for whoever calls from outside, in native code as in bytecode."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import unity
from tests.codegen.export.tensors import Exported
from unity.interpreter import interpret
from unity.script import parse

HEAD = """
n = dim("n")
m = dim("m")
@script.function
def main(x: f32[Tensor, n, m]):
"""
X = np.arange(12, dtype=np.float32).reshape(4, 3) - 2


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("return R.shape_of(x)", (4, 3)),
        ("return R.shape(n * m + 1)", (13,)),
        ("return R.shape_of(R.sum(x)), x", ((), X)),
        (
            "y = R.concat((x, x), axis=0)\n    return y, (R.shape_of(y), R.sum(x))",
            (np.concatenate([X, X]), ((8, 3), X.sum())),
        ),
        ("y = R.nonzero(x)\n    return R.shape_of(y)", (2, 11)),
        (
            "if n > 2:\n        s = R.shape(n)\n    else:\n        s = R.shape(m)\n    return s",
            (4,),
        ),
    ],
)
def test_they_are_tuples_of_numbers(body: str, wanted: object) -> None:
    module = parse(f"{HEAD}    {body}\n")
    exe = unity.compile(module)
    events: list[object] = []
    for found in (exe(X), exe.trace(events.append, X), interpret(module, "main", [X])):
        compare(found, wanted)
    assert events


def compare(found: object, wanted: object) -> None:
    if isinstance(wanted, tuple):
        assert isinstance(found, tuple)
        for got, want in zip(found, wanted, strict=True):
            compare(got, want)
    else:
        np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


BOTH = parse(f"""{HEAD}    y = R.concat((x, x), axis=0)
    return R.shape_of(y), y

@script.function
def caller(x: f32[Tensor, n, m]):
    s = given(x)
    return s, R.zeros(s, dtype="float32")

@script.function(attrs={{"private": True}})
def given(x: f32[Tensor, n, m]):
    return R.shape_of(x)
""")


def test_native_saved_and_in_c(tmp_path: Path) -> None:
    exe = unity.compile(BOTH)
    assert set(exe.native().values()) == {"native"}
    exe.save(tmp_path / "shapes.unity")
    again = unity.load(tmp_path / "shapes.unity")
    for ready in (exe, again):
        shape, result = ready(X)
        assert shape == result.shape == (8, 3)
        assert {type(size) for size in shape} == {int}
        compare(ready["caller"](X), ((4, 3), np.zeros((4, 3))))
    path = tmp_path / "libshapes.so"
    exe.export_library(path)
    rows, columns, y = np.zeros((), np.int64), np.zeros((), np.int64), np.zeros((8, 3), np.float32)
    Exported(path).run([X], [rows, columns, y])
    assert (int(rows), int(columns)) == (8, 3)
