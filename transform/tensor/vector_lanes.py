"""One iteration of a loop written on vectors: what `VectorizeLoops` does to a body."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from unity.arith import Analyzer
from unity.arith.divisors import never_traps
from unity.ir.dtype import INT64
from unity.ir.empty_reduction import conjuncts
from unity.ir.foreign import foreign_symbol
from unity.ir.prim_expr import (
    DIVISIONS,
    Binary,
    Broadcast,
    Cast,
    Compare,
    Imm,
    Intrinsic,
    Load,
    Not,
    PrimExpr,
    PrimVar,
    Ramp,
    Select,
    SizeVar,
    imm,
)
from unity.ir.regions import add, multiply
from unity.ir.stmt import (
    Allocate,
    Assert,
    Block,
    Buffer,
    Evaluate,
    For,
    IfThen,
    Let,
    PrimWhile,
    Seq,
    Stmt,
    Store,
)
from unity.ir.visit import prim_children, prim_loads, walk_prim

from ..blocks.access import asked_in_vain
from ..blocks.tree import conjunction


class CannotVectorize(Exception):  # noqa: N818  (control flow inside the pass, not an error)
    """The loop has no vector form."""


class LaneWriter:
    """Writes statements over `lanes` values of a loop variable at once.

    Args:
        var: The loop's variable.
        begin: Its first value.
        lanes: How many there are.
        known: What is known of the variables in scope, `var` included.
    """

    def __init__(self, var: PrimVar, begin: PrimExpr, lanes: int, known: Analyzer) -> None:
        self.var = var
        self.begin = begin
        self.lanes = lanes
        self.known = known
        self._vectors: dict[PrimVar, PrimExpr] = {var: Ramp(begin, imm(1), lanes)}
        self._private: dict[Buffer, Buffer] = {}
        # What was asked of expressions, which are kept so that their ids stay their own.
        self._varying: dict[int, tuple[PrimExpr, bool]] = {}
        self._inside: dict[tuple[int, int], tuple[Analyzer, Load, bool]] = {}
        self._stored: tuple[Store, PrimExpr | None] | None = None
        self._ahead: dict[PrimExpr, PrimVar] = {}  # what the store at hand loads in all lanes

    def stmt(self, s: Stmt, mask: PrimExpr | None = None) -> Stmt:
        """The statement on vectors; `mask` says which lanes run, None for all.

        Raises:
            CannotVectorize: It has no vector form.
        """
        match s:
            case Store() | Let() if foreign_symbol(s.value) is not None:
                raise CannotVectorize  # it is called once an iteration, in their order
            case Store():
                return self._store(s, mask)
            case Seq(stmts):
                return Seq(tuple(self.stmt(each, mask) for each in stmts))
            case IfThen():
                return self._branch(s, mask)
            case Let():
                return self._let(s, mask)
            case For():
                if self._varies(s.begin) or self._varies(s.extent):
                    raise CannotVectorize
                outside, self.known = self.known, self.known.with_extent(s.var, s.begin, s.extent)
                body = self.stmt(s.body, mask)
                self.known = outside
                return replace(s, body=body)
            case Allocate():
                lanes = Binary("mul", s.buffer.shape[0], imm(self.lanes))
                wide = replace(s.buffer, shape=(self.known.simplify(lanes),))
                self._private[s.buffer] = wide
                return Allocate(wide, self.stmt(s.body, mask))
            case Block() | PrimWhile() | Assert() | Evaluate():
                raise CannotVectorize
            case _:
                assert_never(s)

    def _store(self, s: Store, mask: PrimExpr | None) -> Stmt:
        if s.predicate is not None:
            mask = _both(mask, self.expr(s.predicate, mask))
        buffer = self._private.get(s.buffer, s.buffer)
        index = self._place(s.buffer, s.indices[0], mask)
        if index.dtype.lanes == 1:
            raise CannotVectorize  # every lane would write the one element
        self._stored, self._ahead = (s, mask), {}
        value = self._wide(self.expr(s.value, mask))
        self._stored = None
        predicate = None if mask is None else self._wide(mask)
        made: Stmt = Store(buffer, (index,), value, predicate, s.span)
        for load, var in reversed(self._ahead.items()):
            made = Let(var, load, made)
        return made

    def _branch(self, s: IfThen, mask: PrimExpr | None) -> Stmt:
        parts = conjuncts(s.condition)
        same = [p for p in parts if not self._varies(p) and asked_in_vain(p, self.known)]
        asked, rest = conjunction(same), conjunction([p for p in parts if p not in same])
        if s.orelse is None and asked is not None and rest is not None:
            return self._branch(replace(s, condition=asked, then=replace(s, condition=rest)), mask)
        condition = self.expr(s.condition, mask)
        if condition.dtype.lanes == 1:
            then = self._where(condition, s.then, mask)
            orelse = None if s.orelse is None else self._where(Not(condition), s.orelse, mask)
            return IfThen(condition, then, orelse, s.span)
        var = PrimVar("mask", condition.dtype)  # the branches may change what the condition reads
        branches = [self.stmt(s.then, _both(mask, var))]
        if s.orelse is not None:
            branches.append(self.stmt(s.orelse, _both(mask, Not(var))))
        return Let(var, condition, branches[0] if len(branches) == 1 else Seq(tuple(branches)))

    def _where(self, condition: PrimExpr, s: Stmt, mask: PrimExpr | None) -> Stmt:
        """A statement where a condition holds, the same one in all lanes."""
        outside, self.known = self.known, self.known.with_condition(condition)
        done = self.stmt(s, mask)
        self.known = outside
        return done

    def _let(self, s: Let, mask: PrimExpr | None) -> Stmt:
        value = self.expr(s.value, mask)
        if value.dtype.lanes == 1:
            outside, self.known = self.known, self.known.with_value(s.var, value)
            body = self.stmt(s.body, mask)
            self.known = outside
            return Let(s.var, value, body, s.span)
        var = PrimVar(s.var.name, value.dtype)
        self._vectors[s.var] = var
        return Let(var, value, self.stmt(s.body, mask), s.span)

    def _place(self, buffer: Buffer, index: PrimExpr, mask: PrimExpr | None) -> PrimExpr:
        """The flat index of each lane; a lane has its own copy of memory allocated in the loop."""
        at = self._index(index, mask)
        if buffer not in self._private:
            return at
        if at.dtype.lanes == 1:
            return Ramp(self.known.simplify(Binary("mul", at, imm(self.lanes))), imm(1), self.lanes)
        first = Ramp(imm(0), imm(1), self.lanes)
        return Binary("add", Binary("mul", at, self._wide(imm(self.lanes))), first)

    def _index(self, index: PrimExpr, mask: PrimExpr | None) -> PrimExpr:
        """As a scalar where it does not vary, as a `Ramp` where it grows evenly."""
        return self.expr(self.known.simplify(index), mask)

    def _varies(self, e: PrimExpr) -> bool:
        match e:
            case PrimVar():
                return e in self._vectors
            case SizeVar() | Imm():
                return False
            case _:
                pass
        found = self._varying.get(id(e))
        if found is None:
            varies = isinstance(e, Load) and e.buffer in self._private
            varies = varies or any(self._varies(x) for x in prim_children(e))
            self._varying[id(e)] = found = (e, varies)
        return found[1]

    def _wide(self, e: PrimExpr) -> PrimExpr:
        return e if e.dtype.lanes > 1 else Broadcast(e, self.lanes)

    def expr(self, e: PrimExpr, mask: PrimExpr | None = None) -> PrimExpr:
        """The expression for all lanes: a scalar where it does not vary.

        Loads are predicated by the mask they stand under, the branches of a `Select` included.
        """
        if not self._varies(e) and (mask is None or not self._needs_mask(e)):
            return e
        match e:
            case PrimVar():
                return self._vectors.get(e, e)
            case Binary():
                return self._binary(e, mask)
            case Load():
                return self._load(e, mask)
            case Select():
                return self._select(e, mask)
            case Compare():
                simple = self.known.simplify(e)
                if not isinstance(simple, Compare):
                    return self.expr(simple, mask)
                a, b = self._alike(simple.a, simple.b, mask)
                return Compare(simple.op, a, b)
            case Cast():
                value = self.expr(e.value, mask)
                return Cast(e.dtype.with_lanes(self.lanes), value)
            case Intrinsic():
                args = tuple(self._wide(self.expr(a, mask)) for a in e.args)
                return replace(e, args=args, dtype=e.dtype.with_lanes(self.lanes))
            case Not():
                return Not(self.expr(e.a, mask))
            case Ramp() | Broadcast():
                raise CannotVectorize
            case SizeVar() | Imm():
                return e
            case _:
                assert_never(e)

    def _alike(self, a: PrimExpr, b: PrimExpr, mask: PrimExpr | None) -> tuple[PrimExpr, PrimExpr]:
        return self._wide(self.expr(a, mask)), self._wide(self.expr(b, mask))

    def _binary(self, e: Binary, mask: PrimExpr | None) -> PrimExpr:
        a, b = self.expr(e.a, mask), self.expr(e.b, mask)
        even = _even(e, a, b)
        if even is not None:
            return even
        if mask is not None and self._may_divide_by_zero(e):
            one = self._wide(imm(1, b.dtype.element))  # a masked lane may hold a zero
            b = Select(self._wide(mask), self._wide(b), one)
        return Binary(e.op, self._wide(a), self._wide(b))

    def _needs_mask(self, e: PrimExpr) -> bool:
        """Whether an expression must not be evaluated when no lane is active."""
        for x in walk_prim(e):
            if isinstance(x, Load) and not self._in_bounds(x):
                return True
            if isinstance(x, Binary) and self._may_divide_by_zero(x):
                return True
        return False

    def _may_divide_by_zero(self, e: Binary) -> bool:
        """Whether a lane that is off may hold the divisor zero, which nobody asked to divide by."""
        if e.op not in DIVISIONS or e.dtype.is_float or never_traps(e.b):
            return False
        if not self._varies(e.b) and not _has_load(e.b):
            return False
        low, high = self.known.bounds(e.b) if e.b.dtype == INT64 else (None, None)
        return not ((low is not None and low > 0) or (high is not None and high < 0))

    def _in_bounds(self, e: Load) -> bool:
        asked = id(self.known), id(e)
        found = self._inside.get(asked)
        if found is None:
            size = self._private.get(e.buffer, e.buffer).shape[0]
            inside = self.known.prove(e.indices[0] < size) and self.known.prove(e.indices[0] >= 0)
            self._inside[asked] = found = (self.known, e, inside)
        return found[2]

    def _load(self, e: Load, mask: PrimExpr | None) -> PrimExpr:
        if e.predicate is not None:
            mask = _both(mask, self.expr(e.predicate, mask))
        elif self._stored is not None and _is_beside(e, self._stored[0]):
            mask = self._stored[1]  # whatever is chosen there
        buffer = self._private.get(e.buffer, e.buffer)
        index = self._place(e.buffer, e.indices[0], mask)
        if mask is None or (e.predicate is None and self._in_bounds(e)):
            return Load(buffer, (index,))  # what inactive lanes read is never used
        if index.dtype.lanes == 1 and mask.dtype.lanes == 1:
            return Load(buffer, (index,), mask)
        return Load(buffer, (self._wide(index),), self._wide(mask))

    def _select(self, e: Select, mask: PrimExpr | None) -> PrimExpr:
        condition = self.expr(self.known.simplify(e.condition), mask)
        if condition.dtype.lanes == 1:
            if isinstance(condition, Imm):
                return self.expr(e.then if condition.value else e.orelse, mask)
            return Select(condition, *self._alike(e.then, e.orelse, mask))
        then = self._chosen(e.then, condition, mask)
        orelse = self._chosen(e.orelse, Not(condition), mask)
        return Select(condition, self._wide(then), self._wide(orelse))

    def _chosen(self, e: PrimExpr, condition: PrimExpr, mask: PrimExpr | None) -> PrimExpr:
        """What is chosen in some lanes; picked from memory in all of them, where all lanes may.

        Picking is an instruction or more for each lane, and a branch for it under a mask.
        """
        if not _has_load(e):
            return self.expr(e, mask)
        if self._stored is None or not _picks(e) or not self._may_load(e):
            return self.expr(e, _both(mask, condition))
        value = self._wide(self.expr(e))
        return self._ahead.setdefault(value, PrimVar("picked", value.dtype))

    def _may_load(self, e: PrimExpr) -> bool:
        """Whether all that an expression reads may be read in every lane."""
        match e:
            case Load(predicate=None):
                return all(map(self._may_load, e.indices)) and self._in_bounds(e)
            case Load():
                return False
            case Select() if not self._varies(e.condition):
                if not self._may_load(e.condition):
                    return False
                outside, found = self.known, True
                for part, holds in ((e.then, e.condition), (e.orelse, Not(e.condition))):
                    self.known = outside.with_condition(holds)
                    found = found and self._may_load(part)
                self.known = outside
                return found
            case Binary() if self._may_divide_by_zero(e):
                return False
            case _:
                return all(map(self._may_load, prim_children(e)))


def _has_load(e: PrimExpr) -> bool:
    return bool(prim_loads(e))


def _picks(e: PrimExpr) -> bool:
    """Whether an expression loads from where something that it loads says."""
    return any(_has_load(i) for load in prim_loads(e) for i in load.indices)


def _is_beside(e: Load, stored: Store) -> bool:
    """Whether a load is inside of its buffer as a store of the same index is of one as large."""
    return e.indices == stored.indices and e.buffer.shape == stored.buffer.shape


def _both(a: PrimExpr | None, b: PrimExpr) -> PrimExpr:
    if a is None or a == b:
        return b
    if a.dtype.lanes != b.dtype.lanes:
        lanes = max(a.dtype.lanes, b.dtype.lanes)
        a, b = (x if x.dtype.lanes > 1 else Broadcast(x, lanes) for x in (a, b))
    return Binary("and", a, b)


def _even(e: Binary, a: PrimExpr, b: PrimExpr) -> PrimExpr | None:
    """Sums and multiples of ramps, which stay ramps."""
    match e.op, a, b:
        case "add", Ramp(x, s, lanes), Ramp(y, t, _):
            return Ramp(add(x, y), add(s, t), lanes)
        case "add", Ramp(x, s, lanes), _ if b.dtype.lanes == 1:
            return Ramp(add(x, b), s, lanes)
        case "add", _, Ramp(x, s, lanes) if a.dtype.lanes == 1:
            return Ramp(add(a, x), s, lanes)
        case "sub", Ramp(x, s, lanes), _ if b.dtype.lanes == 1:
            return Ramp(Binary("sub", x, b), s, lanes)
        case "sub", _, Ramp(x, s, lanes) if a.dtype.lanes == 1:
            return Ramp(Binary("sub", a, x), Binary("sub", imm(0, s.dtype), s), lanes)
        case "mul", Ramp(x, s, lanes), _ if b.dtype.lanes == 1:
            return Ramp(multiply(x, b), multiply(s, b), lanes)
        case "mul", _, Ramp(x, s, lanes) if a.dtype.lanes == 1:
            return Ramp(multiply(a, x), multiply(a, s), lanes)
        case _:
            return None
