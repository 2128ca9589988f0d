"""Errors of what is found at run time name the program's line, compiled and interpreted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import unity
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.module import IRModule
from unity.script import parse

PROGRAM = """
n = dim("n")
m = dim("m")

@script.prim_func
def add(a: f32[Buffer, n], b: f32[Buffer, n], c: f32[Buffer, n]) -> None:
    for i in range(n):
        c[i] = a[i] + b[i]

@script.prim_func
def root(a: f32[Buffer, n], c: f32[Buffer, n]) -> None:
    for i in range(n):
        assert a[i] >= 0.0, "a root of less than 0"
        c[i] = T.sqrt(a[i])

@script.function
def main(x: f32[Tensor, n], y: f32[Tensor, m]):
    a = R.exp(x)
    LINE
    return R.negative(z) * 2
"""
LINES = {
    "z = R.call_tir(add, (a, y), out=f32[Tensor, n])": "match_cast 'b_of_add' axis 0",
    "z = R.call_tir(root, (-a,), out=f32[Tensor, n])": "kernel root (computing z): a root of less",
    "z = R.match_cast(y, f32[Tensor, n])": "match_cast 'z' axis 0",
    "z = R.match_cast(R.nonzero(y), i64[Tensor, 1, n])": "match_cast 'z' axis 1",
}
X, Y = np.ones(3, np.float32), np.ones(4, np.float32)


def module(line: str) -> IRModule:
    return parse(PROGRAM.replace("LINE", line), file="model.py")


@pytest.mark.parametrize(("line", "said"), LINES.items())
def test_of_what_is_compiled(line: str, said: str, tmp_path: Path) -> None:
    exe = unity.compile(module(line))
    saved = tmp_path / "model.unity"
    exe.save(saved)
    for run in (exe, unity.load(saved)):
        for _ in range(2):
            with pytest.raises(UnityError) as caught:
                run(X, Y)
            place, _, rest = caught.value.message.partition(": ")
            assert place.startswith("model.py:19:"), caught.value.message
            assert rest.startswith(said)


@pytest.mark.parametrize("line", LINES)
def test_of_what_is_interpreted(line: str) -> None:
    """In a kernel it is the line of the kernel."""
    with pytest.raises(UnityError) as caught:
        interpret(module(line), "main", [X, Y])
    span = caught.value.span
    assert span is not None
    assert span.file == "model.py"
    assert span.line == (13 if "root" in line else 19)
