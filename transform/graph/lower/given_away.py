"""Which parameters a call may write over: given away by the caller, read once."""

from __future__ import annotations

from collections import Counter

from unity.ir.aliases import aliases_of
from unity.ir.graph import Expr, Function, Var
from unity.ir.module import IRModule

from ..rewriter import BodyRewriter
from ..uses import count_uses


class OverwritingRewriter(BodyRewriter):
    """A rewriter that may let calls write over parameters (``aliases`` of `unity.ir.aliases`)."""

    def __init__(self, module: IRModule) -> None:
        super().__init__(module)
        self._given_away: set[Var] = set()
        self.uses: Counter[Var] = Counter()
        self._depth = 0

    def may_overwrite(self, e: Expr) -> bool:
        """Whether the call being rewritten may write over an operand.

        It must be a parameter that was given away, read here only; and the call must not stand in a
        nested body: a loop would write over it again and again.
        """
        return self._depth == 0 and e in self._given_away

    def function(self, f: Function) -> Function:
        """The function rewritten, its own parameters in mind."""
        self.uses = count_uses(f.body)
        given = [f.params[i] for i in aliases_of(f).values()]
        self._given_away = {p for p in given if self.uses[p] == 1}
        return super().function(f)

    def enter(self) -> None:
        """Nothing is written over in a nested body."""
        self._depth += 1

    def leave(self) -> None:
        """The nested body ends."""
        self._depth -= 1


__all__ = ["OverwritingRewriter"]
