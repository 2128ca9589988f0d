"""Forms of calls: the fastest is recorded, used by compile, and told by the report."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

import unity
from unity.compilation import has_forms
from unity.ir.graph import Call
from unity.ir.module import IRModule
from unity.script import parse
from unity.transform import Context, pipeline
from unity.transform.graph.layout.convert_layout import ConvertLayout
from unity.transform.graph.layout.convert_winograd import ConvertWinograd
from unity.transform.graph.layout.pack_weights import PackWeights
from unity.transform.graph.resolve import Policy, Resolve, call_identity
from unity.tuning import MeasuredProgram
from unity.tuning.forms import FormSearch
from unity.tuning.kernel_times import KernelTimes
from unity.tuning.measured_program import Said
from unity.tuning.records import FormRecord, Records
from unity.tuning.runs import RunsInChild
from unity.tuning.session import Session
from unity.tuning.tasks.task import Place
from unity.tuning.workers.machine_key import key_of_target

from .kernels import TARGET

RNG = np.random.default_rng(0)
WEIGHT = RNG.standard_normal((64, 64, 3, 3), np.float32) * 0.1
TWICE = """
@script.function
def main(x: f32[Tensor, 1, 64, 24, 24]) -> f32[Tensor, 1, 64, 12, 12]:
    with R.dataflow():
        a = R.nn.conv2d(x, R.const("w"), padding=1)
        b = R.nn.conv2d(R.nn.relu(a), R.const("w"), padding=1)
        c = R.nn.conv2d(b, R.const("w"), padding=1, strides=2)
    return c
"""


def twice() -> IRModule:
    """Two calls that records can't tell apart, and one that has another form, but no tiles."""
    return parse(TWICE, {"w": WEIGHT})


NARROW = TWICE.replace(" 64,", " 16,")


def narrow() -> IRModule:
    """Such calls of fewer channels: all forms are worth trying."""
    return parse(NARROW, {"w": WEIGHT[:16, :16]})


class Told(MeasuredProgram):
    """A program that is never compiled: its kernels take what they are said to.

    Args:
        seconds: Of a call of each site, by its form.
        whole: What a program of other forms takes of the default's time.
        module: The program.
        failing: Programs of other forms that can't be compiled.
        sizes: What unknown sizes are.
    """

    def __init__(
        self,
        seconds: Mapping[str, float],
        whole: float = 0.9,
        module: IRModule | None = None,
        failing: Collection[str] = (),
        sizes: Mapping[str, int] | None = None,
    ) -> None:
        module = twice() if module is None else module
        before = pipeline().until(Resolve).run(module, Context(TARGET))
        super().__init__(
            before, "main", TARGET, lambda part, step: unity.compile(part), Resolve(), Policy(),
            (sizes or {},), others=False,
        )  # fmt: skip
        self.seconds, self.whole, self.failing = seconds, whole, failing
        self.tried: dict[str, dict[str, str]] = {}

    def compile(self, name: str, overrides: Sequence[Said]) -> bool:
        self.tried[name] = self.choices(overrides)
        return name not in self.failing

    def run(self, name: str) -> None:
        """Nothing: it is not compiled."""

    def kernels(self, names: Sequence[str]) -> dict[str, KernelTimes]:
        of = {s.var: k for k, s in enumerate(self.sites)}
        return {
            n: KernelTimes(
                tuple(self.seconds.get(self.tried[n].get(s.name, ""), 0.0) for s in self.sites), of
            )
            for n in names
        }

    def times(self, names: Sequence[str], seconds: float) -> dict[str, float]:
        return {n: 1.0 if n == "tir" else self.whole for n in names}


FAST = {"tir:winograd.4": 1.0, "tir:winograd.2": 0.5, "tir:direct": 2.0}


def searched(program: Told, records: Records) -> FormSearch:
    search = FormSearch(program, records, TARGET)
    if search.is_needed:
        assert search.begin()
        search.run(None)
    return search


