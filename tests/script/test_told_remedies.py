"""Mistakes of people who know Python well: what is said, and what to do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.face.mistakes.mistake import error_of

KERNEL = """
import math
@script.prim_func
def k(x: f32[Buffer, 4], y: f32[Buffer, 4]) -> None:
    for i in range(4):
        {}
"""
FUNCTION = """
@script.function
def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
    {}
"""
CASES = {
    "math in a kernel": (
        KERNEL.format("y[i] = math.exp(x[i])"),
        r"'math.exp' computes nothing of a scalar",
        r"write T\.exp\(",
    ),
    "numpy in a kernel": (
        KERNEL.format("y[i] = np.tanh(x[i])"),
        r"'np.tanh' computes nothing of a scalar",
        r"write T\.tanh\(",
    ),
    "a print in a kernel": (
        KERNEL.format("print(x[i])"),
        "kernels print nothing",
        "in the graph function",
    ),
    "two targets in a kernel": (
        KERNEL.format("y[i] = y[i] = x[i]"),
        "assign to one target at a time",
        "a line for each",
    ),
    "two targets": (
        FUNCTION.format("a = b = x\n    return a"),
        "assign to one target at a time",
        "a line for each",
    ),
    "identity": (
        FUNCTION.format("if x is None:\n        x = -x\n    return x"),
        "'x is None'",
        "==",
    ),
    "membership": (
        FUNCTION.format("if 3.0 in x:\n        x = -x\n    return x"),
        "'3.0 in x'",
        r"R\.any",
    ),
    "a set": (FUNCTION.format("return R.sum({x})"), "a set can't be used", "tuple"),
    "a tensor asserted": (
        FUNCTION.format("assert x > 0.0\n    return x"),
        "the condition must be a scalar bool",
        r"R\.all",
    ),
    "too many arguments": (
        FUNCTION.format("return x") + FUNCTION.replace("main", "other").format("return main(x, x)"),
        "main takes 1 argument, got 2",
        r"its type is .*float32\(n,\)",
    ),
    "a slice of unknown sizes": (
        "@script.function\ndef f(x: f32[Tensor, R.rank(1)]) -> f32[Tensor, R.rank(1)]:\n"
        "    return x[1:]\n",
        "'x' is neither a tuple nor a tensor of known sizes",
        r"R\.match_cast",
    ),
    "an index that is an expression": (
        "@script.function\ndef f(x: f32[Tensor, n * 2]) -> f32[Tensor, ()]:\n"
        "    return x[n // 3]\n",
        r"index n // 3 of axis 0, which has .*n",
        "min=1",
    ),
    "a buffer for an output in place": (
        "@script.prim_func\n"
        "def k(x: f32[Buffer, n], y: f32[Buffer, n]) -> None:\n"
        "    for i in range(n):\n        y[i] = x[i]\n"
        "@script.function\ndef f(x: f32[Tensor, n]) -> f32[Tensor, n]:\n"
        "    return R.call_tir(k, (x,), out=f32[Tensor, n], inplace=(0,))\n",
        "k takes 2 buffers, got 1 inputs and 1 outputs",
        "an output in place has none of its own",
    ),
    "a method": (
        "class A:\n    @script.function\n    def f(self, x: f32[Tensor, n]) -> f32[Tensor, n]:\n"
        "        return x\n",
        "the parameter 'self' has no annotation",
        "outside of the class",
    ),
    "a symbol as text": (
        '@script.function\ndef f(x: f32[Tensor, "rows"]) -> f32[Tensor, n]:\n    return x\n',
        "got 'rows'",
        r'rows = dim\("rows"\)',
    ),
    "two symbols of one name": (
        'other = dim("n", min=4)\n@script.function\n'
        "def f(x: f32[Tensor, n], y: f32[Tensor, other]) -> f32[Tensor, n]:\n    return x + y\n",
        r"two symbols 'n', defined with other facts",
        "match_cast",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_said_and_what_to_do(name: str, tmp_path: Path) -> None:
    text, says, hint = CASES[name]
    error = error_of(text, tmp_path)
    assert re.search(says, error.message), error
    assert re.search(hint, error.hint or ""), error
