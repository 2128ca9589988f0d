"""TVM's own sources, a sample of them: none ends in a raw error, as many are read as were."""

from __future__ import annotations

import json

import pytest

from .device_words import device_word
from .tvmscript_sources import RESULTS, Outcome, Script, outcome, outcomes, scripts

EVERY = 25
SLACK = 6.0
"""Percent that a sample may be below the whole."""


def script(text: str) -> Script:
    return Script("head", "here", "prim", text, counts=True, device=None)


@pytest.mark.long("reads every 25th of the sources")
def test_a_sample_is_read_as_before() -> None:
    given = scripts()
    if given is None:
        pytest.skip("shared/tvmscript does not lie beside the repository")
    found = [(s, outcome(s)) for s in given[::EVERY]]
    assert [(s.place, o.said) for s, o in found if o.fate == "raw"] == []
    counted = [o for s, o in found if s.counts and s.device is None]
    assert len(counted) > 100
    before = json.loads(RESULTS.read_text())["read"]
    floor = min(row["percent"] for row in before.values()) - SLACK
    assert 100 * sum(o.fate == "read" for o in counted) / len(counted) >= floor


def test_the_file_holds_no_failure() -> None:
    assert json.loads(RESULTS.read_text())["failures"] == []


def test_what_became_of_a_source() -> None:
    text = '@T.prim_func\ndef f(a: T.Buffer((4,), "float32")):\n    a[0] = {}\n'
    assert outcome(script(text.format("1.0"))) == Outcome("read")
    refused = outcome(script(text.format("T.bogus()")))
    assert refused.fate == "refused"
    assert refused.said.startswith("T.bogus is no")
    assert outcome(script("x = " + "(" * 300)).fate == "refused"


def test_a_source_that_takes_too_long_is_a_failure() -> None:
    slow = script("\n".join(f"@T.prim_func\ndef f{i}():\n    T.evaluate(0)" for i in range(3000)))
    fates = {s.text == slow.text: o for s, o in outcomes([slow], jobs=1, limit=-60.0)}
    assert fates == {True: Outcome("raw", "not done in time")}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('T.alloc_buffer((4,), scope="shared")', "memory of a device"),
        ("Tx.copy(a, b)", "tiles of a device"),
        ('T.target({"kind": "cuda"})', "a device's target"),
        ("R.ccl.allreduce(x)", "several machines"),
        ('R.call_packed("vm.builtin.cuda_graph.run_or_capture")', "libraries of a device"),
        ('R.memory.alloc_storage(s, 0, "ipc_memory", "uint8")', "memory of a device"),
        ("T.ptx.mma()", "instructions of a device"),
    ],
)
def test_words_of_a_device(text: str, word: str) -> None:
    assert str(device_word(text)).startswith(word)
    assert device_word('T.alloc_buffer((4,), scope="local"); T.target("llvm")') is None