def test_the_fastest_form_is_recorded_for_equal_calls_once() -> None:
    records = Records()
    search = searched(Told(FAST), records)
    (record,) = records.forms(key_of_target(TARGET))
    assert (record.form, record.usual, record.seconds, record.ratio) == (
        "winograd.2", "winograd.4", 0.5, 0.5
    )  # fmt: skip
    assert [(f.site, f.form) for f in search.report()] == [
        ("main/a", "winograd.2"),
        ("main/b", "winograd.2"),
    ]
    assert not FormSearch(Told(FAST), records, TARGET).is_needed


@pytest.mark.parametrize(
    ("seconds", "whole"), [(FAST, 1.1), ({**FAST, "tir:winograd.2": 0.98}, 0.9)],
    ids=["the whole is slower", "no form is faster by enough"],
)  # fmt: skip
def test_what_is_not_faster_stays_and_is_measured_once(
    seconds: Mapping[str, float], whole: float
) -> None:
    records = Records()
    assert searched(Told(seconds, whole), records).taken == []
    assert [(r.form, r.worth) for r in records.forms()] == [("winograd.4", False)]
    assert not FormSearch(Told(seconds), records, TARGET).is_needed


def test_what_there_is_no_time_for_is_left_to_the_next_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    records, program = Records(), Told({**FAST, "tir:direct": 0.7}, module=narrow())
    search = FormSearch(program, records, TARGET)
    search.run(0.0)
    assert (list(records), program.tried) == ([], {})
    search.begin()
    now = 0.0

    class Clock:
        @staticmethod
        def monotonic() -> float:
            nonlocal now
            now += 1.0
            return now

    monkeypatch.setattr("unity.tuning.forms.search.time", Clock)
    search.run(4.0)  # the first of two
    assert search.short is not None
    (record,) = records.forms()
    assert (record.form, record.tried) == ("direct", ("direct",))
    again = FormSearch(program, records, TARGET)
    assert again.is_needed
    again.begin()
    again.run(None)
    (record,) = records.forms()
    assert (record.form, record.tried) == ("winograd.2", ("direct", "winograd.2"))
    assert not FormSearch(program, records, TARGET).is_needed


def test_what_fails_is_not_tried_again() -> None:
    records = Records()
    program = Told(FAST, module=narrow(), failing=("probe 1", "probe 2"))
    searched(program, records)
    assert [(r.form, r.tried) for r in records.forms()] == [
        ("winograd.4", ("direct", "winograd.2"))
    ]
    assert not FormSearch(program, records, TARGET).is_needed


def test_calls_whose_weights_allow_other_forms_are_judged_by_their_own_defaults() -> None:
    """The records can't tell them apart; the first may be in tiles of 4, the other is not."""
    coarse = WEIGHT.copy()
    coarse[:, ::2] *= 1e4  # and what is summed up cancels out
    coarse[:, 1::2] = -coarse[:, ::2] * (1 + 1e-6)
    text = TWICE.replace('R.nn.relu(a), R.const("w")', 'R.nn.relu(a), R.const("v")')
    for first, second in ((WEIGHT, coarse), (coarse, WEIGHT)):
        program = Told(FAST, module=parse(text, {"w": first, "v": second}))
        usual = program.choices([])
        records = Records()
        searched(program, records)
        (record,) = (r for r in records.forms() if r.about.startswith("a"))
        assert record.usual == usual["main/a"].removeprefix("tir:")
        mean = (FAST[usual["main/a"]] + FAST[usual["main/b"]]) / 2
        assert record.reference == pytest.approx(mean)


def test_only_what_a_session_found_is_withdrawn() -> None:
    """Another program gained by what is recorded."""
    records = Records()
    searched(Told(FAST), records)
    later = searched(Told(FAST, 1.1), records)
    later.withdraw()
    assert [r.form for r in records.recorded_forms(TARGET)] == ["winograd.2"]


