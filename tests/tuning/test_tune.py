"""unity.tune: what is found is kept, used by compile, right, and outlives edits elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unity
from unity.codegen.llvm.host import host_target
from unity.errors import UnityError
from unity.ir.stmt import PrimFunc
from unity.script import parse
from unity.transform.rules.by_record import Replay, ScheduleByRecord
from unity.transform.rules.canonical import canonical, identity
from unity.transform.schedule import ScheduleDefault
from unity.transform.schedule.schedule import Schedule
from unity.tuner import kernel_reports
from unity.tuning.cost import FEATURES, LearnedModel, PriorModel
from unity.tuning.cost.features import Features
from unity.tuning.in_program import contests, settle
from unity.tuning.records import Best, Records, Trial
from unity.tuning.session import Progress, Session
from unity.tuning.spaces import Point, multi_level_tiles
from unity.tuning.tasks import Task
from unity.tuning.tasks.task import Place
from unity.tuning.workers import Candidate, Measured, Measurer
from unity.tuning.workers.machine_key import key_of_target
from unity.tuning.workers.runner import SURE, USUAL, Timing

from .kernels import MATMUL, ROWS, SMALL, rows_at_once, tasks

RNG = np.random.default_rng(0)


@pytest.mark.rotated(1 / 6)
@pytest.mark.long("measures in children, which import the compiler")
def test_what_is_found_is_kept_and_used_and_gone_on_from(tmp_path: Path) -> None:
    module, db = parse(MATMUL), tmp_path / "db.jsonl"
    found = unity.tune(module, threads=1, trials=3, db=db, report=tmp_path / "report")
    first = Records(db).trials()
    assert found.trials == len(first) == 3
    assert [k.name for k in found.kernels] == ["fused_matmul_relu"]
    assert "fused_matmul_relu" in str(found)
    told = json.loads((tmp_path / "report" / "tuning.json").read_text())
    assert told["kernels"][0]["trials"] == 3

    def stop(progress: Progress) -> None:
        raise KeyboardInterrupt

    stopped = unity.tune(module, threads=1, trials=50, db=db, watch=stop)
    assert (stopped.stopped, stopped.trials) == (True, 1)
    *before, last = Records(db).trials()
    assert before == first
    assert (last.space, last.point) not in {(t.space, t.point) for t in first}
    x, w = (RNG.standard_normal(s, np.float32) for s in ((32, 48), (48, 64)))
    tuned = unity.compile(module, threads=1, db=db)
    np.testing.assert_allclose(tuned(x, w), np.maximum(x @ w, 0), rtol=1e-4, atol=1e-4)


def by_hand(text: str, steps: Callable[[Schedule], None], **sizes: int) -> tuple[Records, str]:
    """Records of one kernel of a program that somebody laid out, and what they call the kernel."""
    target = unity.compile(parse(text), threads=1).target
    (task,) = tasks(text, target, **sizes)
    records = Records()
    sch = Schedule(task.func, target)
    steps(sch)
    key = key_of_target(target)
    trace = sch.trace.to_json()
    records.add(
        Best(task.identity, key, task.sizes, "mine", "[]", 1.0, 2.0, trace, "main", "2026-11-26")
    )
    return records, task.identity


def test_a_record_is_of_a_kernel_and_not_of_a_program() -> None:
    """Another program with the same kernel uses it; another operator in front changes nothing."""
    records, _ = by_hand(MATMUL, rows_at_once)
    other = MATMUL.replace("R.nn.relu(R.matmul(x, w))", "R.nn.relu(R.matmul(R.nn.softmax(x), w))")
    exe = unity.compile(parse(other), threads=1, db=records)
    notes = [n for n in exe.explain().notes if "is tuned" in n]
    assert notes == ["the kernel fused_matmul_relu is tuned: mine 2.00x"]
    told = {row.op: (row.choice, row.seconds) for row in exe.explain()}
    assert told["matmul"] == told["nn.relu"] == ("tir:tuned", 1.0)
    assert told["nn.softmax"][0] == "tir"
    x, w = (RNG.standard_normal(s, np.float32) for s in ((32, 48), (48, 64)))
    usual = unity.compile(parse(other), threads=1)
    np.testing.assert_allclose(exe(x, w), usual(x, w), rtol=1e-4, atol=1e-5)
    assert exe.llvm("fused_matmul_relu") != usual.llvm("fused_matmul_relu")


def test_a_record_that_does_not_apply_is_told_of_and_done_without(
    caplog: pytest.LogCaptureFixture,
) -> None:
    records, name = by_hand(MATMUL, rows_at_once)
    (replay,) = records.replays(unity.compile(parse(MATMUL), threads=1).target)
    broken = Replay(name, replay.trace.replace('"b0"', '"gone"'), about="old")
    passes = unity.pipeline().insert_before(ScheduleDefault, ScheduleByRecord((broken,)))
    exe = unity.compile(parse(MATMUL), threads=1, pipeline=passes)
    assert "the record 'old' of the kernel fused_matmul_relu does not apply any more" in caplog.text
    x, w = (RNG.standard_normal(s, np.float32) for s in ((32, 48), (48, 64)))
    np.testing.assert_allclose(exe(x, w), np.maximum(x @ w, 0), rtol=1e-4, atol=1e-4)


def test_records_for_other_threads_are_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    records, _ = by_hand(MATMUL, rows_at_once)
    exe = unity.compile(parse(MATMUL), threads=2, db=records)
    assert not [n for n in exe.explain().notes if "is tuned" in n]
    (told,) = caplog.messages
    assert told == (
        "db has records of this program's kernels for 1 thread, and none for 2 threads: they are "
        "not used; compile it with threads=1 (--threads 1), or tune it with threads=2"
    )


def test_records_of_other_programs_and_machines_are_normal(
    caplog: pytest.LogCaptureFixture,
) -> None:
    records, _ = by_hand(MATMUL, rows_at_once)
    (best,) = records.bests()
    unity.compile(parse(SMALL), threads=2, db=records)
    unity.compile(parse(MATMUL), threads=1, db=records)
    elsewhere = Records()
    elsewhere.add(replace(best, target=best.target.replace("cpu ", "cpu other-", 1)))
    unity.compile(parse(MATMUL), threads=2, db=elsewhere)
    trial = Trial(best.kernel, key_of_target(host_target(2)), best.sizes, "mine", "", 1.0, 1.0, ())
    records.add(trial)
    unity.compile(parse(MATMUL), threads=2, db=records)
    assert not caplog.messages


def test_rules_decide_anew_where_their_steps_no_longer_apply() -> None:
    (task,) = tasks(MATMUL)
    said = '{"decisions":{"b0":{"rows":2}},"without":{}}'
    replay = Replay(task.identity, '{"version":2,"steps":[["gone",[],[],null]]}', said)
    passes = unity.pipeline().insert_before(ScheduleDefault, ScheduleByRecord((replay,)))
    usual = unity.compile(parse(MATMUL), threads=1, decisions={"matmul": {"rows": 2}})
    exe = unity.compile(parse(MATMUL), threads=1, pipeline=passes)
    assert exe.llvm("fused_matmul_relu") == usual.llvm("fused_matmul_relu")


def test_sizes_choose_among_records_when_it_runs() -> None:
    text = ROWS.replace("y = R.nn.softmax(x)\n    return R.nn.softmax(y)", "return R.nn.relu(x)")

    def cut(factor: int) -> Callable[[Schedule], None]:
        return lambda sch: sch.vectorize(sch.split(sch.get_loops("b0")[1], [None, factor])[1])

    records = Records()
    for n, factor in ((4, 2), (400, 32), (40, 8)):
        for record in by_hand(text, cut(factor), n=n)[0]:
            records.add(record)
    exe = unity.compile(parse(text), threads=1, db=records)
    ir = exe.ir("relu")
    assert [f"if n < {limit}:" in ir for limit in (13, 127)] == [True, True]
    for n in (1, 12, 13, 126, 127, 500):
        x = RNG.standard_normal((n, 96), np.float32)
        np.testing.assert_array_equal(exe(x), np.maximum(x, 0))


@pytest.mark.tuning
def test_records_with_other_features_teach_nothing() -> None:
    """A file that an older version wrote is gone on with."""
    (task,) = tasks(MATMUL)
    key, records, rows = key_of_target(task.target), Records(), []

    class Noted(LearnedModel):
        def add(self, kernel: str, row: Features, seconds: float) -> None:
            rows.append(row)
            super().add(kernel, row, seconds)

    for length in (len(FEATURES) - 6, len(FEATURES)):
        records.add(Trial("k", key, (), "rules", f"{length}", 1.0, 2.0, (1.0,) * length, ""))
    Session([task], records, Noted())
    assert [len(row) for row in rows] == [len(FEATURES)]


def test_luck_is_found_out_at_the_end() -> None:
    """What seemed fast is measured again for longer; records tell what it took then."""
    (task,) = tasks(MATMUL)
    records = Records()
    session = Session([task], records, PriorModel())
    (search,) = session.searches
    seemed = [0.9, 0.7, 0.95, 0.5, 0.8, 0.6, 0.97, 1.2]
    true = [0.9, 0.85, 0.95, 1.1, 0.8, 1.0, 0.97, 1.2]
    proposals = search.propose(len(seemed))
    truth = {p.schedule.trace.to_json(): t for p, t in zip(proposals, true, strict=True)}
    for proposal, ratio in zip(proposals, seemed, strict=True):
        session._keep(search, proposal, Measured(ratio, 1.0))
    asked: list[float] = []

    class Sure(Measurer):
        def __init__(self) -> None:
            """No children."""

        def measure(
            self,
            task: Task,
            candidates: Sequence[Candidate],
            timing: Timing = USUAL,
            usual: PrimFunc | None = None,
        ) -> Iterator[Measured]:
            assert timing is SURE
            for candidate in candidates:
                assert candidate.trace is not None
                asked.append(truth[candidate.trace.to_json()])
                yield Measured(asked[-1], 1.0)

    assert search.best_ratio == 0.5
    session.confirm(Sure())
    assert search.best_ratio == 0.8
    assert search.best is proposals[4]
    assert asked == [1.1, 1.0, 0.85, 0.8]
    (best,) = records.bests()
    assert (best.point, best.ratio) == (proposals[4].point.text, 0.8)


class Told(Measurer):
    """Says of every candidate what it is given."""

    def __init__(self, ratio: float | None) -> None:
        """No children."""
        self._ratio = ratio

    def measure(
        self,
        task: Task,
        candidates: Sequence[Candidate],
        timing: Timing = USUAL,
        usual: PrimFunc | None = None,
    ) -> Iterator[Measured]:
        return (Measured(self._ratio, 1.0, within=True) for _ in candidates)

    def kernels(self) -> Mapping[Place, Sequence[float]]:
        """Nothing is known."""
        return {}


def test_what_a_program_does_not_run_is_confirmed_alone() -> None:
    (task,) = tasks(MATMUL)
    session = Session([task], Records(), PriorModel())
    (search,) = session.searches
    session._keep(search, search.propose(1)[0], Measured(0.5, 1.0))

    class Unfit(Told):
        def built(self, task: Task, candidates: Sequence[Candidate]) -> list[Path | None]:
            return [Path(f"{k}") for k in range(len(candidates))]

        def within(
            self, versions: Sequence[Sequence[tuple[Collection[Place], Path]]], seconds: float
        ) -> Sequence[Mapping[Place, float]] | None:
            return given

    given: Sequence[Mapping[Place, float]] | None = None
    assert settle(session, Unfit(None)) == [search]
    given = [{}, {}, {}]
    assert settle(session, Unfit(None)) == [search]
    assert search.best_ratio == 0.5
    several = [replace(task, sizes=(("n", n),), places=frozenset({("f", 0)})) for n in (1, 2)]
    twice = Session(several, Records(), PriorModel())
    for each in twice.searches:
        twice._keep(each, each.propose(1)[0], Measured(0.5, 1.0))
    assert contests(twice.searches, 2) == []


@pytest.mark.parametrize(("ratio", "used"), [(0.9, 1), (1.05, 0), (None, 0)])
def test_what_is_in_use_is_asked_again(ratio: float | None, used: int) -> None:
    """The default that it was compared with may have been an earlier compiler's."""
    records, _ = by_hand(MATMUL, rows_at_once)
    target = unity.compile(parse(MATMUL), threads=1).target
    (task,) = tasks(MATMUL, target)
    assert len(records.replays(target)) == 1
    session = Session([task], records, PriorModel())
    (search,) = session.searches
    assert search.propose(4)[0].point == Point("mine", "[]")
    session = Session([task], records, PriorModel())
    session.confirm(Told(ratio))
    assert len(records.replays(target)) == used
    assert session.gained == bool(used)


