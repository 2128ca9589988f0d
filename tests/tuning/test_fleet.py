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
from shutil import which
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
from unity.tuning.workers.folder import PREFIX, SessionFolder

from .kernels import MATMUL
from .test_killed import of_folder, wait_for


@contextmanager
def workers(
    address: str, count: int, device: str, **environment: str
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """`unity worker`, some times."""
    command = [sys.executable, "-m", "unity", "worker", address, "--device", device]
    path = os.pathsep.join(p for p in sys.path if p)
    env = {**os.environ, "PYTHONPATH": path, **environment}
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
def test_a_worker_that_dies_loses_nothing(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, db = cluster.scheduler_address, tmp_path / "db.jsonl"
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with workers(address, 2, "board", TMPDIR=str(temporary)) as processes:
        killed: list[int] = []

        def watch(progress: object) -> None:
            """Kill one while it measures: most candidates were shipped with the one that is done.

            The other may have begun late, and have no work.
            """
            busy = {w.pid for w in cluster.scheduler.workers.values() if w.processing}
            for process in processes:
                if process.pid in busy and not killed:
                    process.kill()
                    killed.append(process.pid)

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
    wait_for(lambda: not of_folder(temporary))  # children ended with the workers that were killed
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    assert list(temporary.glob(f"{PREFIX}*"))
    with SessionFolder() as made:
        assert list(temporary.glob(f"{PREFIX}*")) == [made.path]


@pytest.fixture(name="secured")
def secured_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What tells dask of a certificate, made for this test, and that nothing goes without."""
    files = {"key": tmp_path / "key.pem", "cert": tmp_path / "certificate.pem"}
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=unity", "-keyout", files["key"], "-out", files["cert"]],
        check=True, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    tls = {f"{who}__{what.upper()}": files[what] for who in ROLES for what in files}
    told = {f"DASK_DISTRIBUTED__COMM__TLS__{name}": str(path) for name, path in tls.items()}
    told["DASK_DISTRIBUTED__COMM__TLS__CA_FILE"] = str(files["cert"])
    told["DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION"] = "True"
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    import_module("dask").config.refresh()
    return told


ROLES = ("SCHEDULER", "WORKER", "CLIENT")


@pytest.mark.tuning
@pytest.mark.skipif(which("openssl") is None, reason="makes a certificate by openssl")
@pytest.mark.long("a worker and its child import the compiler")
def test_connections_are_as_secure_as_dask_is_told(
    secured: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its configuration alone; who has no certificate gets no answer."""
    library = import_module("distributed")
    scheduler = library.LocalCluster(
        n_workers=0, dashboard_address=None, processes=False, protocol="tls", host="127.0.0.1",
        security=library.Security(),
    )  # fmt: skip
    try:
        address = scheduler.scheduler_address
        assert address.startswith("tls://")
        with workers(address, 1, "board"):
            db = tmp_path / "db.jsonl"
            found = unity.tune(
                parse(MATMUL), db=db, trials=3, threads=1, scheduler=address, device="board"
            )
        assert found.trials == 3
        assert any(t.seconds is not None for t in Records(db).trials())
        for name in secured:
            monkeypatch.delenv(name)
        import_module("dask").config.refresh()
        with pytest.raises(UnityError, match=r"(?s)at tls.*comm.tls names certificates"):
            FleetRunner(address, timeout=2.0)
        with pytest.raises(UnityError, match="there is no scheduler at tcp"):
            FleetRunner(address.replace("tls", "tcp"), timeout=2.0)
        with pytest.raises(UnityError, match=r"(?s)at tls.*comm.tls names certificates"):
            serve_device(address, "board", 2.0)
    finally:
        scheduler.close()
        for name in secured:
            monkeypatch.delenv(name, raising=False)
        import_module("dask").config.refresh()


@pytest.mark.parametrize(
    ("answer", "options", "message"),
    [
        ("none", {}, "no worker"),
        ("one", {"kernels": ["other"]}, "no kernel 'other' to tune"),
        ("one", {"sizes": {"n": 3}}, "no symbol 'n'"),
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
