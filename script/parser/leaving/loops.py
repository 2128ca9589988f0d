"""Loops of kernels that `break` and `continue` leave, as statements that all run to their end.

What stands behind ``if done: break`` becomes the other branch. Where it is reached by some ways
through an inner statement only, it stands under a flag, ``here``, which each exit takes down.
A loop with a break asks a flag, ``on``, before each iteration: one that counted becomes a while
that counts, so that what is left of it takes no time.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from unity.errors import Span
from unity.ir.dtype import BOOL, INT64
from unity.ir.prim_expr import Compare, Load, Not, PrimExpr, PrimVar, imm
from unity.ir.stmt import Allocate, Buffer, IfThen, Let, PrimWhile, Range, Seq, Stmt, Store

from .exits import exits

_FIRST, _ONE = (imm(0),), (imm(1),)
_NOTHING = Seq(())


@dataclass(frozen=True, slots=True)
class Leavable:
    """A loop that is being parsed, and what its exits do.

    Attributes:
        on: Whether it goes on; None if nothing breaks it.
        here: Whether an iteration does; None if no statement has to ask.
    """

    on: Buffer | None
    here: Buffer | None

    @staticmethod
    def of(body: Sequence[ast.stmt]) -> Leavable:
        """For a loop with that body."""
        breaks = any(isinstance(e, ast.Break) for e in jumps(body))
        return Leavable(
            Buffer("on", _ONE, BOOL) if breaks else None,
            Buffer("here", _ONE, BOOL) if _asks(body) else None,
        )

    def left_by(self, node: ast.Break | ast.Continue, span: Span | None) -> list[Stmt]:
        """What an exit does."""
        down = [self.on] if isinstance(node, ast.Break) else []
        return [_set(flag, imm(False, BOOL), span) for flag in (*down, self.here) if flag]

    def rest(self, stmt: Stmt) -> Stmt:
        """What stands behind a statement that some ways through leave the iteration."""
        assert self.here is not None
        return IfThen(_get(self.here), stmt)

    def iteration(self, body: Stmt) -> Stmt:
        """The body of the loop."""
        if self.here is None:
            return body
        return Allocate(self.here, Seq((_set(self.here, imm(True, BOOL)), body)))

    def while_loop(self, condition: PrimExpr, body: Stmt, span: Span | None) -> Stmt:
        """A while, whose condition is not asked again once a break left it."""
        body = self.iteration(body)
        if self.on is None:
            return PrimWhile(condition, body, span)
        again = IfThen(_get(self.on), _set(self.on, condition))
        loop = PrimWhile(_get(self.on), Seq((body, again)), span)
        return Allocate(self.on, Seq((_set(self.on, condition), loop)))

    def counted(self, var: PrimVar, over: Range, body: Stmt, span: Span | None) -> Stmt:
        """A serial loop that a break leaves."""
        assert self.on is not None
        at, end = Buffer(f"{var.name}_at", _ONE, INT64), PrimVar(f"{var.name}_end")
        more = Compare("lt", _get(at), end)
        again = IfThen(_get(self.on), Seq((_set(at, var + 1), _set(self.on, more))))
        each = Let(var, _get(at), Seq((self.iteration(body), again)))
        loop = PrimWhile(_get(self.on), each, span)
        begun = Seq((_set(at, over.begin), _set(self.on, more), loop))
        whole = over.extent if over.begin == imm(0) else over.begin + over.extent
        bound = Let(end, whole, begun)
        return Allocate(at, Allocate(self.on, bound))


def jumps(nodes: Sequence[ast.stmt]) -> list[ast.Break | ast.Continue]:
    """Every break and continue that leaves a suite."""
    return [e for e in exits(nodes) if not isinstance(e, ast.Return)]


def word_of(node: ast.Break | ast.Continue) -> str:
    """An exit as it is written."""
    return "break" if isinstance(node, ast.Break) else "continue"


def always_leaves(nodes: Sequence[ast.stmt]) -> bool:
    """Whether every way through a suite leaves it by a break or continue."""
    return any(_always(node) for node in nodes)


def is_choice(node: ast.stmt) -> bool:
    """Whether what stands behind a statement may become one of its branches."""
    if not isinstance(node, ast.If):
        return False
    then, orelse = node.body, node.orelse
    return (always_leaves(then) and not jumps(orelse)) or (
        always_leaves(orelse) and not jumps(then)
    )


def choice(
    condition: PrimExpr,
    node: ast.If,
    rest: Sequence[ast.stmt],
    scoped: Callable[[Sequence[ast.stmt]], Stmt],
    suite: Callable[[Sequence[ast.stmt]], Stmt],
    span: Span | None,
) -> Stmt:
    """An if of which one branch leaves and the other goes on with what stands behind it."""
    then, orelse = scoped(node.body), scoped(node.orelse)
    behind = Seq((orelse if always_leaves(node.body) else then, suite(rest)))
    branches = (then, behind) if always_leaves(node.body) else (behind, orelse)
    first, second = map(_plain, branches)
    if first == _NOTHING:
        return IfThen(Not(condition), second, None, span)
    return IfThen(condition, first, None if second == _NOTHING else second, span)


def _plain(s: Stmt) -> Stmt:
    """A sequence without parts that do nothing; its only part."""
    if not isinstance(s, Seq):
        return s
    parts = tuple(part for x in s.stmts if (part := _plain(x)) != _NOTHING)
    return parts[0] if len(parts) == 1 else Seq(parts)


def _always(node: ast.stmt) -> bool:
    match node:
        case ast.Break() | ast.Continue():
            return True
        case ast.If():
            return always_leaves(node.body) and always_leaves(node.orelse)
        case ast.With():
            return always_leaves(node.body)
        case _:
            return False


def _asks(nodes: Sequence[ast.stmt]) -> bool:
    """Whether some statement of a suite, or of one within it, is reached by some ways only."""
    for k, node in enumerate(nodes):
        if not jumps([node]):
            continue
        if isinstance(node, ast.Break | ast.Continue):
            return False
        behind = k + 1 < len(nodes) and not _always(node) and not is_choice(node)
        inner = [node.body, node.orelse] if isinstance(node, ast.If) else []
        inner += [node.body] if isinstance(node, ast.With) else []
        if behind or any(map(_asks, inner)):
            return True
    return False


def _get(flag: Buffer) -> Load:
    return Load(flag, _FIRST)


def _set(flag: Buffer, value: PrimExpr, span: Span | None = None) -> Store:
    return Store(flag, _FIRST, value, None, span)
