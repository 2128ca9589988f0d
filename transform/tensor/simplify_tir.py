"""SimplifyTir: index arithmetic in normal form, and statements that do nothing removed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from unity.arith import Analyzer
from unity.ir.module import IRModule
from unity.ir.prim_expr import (
    Binary,
    Broadcast,
    Compare,
    Imm,
    Load,
    Not,
    PrimExpr,
    PrimVar,
    Ramp,
    Select,
    SizeVar,
    imm,
)
from unity.ir.stmt import (
    Allocate,
    Assert,
    Block,
    Evaluate,
    For,
    IfThen,
    Let,
    Seq,
    Stmt,
    Store,
)
from unity.ir.visit import map_stmt, prim_loads, substitute_prim, substitute_stmt, variables

from ..blocks.access import asked_in_vain
from ..blocks.combine import combines, neutral
from ..passes import Context, Pass, Sight
from .functions import map_prim_funcs, with_body

NOTHING = Seq(())


@dataclass(frozen=True, slots=True)
class SimplifyTir(Pass):
    """Simplifies under the ranges of the loops around.

    Loops of one iteration and constants bound by `Let` are substituted; loops of none, decided
    conditions and empty statements go. A loop of at most one iteration is a condition. Conditions
    on all of a loop that it does not change are asked before it.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... n = dim("n")
    ...
    ... @script.prim_func
    ... def main(a: f32[Buffer, n * 8], c: f32[Buffer, n * 8]) -> None:
    ...     for i, j, k in T.grid(n, 8, 1):
    ...         if i * 8 + j < n * 8:
    ...             c[(i * 8 + j) // 8 * 8 + j + k] = a[i * 8 + j]
    ... ''')
    >>> print(print_module(SimplifyTir()(before, Context())), end="")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.prim_func
    def main(a: f32[Buffer, n * 8], c: f32[Buffer, n * 8]) -> None:
        for i, j in T.grid(n, 8):
            c[i * 8 + j] = a[i * 8 + j]
    """

    sees: ClassVar[Sight] = "kernel"

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each prim func by itself."""
        return map_prim_funcs(module, lambda f: with_body(f, simplified(f.body, Analyzer())))


def simplified(s: Stmt, known: Analyzer) -> Stmt:
    """The statement simplified under what is known."""
    match s:
        case For():
            return _loop(s, known)
        case IfThen():
            return _branch(s, known)
        case Let():
            value = known.simplify(s.value)
            if isinstance(value, Imm | PrimVar | SizeVar):
                return _substituted(s.body, {s.var: value}, known)
            body = simplified(s.body, known.with_value(s.var, value))
            same = value is s.value and body is s.body
            return s if same else Let(s.var, value, body, s.span)
        case Seq():
            return _sequence(s, known)
        case Allocate():
            body = simplified(s.body, known)
            if body == NOTHING:
                return NOTHING
            return s if body is s.body else Allocate(s.buffer, body, s.span)
        case Block():
            return _block(s, known)
        case Assert():
            condition = known.simplify(s.condition)
            if isinstance(condition, Imm) and condition.value:
                return NOTHING
            return s if condition is s.condition else replace(s, condition=condition)
        case Evaluate():
            value = known.simplify(s.value)
            return s if value is s.value else replace(s, value=value)
        case Store(_, _, Binary(_, Load(), Select())):
            return map_stmt(_step(s, known), lambda x: x, known.simplify)
        case _:
            return map_stmt(s, lambda x: simplified(x, known), known.simplify)


def _step(s: Store, known: Analyzer) -> Stmt:
    """A masked step of a sum in lanes: without the mask where all take part, none where none do."""
    match s.value:
        case Binary(
            op,
            Load() as here,
            Select(
                Compare("lt", Ramp(begin, Imm(int(by)), lanes), Broadcast(limit, _)), step, rest
            ),
        ) if combines(op) and by > 0 and here == Load(s.buffer, s.indices):
            last = Binary("add", begin, imm(by * (lanes - 1)))
            if known.prove(Compare("lt", last, limit)):
                return replace(s, value=replace(s.value, b=step))
            none = isinstance(rest, Broadcast) and rest.value == neutral(op, rest.value.dtype)
            return NOTHING if none and known.prove(Compare("ge", begin, limit)) else s
        case _:
            return s


def _substituted(s: Stmt, values: dict[PrimVar | SizeVar, PrimExpr], known: Analyzer) -> Stmt:
    """The statement with variables replaced, those directly within that have one value as well.

    One walk for a whole nest of such variables: kernels are large, and nests of them common.
    """
    while isinstance(s, For | Let):
        if isinstance(s, For):
            extent = known.simplify(substitute_prim(s.extent, values))
            if s.attrs or not (isinstance(extent, Imm) and extent.value == 1):
                break
            value = known.simplify(substitute_prim(s.begin, values))
        else:
            value = known.simplify(substitute_prim(s.value, values))
            if not isinstance(value, Imm | PrimVar | SizeVar):
                break
        values[s.var] = value
        s = s.body
    return simplified(substitute_stmt(s, values), known)


def _loop(s: For, known: Analyzer) -> Stmt:
    begin, extent = known.simplify(s.begin), known.simplify(s.extent)
    high = known.bounds(extent)[1]
    if high is not None and high <= 0:
        return NOTHING
    if isinstance(extent, Imm) and extent.value == 1 and not s.attrs:
        return _substituted(s.body, {s.var: begin}, known)
    if high == 1 and s.kind in ("serial", "unrolled") and not s.attrs:
        once = IfThen(Compare("gt", extent, imm(0)), substitute_stmt(s.body, {s.var: begin}))
        return simplified(once, known)
    body = simplified(s.body, known.with_extent(s.var, begin, extent))
    if body == NOTHING:
        return NOTHING
    same = begin is s.begin and extent is s.extent and body is s.body
    loop = s if same else replace(s, begin=begin, extent=extent, body=body)
    return _asked_before(loop, body, known) if isinstance(body, IfThen) else loop


def _asked_before(loop: For, branch: IfThen, known: Analyzer) -> Stmt:
    """A loop over what is done under a condition that it does not change, under the condition."""
    fixed = branch.orelse is None and loop.kind != "thread" and not loop.attrs
    if not fixed or loop.var in variables(branch.condition):
        return loop
    if not asked_in_vain(branch.condition) and not _asked_first(loop, branch.condition, known):
        return loop
    return replace(branch, then=replace(loop, body=branch.then))


def _asked_first(loop: For, condition: PrimExpr, known: Analyzer) -> bool:
    """Whether a loop asks this, which reads no memory, at least once."""
    return (known.bounds(loop.extent)[0] or 0) >= 1 and not _reads(condition)


def _reads(e: PrimExpr) -> bool:
    return bool(prim_loads(e))


def _branch(s: IfThen, known: Analyzer) -> Stmt:
    condition = known.simplify(s.condition)
    if isinstance(condition, Imm):
        if condition.value:
            return simplified(s.then, known)
        return NOTHING if s.orelse is None else simplified(s.orelse, known)
    then = simplified(s.then, known)
    orelse = None if s.orelse is None else simplified(s.orelse, known)
    orelse = None if orelse == NOTHING else orelse
    if then == NOTHING and orelse is None:
        return NOTHING
    same = condition is s.condition and then is s.then and orelse is s.orelse
    return s if same else IfThen(condition, then, orelse, s.span)


def _sequence(s: Seq, known: Analyzer) -> Stmt:
    parts: list[Stmt] = []
    for each in s.stmts:
        part = simplified(each, known)
        for one in part.stmts if isinstance(part, Seq) else (part,):
            joined = _joined(parts[-1], one, known) if parts else None
            parts[-1:] = [parts[-1], one] if parts and joined is None else [joined or one]
    if len(parts) == 1:
        return parts[0]
    same = len(parts) == len(s.stmts) and all(a is b for a, b in zip(parts, s.stmts, strict=True))
    return s if same else Seq(tuple(parts))


def _joined(a: Stmt, b: Stmt, known: Analyzer) -> Stmt | None:
    """Two statements under one condition, or under opposite ones, as one; None if they are not."""
    if not isinstance(a, IfThen) or not isinstance(b, IfThen) or _reads(a.condition):
        return None
    if a.condition == b.condition:
        then, orelse = _behind(a.then, b.then), _behind(a.orelse, b.orelse)
    elif b.condition == known.simplify(Not(a.condition)):
        then, orelse = _behind(a.then, b.orelse), _behind(a.orelse, b.then)
    else:
        return None
    assert then is not None
    return IfThen(a.condition, then, orelse, a.span)


def _behind(a: Stmt | None, b: Stmt | None) -> Stmt | None:
    """Statements that may be missing, one behind the other."""
    parts = [x for s in (a, b) if s is not None for x in (s.stmts if isinstance(s, Seq) else (s,))]
    return (parts[0] if len(parts) == 1 else Seq(tuple(parts))) if parts else None


def _block(s: Block, known: Analyzer) -> Stmt:
    """Axes keep their domains as ranges; what is bound to them is simplified outside."""
    inside = known
    for axis in s.axes:
        inside = inside.with_extent(axis.var, axis.domain.begin, axis.domain.extent)
    axes = tuple(
        axis if value is axis.value else replace(axis, value=value)
        for axis in s.axes
        for value in (known.simplify(axis.value),)
    )
    predicate: PrimExpr | None = None if s.predicate is None else known.simplify(s.predicate)
    if isinstance(predicate, Imm):
        if not predicate.value:
            return NOTHING
        predicate = None
    init = None if s.init is None else simplified(s.init, inside)
    body = simplified(s.body, inside)
    same = (
        all(a is b for a, b in zip(axes, s.axes, strict=True))
        and predicate is s.predicate
        and init is s.init
        and body is s.body
    )
    return s if same else replace(s, axes=axes, predicate=predicate, init=init, body=body)
