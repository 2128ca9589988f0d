"""Programs run in a child, which gets them as files: one that crashes or hangs ends no session.

One that does when it is taken costs itself alone. What several are asked for together is not known
of any of them where one crashes or hangs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

from unity.codegen.workers.child import Child, ChildError, Message
from unity.errors import UnityError
from unity.runtime.executable import Executable

from ..kernel_times import Calls
from ..workers.program import written

_START_SECONDS, _READ_SECONDS = 60.0, 20.0
"""How long the child may take to start, and to read a program."""
_TURNS = 50
"""Runs of a program, at most, that what it is asked may need."""


class RunsInChild:
    """Carries the child, what it knows, and where files for it are.

    Args:
        inputs: What with: the arguments for each of some sizes.
        tolerance: How far results may be apart, relative to the largest.
        folder: Where files are made.
        patience: Seconds that a program may take to run, at first: later by what ours took.
    """

    def __init__(
        self,
        inputs: Callable[[], Sequence[Sequence[object]]],
        tolerance: float,
        folder: Path,
        patience: float = 30.0,
    ) -> None:
        self._inputs, self._tolerance, self._folder = inputs, tolerance, folder
        self._child = Child("unity.tuning.runs.child")
        self._arguments: list[list[Message]] | None = None
        self._paths: dict[str, Path] = {}
        self._patience, self._knows = patience, 0

    def take(self, name: str, made: Executable) -> str | None:
        """Keep it in a file, and have it run once.

        Raises:
            UnityError: It can't be kept in a file, or does not run.
        """
        path = self._folder / f"{name}.unity"
        try:
            made.save(path)
        except OSError as error:  # no place for its weights
            raise UnityError(f"it can't be written: {error.strerror}") from error
        request: Message = {"do": "take", "name": name, "path": str(path)}
        wrong: object = ""
        try:
            wrong = self._asked(request, _READ_SECONDS + self._patience)["wrong"]
        finally:
            if wrong is not None:
                path.unlink()
        if wrong is not None:
            return str(wrong)
        self._paths[name] = path
        return None

    def run(self, name: str) -> None:
        """Have one run once.

        Raises:
            UnityError: It does not run.
        """
        begin = time.monotonic()
        self._asked({"do": "run", "name": name}, self._patience)
        self._patience = max(1.0, 10 * (time.monotonic() - begin))

    def times(self, names: Sequence[str], seconds: float) -> Sequence[float]:
        """What runs of some take, all in turns; infinite where one of them does not run."""
        request: Message = {"do": "times", "names": [*names], "seconds": seconds}
        with suppress(UnityError):
            limit = len(names) * (4 * seconds + _TURNS * self._patience)
            return cast("Sequence[float]", self._asked(request, limit)["times"])
        return [float("inf")] * len(names)

    def kernels(self, names: Sequence[str]) -> Sequence[Calls]:
        """What each call of a kernel takes in some; nothing where one of them does not run."""
        request: Message = {"do": "kernels", "names": [*names]}
        with suppress(UnityError):
            answer = self._asked(request, len(names) * _TURNS * self._patience)
            found = cast("Sequence[Sequence[tuple[str, float]]]", answer["calls"])
            return [[(label, seconds) for label, seconds in calls] for calls in found]
        return [[] for _ in names]

    def forget(self) -> None:
        """End the child, and remove the files."""
        self._child.close()
        self._knows = 0
        for path in self._paths.values():
            path.unlink(missing_ok=True)
        self._paths.clear()

    def _asked(self, request: Message, seconds: float) -> Mapping[str, object]:
        """What the child answers; one that was started anew is told what the last one knew.

        Raises:
            UnityError: It gives no answer, or says what is wrong.
        """
        self._child.start()
        if self._knows != self._child.started:
            self._begin()
        return self._told(request, seconds)

    def _told(self, request: Message, seconds: float) -> Mapping[str, object]:
        """What the child that runs answers; not what one does that takes its place."""
        started = self._child.started
        try:
            answer = self._child.ask(request, seconds)
        except ChildError as error:
            raise UnityError(f"running: {error}") from error
        if self._child.started != started:
            raise UnityError("running: it ended")
        if "error" in answer:
            raise UnityError(str(answer["error"]))
        return answer

    def _begin(self) -> None:
        """Tell a child that has just been started what there is.

        Raises:
            UnityError: It can't be told, or a program does not run any more as it did.
        """
        started = self._child.started
        if self._arguments is None:
            inputs = self._inputs()
            try:
                self._arguments = [[written(a, self._folder) for a in args] for args in inputs]
            except OSError as error:
                raise UnityError(f"arguments can't be written: {error.strerror}") from error
        told = {"do": "begin", "arguments": self._arguments, "tolerance": self._tolerance}
        self._told(told, _START_SECONDS)
        for name, path in self._paths.items():
            again: Message = {"do": "take", "name": name, "path": str(path)}
            wrong = self._told(again, _READ_SECONDS + self._patience)["wrong"]
            if wrong is not None:
                raise UnityError(f"{name} was right before: {wrong}")
        self._knows = started