@pytest.mark.parametrize(
    ("first", "again", "winner"),
    [
        ((0.9, 0.8, 0.97), [0.85], 1),
        ((0.9, 0.8, 0.97), [1.01, 0.95], 0),
        ((0.9, 0.8, 0.97), [0.92, 0.95], 1),
        ((0.9, 0.8, 0.85), [1.01, 0.99, 1.1], None),
        ((1.2, 1.0, 0.99), [], None),
    ],
    ids=["wins", "won by luck", "still wins", "all won by luck", "wins alone only"],
)
def test_what_wins_within_the_program_is_used(
    first: Sequence[float], again: Sequence[float], winner: int | None
) -> None:
    """The fastest of several by what it takes when it is measured once more."""
    target = unity.compile(parse(MATMUL), threads=1).target
    (task,) = tasks(MATMUL, target)
    records = Records()
    session = Session([task], records, PriorModel())
    (search,) = session.searches
    proposals = search.propose(3)
    for proposal, ratio in zip(proposals, (0.5, 0.6, 0.7), strict=True):
        session._keep(search, proposal, Measured(ratio, 1.0))
    given = [[*first], *([v] for v in again)]
    (place,) = task.places

    class Within(Told):
        def built(self, task: Task, candidates: Sequence[Candidate]) -> list[Path | None]:
            return [Path(f"{k}") for k in range(len(candidates))]

        def within(
            self, versions: Sequence[Sequence[tuple[Collection[Place], Path]]], seconds: float
        ) -> Sequence[Mapping[Place, float]] | None:
            taken = given.pop(0)
            assert len(versions) == 1 + len(taken)
            return [{place: 0.5}, {place: 1.0}, *({place: t} for t in taken)]

    assert settle(session, Within(None)) == []
    assert not given
    assert search.best is (None if winner is None else proposals[winner])
    used = records.replays(target)
    assert [r.trace for r in used] == (
        [] if winner is None else [proposals[winner].schedule.trace.to_json()]
    )
    assert all(r.within for r in records.bests())


