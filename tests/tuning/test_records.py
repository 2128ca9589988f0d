"""Records of tuning: what is kept survives, what is damaged is skipped, the fastest is used."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from unity.errors import UnityError
from unity.machine.target import Target
from unity.tuning.records import Best, FormRecord, Record, Records, Trial, merge, prune
from unity.tuning.records.record import decoded, encoded
from unity.tuning.records.store import check_holds_records
from unity.tuning.workers.machine_key import key_of_target

TARGET = Target("cpu", "x86_64-unknown-linux-gnu", "haswell", ("avx2",), 256)
KEY = key_of_target(TARGET)


def trial(point: str = "{}", seconds: float | None = 1.0) -> Trial:
    return Trial("k", KEY, (("n", 4),), "rules", point, seconds, 2.0, (0.5, 1.0))


def best(point: str = "{}", seconds: float = 1.0, kernel: str = "k", n: int = 4) -> Best:
    about = ("trace", "main", "2026-11-26")
    return Best(kernel, KEY, (("n", n),), "tiles", point, seconds, 2.0, *about)


def form(seconds: float = 1.0, kind: str = "winograd.2", date: str = "2026-11-30") -> FormRecord:
    tried = ("winograd.2", "winograd.4")
    return FormRecord("c", KEY, (), kind, "direct", seconds, 2.0, tried, "a: nn.conv2d", date)


def test_records_come_back_from_the_file(tmp_path: Path) -> None:
    written: list[Record] = [trial(), best(), form(), trial(seconds=None)]
    records = Records(tmp_path / "folder" / "db.jsonl")
    for record in written:
        records.add(record)
    assert list(Records(tmp_path / "folder" / "db.jsonl")) == written


@pytest.mark.parametrize(
    "damage",
    [
        lambda line: line[: len(line) // 2],
        lambda line: line.replace('"seconds":1.0', '"seconds":0.1'),
        lambda line: line.replace('"v":1', '"v":2'),
        lambda line: "[" * 10_000,
        lambda line: "3",
        lambda line: line.replace('"kind":"best"', '"kind":"worst"'),
    ],
    ids=["torn", "changed", "of another version", "nested", "a number", "of no kind"],
)
def test_damaged_lines_are_told_of_and_skipped(
    damage: Callable[[str], str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "db.jsonl"
    path.write_text(f"{encoded(trial())}\n{damage(encoded(best()))}\n{encoded(trial('{1}'))}\n")
    assert list(Records(path)) == [trial(), trial("{1}")]
    assert "1 lines are no records" in caplog.text


def test_what_is_written_behind_a_torn_line_is_not_lost(tmp_path: Path) -> None:
    """As after kill -9 in the middle of a line."""
    path = tmp_path / "db.jsonl"
    path.write_text(encoded(trial()) + "\n" + encoded(best())[:40])
    Records(path).add(best("after"))
    assert list(Records(path)) == [trial(), best("after")]


def test_the_fastest_of_each_kernel_is_used_if_it_is_worth_it() -> None:
    records = Records()
    for record in (best("a", 1.5), best("b", 1.2), best("c", 1.99, kernel="hardly"), best(n=9)):
        records.add(record)
    used = {(r.kernel, r.sizes): r for r in records.replays(TARGET)}
    assert used.keys() == {("k", (("n", 4),)), ("k", (("n", 9),))}
    assert used["k", (("n", 4),)].about == "tiles 1.67x at n=4"


def test_a_candidate_that_is_measured_again_is_what_it_was_last() -> None:
    records = Records()
    for record in (best("lucky", 0.5), best("steady", 1.0), best("lucky", 1.8)):
        records.add(record)
    (found,) = records.bests()
    assert found.point == "steady"


def test_what_was_measured_within_a_program_supersedes_what_was_found_before() -> None:
    """Whatever it took alone, or within the program when the default was another one."""
    alone = replace(best("alone", 0.4), date="2026-11-01")
    older = replace(best("older", 0.5), date="2026-11-02", within=True)
    slower = replace(best("slower", 1.6), date="2026-11-03", within=True)
    lost = replace(best("lost", 2.1), date="2026-11-03", within=True)
    later = replace(best("later", 1.5), date="2026-11-04")
    records = Records()
    found: list[str] = []
    for record in (alone, later, older, slower, lost):
        records.add(record)
        (fastest,) = records.bests()
        found.append(fastest.point)
    assert found == ["alone", "alone", "older", "later", "later"]
    records.add(replace(later, seconds=2.2))
    assert [r.point for r in records.bests()] == ["slower"]
    records.add(replace(slower, seconds=2.0))
    assert records.replays(TARGET) == ()


def test_records_of_another_machine_are_not_used() -> None:
    records = Records()
    records.add(best())
    assert records.replays(Target("cpu", TARGET.triple, "znver3", ("avx2",), 256)) == ()


def test_files_are_merged_and_pruned(tmp_path: Path) -> None:
    one, other, both = (tmp_path / f"{name}.jsonl" for name in ("one", "other", "both"))
    for path, more in ((one, best("a")), (other, best("b", 0.7))):
        records = Records(path)
        records.add(trial())
        records.add(more)
    assert merge([one, other], both) == 3
    assert set(Records(both)) == {trial(), best("a"), best("b", 0.7)}
    assert prune(both) == (3, 1)
    assert list(Records(both)) == [best("b", 0.7)]


def test_other_files_are_not_written_over(tmp_path: Path) -> None:
    model, db, other = (tmp_path / name for name in ("model.onnx", "db.jsonl", "other.jsonl"))
    model.write_bytes(b"\x08\x08\nsomething else")
    for path in (db, other):
        Records(path).add(best(path.name))
    for refused in (lambda: prune(model), lambda: merge([db, model], tmp_path / "all")):
        with pytest.raises(UnityError, match=r"model\.onnx is no file of records"):
            refused()
    with pytest.raises(UnityError, match=r"other\.jsonl is there"):
        merge([db], other)
    assert model.read_bytes() == b"\x08\x08\nsomething else"
    assert list(Records(other)) == [best("other.jsonl")]
    assert merge([db, other], other) == 2


def test_of_forms_the_last_line_counts_and_what_gains_is_left(tmp_path: Path) -> None:
    db = tmp_path / "db.jsonl"
    records = Records(db)
    records.add(form())
    assert [f.form for f in records.recorded_forms(TARGET)] == ["winograd.2"]
    for other in (form(2.0, "direct"), replace(form(), call="d")):
        records.add(other)
    assert [f.call for f in records.recorded_forms(TARGET)] == ["d"]
    assert records.recorded_forms(replace(TARGET, threads=2)) == ()
    assert prune(db) == (3, 1)
    assert list(Records(db)) == [replace(form(), call="d")]


def test_of_forms_the_latest_date_counts_and_no_form_of_no_time(tmp_path: Path) -> None:
    new, old = form(2.0, "direct", "2026-11-30"), form(date="2026-11-29")
    records = Records()
    for record in (new, old, replace(form(0.0), call="d")):
        records.add(record)
    assert [r.date for r in records.forms() if r.call == "c"] == ["2026-11-30"]
    assert records.recorded_forms(TARGET) == ()
    records.add(replace(form(date="2026-12-01"), sizes=(("s0", 7),)))
    assert [f.form for f in records.recorded_forms(TARGET)] == ["winograd.2"]
    assert [r.sizes for r in records.forms() if r.call == "c"] == [(), (("s0", 7),)]


def test_what_can_not_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnityError, match="is read only"):
        Records(tmp_path / "db.jsonl", read_only=True).add(trial())
    with pytest.raises(UnityError, match="there is no file"):
        merge([tmp_path / "nothing"], tmp_path / "all")
    with pytest.raises(UnityError, match="can't be read"):
        Records(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(UnityError, match="can't be"):
        Records(tmp_path / "file" / "db.jsonl").add(trial())


def test_a_line_says_what_it_is() -> None:
    data = json.loads(encoded(best()))
    assert (data["v"], data["kind"], data["kernel"]) == (1, "best", "k")
    assert decoded(json.dumps(data, indent=2).replace("\n", "")) == best()  # form does not count


@pytest.mark.parametrize(
    "text", ["", "\n", '{"ab', '{"about":"a kernel","date', '{"features":[1.0],"kernel":"k"}\n']
)
def test_torn_records_are_records(tmp_path: Path, text: str) -> None:
    """A session may be killed while it writes its first one; the next goes on."""
    db = tmp_path / "db.jsonl"
    db.write_text(text)
    check_holds_records(db)
    Records(db).add(best("k"))
    check_holds_records(db)
    assert len(Records(db)) == 1


@pytest.mark.parametrize("text", ["{}\n", '{"layers": 3}', "\x08\x07\x12\n", "about"])
def test_what_holds_something_else_is_no_file_of_records(tmp_path: Path, text: str) -> None:
    other = tmp_path / "config.json"
    other.write_text(text)
    with pytest.raises(UnityError, match="is no file of records"):
        check_holds_records(other)
