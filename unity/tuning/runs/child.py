"""``python -m unity.tuning.runs.child``: runs a program in several ways, by turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from unity.codegen.workers.child import Message
from unity.codegen.workers.serve import serve
from unity.runtime.artifact.read import load

from ..clock import before_others
from ..kept_memory import keep_freed_memory
from ..workers.program import read
from .here import RunsHere


class Runs:
    """Carries what was taken, and what it runs on."""

    def __init__(self) -> None:
        self._runs = RunsHere(list, 0.0)

    def begin(self, request: Message) -> Message:
        """Take ``arguments`` for some sizes, and how far results may differ, ``tolerance``."""
        told = cast("Sequence[Sequence[Message]]", request["arguments"])
        inputs = [[read(a) for a in args] for args in told]
        self._runs = RunsHere(lambda: inputs, float(str(request["tolerance"])))
        return {}

    def take(self, request: Message) -> Message:
        """Run what is at ``path`` once, and keep it by its ``name``."""
        return {"wrong": self._runs.take(str(request["name"]), load(str(request["path"])))}

    def run(self, request: Message) -> Message:
        """Run one of some ``name`` once."""
        self._runs.run(str(request["name"]))
        return {}

    def times(self, request: Message) -> Message:
        """Time those of some ``names``, all by turns, for some ``seconds`` each."""
        names = cast("Sequence[str]", request["names"])
        return {"times": [*self._runs.times(names, float(str(request["seconds"])))]}

    def kernels(self, request: Message) -> Message:
        """Time the kernels of those of some ``names``, which run by turns."""
        found = self._runs.kernels(cast("Sequence[str]", request["names"]))
        return {"calls": [[*calls] for calls in found]}


if __name__ == "__main__":
    before_others()
    keep_freed_memory()
    runs = Runs()
    verbs = (runs.begin, runs.take, runs.run, runs.times, runs.kernels)
    serve({verb.__name__: verb for verb in verbs})
