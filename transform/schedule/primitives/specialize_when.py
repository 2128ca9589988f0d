"""specialize_when: versions of a kernel, or of some of its nests, by a fact about its sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unity.arith import Analyzer
from unity.ir.dtype import BOOL
from unity.ir.empty_reduction import conjuncts
from unity.ir.prim_expr import Compare, Imm, Not, PrimExpr, SizeVar, imm
from unity.ir.stmt import Allocate, Block, For, IfThen, PrimFunc, Seq, Stmt
from unity.ir.visit import map_stmts, substitute_stmt, walk_prim, walk_stmt
from unity.script.printer import text

from ...blocks.private import own_temporaries
from ...blocks.tree import (
    Outcome,
    Path,
    Values,
    all_blocks,
    block_path,
    copied,
    driven,
    illegal,
    sequence,
)
from .over_sizes import refuse_unknown
from .specialize import settled

_WHERE = "specialize_when, argument 1 'condition'"


def specialize_when(func: PrimFunc, condition: PrimExpr, names: Sequence[str] = ()) -> Outcome:
    """Two versions of some nests: one where a fact about sizes holds, one where it does not.

    The first keeps the blocks' names and loop variables, the other one has copies. Each has
    temporaries of its own where nothing else uses them. In each a size that equals something is
    that, and what the fact decides of indices, bounds and predicates is decided. After TVM's
    ``specialize`` and Halide's method of this name, of which the latter asks at run time, too.

    Args:
        func: The prim func.
        condition: The fact: comparisons of integer arithmetic over sizes and scalars that callers
            give.
        names: Blocks; their nests, which must be neighbours, and what stands between them. All of
            the prim func if there are none.

    Raises:
        UnityError: The condition is none, or is decided already; a loop around the nests drives a
            reduction in them; a loop in them has a kind already.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... n = dim("n")
    ...
    ... @script.prim_func
    ... def main(a: f32[Buffer, n], c: f32[Buffer, n]) -> None:
    ...     for i in range(n):
    ...         with T.block("copy"):
    ...             vi = T.axis.spatial(n, i)
    ...             c[vi] = a[vi]
    ... ''').prim_funcs()["main"])
    >>> (few,) = sch.specialize_when("n >= 64")
    >>> sch.parallel(sch.get_loops("copy")[0])
    >>> print(sch.func, end="")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.prim_func
    def main(a: f32[Buffer, n], c: f32[Buffer, n]) -> None:
        if n >= 64:
            for i in T.parallel(n):
                with T.block("copy"):
                    vi = T.axis.remap("S", i)
                    c[vi] = a[vi]
        else:
            for i in range(n):
                with T.block("copy_1"):
                    vi = T.axis.remap("S", i)
                    c[vi] = a[vi]
    """
    _refuse(func, condition)
    above, stmts = _statements(func, [block_path(func, name)[0] for name in names])
    _refuse_place(above, stmts)
    own = own_temporaries(above, stmts)
    whole = sequence(stmts)
    for buffer in reversed(own):
        whole = Allocate(buffer, whole)
    other = copied(whole, func)
    versions = IfThen(condition, _where(condition, whole), _where(_opposite(condition), other))

    def go(s: Stmt) -> Stmt:
        if s is stmts[0]:
            return versions
        match s:
            case Allocate() if s.buffer in own:
                return go(s.body)
            case Seq():
                return sequence([go(x) for x in s.stmts if not any(x is y for y in stmts[1:])])
            case _:
                return map_stmts(s, go)

    return Outcome(replace(func, body=go(func.body)), (), tuple(b.name for b in all_blocks(other)))


def _refuse(func: PrimFunc, condition: PrimExpr) -> None:
    known = Analyzer()
    if condition.dtype != BOOL:
        raise illegal(_WHERE, f"it is no condition, but of {condition.dtype}")
    refuse_unknown(_WHERE, func, condition)
    for holds, word in ((condition, "always"), (_opposite(condition), "never")):
        if known.prove(holds):
            raise illegal(_WHERE, f"{text(condition)} {word} holds")


def _statements(func: PrimFunc, paths: Sequence[Path]) -> tuple[Path, tuple[Stmt, ...]]:
    """The way to the nests at the ends of paths, and these, with what stands between them."""
    if not paths:
        return (), (func.body,)
    first = paths[0]
    count = next(
        (k for k, s in enumerate(first) if any(k >= len(p) or p[k] is not s for p in paths)),
        len(first),
    )
    last = first[count - 1]
    if isinstance(last, Seq):
        at = [next(i for i, s in enumerate(last.stmts) if s is p[count]) for p in paths]
        return first[:count], last.stmts[min(at) : max(at) + 1]
    top = count - 1
    while top > 0 and isinstance(first[top - 1], For):
        top -= 1
    return first[:top], (first[top],)


def _refuse_place(above: Path, stmts: Sequence[Stmt]) -> None:
    where = "specialize_when, argument 2 'blocks'"
    inside = [x for s in stmts for x in walk_stmt(s)]
    blocks = [x for x in inside if isinstance(x, Block)]
    for s in above:
        match s:
            case Block():
                raise illegal(where, f"they stand in the block {s.name!r}")
            case For("vectorized"):
                raise illegal(where, f"{s.var.name!r} around them is vectorized")
            case For():
                for block in blocks:
                    if block.init is not None and driven(block, s.var) - {"S"}:
                        why = f"{s.var.name!r} around them drives the reduction {block.name!r}"
                        raise illegal(where, why)
            case _:
                pass
    bound = next((x for x in inside if isinstance(x, For) and x.kind == "thread"), None)
    if bound is not None:
        raise illegal(where, f"{bound.var.name!r} is bound to {bound.thread} already")


def _where(condition: PrimExpr, s: Stmt) -> Stmt:
    """A statement where a condition holds."""
    known = Analyzer().with_condition(condition)
    return settled(substitute_stmt(s, _equals(condition, known)), known)


def _equals(condition: PrimExpr, known: Analyzer) -> Values:
    """What sizes equal where a condition holds."""
    values: Values = {}
    for part in conjuncts(condition):
        match part:
            case Compare("eq", SizeVar() as size, value) | Compare("eq", value, SizeVar() as size):
                if size not in walk_prim(value):
                    values.setdefault(size, value)
            case Compare(_, SizeVar() as size, Imm()) | Compare(_, Imm(), SizeVar() as size):
                least, most = known.bounds(size)
                if least is not None and least == most:
                    values.setdefault(size, imm(least))
            case _:
                pass
    return values


def _opposite(condition: PrimExpr) -> PrimExpr:
    return Analyzer().simplify(Not(condition))
