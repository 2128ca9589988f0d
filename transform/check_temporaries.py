"""Temporaries that are read before anything is stored in them, found before anything is compiled.

Comes in: a prim func as written. Comes out: nothing, or an error with the place and the buffer. Let
pass is what some value of a condition, or an earlier iteration of a loop, may have stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from unity.errors import Span, UnityError
from unity.ir.foreign import is_address
from unity.ir.prim_expr import Load, PrimExpr, PrimVar
from unity.ir.stmt import Allocate, Block, Buffer, For, IfThen, PrimFunc, PrimWhile, Stmt, Store
from unity.ir.visit import (
    leaves,
    prim_children,
    prim_loads,
    stmt_children,
    stmt_exprs,
    walk_prim,
    walk_stmt,
)

from .check_accesses import sure_loads


def check_temporaries(name: str, func: PrimFunc, outputs: Iterable[Buffer] = ()) -> None:
    """Refuse a prim func that reads what a temporary happens to hold.

    Args:
        name: The prim func's.
        func: It, as written.
        outputs: Parameters that hold nothing before, either.

    Raises:
        UnityError: Something reads a temporary that nothing was stored in: never, or, in the first
            iteration of the loops around, not yet.

    >>> from unity.script import parse
    >>> func = parse('''
    ... @script.prim_func
    ... def total(a: f32[Buffer, 8], c: f32[Buffer, 1]) -> None:
    ...     t = T.alloc((1,), "float32")
    ...     for i in range(8):
    ...         t[0] = t[0] + a[i]
    ...     c[0] = t[0]
    ... ''').prim_funcs()["total"]
    >>> try:
    ...     check_temporaries("total", func)
    ... except UnityError as error:
    ...     print(error.message)
    total: 't' is read before anything is stored in it
    """
    _Checker(name, set(outputs), set()).check(
        func.body, _Place(frozenset(), sure=True, span=func.span)
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a statement stands.

    Attributes:
        carried: What an earlier iteration of the loops around may have stored to.
        sure: Whether it runs in the first iteration of those.
        span: The nearest place in the source.
    """

    carried: frozenset[Buffer]
    sure: bool
    span: Span | None

    def within(self, loop: Stmt) -> _Place:
        """In a loop."""
        return replace(self, carried=self.carried | _stored_in(loop))


@dataclass(frozen=True, slots=True)
class _Checker:
    """Goes through a prim func in the order in which it runs.

    Attributes:
        name: The prim func's.
        temporaries: What it allocates, up to here.
        stored: What may have been stored to, up to here.
    """

    name: str
    temporaries: set[Buffer]
    stored: set[Buffer]

    def check(self, s: Stmt, place: _Place) -> None:
        """A statement and all that is in it."""
        place = replace(place, span=getattr(s, "span", None) or place.span)
        match s:
            case Allocate():
                self.temporaries.add(s.buffer)
                self.check(s.body, place)
            case For():
                bounds = [x for e in (s.begin, s.extent) for x in walk_prim(e)]
                self._read((s.begin, s.extent), place)
                moving = any(isinstance(x, PrimVar | Load) for x in bounds)
                self.check(s.body, replace(place.within(s), sure=place.sure and not moving))
            case PrimWhile():
                self._read((s.condition,), place)
                self.check(s.body, replace(place.within(s), sure=False))
            case IfThen():
                self._read((s.condition,), place)
                for branch in stmt_children(s):
                    self.check(branch, replace(place, sure=False))
            case Block():
                self.temporaries.update(s.allocations)
                inner = replace(place, sure=place.sure and s.predicate is None)
                self._read([] if s.predicate is None else [s.predicate], place)
                for part in (s.init, s.body):
                    if part is not None:
                        self.check(part, inner)
            case _:
                self._read(stmt_exprs(s), place)
                self.stored.update(_stored_by(s))
                for child in stmt_children(s):
                    self.check(child, place)

    def _read(self, exprs: Iterable[PrimExpr], place: _Place) -> None:
        for e in exprs:
            passed = _addressed(e)
            sure = {load.buffer for load in sure_loads(e)} if place.sure else set[Buffer]()
            for load in prim_loads(e):
                if load.buffer not in self.temporaries - self.stored:
                    continue
                buffer = load.buffer
                if buffer not in passed and (buffer in sure or buffer not in place.carried):
                    raise UnityError(
                        f"{self.name}: {buffer.name!r} is read before anything is stored in it",
                        place.span,
                        "store to it first; a sum starts in `with T.init():` of its block",
                    )


def _stored_in(s: Stmt) -> frozenset[Buffer]:
    """What may be stored to within a statement, of what lives longer than an iteration of it."""
    inside = list(walk_stmt(s))
    own = {x.buffer for x in inside if isinstance(x, Allocate)}
    own |= {b for x in inside if isinstance(x, Block) for b in x.allocations}
    return frozenset(b for x in inside for b in _stored_by(x)) - own


def _stored_by(s: Stmt) -> set[Buffer]:
    """What a statement itself stores to, or gives the address of."""
    found = {b for e in stmt_exprs(s) for b in _addressed(e)}
    return found | {s.buffer} if isinstance(s, Store) else found


def _addressed(e: PrimExpr) -> set[Buffer]:
    """The buffers whose addresses an expression takes."""
    given = [a for x in leaves(e).calls if is_address(x) for a in prim_children(x)]
    return {a.buffer for a in given if isinstance(a, Load)}
