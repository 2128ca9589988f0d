"""Sessions that are killed: what was measured is kept, and nothing else is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from unity.tuning.records import Records
from unity.tuning.workers.folder import PREFIX, SessionFolder

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
_PATIENCE = 120.0

SESSION = """
import sys
import unity
from unity.script import parse
from tests.tuning.kernels import MATMUL

def watch(progress):
    print(progress.trials, flush=True)

print("begun", flush=True)
found = unity.tune(parse(MATMUL), threads=1, trials=int(sys.argv[2]), db=sys.argv[1], watch=watch)
print("done", flush=True)
"""


def started(db: Path, trials: int, folder: Path) -> subprocess.Popen[str]:
    """A session whose temporary files are in a folder of its own."""
    env = {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", SESSION, str(db), str(trials)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=env, text=True)


def of_folder(folder: Path) -> list[int]:
    """The processes whose temporary files are in a folder."""
    found: list[int] = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            environment = (place / "environ").read_bytes()
        except OSError:
            continue  # another user's, or gone
        if f"TMPDIR={folder}\0".encode() in environment + b"\0":
            found.append(int(place.name))
    return found


def wait_for(what: Callable[[], object]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + _PATIENCE
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.rotated(1 / 2)
@pytest.mark.long("sessions and their children import the compiler")
@pytest.mark.parametrize("moment", ["begun", "folder", "child", "1", "4", "settles"])
def test_a_session_that_is_killed_loses_what_it_is_measuring(moment: str, tmp_path: Path) -> None:
    """And the next one goes on from there, and removes what it had to leave behind."""
    db, temporary = tmp_path / "db.jsonl", tmp_path / "temporary"
    temporary.mkdir()

    def folders() -> list[Path]:
        return list(temporary.glob(f"{PREFIX}*"))

    process = started(db, 8 if moment == "settles" else 40, temporary)
    assert process.stdout is not None
    told = 0
    last = {"settles": "8"}.get(moment, moment)
    for line in process.stdout:
        told = int(line) if line.strip().isdigit() else told
        if line.strip() == last or moment in ("folder", "child"):
            break
    if moment in ("folder", "child"):
        wait_for(folders if moment == "folder" else lambda: len(of_folder(temporary)) > 1)
    if moment == "settles":
        time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_for(lambda: not of_folder(temporary))
    kept = Records(db).trials() if db.exists() else []
    assert len(kept) >= told
    used = {(r.space, r.point) for r in Records(db).bests()}  # these are measured once more
    left = folders()
    assert left or moment in ("begun", "settles")  # where nothing was found it may have ended
    again = started(db, 2, temporary)
    assert again.communicate(timeout=_PATIENCE)[0].endswith("done\n")
    assert not [path for path in left if path.exists()]
    assert not folders()
    wait_for(lambda: not of_folder(temporary))
    trials = Records(db).trials()
    assert trials[: len(kept)] == kept
    assert len(trials) == len(kept) + 2
    known = {(t.space, t.point) for t in kept}
    assert {(t.space, t.point) for t in trials[len(kept) :]} & known <= used


def test_a_child_that_hangs_ends_with_its_parent(tmp_path: Path) -> None:
    """Though it never comes to read that its input has ended."""
    (tmp_path / "hanging.py").write_text(
        "import ctypes, os\n"
        "from unity.codegen.workers.serve import serve\n"
        "def told(request):\n"
        "    return {'pid': os.getpid()}\n"
        "def hang(request):\n"
        "    ctypes.PyDLL(None).pause()\n"  # as a kernel that goes on for ever
        "serve({'told': told, 'hang': hang})\n"
    )
    program = (
        "from unity.codegen.workers.child import Child\n"
        "child = Child('hanging')\n"
        "print(child.ask({'do': 'told'}, 60)['pid'], flush=True)\n"
        "child.ask({'do': 'hang'}, 60)\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, env=env, text=True
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    state = Path(f"/proc/{child}/wchan")
    wait_for(lambda: not Path(f"/proc/{child}").exists() or "pause" in state.read_text())
    parent.kill()
    parent.wait()
    wait_for(lambda: not Path(f"/proc/{child}").exists())


def test_folders_are_removed_whose_sessions_are_gone_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    abandoned, strange = tmp_path / f"{PREFIX}killed", tmp_path / "unity-other"
    for path in (abandoned, strange):
        path.mkdir()
        (path / "file").write_text("")
    (tmp_path / f"{PREFIX}link").symlink_to(strange)
    with SessionFolder() as first:
        assert not abandoned.exists()
        with SessionFolder() as second:
            assert first.path.is_dir()
            assert second.path.is_dir()
        assert not second.path.exists()
    assert not first.path.exists()
    assert (strange / "file").exists()
