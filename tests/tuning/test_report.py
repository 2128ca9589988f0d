"""Reports of tuning: what they tell, and in how many columns."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from unity.tuning.report import KernelReport, TuningReport


def test_a_report_of_nothing_found_says_so() -> None:
    known = KernelReport("matmul", "k", (), 2, 3, 1e-3, 1e-3, "", "", ())
    other = replace(known, name="softmax", trials=0, before=0.0, after=0.0)
    text = str(TuningReport("cpu", 3, 1.0, (known, other)))
    assert "nothing faster was found" in text
    assert "not measured" in text.splitlines()[-1]
    assert "(0.00x)" not in str(TuningReport("cpu", 0, 1.0, (other,)))
    assert "the time was too short" in str(TuningReport("cpu", 0, 1.0, (other,)))
    assert "nothing faster" not in str(TuningReport("cpu", 3, 1.0, (replace(known, after=5e-4),)))


def test_a_report_has_as_many_columns_as_there_are() -> None:
    known = KernelReport(
        "fused_conv2d_winograd_add_relu_3", "k", (("h", 224), ("w", 224)), 2, 3, 1e-3, 5e-4,
        "multi_level_tiles", "", (),
    )  # fmt: skip
    found = TuningReport("cpu", 3, 1.0, (known,), forms_short=30.4)
    for width in (60, 80, 104):
        *told, heading, row = found.text(width).splitlines()
        assert max(len(heading), len(row)) <= width
        assert row.startswith("fused_conv2d")
        assert "2.00x" in row
        assert any("other forms takes 30 s to compile" in line for line in told)
        assert ("multi_level_tiles" in row) is (width >= 104)


def test_a_report_without_a_chart_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    written = TuningReport("cpu", 0, 1.0, ()).save(tmp_path)
    assert [path.name for path in written] == ["tuning.json"]
    assert f"{tmp_path} has no chart: matplotlib is not installed" in caplog.text
