"""The database of measurements is a cache: what of it can't be read or written is done without."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import unity
from unity.script import parse
from unity.tuning import Database
from unity.tuning.decision import decoded

PROGRAM = """
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 8], w: f32[Tensor, 8, 8]) -> f32[Tensor, n, 8]:
    return R.matmul(x, w)
"""
W = np.ones((8, 8), np.float32)
GOOD = b'{"key": "good", "seconds": 0.5, "about": ""}\n'
DAMAGED = {
    "bytes that are no UTF-8": b"\xff\xfe\x00\n",
    "deep nesting": b"[" * 100_000 + b"\n",
    "half a line": b'{"key": "half',
    "a list": b'["decision", "key"]\n',
    "a text": b'"decision"\n',
    "a number": b"3\n",
    "no key": b'{"seconds": 1.0}\n',
    "a key that is none": b'{"key": [], "seconds": 1.0}\n',
    "seconds in words": b'{"key": "k", "seconds": "fast"}\n',
    "seconds below zero": b'{"key": "k", "seconds": -1.0}\n',
    "no number of seconds": b'{"key": "k", "seconds": NaN}\n',
    "endless seconds": b'{"key": "k", "seconds": Infinity}\n',
    "more seconds than a float holds": b'{"key": "k", "seconds": 1' + b"0" * 400 + b"}\n",
    "a number without end": b'{"key": "k", "seconds": ' + b"9" * 10_000 + b"}\n",
    "a decision that is a record": b'{"key": "k", "decision": {}}\n',
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_lines_are_told_of_and_ignored(
    case: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "resolve.jsonl").write_bytes(GOOD + DAMAGED[case])
    database = Database(tmp_path)
    assert database.get("good") == 0.5
    assert len(database) == 1
    assert database.decision("k") is None
    assert "resolve.jsonl: 1 of 2 lines are no measurements and are ignored" in caplog.text


def a_folder(file: Path) -> None:
    file.mkdir()


def a_pipe(file: Path) -> None:
    os.mkfifo(file)  # reading it would wait for ever


@pytest.mark.parametrize("make", [a_folder, a_pipe])
def test_what_is_no_file_is_done_without(
    make: Callable[[Path], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make(tmp_path / "resolve.jsonl")
    database = Database(tmp_path)
    assert "can't be read and are ignored" in caplog.text
    assert database.get("k") is None


def refuse(*_: object, **__: object) -> int:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("fails", ["os.open", "os.write", "pathlib.Path.mkdir", "a file there"])
def test_what_cannot_be_written_is_remembered_in_memory(
    fails: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "cache"
    if fails == "a file there":
        folder.write_text("")
    else:
        monkeypatch.setattr(fails, refuse)
    database = Database(folder)
    database.put("a", 1.0, "about")
    database.decide("b", "so", "about")
    assert (database.get("a"), database.decision("b")) == (1.0, "so")
    told = [r for r in caplog.records if "measurements are not kept: " in r.getMessage()]
    assert len(told) == 1
    assert told[0].levelno == logging.WARNING


DECISIONS = (
    "",
    "[" * 100_000,
    "[]",
    '{"road": "tir"}',
    '{"road": "tir", "overrides": 3, "roads": [], "reasons": {}, "measured": {}}',
    '{"road": "tir", "overrides": [], "roads": [], "reasons": {}, "measured": []}',
    '{"road": "tir", "overrides": [], "roads": [{"name": 1, "seconds": "x"}], "reasons": {}, '
    '"measured": {}}',
    '{"road": "tir", "overrides": [], "roads": [], "reasons": {"main/y": 1}, '
    '"measured": {"main/y": {"tir": "fast"}}}',
)


@pytest.mark.parametrize("text", DECISIONS)
def test_damaged_decisions_are_none(text: str) -> None:
    assert decoded(text) is None


def test_measuring_does_without_its_caches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A full disk, and a folder in the place of the file."""
    (tmp_path / "resolve.jsonl").mkdir()
    monkeypatch.setattr("tempfile.mkstemp", refuse)
    monkeypatch.setattr("unity.tuning.plan._FIRST_SECONDS", 0.001)
    exe = unity.compile(parse(PROGRAM), resolve="measure", sizes={"n": 3}, cache=tmp_path)
    np.testing.assert_allclose(exe(np.ones((3, 8), np.float32), W), np.full((3, 8), 8), rtol=1e-6)
    assert "can't be read and are ignored" in caplog.text
    assert "measurements are not kept" in caplog.text
