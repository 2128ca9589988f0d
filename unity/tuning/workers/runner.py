"""Who runs candidates that were compiled: what it is told of a kernel, and what it answers.

`LocalRunner` has a child on this machine; `unity.tuning.fleet` has workers on others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from logging import getLogger
from pathlib import Path
from typing import Protocol, cast

from unity.codegen.workers.child import Child, ChildError, Message
from unity.errors import UnityError

from ..tasks.task import Place

log = getLogger("unity")
RUN_SECONDS = 10.0
"""How long a candidate may run besides what it is timed for."""
START_SECONDS = 60.0
"""How long a child may take to start, on a machine with other work, besides what it is asked."""
_PATIENCE = 600.0
"""Seconds that a program may run, all its runs together."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How a candidate is timed, and the default kernel beside it.

    Attributes:
        seconds: How long each of them in a race, about.
        races: How many there are at most: it ends when two agree.
    """

    seconds: float
    races: int


USUAL, SURE = Timing(0.08, 1), Timing(0.16, 5)
"""In a search; and where what it found is measured once more."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What measuring a candidate gave.

    Attributes:
        seconds: What it takes, by what it took of the default's time; None if it failed.
        reference: The fastest run of the kernel as it is by default, by turns with it (within a
            program the mean of the faster half).
        why: What was wrong with it, if it failed.
        within: Whether both ran within a program.
    """

    seconds: float | None
    reference: float | None = None
    why: str = ""
    within: bool = False

    @property
    def ratio(self) -> float:
        """What it takes of the default kernel's time; infinite if it failed."""
        if self.seconds is None or not self.reference:
            return float("inf")
        return self.seconds / self.reference


@dataclass(frozen=True, slots=True)
class Reference:
    """What candidates of a kernel are compared with.

    Attributes:
        name: The kernel's.
        path: The executable of the kernel as it is by default.
        inputs: What it is called with: the file, the dtype and the shape of each array, with how
            many copies of it calls take turns, and shapes.
        tolerance: How far results may be apart, relative to the largest.
    """

    name: str
    path: Path
    inputs: Sequence[Message]
    tolerance: float


@dataclass(frozen=True, slots=True)
class Program:
    """The program whose kernels are tuned, as it is by default.

    Attributes:
        path: Its executable.
        arguments: What its main function is called with, for each of the sizes tuned for, as
            `written` tells them.
    """

    path: Path
    arguments: Sequence[Sequence[Message]]


class Runner(Protocol):
    """Runs candidates of one kernel after another."""

    at_once: bool
    """Whether several may be begun before the first one's result is asked for."""

    def take(self, reference: Reference) -> None:
        """Run candidates of this kernel from now on.

        Raises:
            UnityError: The kernel does not run as it is by default.
        """
        ...

    def begin(self, path: Path, timing: Timing = USUAL) -> Callable[[], Measured]:
        """Begin to run a candidate; what is given waits for its result.

        Args:
            path: Its executable.
            timing: How it is timed, and the default kernel beside it.
        """
        ...

    def close(self) -> None:
        """End it."""
        ...