def test_few_trials_are_of_several_kernels_those_first_that_take_most() -> None:
    """As the program says: none of them was measured yet."""
    text = """
@script.function
def main(x: f32[Tensor, 32, 48]):
    y = R.nn.softmax(x)
    z = R.sort(y)
    return R.nn.softmax(z, axis=0)
"""
    found = [t for t in tasks(text) if "softmax" in t.name]
    assert len(found) == 2
    taken = {place: (float(k),) for k, t in enumerate(found) for place in t.places}

    session = Session(found, Records(), PriorModel(), times=taken)
    order: list[str] = []
    session.run(Told(1.5), 8, None, lambda progress: order.append(progress.kernel))
    assert [s.default_seconds for s in session.searches] == [0.0, 1.0]
    assert order[:8] == [found[1].name] * 4 + [found[0].name] * 4


def test_what_makes_the_program_no_faster_is_withdrawn() -> None:
    records, _ = by_hand(MATMUL, rows_at_once)
    target = unity.compile(parse(MATMUL), threads=1).target
    (task,) = tasks(MATMUL, target)
    session = Session([task], records, PriorModel())
    for proposal, ratio in zip(session.searches[0].propose(3), (0.9, 0.85, 0.8), strict=True):
        session._keep(session.searches[0], proposal, Measured(ratio, 1.0, within=True))
    assert [r.ratio for r in records.bests()] == [0.8]
    session.withdraw()
    assert not session.gained
    assert records.replays(target) == ()
    again = Session([task], records, PriorModel())
    assert again.searches[0].in_use() == []


