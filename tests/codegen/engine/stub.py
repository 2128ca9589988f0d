"""Engines for tests: they take every call, and fail where they are told to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from unity.codegen.engine.interpreter import InterpretedModule, InterpreterEngine
from unity.ir.dtype import Array
from unity.ir.graph import Call, Op
from unity.ir.module import IRModule
from unity.ir.visit import walk_bindings
from unity.machine.target import Target
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


@dataclass(frozen=True, slots=True)
class PickyEngine:
    """The interpreter, which finds when it compiles a part that it can't.

    Attributes:
        refuses: Operators that it can't compile.
        together: Operators that it can't compile in one part.
    """

    refuses: frozenset[str] = frozenset()
    together: frozenset[str] = frozenset(("none",))
    name: str = "picky"

    def missing(self) -> str | None:
        return None

    def supports(self, site: OpSite) -> str | None:
        return None

    def compile(self, subgraph: IRModule, target: Target, threads: int) -> InterpretedModule:
        calls = [b.value for b in walk_bindings(subgraph.graph_functions()["main"])]
        ops = {c.callee.name for c in calls if isinstance(c, Call) and isinstance(c.callee, Op)}
        if ops & self.refuses or ops >= self.together:
            raise RuntimeError(f"no kernel for\n {', '.join(sorted(ops))}")
        return InterpretedModule(subgraph)

    def load(self, data: bytes, target: Target, threads: int) -> InterpretedModule:
        return InterpreterEngine().load(data, target, threads)
