"""The table of resolution: text, HTML, rich and JSON tell the same, with what can't be and why."""

from __future__ import annotations

import io
import json

from rich.console import Console

from unity.runtime.explanation import CandidateRow, Explanation, RoadRow, SiteRow

TABLE = Explanation(
    (
        SiteRow(
            "main/conv1",
            "nn.conv2d",
            "model.onnx:3",
            "f32(1, 3, 8, 8) -> f32(1, 4, 8, 8)",
            "tir:direct",
            "its kernel measured",
            "",
            (
                CandidateRow("tir:direct", 2e-6, measured=True),
                CandidateRow("tir:winograd.4", 5e-6),
                CandidateRow("tir:gemm", why_not="for windows of <one> pixel"),
            ),
        ),
    ),
    (
        RoadRow("mixed", 1e-3, taken=True),
        RoadRow("tir", 1.5e-3),
        RoadRow("engine:e", None, why_not="it lacks Clip & Pad"),
    ),
    "measure",
    ("override 'matmul': nothing in the program fits it",),
)


def test_text_has_plans_notes_and_the_whole() -> None:
    lines = str(TABLE).splitlines()
    assert lines[1:] == [
        "* mixed: 1.00 ms",
        "  tir: 1.50 ms",
        "  engine:e: no, it lacks Clip & Pad",
        "override 'matmul': nothing in the program fits it",
        "1 call sites (measure): 1 tir:direct, 1.00 ms in all",
    ]
    (cells,) = TABLE.rows()
    assert cells[4] == "tir:winograd.4 ~5.00 us; tir:gemm: no, for windows of <one> pixel"


def test_html_has_all_of_it_escaped() -> None:
    page = TABLE._repr_html_()
    for part in (
        "for windows of &lt;one&gt; pixel",
        "<td>engine:e</td><td>no, it lacks Clip &amp; Pad</td>",
        "<td>mixed</td><td>1.00 ms</td><td>taken</td>",
        "override &#x27;matmul&#x27;",
    ):
        assert part in page


def test_rich_shows_tables_and_notes() -> None:
    out = io.StringIO()
    Console(file=out, width=200).print(TABLE)
    for part in ("main/conv1", "taken", "no, it lacks Clip & Pad", "override 'matmul'"):
        assert part in out.getvalue()


def test_json_comes_back_the_same() -> None:
    text = TABLE.to_json()
    assert Explanation.from_json(text) == TABLE
    assert json.loads(text)["roads"][2]["why_not"] == "it lacks Clip & Pad"
