"""Kernels whose parameters have strides are given arrays that have them, or refuse."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity import script
from unity.errors import UnityError
from unity.script import Buffer, R, T, Tensor, dim, f32, tvmscript

n, m, s, t = dim("n"), dim("m"), dim("s"), dim("t")


@script.prim_func
def eights(a: f32[Buffer, 4, 4, T.strides(8, 1)], b: f32[Buffer, 4, 4]) -> None:
    for i, j in T.grid(4, 4):
        b[i, j] = a[i, j]


@script.prim_func
def any_steps(a: f32[Buffer, n, m, T.strides(s, 1)], b: f32[Buffer, n, m, T.strides(t, 1)]) -> None:
    for i, j in T.grid(n, m):
        b[i, j] = a[i, j] + 1.0


@script.prim_func
def fours(a: f32[Buffer, 4, 4, T.strides(4, 1)], b: f32[Buffer, 4, 4]) -> None:
    for i, j in T.grid(4, 4):
        b[i, j] = a[i, j]


@script.prim_func
def alike(a: f32[Buffer, n, 4, T.strides(s, 1)], b: f32[Buffer, n, 4, T.strides(s, 1)]) -> None:
    for i, j in T.grid(n, 4):
        b[i, j] = a[i, j]


def whole() -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    return np.arange(32, dtype=np.float32).reshape(4, 8)


def test_a_view_with_the_declared_strides_is_read_where_it_lies() -> None:
    out = np.zeros((4, 4), np.float32)
    eights(whole()[:, :4], out)
    np.testing.assert_array_equal(out, whole()[:, :4])


def test_symbols_take_the_strides_that_are_there() -> None:
    out = np.zeros((4, 8), np.float32)
    any_steps(whole()[:, 1:5], out[:, 2:6])
    np.testing.assert_array_equal(out[:, 2:6], whole()[:, 1:5] + 1)
    assert not out[:, [0, 1, 6, 7]].any()
    any_steps(out[:, :4], out[:, 4:])  # side by side in one array: they do not meet
    alike(whole()[:, 4:], out[:, :4])
    np.testing.assert_array_equal(out[:, :4], whole()[:, 4:])
    alike(whole()[:1, :4], np.zeros((1, 4), np.float32))  # of one row the stride is not used


def test_arrays_with_other_strides_are_refused() -> None:
    out = np.zeros((4, 4), np.float32)
    for wrong, said in (
        (np.ones((4, 4), np.float32), r"'a', stride 0 \(in elements\): expected 8, got 4"),
        (whole()[:, ::2], r"'a', stride 1 \(in elements\): expected 1, got 2"),
        (whole()[::-1, :4], r"'a', stride 0 \(in elements\): expected 8, got -8"),
    ):
        with pytest.raises(UnityError, match=said):
            eights(wrong, out)
    with pytest.raises(UnityError, match="'b': a kernel's arrays must be contiguous"):
        eights(whole()[:, :4], whole()[:, 4:])
    with pytest.raises(UnityError, match="symbol s is 8 here but 4"):
        alike(out, whole()[:, :4])


@pytest.mark.long("imports torch")
def test_another_librarys_array_that_would_be_copied_is_refused() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(UnityError, match="'b': a kernel's arrays must be contiguous"):
        eights(whole()[:, :4], torch.zeros(4, 8)[:, :4])
    out = torch.zeros(4, 8)
    any_steps(whole()[:, :4], out[:, 4:])
    np.testing.assert_array_equal(out[:, 4:].numpy(), whole()[:, :4] + 1)


@pytest.mark.parametrize(("kernel", "steps"), [(eights, "8, 1"), (any_steps, "s, 1")])
def test_a_graph_function_does_not_call_it(kernel: script.ScriptPrimFunc[...], steps: str) -> None:
    said = rf"takes the buffer a with strides \({steps}\), but tensors are contiguous"
    with pytest.raises(UnityError, match=said) as caught:
        unity.compile(kernel.module())
    assert "leave the strides out" in (caught.value.hint or "")

    def main(x: f32[Tensor, 4, 4]) -> f32[Tensor, 4, 4]:
        return R.call_tir(kernel, (x,), out=f32[Tensor, 4, 4])

    with pytest.raises(UnityError, match=said):
        script.function(main)


def test_contiguous_strides_are_no_others() -> None:
    x = np.ones((4, 4), np.float32)
    np.testing.assert_array_equal(unity.compile(fours.module())(x), x)


def test_tvmscript_is_no_exception() -> None:
    text = """
@T.prim_func
def copied(a: T.Buffer((4, 4), "float32", strides=(8, 1)), b: T.Buffer((4, 4), "float32")):
    for i, j in T.grid(4, 4):
        b[i, j] = a[i, j]
"""
    with pytest.raises(UnityError, match=r"the buffer a with strides \(8, 1\)"):
        unity.compile(tvmscript.parse(text))