def test_a_kernel_is_as_fast_as_the_record_that_lays_it_out() -> None:
    """A session that does not come to measure it again leaves it what an earlier one found."""
    records, _ = by_hand(MATMUL, rows_at_once)
    target = unity.compile(parse(MATMUL), threads=1).target
    (task,) = tasks(MATMUL, target)
    session = Session([task], records, PriorModel())
    session.searches[0].default_seconds = 4e-3
    (row,) = kernel_reports(session)
    assert (row.before, row.after, row.space) == (4e-3, 2e-3, "mine")
    session.set_aside(session.searches)
    assert kernel_reports(session) == [row]
    session.withdraw()
    (row,) = kernel_reports(session)
    assert (row.after, row.space, row.point) == (4e-3, "", "")


def test_records_of_a_clock_that_is_ahead_are_withdrawn_too() -> None:
    """They supersede what the session notes, so that it has to be noted with their date."""
    records, _ = by_hand(MATMUL, rows_at_once)
    target = unity.compile(parse(MATMUL), threads=1).target
    (best,) = records.bests()
    records.add(replace(best, date="2999-01-01", within=True))
    session = Session([tasks(MATMUL, target)[0]], records, PriorModel())
    assert len(session.used()) == 1
    session.withdraw()
    assert len(session.used()) == 0
    assert records.replays(target) == ()


