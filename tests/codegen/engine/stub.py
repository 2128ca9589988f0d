"""An engine for tests: it takes every call, and fails where it is told to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from unity.ir.dtype import Array
from unity.ir.module import IRModule
from unity.ir.target import Target
from unity.transform.graph.resolve import OpSite

Run: TypeAlias = Callable[[Sequence[Array], Sequence[Array]], None]
Stage: TypeAlias = Literal["", "missing", "compile", "run", "save", "load"]


def zeros(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    """Zeros in all outputs."""
    for y in outputs:
        y.fill(0)


@dataclass(frozen=True, slots=True)
class StubEngine:
    """An engine, and what it compiles: that is its name.

    Attributes:
        name: What it is called.
        fails: Where it fails; nowhere if empty.
        run: What a call does, given inputs and outputs.
    """

    name: str
    fails: Stage = ""
    run: Run = zeros

    def missing(self) -> str | None:
        return "it was never built" if self.fails == "missing" else None

    def supports(self, site: OpSite) -> str | None:
        return None

    def compile(self, subgraph: IRModule, target: Target, threads: int) -> StubEngine:
        if self.fails == "compile":
            raise ValueError("no licence")
        return self

    def __call__(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        if self.fails == "run":
            raise RuntimeError("out of luck")
        self.run(inputs, outputs)

    def save(self) -> bytes:
        if self.fails == "save":
            raise RuntimeError("no licence to save")
        return self.name.encode()

    def load(self, data: bytes, target: Target, threads: int) -> StubEngine:
        if self.fails == "load" or data != self.name.encode():
            raise ValueError("no such model")
        return self
