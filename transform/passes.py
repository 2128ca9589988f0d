"""Passes, what they are given, and pipelines of them.

A `Pass` is a pure function from a verified module to a verified module, written as a frozen
dataclass whose fields are its options. A `Pipeline` is a tuple of passes that users edit. What
looks on (timing, printing, checking) are the `Context`'s instruments; a pass does not know of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Literal, Protocol, TypeAlias

from unity.annotated import Kind
from unity.arguments import public, public_class
from unity.errors import UnityError
from unity.ir.graph import Function
from unity.ir.module import IRModule
from unity.machine.target import Target

from .blame import blamed
from .source import Source

Sight: TypeAlias = Literal["program", "kernel", "signatures"]
"""What a pass looks at: anything; each kernel by itself; of kernels their parameters and attributes
only."""


@dataclass(frozen=True, slots=True)
class Pass(ABC):
    """One rewriting of a module; subclasses are frozen dataclasses in a file each.

    Attributes:
        kinds: What names in its options' annotations stand for that only type checkers import.
        sees: What it looks at. ``"kernel"`` promises that what a kernel becomes depends on it, the
            target and the options alone. See `unity.transform.tail`.
    """

    kinds: ClassVar[Mapping[str, Kind]] = {}
    sees: ClassVar[Sight] = "program"

    def __init_subclass__(cls) -> None:
        """What a pass is given is checked by its options' annotations, as by public functions."""
        made = "__init__"  # of the class with slots, which a dataclass makes of itself
        if made in vars(cls):
            setattr(cls, made, public(vars(cls)[made], cls.kinds))

    @property
    def name(self) -> str:
        """What instruments call it: the class's name."""
        return type(self).__name__

    @property
    def rules_followed(self) -> tuple[object, ...]:
        """The functions, or the programs of users, that it does what they say; none of its own."""
        return ()

    @abstractmethod
    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """The module rewritten; the same object if there was nothing to do."""


class Instrument(Protocol):
    """What looks on while passes run."""

    def before(self, step: Pass, module: IRModule, ctx: Context) -> None:
        """Called before `step` runs on `module`."""

    def after(self, step: Pass, module: IRModule, ctx: Context) -> None:
        """Called after `step` gave `module`; raises to stop the pipeline."""


GENERIC = Target("cpu", "", "generic", ())
"""A machine nothing is known of."""


@public_class
@dataclass(frozen=True, slots=True)
class Context:
    """What every pass is given: the machine to compile for, and who looks on.

    A pass that does not ask for the machine runs under ``Context()`` just as well.

    Attributes:
        target: The machine.
        instruments: Who looks on.
        reports: What passes tell besides their result, by name: explanations for people.
    """

    target: Target = GENERIC
    instruments: tuple[Instrument, ...] = ()
    reports: dict[str, str] = field(default_factory=dict[str, str], compare=False, repr=False)


_KINDS = {
    "type[Pass]": Kind("passes named by their class", lambda v: isinstance(v, type)),
    "tuple[Pass, ...]": Kind("a tuple of passes", lambda v: isinstance(v, tuple)),
}
_edit = partial(
    public, kinds=_KINDS, hints={"passes named by their class": "without the (), FuseOps"}
)


