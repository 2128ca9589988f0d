"""Who runs candidates that were compiled: what it is told of a kernel, and what it answers.

`LocalRunner` has a child on this machine; `unity.tuning.fleet` has workers on others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from unity.codegen.workers.child import Child, ChildError, Message
from unity.errors import UnityError

RUN_SECONDS = 10.0
"""How long a candidate may run besides what it is timed for."""


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
        seconds: The fastest run; None if it failed.
        reference: The fastest run of the kernel as it is by default, by turns with it.
        why: What was wrong with it, if it failed.
    """

    seconds: float | None
    reference: float | None = None
    why: str = ""

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
    """

    at_once = False

    def __init__(self, cpus: Sequence[int] = (), seconds: float = RUN_SECONDS) -> None:
        self._child = Child("unity.tuning.workers.run", cpus)
        self._seconds = seconds
        self._reference: Reference | None = None
        self._told = 0

    def take(self, reference: Reference) -> None:
        """Tell the child of a kernel.

        Raises:
            UnityError: It does not run as it is by default.
        """
        self._reference = reference
        try:
            answer = self._child.ask(
                {"do": "reference", "path": str(reference.path), "inputs": reference.inputs},
                self._seconds,
            )
        except ChildError as error:
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
            self._told = -1
            return Measured(None, why=f"running: {error}")

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
