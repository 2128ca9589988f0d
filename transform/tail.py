"""The tail of a pipeline: where each kernel goes its own way, known by what it was before.

From some pass on, what becomes of a kernel depends on the kernel, the target and the options of the
passes alone, and graph functions see no more of it than its parameters and its attributes. There
the compiler may ask for the code of a kernel that it compiled before (`unity.codegen.lower`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import cast

from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc

from .passes import Context, Pass, Pipeline


def split(pipeline: Pipeline) -> tuple[Pipeline, Tail]:
    """The pipeline up to its tail, and its tail: the longest there is.

    Passes say by `Pass.sees` whether they may be part of one. It must be a pass of Unity's own, as
    it is known by its name and options only: what somebody else's does may change from one day to
    the next. Kernels are then known by what they are after it.

    >>> from unity.transform import pipeline
    >>> head, tail = split(pipeline())
    >>> tail.passes[0]
    ScheduleDefault(decide=None)
    >>> len(head.passes) + len(tail.passes) == len(pipeline().passes)
    True
    """
    at = len(pipeline.passes)
    while at and _is_known(pipeline.passes[at - 1]):
        at -= 1
    return Pipeline(pipeline.passes[:at]), Tail(pipeline.passes[at:])


@dataclass(frozen=True, slots=True)
class Tail:
    """The passes of a tail."""

    passes: tuple[Pass, ...] = ()

    @property
    def steps(self) -> tuple[Pass, ...]:
        """Those that rewrite kernels, each by itself; the others see only signatures."""
        return tuple(p for p in self.passes if p.sees == "kernel")

    @property
    def identity(self) -> str:
        """What it does to kernels, as text."""
        return "; ".join(map(repr, self.steps))

    def lowered(self, name: str, func: PrimFunc, ctx: Context) -> PrimFunc:
        """A kernel by itself after the tail.

        Args:
            name: Its name.
            func: The kernel before the tail.
            ctx: What passes are given.
        """
        module = Pipeline(self.steps).run(IRModule({name: func}), replace(ctx, instruments=()))
        found = module[name]
        assert isinstance(found, PrimFunc)
        return found


def _is_known(step: Pass) -> bool:
    """Whether a pass may be part of a tail: ours, with options that tell all in their text."""
    ours = type(step).__module__.startswith("unity.transform.")
    return ours and step.sees != "program" and _is_plain(step)


def _is_plain(value: object) -> bool:
    """Whether a value's text tells all of it: no functions, no objects of classes not ours."""
    if value is None or isinstance(value, bool | int | float | str):
        return True
    if isinstance(value, tuple):
        return all(_is_plain(v) for v in value)
    if type(value) is dict:
        items = cast("dict[object, object]", value).items()
        return all(_is_plain(k) and _is_plain(v) for k, v in items)
    if is_dataclass(value) and not isinstance(value, type):
        ours = type(value).__module__.startswith("unity.")
        return ours and all(_is_plain(getattr(value, f.name)) for f in fields(value))
    return False
