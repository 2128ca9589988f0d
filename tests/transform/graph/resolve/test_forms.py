"""Forms of our own kernels: candidates of a site, done as chosen, the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity.errors import UnityError
from unity.ir.module import IRModule
from unity.script import parse
from unity.transform.graph.resolve import ResolveOption

RNG = np.random.default_rng(0)
WIDE = RNG.standard_normal((64, 64, 3, 3)).astype(np.float32) / 24
POINT = RNG.standard_normal((64, 64, 1, 1)).astype(np.float32) / 8
TALL = RNG.standard_normal((64, 40)).astype(np.float32) / 8
X = RNG.standard_normal((1, 64, 28, 28)).astype(np.float32)


def program() -> IRModule:
    return parse(
        """
@script.function
def main(x: f32[Tensor, 1, 64, 28, 28]) -> f32[Tensor, 28, 28, 40]:
    with R.dataflow():
        wide = R.nn.relu(R.nn.conv2d(x, R.const("wide"), padding=1))
        step = R.nn.conv2d(wide, R.const("wide"), padding=1, strides=1, dilation=1)
        point = R.nn.conv2d(R.nn.relu(step), R.const("point"))
        rows = R.reshape(R.permute_dims(point, (0, 2, 3, 1)), (28, 28, 64))
        out = R.matmul(rows, R.const("tall"))
    return out
""",
        {"wide": WIDE, "point": POINT, "tall": TALL},
    )


def kernels(resolve: ResolveOption) -> str:
    return " ".join(unity.compile(program(), resolve=resolve).kernels)


@pytest.mark.rotated(1)
def test_each_form_is_made_and_computes_the_same() -> None:
    expected = unity.compile(program())(X)
    for form, mark in (
        ("tir:direct", "conv2d_blocked"),
        ("tir:winograd", "conv2d_winograd"),
        ("tir:winograd.2", "conv2d_winograd"),
        ("tir:gemm", "conv2d"),
        ("tir:packed", "matmul_packed"),
        ("tir:unpacked", "matmul"),
    ):
        exe = unity.compile(program(), resolve=form)
        np.testing.assert_allclose(exe(X), expected, rtol=1e-4, atol=1e-4)
        taken = [row.op for row in exe.explain() if row.choice.startswith(form)]
        assert taken, form
        assert mark in " ".join(exe.kernels), form
    assert "winograd" not in kernels("tir:direct")
    assert "packed" not in kernels("tir:unpacked")


def test_the_table_has_all_forms_and_why_some_are_none() -> None:
    table = unity.compile(program()).explain()
    wide = {c.implementation: c.why_not for c in table["step"].candidates}
    assert wide["tir:winograd.4"] is None
    assert wide["tir:direct"] is None
    assert wide["tir:gemm"] == "for windows of a single pixel with steps of 1"
    point = {c.implementation: c.why_not for c in table["point"].candidates}
    assert point["tir:winograd.2"] == "for windows of 3x3, 5x5, 7x7 with steps of 1"
    assert table["out"].choice == "tir:packed"


def test_inexact_tiles_are_no_candidates() -> None:
    weight = WIDE.copy()
    weight[0, 0, 0, 0] = np.inf
    module = parse(
        """
@script.function
def main(x: f32[Tensor, 1, 64, 28, 28]) -> f32[Tensor, 1, 64, 28, 28]:
    with R.dataflow():
        y = R.nn.conv2d(x, R.const("w"), padding=1)
    return y
""",
        {"w": weight},
    )
    with pytest.raises(UnityError, match=r"resolved to 'tir:winograd': its rounding errors"):
        unity.compile(module, resolve={"main/y": "tir:winograd"})


def test_what_the_program_says_is_taken() -> None:
    module = parse(
        """
@script.function
def main(x: f32[Tensor, 1, 64, 28, 28]) -> f32[Tensor, 1, 64, 28, 28]:
    with R.dataflow():
        y = R.nn.conv2d(x, R.const("w"), padding=1, algorithm="winograd.2")
    return y
""",
        {"w": WIDE},
    )
    assert unity.compile(module).explain()["y"].choice == "tir:winograd.2"


def test_unknown_forms_are_refused() -> None:
    with pytest.raises(UnityError, match=r"no form 'tir:fast'\nhint: there are: tir:direct"):
        unity.compile(program(), resolve="tir:fast")
    text = """
@script.function
def main(x: f32[Tensor, 4, 4], w: f32[Tensor, 4, 4]) -> f32[Tensor, 4, 4]:
    return R.matmul(x, w, algorithm="fast")
"""
    with pytest.raises(UnityError, match=r"algorithm must be None or one of packed, unpacked"):
        unity.compile(parse(text))


def test_narrow_floats_have_one_form() -> None:
    table = unity.compile(program(), precision="f16").explain()
    assert set(table.counts()) == {"tir"}


def test_what_is_taken_nowhere_is_noted() -> None:
    said: ResolveOption = {"nn.conv1d": "tir", "nn.relu": "library:openblas"}
    notes = unity.compile(program(), resolve=said).explain().notes
    assert notes == (
        "override 'nn.conv1d': nothing in the program fits it",
        "override 'nn.relu': 'library:openblas' is taken nowhere: it is no candidate for nn.relu",
    )
