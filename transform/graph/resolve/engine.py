"""External engines: runtimes that are handed parts of a graph function (BYOC)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from unity.errors import Span, UnityError
from unity.ir.graph import Call
from unity.ir.module import IRModule
from unity.ir.types import Type
from unity.machine.target import Target
from unity.runtime.engines.engine import Compiled, provide_loader


@dataclass(frozen=True, slots=True)
class OpSite:
    """One call of an operator, as an engine is asked about it.

    Attributes:
        call: The call.
        args: The types of its arguments.
        result: The type of its result.
    """

    call: Call
    args: tuple[Type, ...]
    result: Type


class Engine(Protocol):
    """An external runtime; registered with `register_engine`, a few dozen lines of Python."""

    @property
    def name(self) -> str:
        """What it is called: in ``R.call_engine``, in overrides, in explanations."""
        ...

    def missing(self) -> str | None:
        """Why it can't be used here (a package is not installed); None if it can."""
        ...

    def supports(self, site: OpSite) -> str | None:
        """Why a call can't be handed over; None if it can."""
        ...

    def compile(self, subgraph: IRModule, target: Target, threads: int) -> Compiled:
        """Compile the function ``main`` of a module, which is private to the call.

        Args:
            subgraph: Operators only; symbols of the shapes are its own.
            target: The machine.
            threads: How many it may use.
        """
        ...

    def load(self, data: bytes, target: Target, threads: int) -> Compiled:
        """Load what `Compiled.save` gave, as an artifact does (`unity.runtime.engines.engine`)."""
        ...


ENGINES: dict[str, Engine] = {}
"""The registered engines by name."""


def register_engine(engine: Engine) -> Engine:
    """Make an engine known; one of the same name is replaced."""
    ENGINES[engine.name] = engine
    provide_loader(engine)
    return engine


def engine_of(name: str, span: Span | None = None) -> Engine:
    """A registered engine that can be used here.

    Raises:
        UnityError: There is none of that name, or something it needs is missing.
    """
    if name not in ENGINES:
        known = ", ".join(sorted(ENGINES)) or "(none)"
        raise UnityError(f"no engine {name!r} is registered", span, f"there are: {known}")
    reason = ENGINES[name].missing()
    if reason is not None:
        raise UnityError(f"the engine {name!r} can't be used: {reason}", span)
    return ENGINES[name]
