"""ScheduleDefault: every kernel gets threads and lanes by rule, without tuning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unity.annotated import DECISIONS, Kind
from unity.ir.module import IRModule

from ..passes import Context, Pass, Sight
from ..scheduled import awaits_layout

if TYPE_CHECKING:
    from .decisions import Decider, Decisions


@dataclass(frozen=True, slots=True)
class ScheduleDefault(Pass):
    """Lays out each stage of each kernel by the first rule that applies (`rules.RULES`).

    Stages that only transform a reduction's result are done in its write-back first. A kernel with
    the attribute ``scheduled`` was laid out by someone who knew better, and is left alone.

    >>> from dataclasses import replace
    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... n = dim("n")
    ...
    ... @script.prim_func
    ... def main(a: f32[Buffer, n, 50], b: f32[Buffer, 50], c: f32[Buffer, n, 50]) -> None:
    ...     for i, j in T.grid(n, 50):
    ...         with T.block("add"):
    ...             vi, vj = T.axis.remap("SS", i, j)
    ...             c[vi, vj] = a[vi, vj] + b[vj]
    ... ''')
    >>> two = Context(replace(Context().target, threads=2))
    >>> print(print_module(ScheduleDefault()(before, two)), end="")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.prim_func(attrs={"scheduled": True})
    def main(a: f32[Buffer, n, 50], b: f32[Buffer, 50], c: f32[Buffer, n, 50]) -> None:
        for i_0 in T.parallel((n + 399) // 400):
            for i_1, j_0 in T.grid(400, 13):
                for j_1 in T.vectorized(4):
                    with T.block("add"):
                        vi = T.axis.spatial(n, i_0 * 400 + i_1)
                        vj = T.axis.spatial(50, j_0 * 4 + j_1)
                        T.where(i_0 * 400 + i_1 < n and j_0 * 4 + j_1 < 50)
                        c[vi, vj] = a[vi, vj] + b[vj]

    Attributes:
        decide: Which decisions of rules are to be others, by the name of a block (``{"softmax":
            {"vectors": 1}}``) or by a function; None where the rules' own stand.
    """

    decide: Decider | Decisions | None = None
    kinds: ClassVar[Mapping[str, Kind]] = {
        "Decider": Kind("a function", callable),
        "Decisions": DECISIONS,
    }
    sees: ClassVar[Sight] = "kernel"

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each prim func by itself."""
        functions = module.prim_funcs()
        if not any(awaits_layout(f) for f in functions.values()):
            return module
        from .default import schedule  # every rule: long to import, not needed for cached kernels

        decided = {k: schedule(f, ctx.target, self.decide) for k, f in functions.items()}
        return module.with_(decided)

    @property
    def rules_followed(self) -> tuple[object, ...]:
        """Who decides, where that are not our rules."""
        return () if self.decide is None else (self.decide,)
