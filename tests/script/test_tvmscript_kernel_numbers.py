"""The comparison of numbers with TVM: differences are seen, and the file holds none unexplained."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from . import tvmscript_kernel_numbers
from .tvmscript_kernel_numbers import (
    RESULTS,
    SAME,
    Compared,
    _difference,
    _error,
    compare,
    stored,
    summary,
    unexplained,
)
from .tvmscript_sources import Script

KERNEL = """
@T.prim_func(s_tir=True)
def f(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
    for i in T.serial(8, step=3):
        B[i] = A[i] + 1
"""


def script(text: str) -> Script:
    return Script("head", "here.py:1 f", "prim", text, counts=True, device=None)


@pytest.mark.long("TVM is imported, and compiles")
def test_a_source_compiled_by_both() -> None:
    pytest.importorskip("tvm", reason="TVM is the oracle here")
    (found,) = compare(script(KERNEL))
    assert (found.function, found.fate, found.said) == ("f", "same", "")


@pytest.mark.long("TVM compiles")
@pytest.mark.parametrize(
    ("text", "fate", "said"),
    [
        (KERNEL.replace("A[i] + 1", "A[i + 8]"), "ours", "index"),
        (KERNEL.replace("(8,)", "(8388608,)"), "left out", "is too large"),
        (KERNEL.replace("B[i] = A[i] + 1", "T.evaluate(A[i])"), "left out", "writes nothing"),
        (KERNEL.replace("A:", "x: T.float32, A:"), "left out", "takes scalars"),
        ("x = 1 +", "left out", "is not read"),
    ],
)
def test_what_is_not_compared(text: str, fate: str, said: str) -> None:
    pytest.importorskip("tvm", reason="TVM is the oracle here")
    found = compare(script(text))
    assert [c.fate for c in found] == [fate]
    assert all(said in c.said for c in found)


def test_differences() -> None:
    a = np.arange(4, dtype=np.float32)
    assert _difference([a], [a + 1e-6]) is None
    assert _difference([a], [a + np.float32(0.5)]) == "result 0: 4 of 4 differ, by up to 0.5"
    assert _difference([a], [a, a]) == "1 results, expected 2"
    assert _difference([a], [a.astype(np.int32)]) == "result 0 is float32(4,), expected int32(4,)"
    ints = a.astype(np.int64)
    assert _difference([ints], [ints * 2]) == "result 0: 3 of 4 numbers differ"
    nan = np.full(4, np.nan, np.float32)
    assert _difference([nan], [nan]) is None
    assert _difference([nan], [a]) == "result 0: 4 of 4 differ, by up to nan"


def test_narrow_floats_that_are_nearer_to_exact_ones_are_no_difference() -> None:
    pytest.importorskip("tvm", reason="TVM is the oracle here")
    text = """
@T.prim_func(s_tir=True)
def f(A: T.Buffer((4096,), "float16"), B: T.Buffer((1,), "float16")):
    for i in range(4096):
        with T.sblock("sum"):
            v = T.axis.reduce(4096, i)
            with T.init():
                B[0] = T.float16(0)
            B[0] = B[0] + A[v] * A[v]
"""
    (found,) = compare(script(text))
    assert found.fate in SAME
    assert _error([np.ones(2, np.float16)], [np.asarray([1.5, 1.0])]) == 0.5
    assert _error([np.full(2, np.nan)], [np.ones(2)]) == np.inf


def test_a_summary_counts_sources_and_is_read_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    same, other = Compared("f", "same"), Compared("g", "differs", "by 2")
    found = {"a.py:1 f": (same,), "b.py:2 M": (same, other)}
    made = summary(found)
    assert made["sources with the same numbers"] == 1
    assert made["differs"] == {"b.py:2 M: g": "by 2"}
    file = tmp_path / "found.json"
    monkeypatch.setattr(tvmscript_kernel_numbers, "RESULTS", file)
    assert stored() == {}
    file.write_text(json.dumps(made))
    assert stored() == found


def test_what_needs_a_reason() -> None:
    known = "s_tir/schedule/test_tir_schedule_rfactor.py:97 matmul_not_stage_pipeline"
    ours, mine = Compared("f", "ours", "'A' has no dims"), Compared("f", "ours", "names no library")
    differs = (Compared("f", "differs", "by 2"),)
    assert unexplained({"a.py:1 f": differs, known: differs, "b.py:1 f": (mine, ours)}) == [
        "a.py:1 f",
        "b.py:1 f: 'A' has no dims",
    ]


def test_all_in_the_file_has_its_reason() -> None:
    assert unexplained(stored()) == []
    read = json.loads(RESULTS.read_text())
    assert read["functions"]["same"] == len(read["same"])
