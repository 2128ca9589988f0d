"""Accesses that surely leave their buffers, found before anything is compiled.

Comes in: a prim func as written. Comes out: nothing, or an error with the place and the range. What
can't be decided (indices that are loaded, conditions around) is let pass; run-time checks find it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from unity.arith import Analyzer
from unity.arith.polynomial import from_expr
from unity.arith.region import extremes
from unity.errors import Span, UnityError
from unity.ir.prim_expr import Binary, Compare, Imm, Load, PrimExpr, PrimVar, Select, SizeVar, imm
from unity.ir.stmt import (
    Block,
    Buffer,
    Evaluate,
    For,
    IfThen,
    Let,
    PrimFunc,
    PrimWhile,
    Range,
    Stmt,
    Store,
)
from unity.ir.visit import (
    prim_children,
    prim_loads,
    stmt_children,
    stmt_exprs,
    substitute_prim,
    walk_prim,
)
from unity.script.printer import text

Values = dict[PrimVar | SizeVar, PrimExpr]


def check_accesses(name: str, func: PrimFunc) -> None:
    """Refuse a prim func with an access that is out of bounds whenever its loops run.

    Args:
        name: The prim func's.
        func: It, as written.

    Raises:
        UnityError: There is such an access: which, where, and from where to where it goes.

    >>> from unity.script import parse
    >>> func = parse('''
    ... n = dim("n")
    ...
    ... @script.prim_func
    ... def shift(a: f32[Buffer, n], c: f32[Buffer, n]) -> None:
    ...     for i in range(n):
    ...         c[i] = a[i + 1]
    ... ''').prim_funcs()["shift"]
    >>> try:
    ...     check_accesses("shift", func)
    ... except UnityError as error:
    ...     print(error.message)
    shift: index 0 of 'a' runs from 1 to n, which must stay below n
    """
    _check(name, func.body, _Scope(Analyzer(), {}, {}, func.span))


@dataclass(frozen=True, slots=True)
class _Scope:
    """What holds where a statement runs.

    Attributes:
        known: Of the variables.
        loops: What those around run over.
        bound: The values of block axes and of what `Let` binds.
        span: The nearest place in the source.
    """

    known: Analyzer
    loops: Mapping[PrimVar, Range]
    bound: Values
    span: Span | None

    def of(self, e: PrimExpr) -> PrimExpr:
        """An expression over loops only."""
        return substitute_prim(e, self.bound)

    def binding(self, values: Values) -> _Scope:
        """With variables bound."""
        return replace(self, bound={**self.bound, **{v: self.of(e) for v, e in values.items()}})


def _check(name: str, s: Stmt, scope: _Scope) -> None:
    """Check what surely runs whenever a statement does."""
    scope = replace(scope, span=getattr(s, "span", None) or scope.span)
    match s:
        case For():
            _check_loads(name, (s.begin, s.extent), scope)
            over = Range(scope.of(s.begin), scope.of(s.extent))
            inside = [x for e in (over.begin, over.extent) for x in walk_prim(e)]
            if any(isinstance(x, PrimVar | Load) for x in inside):
                return  # for some values of these it may not run at all
            known = scope.known.with_extent(s.var, over.begin, over.extent)
            loops = {**scope.loops, s.var: over}
            _check(name, s.body, replace(scope, known=known, loops=loops))
        case Block():
            if s.predicate is not None:
                return
            inner = scope.binding({a.var: a.value for a in s.axes})
            for part in (s.init, s.body):
                if part is not None:
                    _check(name, part, inner)
        case Let():
            _check_loads(name, (s.value,), scope)
            _check(name, s.body, scope.binding({s.var: s.value}))
        case IfThen() | PrimWhile():
            _check_loads(name, (s.condition,), scope)
        case Evaluate():
            return  # a prefetch may go anywhere
        case Store():
            if s.predicate is None:
                _check_loads(name, (*s.indices, s.value), scope)
                _check_access(name, s.buffer, s.indices, scope)
        case _:
            _check_loads(name, stmt_exprs(s), scope)
            for child in stmt_children(s):
                _check(name, child, scope)


def _check_loads(name: str, exprs: Sequence[PrimExpr], scope: _Scope) -> None:
    for e in exprs:
        for load in sure_loads(e):
            _check_access(name, load.buffer, load.indices, scope)


def _check_access(name: str, buffer: Buffer, indices: Sequence[PrimExpr], scope: _Scope) -> None:
    for k, (index, extent) in enumerate(zip(indices, buffer.shape, strict=True)):
        found = None if index.dtype.lanes > 1 else _range(index, scope)
        if found is None:
            continue
        low, high = found
        negative = scope.known.prove(Compare("lt", low, imm(0)))
        if negative or scope.known.prove(Compare("ge", high, extent)):
            rule = "not be negative" if negative else f"stay below {text(extent)}"
            raise UnityError(
                f"{name}: index {k} of {buffer.name!r} runs from {text(low)} to {text(high)}, "
                f"which must {rule}",
                scope.span,
                "change the loop or the index, or put a condition around the access",
            )


def sure_loads(e: PrimExpr) -> Iterator[Load]:
    """The loads that are done whenever an expression is evaluated."""
    match e:
        case Load() if e.predicate is not None:
            return
        case Select():
            yield from sure_loads(e.condition)
            return
        case Binary("and" | "or", a, _):
            yield from sure_loads(a)
            return
        case Load():
            yield e
        case _:
            pass
    for child in prim_children(e):
        yield from sure_loads(child)


def _range(index: PrimExpr, scope: _Scope) -> tuple[PrimExpr, PrimExpr] | None:
    """The least and the greatest value of an index, both taken; None if that is not known."""
    index = scope.known.simplify(scope.of(index))
    if prim_loads(index) or not _takes_its_ends(index, scope):
        return None
    return extremes(index, scope.loops, scope.known)


def _takes_its_ends(index: PrimExpr, scope: _Scope) -> bool:
    """Whether an index takes the values that its loops' ends give: a sum, or a quotient of one."""
    moving: list[PrimExpr] = []
    for monomial in from_expr(index):
        atoms = [a for a in monomial if any(x in scope.loops for x in walk_prim(a))]
        if len(atoms) > 1:
            return False
        moving += atoms
    match moving:
        case [Binary("floordiv", inner, Imm(int() as by))] if by > 0:
            return _takes_its_ends(inner, scope)
        case _:
            return all(isinstance(a, PrimVar) for a in moving)
