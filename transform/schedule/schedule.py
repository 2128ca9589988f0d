"""Schedule: a prim func and the recorded steps that transform it.

The IR is immutable: each step replaces `Schedule.func`, and what it replaced stays valid. Steps are
in `steps`; what is legal, and examples, in the docstrings of the functions in `primitives`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from unity.errors import UnityError
from unity.ir.stmt import PrimFunc
from unity.machine.target import Target
from unity.script.printer import text

from ..blocks.tree import distinct, honest
from ..scheduled import as_scheduled
from . import primitives as p
from .arguments import is_step, query, step
from .as_python import as_python
from .condition import ConditionLike, condition_of
from .index_map import AnyMap, as_map
from .refs import AnyBlock, BlockRef, LoopRef, Name
from .state import as_ref, name_of
from .steps.blocks import BlockSteps
from .steps.location import LocationSteps
from .steps.loops import LoopSteps
from .steps.queries import Queries
from .steps.reduction import ReductionSteps
from .steps.sampling import SamplingSteps
from .steps.storage import StorageSteps
from .trace import Given, Json, Trace, decode


class Schedule(
    Queries, LoopSteps, BlockSteps, LocationSteps, StorageSteps, ReductionSteps, SamplingSteps
):
    """A prim func under transformation.

    Args:
        func: What to schedule; its blocks get distinct names.
        target: The machine it is for.
        seed: Of the sampling instructions.
        decisions: What they give, one after another, in place of what they would draw; one that is
            not legal where it comes to stand is drawn after all.

    Attributes:
        start: The prim func before the first step.
        func: The prim func as it is now.
        trace: What was done.
    """

    @query
    def __init__(
        self,
        func: PrimFunc,
        target: Target | None = None,
        seed: int | None = None,
        decisions: Sequence[Json] = (),
    ) -> None:
        super().__init__(honest(distinct(func)), target, seed, decisions)

    @query
    def kernel(self) -> PrimFunc:
        """The prim func as it is now, marked as laid out: the compiler leaves its loops alone."""
        return as_scheduled(self.func)

    def _repr_html_(self) -> str:
        """The steps, and the kernel that they gave so far."""
        return f"{self.trace._repr_html_()}{self.func._repr_html_()}"

    @query
    def to_python(self, name: Name = "kernel") -> str:
        """A program to change and to run: the kernel at the start, the steps, what they give.

        Args:
            name: What the kernel is called in it.
        """
        return as_python(self.start, self.target, self.trace, name)

    @query
    def copy(self, seed: int | None = None) -> Schedule:
        """Another schedule in the same state, that goes its own way; this one's loops are its too.

        Args:
            seed: Of its sampling instructions.
        """
        other = Schedule(self.func, self.target, seed)
        other._continue(self)
        return other

    @query
    def replay(self, trace: Trace) -> Schedule:
        """Do what a trace says, with the decisions it holds; this schedule.

        Raises:
            UnityError: A step is refused here, or is none that there is.
        """
        known: dict[str, Given] = {}
        for each in trace:
            method = INSTRUCTIONS.get(each.name)
            if method is None:
                raise UnityError(f"there is no instruction {each.name!r}")
            args = [decode(a, known) for a in each.args]
            drawn = {} if each.decision is None else {"decision": each.decision}
            result = method(self, *args, **drawn)
            outputs = cast("Sequence[Given]", result if _many(result) else [result])
            if len(outputs) < len(each.outputs):
                raise UnityError(
                    f"{each.name} gives {len(outputs)} here, the trace goes on with "
                    f"{len(each.outputs)}: {', '.join(each.outputs)}",
                    hint="the trace is of a prim func with other blocks and loops",
                )
            known.update(zip(each.outputs, outputs, strict=False))
        return self

    @step
    def specialize(self, sizes: Mapping[str, int]) -> None:
        """Unknown sizes become numbers."""
        self._do("specialize", (sizes,), p.specialize(self.func, sizes))

    @step
    def specialize_when(self, condition: ConditionLike, *blocks: AnyBlock) -> tuple[BlockRef, ...]:
        """Versions of nests, or of all, by a fact about sizes; gives the other one's blocks."""
        fact = condition_of(condition, self.func)
        done = p.specialize_when(self.func, fact, [name_of(b) for b in blocks])
        return self._blocks("specialize_when", (text(fact), *map(as_ref, blocks)), done)

    @step
    def annotate(self, at: LoopRef | AnyBlock, key: Name, value: bool | float | str | None) -> None:
        """Set an attribute of a loop or a block."""
        done = p.annotate(self.func, self._at(at), key, value)
        self._do("annotate", (as_ref(at), key, value), done)

    @step
    def annotate_buffer_access(
        self, block: AnyBlock, index: int | str, kind: str, ranges: AnyMap
    ) -> None:
        """What a block touches of a buffer, where less is known than is true."""
        m = as_map(ranges)
        access = self._at_access("annotate_buffer_access", block, index, kind)
        done = p.annotate_buffer_access(self.func, *access, kind, m)
        self._do("annotate_buffer_access", (as_ref(block), index, kind, m), done)

    @step
    def unannotate(self, at: LoopRef | AnyBlock, key: Name) -> None:
        """Remove an attribute of a loop or a block."""
        done = p.unannotate(self.func, self._at(at), key)
        self._do("unannotate", (as_ref(at), key), done)


def _many(result: object) -> bool:
    return isinstance(result, tuple | list)


INSTRUCTIONS: dict[str, Callable[..., object]] = {
    name: getattr(Schedule, name) for name in dir(Schedule) if is_step(getattr(Schedule, name))
}
"""What a trace may hold."""