def test_names_of_blocks_do_not_count() -> None:
    (task,) = tasks(MATMUL)
    text = str(task.func)
    renamed = parse(text.replace('"b0"', '"product"')).prim_funcs()["main"]
    assert identity(renamed) == task.identity
    assert str(canonical(renamed)) == text


def test_failures_are_trials_too() -> None:
    failed = Trial("k", "cpu", (), "rules", "{}", None, None, (), "compiling: no answer in 30 s")
    records = Records()
    records.add(failed)
    assert records.replays(unity.Target("cpu", "", "generic", ())) == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": 0}, "trials=0"),
        ({"seconds": 0}, "seconds=0"),
        ({"kernels": ["nothing"]}, "no kernel 'nothing' to tune"),
        ({"strategy": "luck"}, "no strategy 'luck'"),
        ({"sizes": {"m": 3}}, "sizes: no symbol 'm'"),
        ({"seconds": float("nan")}, "seconds=nan"),
        ({"sizes": {"n": (4, 0)}}, "sizes: 'n' is 0: there is nothing to time"),
        ({"device": "board"}, "device='board' are workers, and there is no scheduler"),
        ({"watch": lambda: None}, "watch is called with one argument"),
        ({"spaces": [lambda: None]}, "spaces: '<lambda>' is called with one argument"),
        ({"spaces": [lambda sch: None] * 2}, "spaces: 2 are called '<lambda>'"),
        ({"spaces": [multi_level_tiles]}, "spaces: 'multi_level_tiles' is a space of Unity's"),
        ({"spaces": [partial(rows_at_once)]}, "has no name for records"),
        (
            {"spaces": [lambda sch: sch.get_loops("gone")]},
            "spaces: '<lambda>' is refused for every kernel: softmax: there is no block 'gone'",
        ),
    ],
)
def test_what_can_not_be_is_refused(options: Any, message: str) -> None:
    with pytest.raises(UnityError, match=message):
        unity.tune(parse(ROWS), **options)


@pytest.mark.parametrize("option", ["db", "report"])
def test_what_can_not_be_written_is_told_before_anything_is_measured(
    option: str, tmp_path: Path
) -> None:
    def never(progress: Progress) -> None:
        raise AssertionError("something was measured")

    (tmp_path / "file").touch()
    given: Any = {option: tmp_path / "file" / "within"}
    with pytest.raises(UnityError, match="can't be written"):
        unity.tune(parse(ROWS), trials=1, watch=never, **given)


def test_another_machine_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    arm = unity.Target("cpu", "aarch64-unknown-linux-gnu", "generic", ("neon",))
    with pytest.raises(UnityError, match="what is to be tuned"):
        unity.tune(parse(MATMUL), arm, trials=1)
    with pytest.raises(UnityError, match="there is no file"):
        unity.compile(parse(MATMUL), db=tmp_path / "nothing.jsonl")
    model = tmp_path / "model.onnx"
    model.write_bytes(b"\x08\x07\x12\n")
    with pytest.raises(UnityError, match="is no file of records"):
        unity.tune(parse(MATMUL), db=model, trials=1)
    assert model.read_bytes() == b"\x08\x07\x12\n"
