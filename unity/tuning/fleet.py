"""Candidates measured on other machines, through dask.distributed.

Candidates are compiled here, for the machine that the workers of a device are, and shipped as the
bytes of an executable; a worker runs one at a time, in a child process of its own. A worker that
dies loses what it was running, which another one is given. Connections are as secure as dask is
told to make them (``tls://`` addresses, and its configuration of certificates): executables are
programs, so whoever may talk to a scheduler may run what they like on its workers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from unity.codegen.llvm.host import host_target
from unity.codegen.workers.child import Child, ChildError, Message
from unity.codegen.workers.described import described, target_from
from unity.errors import UnityError
from unity.machine.target import Target

from .workers.folder import SessionFolder
from .workers.runner import (
    RUN_SECONDS,
    START_SECONDS,
    USUAL,
    Measured,
    Reference,
    Timing,
    asked,
    measured_of,
)

DEVICE = "cpu"
"""What a device is called that nobody named."""
_PATIENCE = 60.0
"""Seconds until a worker must be there."""
_ANSWERED = START_SECONDS + 2 * RUN_SECONDS + _PATIENCE
"""Seconds until it must have answered: its child starts, runs the default and a candidate."""
_UNREACHED = (OSError, TimeoutError, ValueError, TypeError, RuntimeError)
"""What dask raises where there is no scheduler: TypeError without certificates, RuntimeError where
its configuration wants encryption and an address has none, or a worker does not start."""
_TRIES = 3
"""Workers that may die of one candidate before it is given up."""


def distributed() -> Any:
    """The library, which few need.

    Raises:
        UnityError: It is not installed.
    """
    try:
        return import_module("distributed")
    except ImportError as error:
        raise UnityError(
            "tuning on other machines needs dask.distributed",
            hint="pip install 'unity-mlc[fleet]', or: pip install distributed",
        ) from error


def resource(device: str) -> str:
    """What dask calls the right to use a device, of which each worker has one."""
    return f"unity-{device}"


class FleetRunner:
    """Runs candidates on workers of a device.

    Args:
        address: Of the scheduler: ``tcp://host:8786``.
        device: The workers' label.
        timeout: Seconds to wait for the scheduler.

    Raises:
        UnityError: dask.distributed is not installed, there is no scheduler, or no such worker.
    """

    at_once = True

    def __init__(self, address: str, device: str = DEVICE, timeout: float = _PATIENCE) -> None:
        library = distributed()
        try:
            self._client: Any = library.Client(address, set_as_default=False, timeout=timeout)
        except _UNREACHED as error:
            raise _no_scheduler(address, error) from error
        self._device = device
        self._files: Any = None
        self._data: Mapping[str, bytes] = {}
        self._reference: Reference | None = None

    def target(self, threads: int | None) -> Target:
        """The machine that the workers are.

        Args:
            threads: How many threads kernels use; as many as there are cpus if not given.

        Raises:
            UnityError: No worker of the device answers.
        """
        told = self._asked(describe_machine, threads)
        return target_from(str(told))

    def take(self, reference: Reference) -> None:
        """Ship a kernel as it is by default, and its inputs; a worker runs it once.

        Raises:
            UnityError: It does not run there.
        """
        files = {"reference": reference.path.read_bytes()}
        files |= {
            str(i["file"]): Path(str(i["file"])).read_bytes()
            for i in reference.inputs
            if "file" in i
        }
        self._reference, self._data = reference, files
        self._ship()
        answer = self._asked(run_there, self._files, _told(reference), None)
        if "error" in answer:
            raise UnityError(f"{reference.name}: the default kernel did not run: {answer['error']}")

    def _ship(self) -> None:
        """Hand the files to every worker, so that none takes them along when it dies."""
        (self._files,) = self._client.scatter([self._data], hash=False, broadcast=True)

    def begin(self, path: Path, timing: Timing = USUAL) -> Callable[[], Measured]:
        """Ship a candidate; any worker that is free runs it."""
        assert self._reference is not None
        told, data = _told(self._reference, timing), path.read_bytes()
        first = self._submit(run_there, self._files, told, data)

        def result() -> Measured:
            future = first
            for last in (False, True):
                try:
                    return measured_of(future.result(timeout=_ANSWERED))
                except Exception as error:  # whatever dask raises: the worker took it along
                    if last:
                        why = f"running: {type(error).__name__}: {error}"
                        return Measured(None, why=why)
                    self._ship()
                    future = self._submit(run_there, self._files, told, data)
            raise AssertionError

        return result

    def close(self) -> None:
        """Leave the scheduler."""
        self._client.close()

    def _submit(self, function: Callable[..., object], *args: object) -> Any:
        return self._client.submit(
            function, *args, resources={resource(self._device): 1}, pure=False, retries=_TRIES
        )

    def _asked(self, function: Callable[..., object], *args: object) -> Any:
        try:
            return self._submit(function, *args).result(timeout=_ANSWERED)
        except Exception as error:
            raise UnityError(
                f"no worker of the device {self._device!r} answers: {type(error).__name__} {error}",
                hint="on each machine: unity worker ADDRESS --device NAME",
            ) from error


def _no_scheduler(address: str, why: BaseException) -> UnityError:
    """What is said where a scheduler is not reached."""
    secure = "dask's configuration distributed.comm.tls names certificates: ca-file, client, worker"
    hint = (
        secure if address.startswith("tls:") else "dask scheduler; its address is tcp://HOST:PORT"
    )
    return UnityError(f"there is no scheduler at {address}: {why}", hint=hint)


def _told(reference: Reference, timing: Timing = USUAL) -> Message:
    """What a worker has to know of a kernel besides files."""
    return {
        "name": reference.name, "inputs": list(reference.inputs), "tolerance": reference.tolerance,
        "seconds": timing.seconds, "races": timing.races,
    }  # fmt: skip


def describe_machine(threads: int | None) -> str:
    """On a worker: what it is, as `described`."""
    return described(host_target(threads))


class _Place:
    """On a worker: its child, and the kernel that it knows."""

    def __init__(self) -> None:
        self.child = Child("unity.tuning.workers.run")
        self.folder = SessionFolder()
        self.known = ("", -1)

    def introduce(self, files: Mapping[str, bytes], told: Message) -> Message:
        """Tell the child of a kernel, unless it knows."""
        digest = hashlib.blake2b(files["reference"]).hexdigest()
        if self.known == (digest, self.child.started):
            return {}
        paths = {
            name: str(self._written(f"file{k}", data))
            for k, (name, data) in enumerate(files.items())
        }
        inputs = [
            {**i, "file": paths[i["file"]]} if "file" in i else i for i in _messages(told["inputs"])
        ]
        answer = self.child.ask(
            {"do": "reference", "path": paths["reference"], "inputs": inputs},
            RUN_SECONDS + START_SECONDS,
        )
        self.known = (digest, self.child.started)
        return answer

    def run(self, candidate: bytes, told: Message) -> Message:
        """Run a candidate."""
        path = self._written("candidate.unity", candidate)
        tolerance, seconds = (float(str(told[name])) for name in ("tolerance", "seconds"))
        timing = Timing(seconds, int(str(told["races"])))
        return self.child.ask(asked(path, tolerance, timing), RUN_SECONDS)

    def _written(self, name: str, data: bytes) -> Path:
        path = self.folder.path / name
        path.write_bytes(data)
        return path


_PLACES: list[_Place] = []


def run_there(files: Mapping[str, bytes], told: Message, candidate: bytes | None) -> Message:
    """On a worker: run a candidate, or with none of them the kernel as it is by default."""
    if not _PLACES:
        _PLACES.append(_Place())
    place = _PLACES[0]
    try:
        answer = place.introduce(files, told)
        if "error" in answer or candidate is None:
            return answer
        return place.run(candidate, told)
    except ChildError as error:
        return {"error": f"running: {error}"}


def _messages(value: object) -> Sequence[dict[str, Any]]:
    assert isinstance(value, list)
    return value


def serve_device(address: str, device: str, seconds: float | None = None) -> None:
    """Be a worker until the scheduler is gone.

    Args:
        address: Of the scheduler.
        device: The label.
        seconds: How long to wait for the scheduler.

    Raises:
        UnityError: dask.distributed is not installed, or there is no scheduler.
    """
    import asyncio

    library = distributed()

    async def work() -> None:
        worker = library.Worker(
            address, nthreads=1, resources={resource(device): 1}, death_timeout=seconds or _PATIENCE
        )
        async with worker:
            await worker.finished()

    try:
        asyncio.run(work())
    except _UNREACHED as error:
        raise _no_scheduler(address, error.__cause__ or error) from error  # a worker's failed start
