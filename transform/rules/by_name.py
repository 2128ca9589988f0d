"""A rule of a name on blocks of a kernel: what the step `lay_out` of a schedule does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from unity.ir.stmt import Allocate, Block, Buffer, PrimFunc, Seq, Stmt
from unity.machine.target import Target

from ..blocks.nest import Nest, opened
from ..blocks.tree import (
    Outcome,
    all_blocks,
    blocks_below,
    illegal,
    path_to,
    renewed,
    replaced,
    scope_path,
)
from .contraction.split_reduction import SPLIT_REDUCTION, Whole
from .fallback import AS_WRITTEN, FALLBACK
from .groups import GROUPS
from .no_points import NO_POINTS
from .rule import Found
from .stages import Stages, parts_of, touched
from .table import RULES, found_for

NAMES = (
    *(rule.name for rule in GROUPS),
    *(rule.name for rule in RULES),
    SPLIT_REDUCTION.name,
    NO_POINTS.name,
    FALLBACK.name,
)
"""The names of all rules."""


def lay_out(
    func: PrimFunc, rule: str, blocks: Sequence[str], decisions: Mapping[str, int], target: Target
) -> Outcome:
    """Blocks laid out by a default rule, with decisions.

    Args:
        func: The kernel.
        rule: The rule's name.
        blocks: The blocks' names, one behind the other.
        decisions: All or some of the rule's; it decides the others itself.
        target: The machine.
    """
    if rule not in NAMES:
        raise illegal("lay_out, argument 1 'rule'", f"no rule {rule!r}", ", ".join(NAMES))
    path = path_to(func.body, lambda s: isinstance(s, Block) and s.name in blocks) or (func.body,)
    place = scope_path(path)[0]
    if any(isinstance(s, Block) for s in path[:-1]):
        target = replace(target, threads=1)  # they have what is around the block
    temporaries, stages = opened(place)
    begin, end = _place(stages, blocks)
    found = _found(rule, stages, begin, set(temporaries), target)
    if found is None or found[1] != end:
        taken = "does not take" if found is None else "takes other blocks together with"
        raise illegal(
            "lay_out, argument 1 'rule'",
            f"the rule {rule!r} {taken} {', '.join(blocks)}",
            "default_rules says which rule takes which blocks",
        )
    done = found[0].with_(decisions).stmt()
    others = {b.name for b in all_blocks(func.body)} - set(blocks)
    done = renewed(done, others, set())  # versions of stages have names of their own
    rest = (*stages[:begin], done, *stages[end:])
    body = rest[0] if len(rest) == 1 else Seq(rest)
    return Outcome(replaced(func, [(place, with_temporaries(temporaries, body))]))


def _place(stages: Sequence[Stmt], blocks: Sequence[str]) -> tuple[int, int]:
    """The first of the stages that the blocks are, and the one behind the last."""
    names = [[b.name for b in blocks_below(s)] for s in stages]
    for begin in range(len(stages)):
        end, found = begin, list[str]()
        if not names[begin]:  # laid out before
            continue
        while end < len(stages) and len(found) < len(blocks):
            found += names[end]
            end += 1
        if found == list(blocks):
            return begin, end
    raise illegal(
        "lay_out, argument 2 'blocks'",
        f"{', '.join(blocks) or 'none'}: these are no nests one behind the other",
        f"the kernel has {', '.join(n for each in names for n in each) or 'no blocks'}",
    )


def _found(
    rule: str, stages: Sequence[Stmt], begin: int, temporaries: set[Buffer], target: Target
) -> tuple[Found, int] | None:
    """A rule on stages from one on, and the first stage behind those it takes."""
    parts = parts_of(stages, temporaries)
    ends = [0]
    for part in parts:
        ends.append(ends[-1] + 1 + len(part.behind))
    if begin not in ends:
        return None
    at = ends.index(begin)
    here, stage = Stages([p.stage for p in parts], at, temporaries), parts[at].stage
    found = next((r.on(here, target) for r in GROUPS if r.name == rule), None)
    if found is None and isinstance(stage, Nest):
        singles = (*RULES, NO_POINTS)
        found = next((r.on(stage, target) for r in singles if r.name == rule), None)
        if rule == SPLIT_REDUCTION.name:
            found = SPLIT_REDUCTION.on(Whole(stage, found_for(stage, target)), target)
    elif found is None:
        others = (FALLBACK, AS_WRITTEN)
        found = next((r.on(stage, target) for r in others if r.name == rule), None)
    return None if found is None else (found, ends[at + found.count])


def with_temporaries(temporaries: Sequence[Buffer], body: Stmt) -> Stmt:
    """Statements with the memory for those temporaries that they use."""
    used = touched(body)
    for buffer in reversed(temporaries):
        if buffer in used:
            body = Allocate(buffer, body)
    return body