def test_sizes_are_those_of_the_call() -> None:
    def program(n: str, **sizes: int) -> Told:
        text = f"""
m = dim("m")
{n} = dim("{n}")
@script.function
def main(x: f32[Tensor, 1, 64, {n}, 24], y: f32[Tensor, m, 8]):
    a = R.nn.conv2d(x, R.const("w"), padding=1)
    return a, R.nn.relu(y)
"""
        return Told(FAST, module=parse(text, {"w": WEIGHT}), sizes=sizes)

    records = Records()
    searched(program("h", h=24, m=3), records)
    (record,) = records.forms()
    assert record.sizes == (("s0", 24),)
    assert not FormSearch(program("k", k=24, m=5), records, TARGET).is_needed
    assert FormSearch(program("h", h=48, m=3), records, TARGET).is_needed


def test_a_program_that_calls_python_is_not_run_again_and_again() -> None:
    text = """
@script.function
def main(x: f32[Tensor, 1, 64, 24, 24]) -> f32[Tensor, 1, 64, 24, 24]:
    with R.dataflow():
        a = R.nn.conv2d(x, R.const("w"), padding=1)
    return R.call_packed("tests.forms.doubled", a, out=f32[Tensor, 1, 64, 24, 24])
"""
    assert FormSearch(Told(FAST), Records(), TARGET).is_needed
    module = parse(text, {"w": WEIGHT})
    assert not FormSearch(Told(FAST, module=module), Records(), TARGET).is_needed


def test_what_gains_nothing_after_all_is_withdrawn() -> None:
    records = Records()
    search = searched(Told(FAST), records)
    search.withdraw()
    assert (search.taken, search.report()) == ([], [])
    assert records.recorded_forms(TARGET) == ()


def recorded(form: str, records: Records | None = None) -> Records:
    """A record for the first two convolutions, on this machine."""
    found = Records() if records is None else records
    target = unity.compile(twice(), threads=1).target
    module = pipeline().until(Resolve).run(twice(), Context(target))
    call = module.graph_functions()["main"].body.blocks[0].bindings[0].value
    assert isinstance(call, Call)
    told = (0.5, 1.0, (), "a: nn.conv2d", "2026-11-30")
    found.add(FormRecord(call_identity(call), key_of_target(target), (), form, "direct", *told))
    return found


def forms_in(exe: unity.Executable) -> list[str]:
    return [row.choice for row in exe.explain() if row.op == "nn.conv2d"]


def test_a_compiled_program_has_the_forms_of_records_and_says_so() -> None:
    usual = unity.compile(twice(), threads=1)
    other = "winograd.2" if forms_in(usual)[0] != "tir:winograd.2" else "direct"
    exe = unity.compile(twice(), threads=1, db=recorded(other))
    assert forms_in(exe) == [f"tir:{other}", f"tir:{other}", forms_in(usual)[2]]
    first, _, last = (row for row in exe.explain() if row.op == "nn.conv2d")
    assert f"its form by record: {other} 2.00x of direct" in first.reason
    assert "by record" not in last.reason
    x = RNG.standard_normal((1, 64, 24, 24), np.float32)
    np.testing.assert_allclose(exe(x), usual(x), rtol=1e-3, atol=1e-3)
    four = {"main/a": "tir:winograd.4"}
    said = unity.compile(twice(), threads=1, db=recorded(other), resolve=four)
    assert "by record" not in next(iter(said.explain())).reason
    later = unity.compile(twice(), threads=1, db=recorded("winograd.6"))
    assert forms_in(later) == forms_in(usual)


def test_forms_for_other_threads_are_told_of(caplog: pytest.LogCaptureFixture) -> None:
    unity.compile(twice(), threads=2, db=recorded("winograd.2"))
    (told,) = caplog.messages
    assert "records of this program's kernels for 1 thread, and none for 2 threads" in told


