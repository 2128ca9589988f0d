"""Unity with caches of its own, as a model is used to write a text token by token.

Each call puts one step's rows behind the same past: the session goes back to it before every call,
which takes a microsecond and leaves the caches as they are. The peers are handed the past and give
the present, which is how they run an ONNX model.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import unity
from unity.runtime.cache_plan import cache_plan

from .work import Feeds

ROOM = 24


class InSession:
    """A model with caches, called with feeds that hold the past."""

    def __init__(self, path: Path, threads: int, mode: dict[str, Any]) -> None:
        self.executable = unity.compile(str(path), threads=threads, caches=True, **mode)
        plan = cache_plan(self.executable.program.function("main"))
        self.names = [c.name for c in plan.caches]
        self.axis = plan.caches[0].axis
        self.session = self.executable.session()
        self.inputs: Feeds = {}
        self.length = 0

    def begin(self, feeds: Feeds) -> None:
        """Take over the past that the feeds hold."""
        past = {name: feeds[name] for name in self.names}
        self.length = past[self.names[0]].shape[self.axis]
        self.session = self.executable.session(self.length + ROOM)
        self.session.restore(past)
        self.inputs = {k: v for k, v in feeds.items() if k not in past}

    def outputs(self) -> list[Any]:
        """All results of one step, those of the plain model."""
        return [*self().values(), *self.session.caches().values()]

    def __call__(self) -> Feeds:
        """One step behind the past."""
        self.session.reset(self.length)
        return self.session.run(self.inputs)
