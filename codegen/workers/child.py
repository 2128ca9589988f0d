"""A child process that answers requests, a line of JSON each; restarted after it died or hung.

It ends with the thread that started it (`parent`), which is to close it before it ends.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, TypeAlias

Message: TypeAlias = dict[str, object]
_PIECE = 1 << 16


class ChildError(Exception):
    """The child gave no answer: it died, or took too long; the text says which."""


def _path() -> str:
    """Where we import from, and nowhere else: the folder we were started in may have anything."""
    return os.pathsep.join(p or os.getcwd() for p in sys.path)


class Child:
    """Carries a process of one of our modules, and what it needs to be told when it starts.

    Args:
        module: Run as ``python -m``.
        cpus: Where it may run; anywhere if not given.
    """

    def __init__(self, module: str, cpus: Sequence[int] = ()) -> None:
        self._module = module
        self._cpus = tuple(cpus)
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._left = b""
        self._killed = False
        self.started = 0
        """How often it was started; a new one knows nothing of what the last one was told."""

    def ask(self, request: Mapping[str, object], seconds: float) -> Message:
        """The answer to a request.

        Args:
            request: What it is asked.
            seconds: How long it may take.

        Raises:
            ChildError: There is none; the process is gone then, and another is started next time.
        """
        process = self._running()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            return self._answer(process, time.monotonic() + seconds)
        except (OSError, TimeoutError, EOFError) as error:
            raise ChildError(self._why(process, error, seconds)) from None
        except BaseException:  # Ctrl-C: its answer would be taken for that to the next request
            self.close()
            raise

    def start(self) -> None:
        """Start it, so that it is ready by the time it is asked."""
        self._running()

    def kill(self) -> None:
        """Stop the process for good; whoever asks, in another thread, gets a `ChildError`."""
        self._killed = True
        process = self._process
        if process is not None:
            with suppress(OSError):
                process.kill()

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            with suppress(OSError):
                self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout, self._errors):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()
        self._process, self._left = None, b""

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.close()
        if self._killed:
            raise ChildError("it was ended")
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        numbers = map(str, (os.getpid(), *self._cpus))
        command = [sys.executable, "-m", self._module, *numbers]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "PYTHONPATH": _path(), "PYTHONSAFEPATH": "1"},
            start_new_session=True,  # Ctrl-C is the parent's affair
        )
        self.started += 1
        return self._process

    def _answer(self, process: subprocess.Popen[bytes], end: float) -> Message:
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._left:
                if not selector.select(max(0.0, end - time.monotonic())):
                    raise TimeoutError
                piece = os.read(process.stdout.fileno(), _PIECE)
                if not piece:
                    raise EOFError
                self._left += piece
        line, _, self._left = self._left.partition(b"\n")
        found: Message = json.loads(line)
        return found

    def _why(self, process: subprocess.Popen[bytes], error: Exception, seconds: float) -> str:
        """What became of the process, which ends here."""
        if isinstance(error, TimeoutError):
            why = f"no answer in {seconds:g} s"
        else:
            with suppress(subprocess.TimeoutExpired):
                process.wait(1.0)
            code = process.poll()
            why = (
                f"ended by signal {-code}"
                if code is not None and code < 0
                else f"ended with {code}"
            )
            if self._errors is not None:
                self._errors.seek(0)
                lines = self._errors.read().decode(errors="replace").strip().splitlines()
                why += f": {lines[-1]}" if lines else ""
        self.close()
        return why
