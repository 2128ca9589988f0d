"""The caches of compiled code: whatever lies in their place, what is compiled is right."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import unity
from unity.cli.app import app
from unity.cli.cache import summary
from unity.codegen.llvm import default_folder
from unity.codegen.llvm.cache import ObjectCache
from unity.script import parse

PROGRAM = """
n = dim("n")
@script.function
def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
    return R.add(R.exp(x), 1.0)
"""
X = np.zeros(5, np.float32)


def full(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


def files(folder: Path) -> list[Path]:
    return [f for f in folder.rglob("*") if f.is_file()]


def a_file_for_the_folder(folder: Path, _: pytest.MonkeyPatch) -> None:
    folder.write_text("")


def files_for_its_folders(folder: Path, _: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    for name in ("objects", "kernels", "resolve.jsonl"):
        (folder / name).write_text("")


def folders_for_its_files(folder: Path, _: pytest.MonkeyPatch) -> None:
    right(folder)
    (folder / "resolve.jsonl").mkdir()
    for file in files(folder):
        file.unlink()
        file.mkdir()


def garbage(folder: Path, _: pytest.MonkeyPatch) -> None:
    right(folder)
    for file in files(folder):
        file.write_bytes(b"\xff" * 100)


def entries_cut_short(folder: Path, _: pytest.MonkeyPatch) -> None:
    right(folder)
    for file in files(folder):
        file.write_bytes(file.read_bytes()[:-1])


def a_full_disk(folder: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr("tempfile.mkstemp", full)


def a_disk_that_fills_up(folder: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr("os.replace", full)


def a_read_only_home(folder: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr("pathlib.Path.mkdir", full)


def what_cannot_be_read(folder: Path, patch: pytest.MonkeyPatch) -> None:
    right(folder)
    patch.setattr("pathlib.Path.read_bytes", full)
    patch.setattr("pathlib.Path.glob", full)


DAMAGES = [
    a_file_for_the_folder, files_for_its_folders, folders_for_its_files, garbage,
    entries_cut_short, a_full_disk, a_disk_that_fills_up, a_read_only_home, what_cannot_be_read,
]  # fmt: skip


def right(folder: Path) -> None:
    exe = unity.compile(parse(PROGRAM), cache=folder)
    np.testing.assert_allclose(exe(X), np.full(5, 2))


@pytest.mark.rotated(3)
@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_done_without(
    damage: Callable[[Path, pytest.MonkeyPatch], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "cache"
    with monkeypatch.context() as patch:
        damage(folder, patch)
        right(folder)
        patch.setenv("UNITY_CACHE_DIR", str(folder))
        done = CliRunner().invoke(app, ["cache"], catch_exceptions=False)
        assert done.exit_code == 0
        assert str(folder) in summary(folder)
        ObjectCache(folder / "objects").trim()
    assert not list(tmp_path.rglob("*.tmp"))


def test_doctor_says_what_is_wrong_with_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("UNITY_CACHE_DIR", str(tmp_path / "file"))
    text = CliRunner().invoke(app, ["doctor"], catch_exceptions=False).output
    assert f"nothing is kept: {tmp_path / 'file'} is no folder" in text
    monkeypatch.setattr("os.access", lambda *_: False)
    assert f"nothing is kept: {tmp_path} can't be written to" in summary(tmp_path / "new")


@pytest.mark.parametrize(
    ("mode", "other", "why"),
    [(0o777, False, "everybody may write to {}"), (0o755, True, "{} belongs to another user")],
)
def test_what_another_user_may_have_put_there_is_not_run(
    tmp_path: Path,
    mode: int,
    other: bool,
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    folder = tmp_path / "cache"
    right(folder)
    kept = [f for f in files(folder) if f.suffix in (".o", ".json")]
    assert kept
    folder.chmod(mode)
    if other:
        monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)
        monkeypatch.setattr("unity.codegen.llvm.cache.ROOT", -1)
    for file in kept:
        key = file.parent.name + file.stem
        assert ObjectCache(file.parents[1], suffix=file.suffix).get(key) is None
    before = set(files(folder))
    exe = unity.compile(parse(PROGRAM.replace("1.0", "3.0")), cache=folder)
    np.testing.assert_allclose(exe(X), np.full(5, 4))
    assert set(files(folder)) == before
    assert [r.message for r in caplog.records] == [f"the cache is not used: {why.format(folder)}"]
    assert why.format(folder) in summary(folder)


def test_who_has_no_home_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("UNITY_CACHE_DIR", raising=False)
    monkeypatch.setattr("pathlib.Path.home", nobody)
    assert default_folder() is None
    np.testing.assert_allclose(unity.compile(parse(PROGRAM))(X), np.full(5, 2))
    assert os.environ.get("UNITY_CACHE_DIR") is None
