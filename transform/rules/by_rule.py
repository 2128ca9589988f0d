"""ScheduleByRule: kernels are laid out by rules that users and backends write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from unity.errors import UnityError
from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc
from unity.machine.target import Target

from ..passes import Context, Pass
from ..scheduled import awaits_layout

if TYPE_CHECKING:
    from ..schedule.schedule import Schedule

ScheduleRule: TypeAlias = "Callable[[Schedule], bool]"
"""Takes steps on a kernel and says whether it is laid out; if not, its steps are forgotten."""


@dataclass(frozen=True, slots=True)
class ScheduleByRule(Pass):
    """Lays out each kernel by the first rule that says it has; the others are left as they are.

    Stands before `ScheduleDefault`, which leaves alone what is laid out.

    >>> from unity.script import parse, print_module
    >>> from unity.transform.schedule import Schedule, ScheduleByRule
    >>> def halves(schedule: Schedule) -> bool:
    ...     outer, inner = schedule.split(schedule.get_loops("double")[0], [2, None])
    ...     schedule.parallel(outer)
    ...     return True
    >>> before = parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 64], c: f32[Buffer, 64]) -> None:
    ...     for i in range(64):
    ...         with T.block("double"):
    ...             vi = T.axis.spatial(64, i)
    ...             c[vi] = a[vi] * 2.0
    ... ''')
    >>> print(print_module(ScheduleByRule((halves,))(before, Context())), end="")
    @script.prim_func(attrs={"scheduled": True})
    def main(a: f32[Buffer, 64], c: f32[Buffer, 64]) -> None:
        for i_0 in T.parallel(2):
            for i_1 in range(32):
                with T.block("double"):
                    vi = T.axis.spatial(64, i_0 * 32 + i_1)
                    c[vi] = a[vi] * 2.0

    Attributes:
        rules: Tried in order.
    """

    rules: tuple[ScheduleRule, ...] = ()

    @property
    def rules_followed(self) -> tuple[object, ...]:
        """What writes the schedules."""
        return self.rules

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each prim func by itself."""
        functions = module.prim_funcs()
        return module.with_({k: self.laid_out(k, f, ctx.target) for k, f in functions.items()})

    def laid_out(self, name: str, func: PrimFunc, target: Target) -> PrimFunc:
        """A kernel by the first rule that applies; itself if none does.

        Raises:
            UnityError: A rule takes a step that is refused.
        """
        if not awaits_layout(func):
            return func
        from ..schedule.schedule import (
            Schedule,  # long to import, and most pipelines have no such rules
        )

        for rule in self.rules:
            schedule = Schedule(func, target)
            try:
                done = rule(schedule)
            except UnityError as error:
                where = f"the schedule rule {rule.__name__} fails on the kernel {name!r}"
                raise UnityError(f"{where}: {error.message}", error.span, error.hint) from error
            if done:
                return schedule.kernel()
        return func