def test_pipelines_that_lack_what_makes_forms_have_none() -> None:
    assert has_forms(pipeline())
    for kind in (ConvertLayout, ConvertWinograd, PackWeights):
        assert not has_forms(pipeline().without(kind))
    assert not has_forms(pipeline(precision="bf16"))


def test_what_a_call_says_itself_counts() -> None:
    said = TWICE.replace("padding=1)\n        b", 'padding=1, algorithm="direct")\n        b')
    exe = unity.compile(parse(said, {"w": WEIGHT}), threads=1, db=recorded("winograd.2"))
    assert forms_in(exe)[:2] == ["tir:direct", "tir:winograd.2"]
    exe = unity.compile(twice(), threads=1, winograd=False, db=recorded("winograd.2"))
    assert all("winograd" not in name for name in exe.kernels)


def test_calls_are_one_whatever_their_sizes_are_called() -> None:
    def identity(sizes: str, strides: int = 1) -> str:
        n, h, w = tuple(sizes)
        symbols = "\n".join(f'{s} = dim("{s}")' for s in dict.fromkeys(sizes))
        text = f"""
{symbols}
@script.function
def main(x: f32[Tensor, {n}, 64, {h}, {w}]):
    return R.nn.conv2d(x, R.const("w"), padding=1, strides={strides})
"""
        module = pipeline().until(Resolve).run(parse(text, {"w": WEIGHT}), Context(TARGET))
        call = module.graph_functions()["main"].body.blocks[0].bindings[0].value
        assert isinstance(call, Call)
        return call_identity(call)

    assert identity("nhw") == identity("byx")
    assert identity("nhw") != identity("nhw", strides=2)
    assert identity("nhw") != identity("nhh")


@pytest.mark.rotated(1 / 6)
@pytest.mark.long("compiles a program in three ways, and measures in children")
def test_forms_are_measured_before_schedules_are_searched(tmp_path: Path) -> None:
    db = tmp_path / "db.jsonl"
    found = unity.tune(twice(), threads=1, trials=2, db=db)
    (measured,) = Records(db).forms()
    assert (measured.about, measured.sizes) == ("a: nn.conv2d", ())
    assert "winograd.2" in (*measured.tried, measured.usual)
    assert [f.site for f in found.forms] == (["main/a", "main/b"] if measured.worth else [])
    exe = unity.compile(twice(), threads=1, db=db)
    assert set(forms_in(exe)[:2]) <= {f"tir:{measured.form}", "tir:tuned"}


@pytest.mark.rotated(1 / 6)
@pytest.mark.long("measures in children, which import the compiler")
def test_recorded_forms_are_those_of_the_kernels_that_are_tuned(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also where forms are not measured; the program that kernels are timed in has them, too."""
    usual = unity.compile(twice(), threads=1)
    other = "winograd.2" if forms_in(usual)[0] != "tir:winograd.2" else "direct"
    records = recorded(other, Records(tmp_path / "db.jsonl"))
    kernels = unity.compile(twice(), threads=1, db=records).kernels
    places: list[Place] = []
    monkeypatch.setattr(Session, "run", lambda *args: places.extend(args[1].kernels()))
    found = unity.tune(twice(), threads=1, trials=1, db=records.path, forms=False)
    assert {k.name for k in found.kernels} <= {*kernels}
    assert {name for name, _ in places} == {*kernels}


@pytest.mark.long("compiles a program, and starts the children of a session")
def test_the_child_ends_where_measuring_forms_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def stopped(search: FormSearch, end: float | None) -> None:
        asked.append("run")
        raise KeyboardInterrupt

    monkeypatch.setattr(FormSearch, "begin", lambda search: True)
    monkeypatch.setattr(FormSearch, "run", stopped)
    monkeypatch.setattr(RunsInChild, "forget", lambda runs: asked.append("forget"))
    assert unity.tune(twice(), threads=1, trials=1).stopped
    assert asked == ["run", "forget"]
