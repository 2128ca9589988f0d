"""``python -m unity.tuning.workers.run``: runs candidates by turns with the default kernel."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import cycle
from typing import cast

import numpy as np

from unity.codegen.workers.child import Message
from unity.codegen.workers.serve import serve
from unity.ir.dtype import Array, dtype
from unity.runtime.artifact.read import load

from ..agreement import copied, disagreement
from ..clock import before_others
from ..kept_memory import keep_freed_memory
from ..race import agreeing, interleaved
from ..tasks.task import KERNEL, Place
from .program import RunningProgram, read

_FAR, _LONG = 4.0, 2e-3
"""A candidate that takes so many times the default's time, and so many seconds, is not raced."""
_AGAIN = 2
"""Times that it is run once more before that is believed."""


class Runner:
    """Carries the reference: the kernel as it is by default, its inputs and its results.

    Calls take turns with copies of its constants (`Task.copies`). Carries a program, too, if it is
    given one, in which kernels are timed once more.
    """

    def __init__(self) -> None:
        self._call: Callable[..., object] | None = None
        self._inputs: Sequence[object] = ()
        self._turns: Iterator[Sequence[object]] = iter(())
        self._expected: object = None
        self._program: RunningProgram | None = None

    def program(self, request: Message) -> Message:
        """Take a program to time kernels in: ``path``, and ``arguments`` for some sizes."""
        told = cast("Sequence[Sequence[Message]]", request["arguments"])
        arguments = [[read(a) for a in args] for args in told]
        self._program = RunningProgram(load(str(request["path"])), arguments)
        return {"kernels": self._program.kernels()}

    def within(self, request: Message) -> Message:
        """Time ``versions`` of the program: places, and the path of the candidate to take them."""
        assert self._program is not None, "no program"
        told = cast("Sequence[Sequence[tuple[Sequence[Place], str]]]", request["versions"])
        versions = [
            [(frozenset((n, at) for n, at in places), load(path)) for places, path in version]
            for version in told
        ]
        times = self._program.race(versions, KERNEL, float(str(request["seconds"])))
        return {"times": [[[*place, t] for place, t in each.items()] for each in times]}

    def whole(self, request: Message) -> Message:
        """Time the program, at ``reference``, and another one, at ``path``, by turns."""
        assert self._program is not None, "no program"
        both = [load(str(request[which])) for which in ("reference", "path")]
        seconds = float(str(request["seconds"]))
        many = self._program.program.target.threads > 1
        times = [
            interleaved(both, args, seconds, spinning=many) for args in self._program.arguments
        ]
        return {"reference": sum(t[0] for t in times), "seconds": sum(t[1] for t in times)}

    def reference(self, request: Message) -> Message:
        """Take a kernel to compare with: ``path`` of its executable, ``inputs`` its arrays."""
        copies = [_loaded(x) for x in cast("Sequence[Message]", request["inputs"])]
        each = [[c[k % len(c)] for c in copies] for k in range(max(map(len, copies), default=1))]
        self._inputs, self._turns = each[0], cycle(each)
        self._call = load(str(request["path"]))
        self._expected = copied(self._call(*self._inputs))
        return {}

    def candidate(self, request: Message) -> Message:
        """Run a candidate, compare its results, and time both by turns for some ``seconds``.

        Of several ``races``, those that agree count.
        """
        assert self._call is not None, "no reference"
        call = load(str(request["path"]))
        tolerance = float(str(request["tolerance"]))
        wrong = disagreement(copied(call(*self._inputs)), self._expected, tolerance)
        if wrong is not None:
            return {"wrong": wrong}
        seconds, races = float(str(request["seconds"])), int(str(request["races"]))
        both = [partial(self.in_turn, c) for c in (self._call, call)]
        once = [_once(c) for c in both]
        for _ in range(_AGAIN):  # a single run may have been disturbed
            if not _is_far(*once):
                break
            once = [min(before, _once(c)) for before, c in zip(once, both, strict=True)]
        if _is_far(*once):
            return {"seconds": once[1], "reference": once[0]}  # more of it would tell no more
        usual, found = agreeing(both, (), seconds, races, spinning=False)  # of one pool
        wrong = disagreement(copied(call(*self._inputs)), self._expected, tolerance)
        if wrong is not None:
            return {"wrong": f"when it was called again, {wrong}"}
        return {"seconds": found, "reference": usual}

    def in_turn(self, call: Callable[..., object]) -> None:
        """Call a kernel with the next copies."""
        call(*next(self._turns))


def _is_far(usual: float, found: float) -> bool:
    return found > _FAR * usual and found > _LONG


def _once(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def _loaded(given: Message) -> list[object]:
    """An array out of a file, as often as it is wanted, or a shape."""
    shape = tuple(cast("list[int]", given["shape"]))
    if "file" not in given:
        return [shape]
    made: Array = np.fromfile(str(given["file"]), dtype(str(given["dtype"])).numpy)
    first = made.reshape(shape)
    return [first, *(first.copy() for _ in range(1, int(str(given["copies"]))))]


if __name__ == "__main__":
    before_others()
    keep_freed_memory()
    runner = Runner()
    verbs = (runner.program, runner.within, runner.whole, runner.reference, runner.candidate)
    serve({verb.__name__: verb for verb in verbs})
