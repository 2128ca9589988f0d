"""What notebooks are shown: one look, everything escaped, readable on light pages and dark ones."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from typing import Protocol

import numpy as np
import pytest

import unity
from unity import script
from unity.notebook import note, page, program, share, table
from unity.runtime.timing import Benchmark, Profile, ProfileRow
from unity.script import Buffer, R, T, Tensor, dim, f32
from unity.transform.instruments import Timing
from unity.transform.schedule import Schedule
from unity.tuning.report import KernelReport, TuningReport

n = dim("n")
weight = np.ones((8, 8), np.float32)


@script.function
def main(x: f32[Tensor, n, 8]) -> f32[Tensor, n, 8]:
    return R.nn.softmax(R.matmul(x, R.const(weight)))


@script.prim_func
def double(x: f32[Buffer, 16], y: f32[Buffer, 16]) -> None:
    for i in range(16):
        with T.block("double"):
            vi = T.axis.spatial(16, i)
            y[vi] = x[vi] * 2.0


class Shown(Protocol):
    def _repr_html_(self) -> str: ...


@cache
def executable() -> unity.Executable:
    return unity.compile(main, instruments=[timing()])


@cache
def timing() -> Timing:
    return Timing()


def schedule() -> Schedule:
    s = Schedule(double.func)
    (loop,) = s.get_loops("double")
    s.vectorize(s.split(loop, (None, 8))[1])
    return s


def report() -> TuningReport:
    kernel = KernelReport("a<b", "k", (("n", 8),), 2, 5, 2e-3, 1e-3, "rules", "", ())
    return TuningReport("cpu", 5, 1.0, (kernel,), (4e-3, 2e-3))


DISPLAYS: dict[str, tuple[Callable[[], Shown], list[str]]] = {
    "module": (lambda: main.module(), ["softmax", "matmul"]),
    "decorated function": (lambda: main, ["softmax"]),
    "kernel": (lambda: double.func, ["range", "double"]),
    "executable": (executable, ["main(x: float32[n, 8])", "native"]),
    "explanation": (lambda: executable().explain(), ["main/", "tir"]),
    "profile": (lambda: executable().profile(np.ones((4, 8), np.float32)), ["softmax", "%"]),
    "benchmark": (lambda: Benchmark((1e-3, 2e-3)), ["1.00 ms", "median", "2 runs"]),
    "schedule": (schedule, ["vectorize", "vectorized"]),
    "trace": (lambda: schedule().trace, ["get_loops", "split"]),
    "tuning": (report, ["a&lt;b[n=8]", "2.00x", "whole program"]),
    "times of passes": (lambda: (executable(), timing())[1], ["FuseOps", "share"]),
}  # fmt: skip


class Tags(HTMLParser):
    """Checks that tags are closed in their order, and keeps the text of styles and of the rest."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = self.styles = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        assert not any(name == "style" and "color" in (value or "") for name, value in attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["style"]:
            self.styles += data
        else:
            self.text += data


def read(html: str) -> Tags:
    tags = Tags()
    tags.feed(html)
    tags.close()
    assert not tags.open
    return tags


@pytest.mark.parametrize("name", DISPLAYS)
def test_a_display_is_a_page_with_all_that_is_to_be_seen(name: str) -> None:
    make, parts = DISPLAYS[name]
    shown = make()
    html = shown._repr_html_()
    assert html.startswith("<style>")
    assert 'class="unity-shown"' in html
    tags = read(html)
    for part in parts:
        assert part in html or part in tags.text, html


@pytest.mark.parametrize("name", DISPLAYS)
def test_text_and_lines_have_the_pages_own_colours(name: str) -> None:
    """Black text would not be read on a dark page: what has a colour of ours has one for each."""
    make, _ = DISPLAYS[name]
    shown = make()
    styles = read(shown._repr_html_()).styles
    plain = re.sub(r"[^{}]*\.unity-code [^{}]*\{[^}]*\}", "", styles)
    colours = re.findall(r"(?:^|[\s;{])color: *([^;}]*)", plain)
    assert set(colours) <= {"inherit"}
    assert not re.search(r"#[0-9a-fA-F]{3,6}", plain)


def test_words_of_programs_have_colours_for_light_and_for_dark() -> None:
    styles = read(program("def f():\n    return 1\n")).styles
    keyword = [line for line in styles.splitlines() if ".unity-code .k " in line]
    told = [line for line in keyword if "[data-jp-theme-light" in line or ".vscode" in line]
    assert len(keyword) == 5
    assert len(told) == 4, "JupyterLab, VS Code twice, and where neither says anything"
    assert "prefers-color-scheme: dark" in styles
    assert len({line.partition("{")[2] for line in keyword}) == 2


def test_all_is_escaped() -> None:
    html = page(table(("<h>",), [("<c>", 1, share(0.5))], "<t>"), note("<n>"), program("'<p>'"))
    tags = read(html)
    for part in ("<h>", "<c>", "<t>", "<n>", "<p>", "50.0%"):
        assert part in tags.text


def test_shares_are_within_the_cell() -> None:
    assert "--part: 100.0%" in table(("x",), [(share(1.5),)])
    assert Profile((ProfileRow("k", "l", 1, 0.0),))._repr_html_()
