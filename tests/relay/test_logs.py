"""Logs of AutoTVM, Ansor and MetaSchedule are told apart; what says something to us is taken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unity.errors import UnityError
from unity.relay.logs import best, read_log, summary


def _autotvm(rows: int, seconds: float, error: int = 0) -> str:
    args = [["TENSOR", [1, 16, 28, 28], "float32"], ["TENSOR", [32, 16, 3, 3], "float32"], [1, 1]]
    entity = [
        ["tile_ic", "sp", [-1, 4]],
        ["tile_oc", "sp", [-1, 32]],
        ["tile_ow", "sp", [-1, rows]],
        ["unroll_kw", "ot", True],
    ]
    return json.dumps({
        "input": ["llvm -mcpu=core-avx2", "conv2d_NCHWc.x86", args, {}],
        "config": {"index": 3, "code_hash": None, "entity": entity},
        "result": [[seconds], error, 1.5, 1.6e9], "version": 0.2, "tvm_version": "0.8.0",
    })  # fmt: skip


ANSOR = json.dumps({
    "i": [['["key", 1, 64]', "llvm -mcpu=haswell", [4, 64, 64, 0, 0, 0, 0, 0], "", 0, []],
          [[], [["SP", 3, 0, 64, [2, 8], 1]]]],
    "r": [[0.002, 0.004], 0, 1.0, 1.6e9], "v": "v0.6",
})  # fmt: skip
META = json.dumps([7, [[["Sch", []], []], [0.003], {"kind": "llvm", "mcpu": "haswell"}, []]])


def test_tile_sizes_become_decisions() -> None:
    slow, fast = read_log([_autotvm(7, 0.002), _autotvm(14, 0.001), _autotvm(28, 0, error=4)][:2])
    assert fast.decisions == {"rows": 14, "steps": 4}
    assert fast.ignored == ("tile_oc", "unroll_kw")
    assert fast.task == "conv2d_NCHWc.x86 [1, 16, 28, 28] [32, 16, 3, 3]"
    assert fast.target == "llvm -mcpu=core-avx2"
    assert best([slow, fast]) == [fast]
    (failed,) = read_log([_autotvm(28, 0.0, error=4)])
    assert failed.seconds is None
    assert best([failed]) == []


def test_the_three_are_told_apart(tmp_path: Path) -> None:
    log = tmp_path / "all.log"
    log.write_text("\n".join([_autotvm(7, 0.5), ANSOR, "", META]))
    records = read_log(log)
    assert [r.tuner for r in records] == ["autotvm", "ansor", "metaschedule"]
    assert [r.seconds for r in records] == [0.5, 0.003, 0.003]
    assert [r.target.split()[0] for r in records] == ["llvm"] * 3
    assert "3 records of 3 tasks" in summary(records)
    assert "steps=4, rows=7" in summary(records)
    assert "steps, tile_oc, trace, unroll_kw" in summary(records)


@pytest.mark.parametrize("line", ["hello", "{}", "[1, 2]", '{"i": []}', '{"input": [1]}', "[[]]"])
def test_other_lines_are_refused(line: str) -> None:
    with pytest.raises(UnityError, match="line 2 is no record"):
        read_log([ANSOR, line])
    with pytest.raises(UnityError, match="can't read the log"):
        read_log("/no/such/file.log")
