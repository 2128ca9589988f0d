"""What a schedule keeps: the prim func as it is now, its trace, and what loops it handed out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

from unity.errors import UnityError
from unity.ir.marks import SCOPES
from unity.ir.prim_expr import PrimVar
from unity.ir.stmt import PrimFunc
from unity.machine.target import Target

from ..blocks.tree import Outcome, block_path, illegal
from ..blocks.trust import is_trusted
from ..scopes import require_scope
from .refs import AnyBlock, BlockRef, Decision, LoopRef, Memory
from .trace import Given, Instruction, Json, Trace, encode, token_of

Out = TypeVar("Out", LoopRef, BlockRef, Decision)


class State:
    """The bookkeeping below `Schedule`'s steps.

    Attributes:
        start: The prim func before the first step.
        func: The prim func as it is now.
        target: The machine it is for.
        trace: What was done.
        trusts: Whether some of it was not asked for its legality (`unity.transform.blocks.trust`).
    """

    def __init__(
        self,
        func: PrimFunc,
        target: Target | None = None,
        seed: int | None = None,
        decisions: Sequence[Json] = (),
    ) -> None:
        self.trusts = False
        self.start = self.func = func
        self.target = target
        self._random = Random(seed)
        self._ahead = list(decisions)
        self.trace = Trace()
        self._given: dict[str, tuple[LoopRef, PrimVar]] = {}
        self._tokens: dict[PrimVar, LoopRef] = {}
        self._drawn = 0

    def _continue(self, other: State) -> None:
        """Take over another's state; its loops are this one's too."""
        self.start, self.func, self.trace = other.start, other.func, other.trace
        self.trusts = other.trusts
        self._drawn, self._ahead = other._drawn, list(other._ahead)
        self._given, self._tokens = dict(other._given), dict(other._tokens)

    def _decisions(self, values: Sequence[int]) -> tuple[Decision, ...]:
        first = self._drawn
        self._drawn += len(values)
        return tuple(Decision(v, f"v{first + k}") for k, v in enumerate(values))

    def _next(self, legal: Callable[[Json], bool]) -> Json:
        """The next of the decisions given ahead if it is legal here; None where it is drawn."""
        given = self._ahead.pop(0) if self._ahead else None
        return given if given is not None and legal(given) else None

    def _do(self, name: str, args: Sequence[Given], done: Outcome) -> None:
        """Take over what a primitive did, and record it; nothing is given."""
        self.func = done.func
        self._note(name, args, ())

    def _loops(self, name: str, args: Sequence[Given], done: Outcome) -> tuple[LoopRef, ...]:
        """The same where loops are given, however many."""
        self.func = done.func
        return self._note(name, args, tuple(self._ref(v) for v in done.loops))

    def _loop(self, name: str, args: Sequence[Given], done: Outcome) -> LoopRef:
        """The same where one loop is given."""
        self.func = done.func
        return self._note_one(name, args, self._ref(done.loops[0]))

    def _blocks(self, name: str, args: Sequence[Given], done: Outcome) -> tuple[BlockRef, ...]:
        """The same where blocks are given, however many."""
        self.func = done.func
        return self._note(name, args, tuple(BlockRef(b) for b in done.blocks))

    def _block(self, name: str, args: Sequence[Given], done: Outcome) -> BlockRef:
        """The same where one block is given."""
        self.func = done.func
        return self._note_one(name, args, BlockRef(done.blocks[0]))

    def _note(
        self, name: str, args: Sequence[Given], outputs: tuple[Out, ...], decision: Json = None
    ) -> tuple[Out, ...]:
        """Record a step that gives a tuple."""
        tokens = tuple(token_of(o) for o in outputs)
        self._record(Instruction(name, tuple(encode(a) for a in args), tokens, decision))
        return outputs

    def _note_one(
        self, name: str, args: Sequence[Given], output: Out, decision: Json = None
    ) -> Out:
        """Record a step that gives one thing, no tuple."""
        token = (token_of(output),)
        self._record(Instruction(name, tuple(encode(a) for a in args), token, decision, one=True))
        return output

    def _record(self, step: Instruction) -> None:
        self.trace = self.trace.with_(step)
        self.trusts = self.trusts or is_trusted()

    def _ref(self, var: PrimVar) -> LoopRef:
        """The token of a loop, a new one where it has none."""
        if var not in self._tokens:
            self._tokens[var] = ref = LoopRef(f"l{len(self._tokens)}")
            self._given[ref.token] = ref, var
        return self._tokens[var]

    def _var(self, loop: LoopRef) -> PrimVar:
        ref, var = self._given.get(loop.token, (None, None))
        if ref is not loop or var is None:
            raise UnityError(
                f"the loop {loop.token!r} is of another schedule",
                hint="take it from get_loops of this one",
            )
        return var

    def _at_access(
        self, step: str, block: AnyBlock, index: int | str, kind: str
    ) -> tuple[str, int]:
        """A block's name, and which of its reads or writes is meant."""
        name = name_of(block)
        if isinstance(index, int):
            return name, index
        found = block_path(self.func, name)[1]
        names = [r.buffer.name for r in (found.reads if kind == "read" else found.writes)]
        if index not in names:
            at = 3 if step == "reindex" else 2
            raise illegal(
                f"{step}, argument {at} 'index'",
                f"{name!r} has no {kind} of {index!r}",
                f"it has {', '.join(names) or 'none'}",
            )
        return name, names.index(index)

    def _require_scope(self, step: str, scope: Memory) -> None:
        """Refuse a memory that the target does not have; without a target, a backend's own."""
        if scope not in SCOPES:
            own = () if self.target is None else self.target.scopes
            require_scope(scope, own, f"{step}, argument 'scope'")

    def _vars(self, loops: Sequence[LoopRef]) -> list[PrimVar]:
        return [self._var(loop) for loop in loops]

    def _at(self, at: LoopRef | AnyBlock) -> PrimVar | str:
        return self._var(at) if isinstance(at, LoopRef) else name_of(at)


def name_of(block: AnyBlock) -> str:
    """A block's name."""
    return block if isinstance(block, str) else block.name


def as_ref(at: LoopRef | AnyBlock) -> LoopRef | BlockRef:
    """A loop, or a block that may be given by its name."""
    return BlockRef(at) if isinstance(at, str) else at
