"""Tuning on other machines: two workers, one of which dies; what there is not is said."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import unity
from unity import tuner
from unity.codegen.llvm.host import host_target
from unity.errors import UnityError
from unity.machine.target import Target
from unity.script import parse
from unity.tuning.fleet import FleetRunner, serve_device
from unity.tuning.records import Records

from .kernels import MATMUL


@contextmanager
def workers(address: str, count: int, device: str) -> Iterator[list[subprocess.Popen[bytes]]]:
    """`unity worker`, some times."""
    command = [sys.executable, "-m", "unity", "worker", address, "--device", device]
    path = os.pathsep.join(p for p in sys.path if p)
    env = {**os.environ, "PYTHONPATH": path}
    made = [subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL) for _ in range(count)]
    try:
        yield made
    finally:
        for process in made:
            process.kill()
            process.wait()


@pytest.fixture(name="cluster")
def cluster_of() -> Iterator[Any]:
    """A scheduler without workers."""
    made = import_module("distributed").LocalCluster(
        n_workers=0, dashboard_address=None, processes=False, protocol="tcp", host="127.0.0.1"
    )
    yield made
    made.close()


@pytest.mark.tuning
@pytest.mark.long("two workers and their children import the compiler")
def test_a_worker_that_dies_loses_nothing(cluster: Any, tmp_path: Path) -> None:
    address, db = cluster.scheduler_address, tmp_path / "db.jsonl"
    with workers(address, 2, "board") as processes:
        killed: list[int] = []

        def watch(progress: object) -> None:
            if not killed:
                processes[0].kill()
                killed.append(processes[0].pid)

        found = unity.tune(
            parse(MATMUL), db=db, trials=10, threads=1, scheduler=address, device="board",
            watch=watch,
        )  # fmt: skip
    assert killed
    assert found.trials == 10
    trials = Records(db).trials()
    assert sum(t.seconds is not None for t in trials) >= 9
    exe = unity.compile(parse(MATMUL), threads=1, db=db)
    assert exe.target.threads == 1


@pytest.mark.parametrize(
    ("answer", "options", "message"),
    [
        ("none", {}, "no worker"),
        ("one", {"kernels": ["other"]}, "no kernel 'other' to tune"),
        ("one", {"sizes": {"n": 3}}, "no symbol 'n'"),
        ("one", {"strategy": "luck"}, "luck"),
        ("one", {"spaces": [print, print]}, "2 are called 'print'"),
    ],
)
def test_the_scheduler_is_left_whatever_is_refused(
    answer: str, options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[bool] = []

    class Fleet(FleetRunner):
        def __init__(self, address: str, device: str) -> None:
            """No scheduler."""

        def target(self, threads: int | None) -> Target:
            if answer == "none":
                raise UnityError("no worker answers")
            return host_target(threads)

        def close(self) -> None:
            left.append(True)

    monkeypatch.setattr(tuner, "FleetRunner", Fleet)
    with pytest.raises(UnityError, match=message):
        unity.tune(parse(MATMUL), threads=1, scheduler="tcp://there:1", **options)
    assert left


@pytest.mark.tuning
def test_a_scheduler_that_is_not_there_is_said() -> None:
    with pytest.raises(UnityError, match=r"there is no scheduler at tcp://127\.0\.0\.1:9"):
        FleetRunner("tcp://127.0.0.1:9", timeout=1.0)
    with pytest.raises(UnityError, match="there is no scheduler at nonsense"):
        FleetRunner("nonsense://", timeout=1.0)
    with pytest.raises(UnityError, match="there is no scheduler at nonsense: missing port"):
        serve_device("nonsense", "board", 1.0)


@pytest.mark.skipif(find_spec("distributed") is not None, reason="distributed is installed")
def test_what_is_not_installed_is_said() -> None:
    with pytest.raises(UnityError, match=r"needs dask\.distributed"):
        FleetRunner("tcp://127.0.0.1:9")
