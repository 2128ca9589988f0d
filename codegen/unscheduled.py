"""Kernels as they come to `ScheduleDefault`: what the schedules of an executable's start from.

Nothing is copied for it: prim funcs never change, so they are noted on their way through the
pipeline, and are those whose code the cache of kernels was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from unity.errors import UnityError
from unity.ir.foreign import symbols_in
from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc
from unity.transform import Context, Pass
from unity.transform.rules.by_default import ScheduleDefault
from unity.transform.scheduled import has_blocks, is_scheduled
from unity.transform.tail import Tail

if TYPE_CHECKING:
    from unity.transform.rules.decisions import Decider, Decisions


@dataclass(slots=True)
class BeforeSchedule:
    """An instrument that notes the kernels which `ScheduleDefault` is given.

    Attributes:
        kernels: By name; None before that pass, and where a pipeline has none.
        decide: Who takes its decisions.
    """

    kernels: Mapping[str, PrimFunc] | None = None
    decide: Decider | Decisions | None = None

    def before(self, step: Pass, module: IRModule, ctx: Context) -> None:
        """Note them the first time."""
        if self.kernels is None and isinstance(step, ScheduleDefault):
            self.kernels, self.decide = module.prim_funcs(), step.decide

    def after(self, step: Pass, module: IRModule, ctx: Context) -> None:
        """Nothing."""

    def found(self) -> Unscheduled:
        """What was noted."""
        return Unscheduled(self.kernels, self.decide)


@dataclass(frozen=True, slots=True)
class Unscheduled:
    """Kernels that `ScheduleDefault` lays out.

    Attributes:
        kernels: By name; those of a pipeline without that pass are None.
        decide: Who takes the decisions of its rules, if not they.
        steps: What is still to be done before it, to each kernel by itself.
    """

    kernels: Mapping[str, PrimFunc] | None = None
    decide: Decider | Decisions | None = None
    steps: Tail = field(default_factory=Tail)

    @staticmethod
    def of_tail(kernels: Mapping[str, PrimFunc], tail: Tail) -> Unscheduled:
        """Those of a tail that has not run yet."""
        for i, step in enumerate(tail.passes):
            if isinstance(step, ScheduleDefault):
                return Unscheduled(kernels, step.decide, Tail(tail.passes[:i]))
        return Unscheduled()

    def kernel(self, name: str, ctx: Context) -> PrimFunc:
        """A kernel as `ScheduleDefault` is given it.

        Raises:
            UnityError: The pipeline has no such pass, or the kernel was made behind it.
        """
        if self.kernels is None or name not in self.kernels:
            raise UnityError(
                f"{name!r} did not go through ScheduleDefault: the pipeline lacks it, or made the "
                "kernel later",
                hint="exe.ir(kernel) shows what it became",
            )
        func = self.kernels[name]
        return self.steps.lowered(name, func, ctx) if self.steps.steps else func

    def require_decided(self) -> None:
        """Refuse decisions for blocks that no kernel has.

        Raises:
            UnityError: There are such.
        """
        if isinstance(self.decide, Mapping) and self.kernels is not None:
            from unity.transform.rules.decisions import require_blocks

            require_blocks(self.decide, self.kernels.values())

    def decisions(self, name: str, ctx: Context, changes: Decisions | None) -> Decisions:
        """The decisions about a kernel that its rules do not take themselves.

        Args:
            name: The kernel.
            ctx: What passes are given.
            changes: Those of whoever asks: they go before those of the pipeline.

        Raises:
            UnityError: It is not laid out by default.
        """
        from unity.transform.rules.decisions import (  # every rule: long to import
            decider,
            require_decisions,
        )
        from unity.transform.schedule import default_rules

        func, decide = self.kernel(name, ctx), decider(self.decide)
        require_by_default(name, func)
        if changes is not None:
            require_decisions(changes)
        if decide is None:
            return changes or {}
        rules = default_rules(func, ctx.target)
        own = {rule.blocks[0]: decide(rule, ctx.target) for rule in rules if rule.blocks}
        names = {*own, *(changes or {})}
        return {k: {**own.get(k, {}), **(changes or {}).get(k, {})} for k in names}


def require_by_default(name: str, func: PrimFunc) -> None:
    """Refuse a kernel that `ScheduleDefault` leaves alone.

    Raises:
        UnityError: Somebody else laid it out, or there is nothing to lay out.
    """
    library = func.attrs.get("library")
    if library is not None:
        raise UnityError(
            f"{name!r} is a call of the library function {library}: there are no loops to lay out",
            hint='resolve="tir" compiles kernels of ours',
        )
    if is_scheduled(func):
        raise UnityError(
            f"{name!r} was laid out by hand or by a rule of its target's, not by default",
            hint="exe.kernel(name) shows its loops; "
            "without `scheduled` among its attrs it would be laid out by default",
        )
    if has_blocks(func):
        return
    called = sorted(symbols_in(func.body))
    if called:
        raise UnityError(
            f"{name!r} is a call of {', '.join(called)}: there are no loops to lay out",
            hint='resolve="tir" compiles kernels of ours',
        )
    raise UnityError(
        f"{name!r} has loops without blocks, which stay as they are written",
        hint='with T.block("name"): around what they compute lets them be laid out',
    )
