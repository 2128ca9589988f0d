"""The comparison of numbers with TVM: what it feeds, what it takes for the same, what it found."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from unity.ir.graph import Function
from unity.script import tvmscript

from .drawn_inputs import NotComparableError, inputs_of
from .tvmscript_numbers import (
    DIFFERENT,
    EXPLAINED,
    RESULTS,
    by_tvm,
    by_unity,
    difference,
    entry,
    flat,
)
from .tvmscript_sources import Outcome, Script


def function(params: str) -> Function:
    text = f'@R.function\ndef main(x: R.Tensor((1,), "float32"), {params}):\n    return x\n'
    return entry(tvmscript.parse(text))[1]


def test_inputs_have_the_shapes_and_dtypes_of_parameters() -> None:
    said = 'a: R.Tensor(("n", "m", "n + m"), "int8"), s: R.Shape(["m", 2]), k: R.Prim(value="n")'
    _, a, s, k = inputs_of(function(said), 0)
    assert isinstance(a, np.ndarray)
    assert (a.dtype.name, a.shape) == ("int8", (3, 4, 7))
    assert (s, k) == ((4, 2), 3)
    first, second = (inputs_of(function(said), seed)[0] for seed in (1, 1))
    np.testing.assert_array_equal(first, second)
    both = 'p: R.Tuple(R.Tensor((2,), "bool"), R.Tensor(ndim=2, dtype="float32"))'
    pair = inputs_of(function(both), 0)[1]
    assert isinstance(pair, tuple)
    assert [np.asarray(part).shape for part in pair] == [(2,), (3, 3)]


def test_inputs_of_which_nothing_is_told_are_small() -> None:
    made = inputs_of(function("a: R.Any, b: R.Tensor, c: R.Shape(ndim=3), d: R.Tensor(ndim=1)"), 0)
    _, a, b, c, d = (np.asarray(each) for each in made)
    assert [each.shape for each in (a, b, d)] == [(3, 3), (3, 3), (3,)]
    assert (c.tolist(), d.dtype.name) == ([3, 3, 3], "float32")
    text = "@R.function\ndef main(x: R.Tensor):\n    return R.add(x, R.const(1))\n"
    assert np.asarray(inputs_of(entry(tvmscript.parse(text))[1], 0)[0]).dtype == np.int32


def test_inputs_that_are_too_large_are_not_made() -> None:
    with pytest.raises(NotComparableError, match="an input has the shape"):
        inputs_of(function(f'y: R.Tensor(({1 << 30},), "float32")'), 0)
    with pytest.raises(NotComparableError, match="the size n - 4 is -1"):
        inputs_of(function('y: R.Tensor(("n",), "float32"), z: R.Tensor(("n - 4",), "int8")'), 0)


def test_what_is_the_same() -> None:
    a = np.ones((2, 3), np.float32)
    assert difference([a], [a * np.float32(1.0001)]) is None
    assert difference([a], [a.astype(np.float64)]) == "result 0 is float32, of TVM float64"
    assert difference([a], [a * np.float32(1.5)]) == "result 0 differs by 0.5"
    assert difference([a], [a.T]) == "result 0 has the shape (2, 3), of TVM (3, 2)"
    assert difference([a, a], [a]) == "2 results, of TVM 1"
    nan = np.full(2, np.nan, np.float32)
    assert difference([nan], [nan]) is None
    assert [f.tolist() for f in flat(((1, 2), (a[0], None), 3.0))] == [[1, 2], [1, 1, 1], 3.0]


@pytest.mark.long("TVM compiles a program")
def test_a_source_is_run_by_both(tmp_path: Path) -> None:
    pytest.importorskip("tvm")
    text = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 4), "float32")):
        n = T.int64()
        return (R.add(x, y), R.sum(x, axis=[1]))
"""
    script = Script("head", "here:1 Module", "module", text, counts=True, device=None)
    assert by_tvm(str(tmp_path), script) == Outcome("read")
    assert by_unity(str(tmp_path), script) == Outcome("read")
    named = Script(
        "head", "here:2 Other", "module", text.replace("R.add(", "R.call_packed('f', "), True, None
    )
    assert by_tvm(str(tmp_path), named).fate == "refused"


@pytest.mark.long("TVM compiles a program")
@pytest.mark.parametrize(
    "body",
    [
        "@R.function(private=True)\ndef other(x: R.Tensor((2,), 'int8')):\n    return x + x\n",
        "@R.function\ndef main(x: R.Tensor, y: R.Tensor(ndim=2)):\n    return R.add(x, y)\n",
        "@R.function\ndef main(x: R.Tensor((1, 1, 5, 5, 4), 'float32'),\n"
        "         w: R.Tensor((1, 4, 3, 3, 4), 'float32')):\n"
        "    return R.nn.conv2d(x, w, data_layout='NCHW4c', kernel_layout='OIHW4o')\n",
        "@R.function\ndef main(x: R.Tensor((2,), 'float32')):\n    return relax.op.nn.relu(x)\n",
    ],
    ids=["private", "of unknown shape", "parted channels", "by its path"],
)
def test_what_tvm_must_be_helped_to_compile(tmp_path: Path, body: str) -> None:
    pytest.importorskip("tvm")
    script = Script("head", "here:3 main", "relax", body, counts=True, device=None)
    assert by_tvm(str(tmp_path), script) == Outcome("read")
    assert by_unity(str(tmp_path), script) == Outcome("read")


def test_each_difference_is_explained() -> None:
    found = json.loads(RESULTS.read_text())
    assert set(found[DIFFERENT]) == set(found["explained"])
    assert found["explained"].items() <= EXPLAINED.items()
    assert found["counts"]["same"] == len(found["same"])
