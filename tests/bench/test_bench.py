"""The benchmark's own parts: the peers agree, the report picks the best of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from . import __main__ as main
from . import cnn, forms, transformer
from .attention.works import ATTENTION
from .lone.shapes import LONE
from .memory import RUNTIMES, measured
from .models import MODELS, decoder_step, tokens
from .operators import OPERATORS
from .pair import rows
from .peers import PEERS, STATIC, relative_error
from .report import HEADINGS, best_peers, lines, section, work_text, worst_lengths
from .untuned.models import UNTUNED
from .work import Feeds, Work


def tiny_decoder() -> onnx.ModelProto:
    """One narrow layer."""
    return transformer.gpt2(1, 64, 2, 128, 300)


SMALL: dict[str, tuple[onnx.ModelProto, Feeds]] = {
    "mlp": (cnn.mlp(), {"x": np.ones((1, 784), np.float32)}),
    "bert": (transformer.bert(layers=1, width=48, heads=4, ffn=64, length=16), tokens(16)),
    "gpt2": (tiny_decoder(), decoder_step(5, 1, 2, 32, 300)),
    "softmax": (OPERATORS["softmax_1024x1024"].build(), OPERATORS["softmax_1024x1024"].feeds(1)),
    "gelu": (OPERATORS["gelu_1M"].build(), OPERATORS["gelu_1M"].feeds(1)),
    "layernorm": (OPERATORS["layernorm_128x768"].build(), OPERATORS["layernorm_128x768"].feeds(1)),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", SMALL)
def test_torch_computes_what_onnxruntime_does(name: str, tmp_path: Path) -> None:
    model, feeds = SMALL[name]
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    want = PEERS["onnxruntime"].load(path, 1, feeds)(feeds)
    got = PEERS["torch"].load(path, 1, feeds)(feeds)
    assert len(got) == len(want)
    assert max(relative_error(g, w) for g, w in zip(got, want, strict=True)) < 1e-5


def test_a_row_has_both_times_and_the_error() -> None:
    (row,) = rows("mlp", MODELS["mlp"], "onnxruntime", 1, 0.01)
    assert row["error"] < 1e-5
    assert row["ratio"] == pytest.approx(row["peer_min_ms"] / row["unity_min_ms"], rel=0.01)


def test_rows_stand_under_their_headings() -> None:
    times = {"unity_min_ms": 1.5, "unity_median_ms": 2, "peer_min_ms": 3, "peer_median_ms": 4}
    row = {"work": "mlp", "threads": 1, "peer": "torch", "ratio": 2, "error": 1e-7} | times
    died = {"work": "mlp", "threads": 1, "peer": "torch", "failed": "the process died"}
    good, bad = lines([row, died])
    for heading, text in {"work": "mlp", "peer": "torch", "ratio": "x2.000"}.items():
        assert good.index(text) == HEADINGS.index(heading)
    assert good.index("1.5000 (2.0000)") + len("1.5000 (2.0000)") == HEADINGS.index("ms") + 2
    assert bad.endswith("torch  failed: the process died")
    assert section("of nothing:", []) == ""
    assert section("of some:", [bad]) == f"\nof some:\n{bad}\n"


def test_results_go_where_they_are_asked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    committed = main.RESULTS.read_text()
    old = {"work": "gru", "threads": 1, "peer": "torch", "failed": "earlier"}
    new = {"work": "mlp", "threads": 1, "peer": "onnxruntime", "failed": "no time"}
    path = tmp_path / "out.json"
    path.write_text(json.dumps({"rows": [old]}))
    monkeypatch.setattr(main, "paired", lambda works, *_: [new] if works == ["mlp"] else [])
    monkeypatch.setattr(main, "call_overhead", dict)
    command = ["bench", "mlp", "--parts", "times", "--threads", "1", "--output", str(path)]
    monkeypatch.setattr(sys, "argv", [*command, "--peers", "onnxruntime"])
    main.main()
    assert json.loads(path.read_text())["rows"] == [new, old]
    assert main.RESULTS.read_text() == committed
    printed = capsys.readouterr().out
    assert "ratio" in printed
    assert "against" not in printed


@pytest.mark.long("compiles a decoder twice")
@pytest.mark.rotated(2)
def test_a_session_gives_all_that_the_plain_model_does() -> None:
    work = Work(tiny_decoder, lambda n: decoder_step(n, 1, 2, 32, 300), (5, 0), session=True)
    for row in rows("gpt2", work, "onnxruntime", 1, 0.01):
        assert row["error"] < 1e-5


@pytest.mark.long("the benchmark compiles a model at each length")
@pytest.mark.rotated(2)
def test_models_of_unknown_sizes_are_compared_with_themselves_at_fixed_ones() -> None:
    for session in (False, True):
        work = Work(tiny_decoder, lambda n: decoder_step(n, 1, 2, 32, 300), (5, 7), session=session)
        found = list(rows("gpt2", work, STATIC, 1, 0.01))
        assert [r["length"] for r in found] == [5, 7]
        assert all(r["error"] < 1e-5 for r in found)


@pytest.mark.long("starts a process for each runtime")
@pytest.mark.rotated(2)
def test_memory_is_that_of_a_run(tmp_path: Path) -> None:
    path = tmp_path / "softmax.onnx"
    onnx.save(OPERATORS["softmax_1024x1024"].build(), path)
    for runtime in RUNTIMES:
        found = measured(path, "softmax_1024x1024", 1, runtime)
        assert found["load_peak_mib"] >= found["loaded_mib"] > 0
        assert 4 <= found["run_mib"] <= found["runs_mib"] < 100  # the result alone is 4 MiB


def test_the_worst_length_is_told() -> None:
    row = {"work": "bert_2_layers", "threads": 1, "peer": STATIC}
    found = worst_lengths(
        [
            {**row, "length": 7, "ratio": 0.95},
            {**row, "length": 33, "ratio": 0.91},
            {**row, "length": 64, "failed": "no"},
            {**row, "length": 100, "peer": "onnxruntime", "ratio": 0.5},
        ]
    )
    (line,) = found
    assert " ".join(line.split()) == "bert_2_layers @33, 1 thread x0.910 (the least of 2 lengths)"


def test_the_best_peer_is_the_hardest_to_beat() -> None:
    row = {"work": "mlp", "length": 1, "threads": 2, "precision": "f32"}
    found = best_peers(
        [
            {**row, "peer": "torch", "ratio": 3.0},
            {**row, "peer": "onnxruntime", "ratio": 0.7},
            {**row, "peer": "tvm", "failed": "no"},
            {**row, "peer": STATIC, "ratio": 0.5},
        ]
    )
    ((key, best),) = found.items()
    assert best["peer"] == "onnxruntime"
    assert work_text(key) == "mlp, 2 threads"


@pytest.mark.parametrize("works", [LONE, UNTUNED, ATTENTION], ids=["lone", "untuned", "attention"])
def test_both_forms_are_models_of_the_inputs(works: forms.Works) -> None:
    """One of fixed sizes, one that leaves some open, both of what is fed to them."""
    for work in [w for k, w in enumerate(works.values()) if k % 4 == 2]:
        feeds = work.feeds()
        for known in (True, False):
            model = work.model(known)
            onnx.checker.check_model(model, full_check=True)
            shapes = {
                v.name: [d.dim_value for d in v.type.tensor_type.shape.dim]
                for v in model.graph.input
            }
            assert shapes.keys() == feeds.keys()
            for name, x in feeds.items():
                assert all(n in (0, size) for n, size in zip(shapes[name], x.shape, strict=True))
            assert known == all(0 not in shape for shape in shapes.values())


def test_rows_of_both_forms_are_summed_up() -> None:
    """Those of another run stay, and what unknown sizes cost is told."""
    row = {"threads": 1, "best": "onnxruntime", "error": 0.0, "compile_s": 1.0}
    rows = [
        {**row, "work": "a", "form": form, "ratio": ratio, "us": {"unity": us}}
        for form, ratio, us in (("fixed", 2.0, 10.0), ("unknown", 0.5, 40.0))
    ]
    said = forms.summary(rows)
    assert "geometric mean 2.000" in said[0]
    assert said[-1].endswith("mean 0.250; worst: a 0.25")
    later = [{**rows[0], "ratio": 3.0}]
    kept = forms.merged(rows, later, {"a": LONE["Slice 1000x1000 inner"]})
    assert [r["ratio"] for r in kept] == [3.0, 0.5]