class LocalRunner:
    """Carries a child on this machine, and the kernel that it knows.

    Args:
        cpus: Where the child may run; anywhere if there are none.
        seconds: How long a candidate may run besides its timing.

    Attributes:
        program: Where kernels are timed once more.
    """

    at_once = False

    def __init__(
        self,
        cpus: Sequence[int] = (),
        seconds: float = RUN_SECONDS,
    ) -> None:
        self._child = Child("unity.tuning.workers.run", cpus)
        self._seconds = seconds
        self._reference: Reference | None = None
        self.program: Program | None = None
        self._kernels: Mapping[Place, Sequence[float]] = {}
        self._told = self._knows = 0

    def start(self) -> None:
        """Start the child, so that it is ready by the time it is asked."""
        self._child.start()

    def take(self, reference: Reference) -> None:
        """Tell the child of a kernel.

        Raises:
            UnityError: It does not run as it is by default.
        """
        self._reference = reference
        try:
            answer = self._child.ask(
                {"do": "reference", "path": str(reference.path), "inputs": reference.inputs},
                self._seconds + START_SECONDS,
            )
        except ChildError as error:
            self._knows = -1
            answer = {"error": str(error)}
        if "error" in answer:
            why = answer["error"]
            raise UnityError(f"{reference.name}: the default kernel did not run: {why}")
        self._told = self._child.started

    def begin(self, path: Path, timing: Timing = USUAL) -> Callable[[], Measured]:
        """A candidate, run when its result is asked for."""
        return lambda: self._run(path, timing)

    def _run(self, path: Path, timing: Timing) -> Measured:
        assert self._reference is not None
        if self._told != self._child.started:
            self.take(self._reference)  # to a child that was started anew
        try:
            return measured_of(
                self._child.ask(asked(path, self._reference.tolerance, timing), self._seconds)
            )
        except ChildError as error:
            self._told = self._knows = -1
            return Measured(None, why=f"running: {error}")

    def within(
        self, versions: Sequence[Sequence[tuple[Collection[Place], Path]]], seconds: float
    ) -> Sequence[Mapping[Place, float]] | None:
        """Seconds of a call of each kernel by default, and in some versions of the program.

        Args:
            versions: Candidates' executables, and the places that they take.
            seconds: How long all of them take turns, about.

        Returns:
            For the default and each version, by place; None where there is no program, or one of
            the versions does not run.
        """
        told = [[[sorted(places), str(path)] for places, path in v] for v in versions]
        answer = self._of_program({"do": "within", "versions": told, "seconds": seconds})
        if answer is None:
            return None
        times = cast("Sequence[Sequence[tuple[str, int, float]]]", answer["times"])
        return [{(name, at): t for name, at, t in each} for each in times]

    def whole(
        self, path: Path, seconds: float, usual: Path | None = None
    ) -> tuple[float, float] | None:
        """Seconds of a call of the program by default and of another one of its kind.

        Args:
            path: The other's executable.
            seconds: How long each is run, about.
            usual: The executable that is the default here, if it is not the program's.

        Returns:
            None where there is no program, or one of them does not run.
        """
        if self.program is None:
            return None
        both = {"reference": str(usual or self.program.path), "path": str(path)}
        answer = self._of_program({"do": "whole", **both, "seconds": seconds})
        if answer is None:
            return None
        measured = measured_of(answer)
        assert measured.seconds is not None
        return (measured.reference or 0.0), measured.seconds

    def _of_program(self, request: Message) -> Message | None:
        """What the child says of the program; None where there is none, or it does not run."""
        try:
            self._take_program()
            answer = None if self.program is None else self._child.ask(request, _PATIENCE)
        except ChildError:
            self._told = self._knows = -1
            return None
        return None if answer is None or "error" in answer else answer

    def kernels(self) -> Mapping[Place, Sequence[float]]:
        """What each call of each kernel in a run of the program takes; nothing where none runs."""
        with suppress(ChildError):
            self._take_program()
        return self._kernels

    def _take_program(self) -> None:
        """Tell the child of the program, if it does not know; one that does not run is left out.

        Raises:
            ChildError: The child died of it.
        """
        program = self.program
        if program is None or self._knows == self._child.started > 0:
            return
        self.program = None
        request = {"do": "program", "path": str(program.path), "arguments": program.arguments}
        answer = self._child.ask(request, _PATIENCE)
        if "error" in answer:
            log.info("kernels are timed alone, as the program does not run: %s", answer["error"])
            return
        self.program, self._knows = program, self._child.started
        told = cast("Mapping[str, Sequence[Sequence[float]]]", answer["kernels"])
        self._kernels = {
            (n, at): times for n, each in told.items() for at, times in enumerate(each)
        }

    def close(self) -> None:
        """End the child."""
        self._child.close()


def asked(path: Path, tolerance: float, timing: Timing) -> Message:
    """What a child is asked about a candidate."""
    return {
        "do": "candidate", "path": str(path), "tolerance": tolerance, "seconds": timing.seconds,
        "races": timing.races,
    }  # fmt: skip


def measured_of(answer: Message) -> Measured:
    """What a child answered."""
    if "wrong" in answer or "error" in answer:
        return Measured(None, why=str(answer.get("wrong", answer.get("error"))))
    return Measured(float(str(answer["seconds"])), float(str(answer["reference"])))
