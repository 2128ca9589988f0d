"""`unity tune` and `unity db`: what is printed, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import unity
from unity.cli.app import app
from unity.errors import UnityError
from unity.tuning.records import Best, Records, Trial
from unity.tuning.report import KernelReport, TuningReport

from ..tuning.kernels import SMALL, rows_at_once
from ..tuning.test_tune import by_hand
from .test_options import DIGITS, commands

PROGRAM = f"from unity import script\nfrom unity.script import R, Tensor, f32\n{SMALL}"


def said(*args: str) -> str:
    """What a command prints."""
    result = CliRunner().invoke(app, args)
    assert result.exception is None, result.exception
    return result.output


def records(path: Path) -> Records:
    """A trial, and two kernels that were tuned."""
    made = Records(path)
    machine = "cpu x86_64-unknown-linux-gnu haswell avx2 256x16 1/2/3 2 threads"
    made.add(Trial("k", machine, (), "rules", "{}", 1.0, 1.0, ()))
    for name, seconds in (("product", 1e-6), ("softmax", 1.5e-6)):
        made.add(
            Best(name, machine, (), "rules", "{}", seconds, 2e-6, "", name, "2026-11-26T10:00:00")
        )
    return made


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("explain",), "tir:tuned"),
        (("explain", "--resolve", "static"), "tir:tuned"),
        (("inspect", "--after", "ScheduleByRecord"), '"tuned": "mine 2.00x"'),
        (("bisect",), "ScheduleByRecord"),
    ],
)
def test_kernels_are_laid_out_by_records(
    command: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    model, db = tmp_path / f"{tmp_path.name}.py", tmp_path / "db.jsonl"
    model.write_text(PROGRAM)
    made = Records(db)
    for record in by_hand(SMALL, rows_at_once)[0]:
        made.add(record)
    name, *rest = command
    usual = (name, str(model), *rest, "--threads", "1")
    assert told in said(*usual, "--db", str(db))


def test_kernels_are_told_with_their_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = KernelReport("product", "k", (("h", 224), ("w", 224)), 2, 3, 1e-3, 5e-4, "rules", "", ())
    report = TuningReport("cpu", 3, 1.0, (row,))
    monkeypatch.setattr(unity, "tune", lambda *_, **__: report)
    model, db = tmp_path / f"{tmp_path.name}.py", str(tmp_path / "[h].jsonl")
    model.write_text(PROGRAM)
    shown = said("tune", str(model), "--db", db)
    assert str(report) in shown
    assert "product[h=224,w=224]" in shown
    assert f"unity run {model} --db {db}   uses what is in {db}" in shown
    shown = said("tune", str(model), "--db", db, "--threads", "1", "--precision", "bf16")
    assert f"unity run {model} --db {db} --threads 1 --precision bf16   uses" in shown


COMPILING = [n for n, c in commands().items() if any("--winograd" in p.opts for p in c.params)]


@pytest.mark.parametrize("command", COMPILING)
def test_what_compiles_takes_records_by_one_option(command: str) -> None:
    (own,) = (p.help for p in commands()[command].params if "--db" in p.opts)
    assert own == commands()["run"].params[-1].help
    asked = ("--kernels",) if command == "inspect" else ()
    result = CliRunner().invoke(app, [command, DIGITS, *asked, "--db", "nothing.jsonl"])
    assert isinstance(result.exception, UnityError)
    assert "there is no file 'nothing.jsonl'" in str(result.exception)


def test_records_are_shown_merged_and_pruned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    db, both = tmp_path / "db.jsonl", tmp_path / "both.jsonl"
    records(db)
    shown = said("db", "show", str(db))
    assert "product (product)" in shown
    assert "2.00x" in shown
    assert "haswell 2 threads" in shown
    assert "3 records, 1 of them trials" in shown
    assert "both.jsonl: 3 records" in said(
        "db", "merge", str(db), str(db), "-o", str(both)
    ).replace("\n", "")
    assert "3 -> 2 records" in said("db", "prune", str(both)).replace("\n", "")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("tune", DIGITS, "--db", "db", "--time", "soon"), "--time 'soon' is no time"),
        (("tune", DIGITS, "--db", "db", "--kernel", "none"), "no kernel 'none' to tune"),
        (("tune", DIGITS, "--db", "db", "--dim", "depth=3"), "sizes: no symbol 'depth'"),
        (("explain", DIGITS, "--db", str(__file__)), "is no file of records"),
        (("db", "show", "nothing.jsonl"), "there is no file nothing.jsonl"),
        (("db", "merge", "nothing.jsonl", "-o", "x"), "there is no file nothing.jsonl"),
    ],
)
def test_what_can_not_be_is_refused(
    args: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, args)
    assert isinstance(result.exception, UnityError)
    assert message in str(result.exception)
    assert not list(tmp_path.iterdir())  # nothing is left behind


@pytest.mark.parametrize("columns", [60, 80, 119, 120, 200])
def test_names_and_numbers_are_whole_or_cut_at_their_end_in_narrow_terminals(
    columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None is wrapped; the machine is told below where it is no column."""
    monkeypatch.setenv("COLUMNS", str(columns))
    made, name = records(tmp_path / "db.jsonl"), "fused_matmul_packed_add_divide_erf_add_multiply"
    sizes = (("b", 1), ("h", 224), ("w", 224))
    machine = made.bests()[0].target
    made.add(Best("other", machine, sizes, "multi_level_tiles", "[]", 1e-6, 4e-6, "", name, "2026"))
    shown = said("db", "show", str(tmp_path / "db.jsonl")).splitlines()
    assert max(map(len, shown)) <= columns
    rows = [line for line in shown if line.startswith("│")]
    assert len(rows) == 3
    assert [re.findall(r"\d\.\d\dx", row) for row in rows] == [["4.00x"], ["2.00x"], ["1.33x"]]
    assert all(name.startswith(row[2:12]) for row in rows if "4.00x" in row)
    assert any("haswell 2 threads" in line for line in shown)
