"""Logs of AutoTVM, Ansor and MetaSchedule are told apart; what says something to us is taken."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import unity
from unity import relay
from unity.codegen.llvm.host import host_target
from unity.errors import UnityError
from unity.frontend.relay.translator import translate
from unity.relay.logs import (
    ScheduleByLog,
    applied,
    best,
    candidate,
    measured,
    read_log,
    summary,
)
from unity.transform import Context
from unity.transform.schedule import ScheduleDefault


def _autotvm(rows: int, seconds: float, error: int = 0, channels: int = 32) -> str:
    args = [["TENSOR", [1, 16, 28, 28], "float32"], ["TENSOR", [32, 16, 3, 3], "float32"],
            [2, 2], [1, 1, 1, 1], [1, 1], "NCHW", "NCHW", "float32"]  # fmt: skip
    entity = [
        ["tile_ic", "sp", [-1, 4]],
        ["tile_oc", "sp", [-1, channels]],
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
    assert fast.decisions == {"rows": 14, "channels": 32, "steps": 4}
    assert fast.ignored == ("unroll_kw",)
    assert fast.task == "conv2d_NCHWc.x86 [1, 16, 28, 28] [32, 16, 3, 3]"
    assert fast.target == "llvm -mcpu=core-avx2"
    assert best([slow, fast]) == [fast]
    (failed,) = read_log([_autotvm(28, 0.0, error=4)])
    assert failed.seconds is None
    assert best([failed]) == []


def _dense(rows: int, steps: int) -> str:
    args = [["TENSOR", [40, 96], "float32"], ["TENSOR", [100, 96], "float32"], None, "float32"]
    entity = [["tile_y", "sp", [-1, 1, rows]], ["tile_x", "sp", [-1, 8]],
              ["tile_k", "sp", [-1, steps]]]  # fmt: skip
    return json.dumps({
        "input": ["llvm", "dense_pack.x86", args, {}],
        "config": {"index": 3, "code_hash": None, "entity": entity},
        "result": [[0.001], 0, 1.5, 1.6e9], "version": 0.2, "tvm_version": "0.8.0",
    })  # fmt: skip


def _model() -> relay.IRModule:
    rng = np.random.default_rng(0)
    kernel = relay.const(rng.standard_normal((32, 16, 3, 3), np.float32))
    image, rows = relay.var("image", shape=(1, 16, 28, 28)), relay.var("rows", shape=(40, 96))
    conv = relay.nn.conv2d(image, kernel, strides=(2, 2), padding=(1, 1), kernel_size=(3, 3))
    dense = relay.nn.dense(rows, relay.const(rng.standard_normal((100, 96), np.float32)))
    return relay.IRModule.from_expr(relay.Tuple([relay.nn.relu(conv), dense]))


def test_tile_sizes_are_offered_to_kernels_of_their_shapes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    module = translate(_model().syntax)
    target = replace(host_target(), threads=1)
    records = read_log([_autotvm(3, 0.001, channels=8), _dense(2, 8)])
    usual = unity.compile(module, target)
    with caplog.at_level(logging.WARNING, "unity"):
        changed = unity.compile(module, target, pipeline=applied(records))
    assert not caplog.records
    rng = np.random.default_rng(1)
    inputs = [rng.standard_normal(s, np.float32) for s in ((1, 16, 28, 28), (40, 96))]
    for was, now in zip(usual(*inputs), changed(*inputs), strict=True):
        np.testing.assert_allclose(now, was, rtol=1e-4, atol=1e-4)
    others = {k for k in usual.kernels if usual.llvm(k) != changed.llvm(k)}
    assert {k.partition("_")[0] for k in others} == {"fused", "matmul"}


def test_what_is_not_legal_is_left_with_a_note(caplog: pytest.LogCaptureFixture) -> None:
    records = read_log([_autotvm(28, 0.001), _dense(999, 7)])
    kernels = (
        unity.pipeline("cpu").until(ScheduleDefault).run(translate(_model().syntax), Context())
    )
    target = Context().target
    found = [candidate(records, f, target) for f in kernels.prim_funcs().values()]
    known = {c.record.task.partition(" ")[0]: c for c in found if c is not None}
    assert set(known) == {"conv2d_NCHWc.x86", "dense_pack.x86"}
    assert known["dense_pack.x86"].decisions == {"steps": 7}
    (refused,) = known["dense_pack.x86"].refused
    assert refused.startswith("rows=999 is none of [1, ")
    assert any(r.startswith("rows=28 is none of") for r in known["conv2d_NCHWc.x86"].refused)
    with caplog.at_level(logging.WARNING, "unity"):
        ScheduleByLog(tuple(records))(kernels, Context())
    assert "of the log's dense_pack.x86 [40, 96] [100, 96]: rows=999 is none of" in caplog.text
    # Tasks of other shapes, of no tensors, and those of other tuners say nothing of these kernels.
    other = read_log([_dense(2, 8).replace("[40, 96]", "[41, 96]"), ANSOR, META])
    assert not any(candidate(other, f, target) for f in kernels.prim_funcs().values())


def test_records_that_pay_are_measured_once_and_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Kernel by kernel, then the whole; clocks are replaced, so that it is known what pays."""
    module = translate(_model().syntax)
    target = replace(host_target(), threads=1)
    other = _dense(2, 8).replace("[40, 96]", "[41, 96]")
    records = read_log([_autotvm(3, 0.001, channels=8), _dense(2, 8), other])
    compiled: list[unity.Executable] = []

    def seconds(exe: unity.Executable, _: object) -> dict[str, float]:
        compiled.append(exe)
        dense = 2.0 if len(compiled) == 1 else 3.0  # slower with the log's
        return {n: dense if "matmul" in n else 4.0 - len(compiled) for n in exe.kernels}

    monkeypatch.setattr("unity.relay.logs.measuring._seconds", seconds)
    monkeypatch.setattr("unity.relay.logs.measuring.interleaved", lambda *_: [1.0, 0.9])
    with caplog.at_level(logging.WARNING, "unity"):
        kept = measured(module, records, target, cache=tmp_path)
    assert [r.task.partition(" ")[0] for r in kept] == ["conv2d_NCHWc.x86"]
    assert "dense_pack.x86 [41, 96] [100, 96]: no kernel computes it here" in caplog.text
    assert "1 records of a log pay" in (tmp_path / "resolve.jsonl").read_text()
    assert measured(module, records, target, cache=tmp_path) == kept
    assert len(compiled) == 2

    monkeypatch.setattr("unity.relay.logs.measuring.interleaved", lambda *_: [1.0, 1.1])
    compiled.clear()
    assert measured(module, records, target, cache=None) == ()  # the whole is not faster


def test_the_three_are_told_apart(tmp_path: Path) -> None:
    log = tmp_path / "all.log"
    log.write_text("\n".join([_autotvm(7, 0.5), ANSOR, "", META]))
    records = read_log(log)
    assert [r.tuner for r in records] == ["autotvm", "ansor", "metaschedule"]
    assert [r.seconds for r in records] == [0.5, 0.003, 0.003]
    assert [r.target.split()[0] for r in records] == ["llvm"] * 3
    assert "3 records of 3 tasks" in summary(records)
    assert "steps=4, channels=32, rows=7" in summary(records)
    assert "steps, trace, unroll_kw" in summary(records)


@pytest.mark.parametrize("line", ["hello", "{}", "[1, 2]", '{"i": []}', '{"input": [1]}', "[[]]"])
def test_other_lines_are_refused(line: str) -> None:
    with pytest.raises(UnityError, match="line 2 is no record"):
        read_log([ANSOR, line])
    with pytest.raises(UnityError, match="can't read the log"):
        read_log("/no/such/file.log")
