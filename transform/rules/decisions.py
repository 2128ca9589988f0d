"""What people and backends see of rules on a kernel, and how they say what else to decide."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeAlias, cast

from unity.annotated import DECISIONS
from unity.errors import UnityError
from unity.ir.stmt import PrimFunc
from unity.machine.target import Target

from ..blocks.tree import all_blocks
from .rule import Legal


@dataclass(frozen=True, slots=True)
class AppliedRule:
    """A rule on some blocks of a kernel.

    Attributes:
        rule: Its name.
        blocks: Their names.
        decisions: What it decided, by name: plain numbers, and yes or no.
        legal: What else each decision may be, where the others stay.
        passed: What other rules would have taken the blocks, and which of their steps is not known
            to be legal there.
    """

    rule: str
    blocks: tuple[str, ...]
    decisions: Mapping[str, int]
    legal: Mapping[str, Legal]
    passed: tuple[str, ...] = ()

    def __str__(self) -> str:
        """As a line: the rule with its decisions, the blocks, and why another one is not used."""
        numbers = ", ".join(f"{name}={value}" for name, value in self.decisions.items())
        line = f"{self.rule}({numbers}) on {' and '.join(self.blocks) or 'loops by hand'}"
        return "; not ".join((line, *self.passed))


Decider: TypeAlias = Callable[[AppliedRule, Target], Mapping[str, int]]
"""The decisions of a rule that a backend takes otherwise, by name; none where it agrees."""
Decisions: TypeAlias = Mapping[str, Mapping[str, int | bool]]
"""Changed decisions by name, for the rule that takes a block."""

KINDS = {"Decisions": DECISIONS}
"""`require_decisions` says what is wrong within them."""


def require_decisions(value: object) -> None:
    """Refuse what is no decisions by name by block.

    Raises:
        UnityError: It is something else.
    """
    hint = '{block: {decision: value}}, as in {"matmul": {"rows": 4}}'
    if not isinstance(value, Mapping):
        raise UnityError(f"decisions are a mapping of blocks, not {value!r}", hint=hint)
    for block, changes in cast("Mapping[object, object]", value).items():
        if not isinstance(block, str):
            raise UnityError(f"decisions are by the name of a block, not by {block!r}", hint=hint)
        if not isinstance(changes, Mapping):
            raise UnityError(
                f"decisions for the block {block!r} are by name, not {changes!r}", hint=hint
            )
        for name, decided in cast("Mapping[object, object]", changes).items():
            if not isinstance(decided, int):
                raise UnityError(
                    f"the decision {name!r} for the block {block!r} is a number, or a yes or no, "
                    f"not {decided!r}",
                    hint=hint,
                )


def decider(decide: Decider | Decisions | None) -> Decider | None:
    """Who decides otherwise than rules do: a function, or what it is to be by blocks' names."""
    if decide is None or not isinstance(decide, Mapping):
        return decide
    require_decisions(decide)
    return lambda rule, _: changes_for(rule.blocks, decide)


def over(decide: Decider | Decisions | None, decisions: Decisions) -> Decider | Decisions:
    """Decisions by blocks' names, which go before those that somebody takes already.

    Raises:
        UnityError: They are something else.
    """
    require_decisions(decisions)
    before = decider(decide)
    if before is None:
        return {block: {**changes} for block, changes in decisions.items()}
    return lambda rule, target: {**before(rule, target), **changes_for(rule.blocks, decisions)}


def changes_for(blocks: Sequence[str], decisions: Decisions) -> Mapping[str, int]:
    """What is to be decided about some blocks."""
    return {k: v for block in blocks for k, v in decisions.get(block, {}).items()}


def require_blocks(decisions: Decisions, kernels: Iterable[PrimFunc]) -> None:
    """Refuse decisions for a block that no kernel has.

    Raises:
        UnityError: There are such.
    """
    names = {b.name for func in kernels for b in all_blocks(func.body)}
    for name in decisions:
        if name not in names:
            near = get_close_matches(name, sorted(names), 3)
            raise UnityError(
                f"no kernel has a block {name!r}, for which there are decisions",
                hint=f"did you mean {', '.join(near)}?" if near else "exe.rules(kernel) names them",
            )