@partial(public_class, kinds=_KINDS)
@dataclass(frozen=True, slots=True, repr=False)
class Pipeline:
    """Passes in order, as data: every method gives a new pipeline; `print` shows its Python.

    Raises:
        UnityError: Something among the passes is none.
    """

    passes: tuple[Pass, ...] = ()

    def __post_init__(self) -> None:
        for step in self.passes:
            if not isinstance(step, Pass):
                name = getattr(step, "__name__", repr(step))
                hint = f"write {name}()" if isinstance(step, type) else "see unity.transform.Pass"
                raise UnityError(f"a pipeline is made of passes, got {name}", hint=hint)

    def run(self, module: IRModule, ctx: Context) -> IRModule:
        """The module after all passes, each one seen by the context's instruments.

        Raises:
            UnityError: A pass refuses the program.
            InternalError: An invariant of ours broke; the message names the pass.
        """
        start = module
        for at, step in enumerate(self.passes):
            for instrument in ctx.instruments:
                instrument.before(step, module, ctx)
            try:
                module = _module(step, step(module, ctx))
            except Exception as error:
                error.add_note(f"in the pass {step.name}")
                ours = blamed(error, step, self.passes[:at], start, module, ctx)
                if ours is not None:
                    raise ours from error
                raise
            for instrument in ctx.instruments:
                instrument.after(step, module, ctx)
        return module

    @_edit
    def insert_before(self, kind: type[Pass], *new: Pass) -> Pipeline:
        """With passes put before the first of a kind.

        Raises:
            UnityError: There is none of that kind.
        """
        at = self._find(kind)
        return Pipeline(self.passes[:at] + new + self.passes[at:])

    @_edit
    def insert_after(self, kind: type[Pass], *new: Pass) -> Pipeline:
        """With passes put after the last of a kind.

        Raises:
            UnityError: There is none of that kind.
        """
        self._find(kind)
        at = max(i for i, p in enumerate(self.passes) if isinstance(p, kind)) + 1
        return Pipeline(self.passes[:at] + new + self.passes[at:])

    @_edit
    def replace(self, kind: type[Pass], *new: Pass) -> Pipeline:
        """With every pass of a kind replaced by others.

        Raises:
            UnityError: There is none of that kind.
        """
        self._find(kind)
        parts = (new if isinstance(p, kind) else (p,) for p in self.passes)
        return Pipeline(tuple(p for part in parts for p in part))

    @_edit
    def without(self, *kinds: type[Pass]) -> Pipeline:
        """Lacking every pass of some kinds.

        Raises:
            UnityError: There is none of one of the kinds.
        """
        for kind in kinds:
            self._find(kind)
        return Pipeline(tuple(p for p in self.passes if not isinstance(p, kinds)))

    @_edit
    def until(self, kind: type[Pass]) -> Pipeline:
        """The passes before the first of a kind.

        Raises:
            UnityError: There is none of that kind.
        """
        return Pipeline(self.passes[: self._find(kind)])

    def _find(self, kind: type[Pass]) -> int:
        for i, step in enumerate(self.passes):
            if isinstance(step, kind):
                return i
        known = ", ".join(dict.fromkeys(p.name for p in self.passes)) or "(nothing)"
        raise UnityError(
            f"the pipeline has no {kind.__name__}", hint=f"its passes, in order: {known}"
        )

    def __add__(self, other: Pipeline) -> Pipeline:
        """One after the other."""
        return Pipeline(self.passes + other.passes)

    @property
    def names(self) -> tuple[str, ...]:
        """What its passes are called, in order."""
        return tuple(p.name for p in self.passes)

    def __repr__(self) -> str:
        """As an expression, one pass a line."""
        return self._text(Source())

    def __str__(self) -> str:
        """As the Python that makes it: imports, then ``pipeline = ...``."""
        source = Source()
        source.name(Pipeline)
        text = self._text(source)
        return "\n".join([*source.statements(), "", f"pipeline = {text}"])

    def _text(self, source: Source) -> str:
        lines = "".join(f"    {source.text(p)},\n" for p in self.passes)
        return f"Pipeline((\n{lines}))" if self.passes else "Pipeline(())"


def _module(step: Pass, given: object) -> IRModule:
    """What a pass gave, which may be written by a user."""
    if not isinstance(given, IRModule):
        raise UnityError(
            f"the pass {step.name} gave {given!r}, which is no module",
            hint="a pass that has nothing to do returns the module it was given",
        )
    return given


@public
def map_functions(module: IRModule, rewrite: Callable[[Function], Function]) -> IRModule:
    """The module with every graph function rewritten; the same object if none changed."""
    return module.with_({k: rewrite(f) for k, f in module.graph_functions().items()})
