"""PartitionLoops: whole tiles without conditions, and what is left of them by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from unity.arith import Analyzer
from unity.arith.region import greater, lesser, pruned_minimum
from unity.ir.marks import ASKED, TAIL, TILES
from unity.ir.module import IRModule
from unity.ir.prim_expr import Binary, Compare, Imm, PrimExpr, imm
from unity.ir.stmt import Allocate, Block, For, IfThen, PrimFunc, Stmt
from unity.ir.visit import (
    bound_in,
    map_stmts,
    rewrite_stmt,
    substitute_prim,
    substitute_stmt,
    variables,
    walk_stmt,
)

from ..blocks.conditions import Condition, asked_in, conditions_of, lasting, without_parts
from ..blocks.tree import (
    NOTHING,
    Path,
    Values,
    all_blocks,
    conjunction,
    known_at,
    renewed,
    replaced,
    sequence,
)
from ..passes import Context, Pass, Sight
from .functions import map_prim_funcs, with_body
from .sum_steps import with_predicates
from .tails.border_loops import apart, begun_late
from .tails.border_tiles import at_border
from .tails.last_iteration import at_end
from .tails.tail_tiles import accesses_in, tiered


@dataclass(frozen=True, slots=True)
class PartitionLoops(Pass):
    """Loops over tiles run over those that lie inside whole, then over the one that does not.

    The predicate that `split` leaves with a factor that does not divide an extent is so met once
    outside what runs often. A loop on threads stays one, and asks in each iteration, as does the
    one over a thread's tasks; so does one whose tail is to be `ASKED` (`unity.ir.marks`). A loop
    whose last iterations do nothing at all is cut short. Blocks with an init are left as they are:
    `decompose_reduction` comes before.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... n = dim("n")
    ...
    ... @script.prim_func
    ... def main(a: f32[Buffer, n], c: f32[Buffer, n]) -> None:
    ...     for i in range((n + 7) // 8):
    ...         for j in T.vectorized(8):
    ...             with T.block("copy"):
    ...                 vi = T.axis.spatial(n, i * 8 + j)
    ...                 T.where(i * 8 + j < n)
    ...                 c[vi] = a[vi]
    ... ''')
    >>> print(print_module(PartitionLoops()(before, Context())), end="")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.prim_func
    def main(a: f32[Buffer, n], c: f32[Buffer, n]) -> None:
        for i in range(n // 8):
            for j in T.vectorized(8):
                with T.block("copy"):
                    vi = T.axis.spatial(n, i * 8 + j)
                    c[vi] = a[vi]
        if n % 8 > 0:
            for j in T.vectorized(8):
                with T.block("copy_1"):
                    vi = T.axis.spatial(n, n // 8 * 8 + j)
                    T.where(j < n % 8)
                    c[vi] = a[vi]

    Attributes:
        depth: How many loops may be partitioned within what is left of others.
    """

    sees: ClassVar[Sight] = "kernel"

    depth: int = 3

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each prim func by itself."""
        return map_prim_funcs(module, self.partition)

    def partition(self, func: PrimFunc) -> PrimFunc:
        """The prim func with its loops partitioned; itself if there is nothing to gain."""
        func = with_body(func, with_predicates(func.body))
        if not any(isinstance(s, Block) and s.predicate is not None for s in walk_stmt(func.body)):
            return func
        repeats = not {"overwritable", "noalias"} & set(func.attrs)
        return with_body(func, _Loops(repeats).stmt(func.body, (), self.depth))


@dataclass(frozen=True, slots=True)
class _Loops:
    """The loops of a prim func.

    Attributes:
        repeats: Whether rows may be computed twice: no input may be written over.
    """

    repeats: bool

    def stmt(self, s: Stmt, above: Path, depth: int) -> Stmt:
        """The statement, with so many loops partitioned within what is left of others at most."""
        if isinstance(s, Block):
            return s
        if isinstance(s, For) and s.kind in ("serial", "unrolled"):
            runs = apart(s, above)
            if runs is not None:
                return sequence([self.stmt(run, above, depth) for run in runs])
            s = begun_late(s, above)
            tiles = at_border(s, above, repeats=self.repeats) if s.kind == "serial" else None
            if tiles is not None:
                return self.stmt(tiles, above, depth)
        if isinstance(s, For) and s.kind in ("serial", "parallel"):
            conditions = conditions_of(s, above)
            hot = [c for c in conditions if c.is_hot]
            ending = [c for c in conditions if not c.inner]
            if ending and any(c.inner for c in hot):  # one is met where the loop ends
                s = _cut_short(s, above, ending)
                conditions = conditions_of(s, above)
                hot = [c for c in conditions if c.is_hot]
            if hot and depth > 0 and s.attrs.get(TAIL) != ASKED:
                return self._apart(s, above, depth, conditions, hot)
            if depth > 0 and (s.kind == "parallel" or (_is_run(above) and not conditions)):
                return self._asked(s, above, depth)
            s = _cut_short(s, above, conditions)
        elif isinstance(s, For) and s.kind == "unrolled":
            s = _cut_short(s, above, conditions_of(s, above))
            conditions = conditions_of(s, above)
            hot = [c for c in conditions if c.is_hot]
            if hot and all(isinstance(c.whole, Imm) for c in hot):
                return self._apart(s, above, depth, conditions, hot)
            if hot and depth > 0 and not _picks_registers(s):
                return self._apart(replace(s, kind="serial"), above, depth, conditions, hot)
        return map_stmts(s, lambda x: self.stmt(x, (*above, s), depth))

    def _asked(self, loop: For, above: Path, depth: int) -> Stmt:
        """A loop over tasks that asks in each iteration whether all of it lies inside."""
        found = asked_in(loop, above)
        inside = (*above, loop)
        if not found:
            return replace(loop, body=self.stmt(loop.body, inside, depth))
        names, bound = {b.name for b in all_blocks(loop.body)}, bound_in(loop)
        condition = conjunction(list(dict.fromkeys(c for _, _, c in found)))
        assert condition is not None
        condition = known_at(inside).simplify(condition)
        rest = _where_not(condition, renewed(loop.body, names, bound), known_at(inside))
        rest = self.stmt(rest, inside, depth - 1)
        whole = self.stmt(without_parts(loop.body, [(b, p) for b, p, _ in found]), inside, depth)
        return replace(loop, body=IfThen(condition, whole, rest))

    def _main(self, loop: For, above: Path, depth: int, again: bool) -> Stmt:
        """What lies inside whole; `again` where other conditions fail before its end."""
        if again:
            return self.stmt(loop, above, depth - 1)
        return replace(loop, body=self.stmt(loop.body, (*above, loop), depth))

    def _apart(
        self,
        loop: For,
        above: Path,
        depth: int,
        conditions: Sequence[Condition],
        hot: Sequence[Condition],
    ) -> Stmt:
        known = known_at((*above, loop))
        first = loop.begin
        last = known.simplify(Binary("add", first, loop.extent))
        numbers = [c.whole for c in hot if isinstance(c.whole, Imm)]
        whole = _least(numbers or [c.whole for c in hot], known)
        dropped = [c for c in conditions if known.prove(Compare("ge", c.whole, whole))]
        body = _without(loop.body, dropped)
        names, bound = {b.name for b in all_blocks(loop.body)}, bound_in(loop)
        never = [c.block for c in conditions if known.prove(Compare("le", c.some, whole))]
        some = _only(loop.body, never)
        if loop.extent == imm(1):
            some = substitute_stmt(some, {loop.var: first})
        if loop.kind == "parallel":
            rest = renewed(some, names, bound)
            inner = self.stmt(body, (*above, loop), depth)
            if isinstance(whole, Imm) and known.prove(Compare("ge", whole, last - 1)):
                rest = substitute_stmt(rest, {loop.var: whole})
            rest = tiered(replace(loop, body=rest), above, known) or rest
            rest = self.stmt(rest, (*above, loop), depth - 1)
            inside = Compare("lt", loop.var, whole)
            return replace(loop, body=IfThen(inside, inner, rest))
        known = known_at(above)
        cut = _clamped(whole, first, last, known)
        ending = next((some for some in (hot, conditions) if _in_all(some, loop)), ())
        if ending:
            last = pruned_minimum(last, _greatest([c.some for c in ending], known), known)
        main = replace(loop, extent=known.simplify(Binary("sub", cut, first)), body=body)
        whole_part = self._main(main, above, depth, any(c not in dropped for c in hot))
        var = replace(loop.var)
        left = known.simplify(Binary("sub", last, cut))
        if not all_blocks(some) or known.prove(Compare("le", last, cut)):
            return whole_part
        end = at_end(replace(loop, body=some), hot, cut, last, known)
        if end is not None:
            return sequence([whole_part, self.stmt(renewed(end, names, bound), above, depth - 1)])
        rest = renewed(some, names, bound)
        rest = substitute_stmt(rest, {loop.var: var})
        if isinstance(cut, Imm) and left == imm(1):
            rest = substitute_stmt(rest, {var: cut})
            return sequence([whole_part, self.stmt(rest, above, depth - 1)])
        tail = replace(loop, var=var, begin=cut, extent=left, body=rest)
        if any(not known.equal(c.whole, whole) for c in hot):  # others hold for longer
            return sequence([whole_part, self.stmt(tail, above, depth - 1)])
        if not isinstance(left, Imm):
            tail = replace(tail, body=tiered(tail, above, known_at((*above, tail))) or rest)
        tail = replace(tail, body=self.stmt(tail.body, (*above, tail), depth - 1))
        return sequence([whole_part, tail])


def _is_run(above: Path) -> bool:
    """Whether a loop is over the tasks of a thread: the innermost one around it is on threads."""
    around = next((s for s in reversed(above) if isinstance(s, For)), None)
    return around is not None and around.kind == "parallel"


def _picks_registers(loop: For) -> bool:
    """Whether a loop tells which place of a temporary in registers is meant."""
    inside = [s.buffer for s in walk_stmt(loop) if isinstance(s, Allocate)]
    for block in all_blocks(loop.body):
        values: Values = {a.var: a.value for a in block.axes}
        for access in accesses_in(block):
            if access.buffer.scope not in ("local", TILES) or any(
                access.buffer is b for b in inside
            ):
                continue
            if any(loop.var in variables(substitute_prim(i, values)) for i in access.indices):
                return True
    return False


def _where_not(condition: PrimExpr, s: Stmt, known: Analyzer) -> Stmt:
    """The statement where a condition does not hold, if that leaves one value to an expression.

    The last columns, where a loop over them and chunks of rows are one (``i // 2 < 3``).
    """
    match condition:
        case Compare("lt", Binary() as e, Imm(int(limit)) as last) if known.bounds(e)[1] == limit:
            return rewrite_stmt(s, None, lambda x: last if x == e else None)
        case _:
            return s


def _cut_short(loop: For, above: Path, conditions: Sequence[Condition]) -> For:
    """The loop without its last iterations, where none of its blocks runs."""
    if loop.kind not in ("serial", "unrolled"):
        return loop
    known = known_at(above)
    last = Binary("add", loop.begin, loop.extent)
    for condition in conditions:
        same = [c for c in conditions if known.equal(c.some, condition.some)]
        if not _in_all(same, loop) or known.prove(Compare("ge", condition.some, last)):
            continue
        left = lesser(last, condition.some, known)
        extent = known.simplify(Binary("max", Binary("sub", left, loop.begin), imm(0)))
        if loop.kind == "unrolled" and not isinstance(extent, Imm):
            continue
        surely = [c for c in same if known.equal(c.whole, c.some)]
        return replace(loop, extent=extent, body=_without(loop.body, surely))
    return loop


def _only(s: Stmt, never: Sequence[Block]) -> Stmt:
    """The statement without blocks that do not run."""
    if not never:
        return s
    nothing: list[tuple[Stmt, Stmt]] = [(b, NOTHING) for b in never]
    return replaced(PrimFunc((), s), nothing).body


def _in_all(conditions: Sequence[Condition], loop: For) -> bool:
    """Whether every block below a loop that leaves something behind has one of the conditions."""
    return all(any(c.block is b for c in conditions) for b in lasting(loop.body))


def _without(s: Stmt, conditions: Sequence[Condition]) -> Stmt:
    """The statement without conditions that hold."""
    return without_parts(s, [(c.block, c.part) for c in conditions])


def _clamped(e: PrimExpr, low: PrimExpr, high: PrimExpr, known: Analyzer) -> PrimExpr:
    found = pruned_minimum(e, high, known)
    if known.prove(Compare("ge", found, low)):
        return found
    return known.simplify(Binary("max", found, low))


def _least(values: Sequence[PrimExpr], known: Analyzer) -> PrimExpr:
    found = values[0]
    for value in values[1:]:
        found = pruned_minimum(found, value, known)
    return found


def _greatest(values: Sequence[PrimExpr], known: Analyzer) -> PrimExpr:
    found = values[0]
    for value in values[1:]:
        found = greater(found, value, known)
    return found
