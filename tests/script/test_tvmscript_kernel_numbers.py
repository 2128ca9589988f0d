"""The comparison of numbers with TVM: differences are seen, and the file holds none unexplained."""

from __future__ import annotations

import json

import numpy as np
import pytest

from .tvmscript_kernel_numbers import RESULTS, Compared, _difference, compare, reason, summary
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
        ("x = 1", None, ""),
    ],
)
def test_what_is_not_compared(text: str, fate: str | None, said: str) -> None:
    pytest.importorskip("tvm", reason="TVM is the oracle here")
    found = compare(script(text))
    assert [c.fate for c in found] == ([] if fate is None else [fate])
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


def test_a_summary_counts_sources_and_gives_reasons() -> None:
    same, other = Compared("f", "same"), Compared("g", "differs", "by 2")
    made = summary([(script("a"), (same, same)), (script("b"), (same, other))])
    assert made["sources with the same numbers"] == 1
    assert made["functions"] == {"differs": 1, "same": 3}
    assert made["differences"] == [["here.py:1 f: g", "by 2", ""]]


def test_each_difference_in_the_file_has_its_reason() -> None:
    rows = json.loads(RESULTS.read_text())["differences"]
    assert [place for place, _, why in rows if not why] == []
    assert all(reason(place.rpartition(":")[0]) == why for place, _, why in rows)
