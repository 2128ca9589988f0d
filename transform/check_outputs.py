"""Outputs that a kernel surely leaves unset, or reads before it sets them, found before compiling.

Comes in: a module as written. Comes out: nothing, or an error with the place and the buffer. The
memory of an output is the compiler's, and holds anything: what a kernel does not store there is
what the result is. Outputs that take an input's memory (``inplace=``) hold that input, and are not
looked at. Let pass is what some sizes, conditions or loaded indices may make whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from unity.arith import Analyzer
from unity.arith.polynomial import from_expr, to_expr
from unity.arith.region import extremes
from unity.errors import Span, UnityError
from unity.ir.foreign import addressed
from unity.ir.graph import CallTir
from unity.ir.module import IRModule
from unity.ir.prim_expr import (
    Binary,
    Compare,
    Imm,
    Intrinsic,
    Load,
    PrimExpr,
    PrimVar,
    SizeVar,
    imm,
)
from unity.ir.stmt import Block, Buffer, For, Let, PrimFunc, Range, Stmt, Store
from unity.ir.visit import (
    stmt_children,
    stmt_exprs,
    substitute_prim,
    walk_bindings,
    walk_prim,
    walk_stmt,
)
from unity.script.printer import text

from .check_temporaries import check_temporaries

Values = dict[PrimVar | SizeVar, PrimExpr]


def check_outputs(module: IRModule) -> None:
    """Refuse kernels whose calls have results that hold what was in memory before.

    Args:
        module: It, as written.

    Raises:
        UnityError: A kernel reads an output before anything is stored there, or leaves a part of
            one unset for all sizes: which.

    >>> from unity.script import parse
    >>> module = parse('''
    ... n = dim("n")
    ...
    ... @script.prim_func
    ... def double(a: f32[Buffer, n, 8], c: f32[Buffer, n, 8]) -> None:
    ...     for i, j in T.grid(n, 4):
    ...         c[i, j] = a[i, j] * 2.0
    ...
    ... @script.function
    ... def main(a: f32[Tensor, n, 8]) -> f32[Tensor, n, 8]:
    ...     c = R.call_tir(double, (a,), out=f32[Tensor, n, 8])
    ...     return c
    ... ''')
    >>> try:
    ...     check_outputs(module)
    ... except UnityError as error:
    ...     print(error.message)
    double: of the output 'c' nothing is stored behind index 3 of axis 1, whose extent is 8
    """
    kernels = module.prim_funcs()
    seen: set[tuple[str, int]] = set()
    for function in module.graph_functions().values():
        for binding in walk_bindings(function):
            call = binding.value
            if not isinstance(call, CallTir):
                continue
            name, fresh = call.callee.name, len(call.out) - sum(i >= 0 for i in call.inplace)
            if name in kernels and fresh and (name, fresh) not in seen:
                seen.add((name, fresh))
                _check(name, kernels[name], kernels[name].buffers[-fresh:])


def _check(name: str, func: PrimFunc, outputs: Sequence[Buffer]) -> None:
    check_temporaries(name, func, outputs)
    given = {b for s in walk_stmt(func.body) for e in stmt_exprs(s) for b in addressed(e)}
    for buffer in outputs:
        if buffer in given or any(n == imm(0) for n in buffer.shape):
            continue  # a C function stores there; or there is nothing to store
        known = Analyzer()
        for size in buffer.shape:
            known = known.with_extent(PrimVar("at"), imm(0), size)  # there are elements
        stores = list(_stores(func.body, buffer, _Scope(known, {}, {}, func.span)))
        why = _unset(buffer, stores, known)
        if why is not None:
            raise UnityError(
                f"{name}: of the output {buffer.name!r} {why}",
                stores[-1].span if stores else func.span,
                "store to all of it; an output that keeps what it holds is an input given by "
                "inplace=",
            )


@dataclass(frozen=True, slots=True)
class _Scope:
    """What holds where a statement runs: of variables, what loops run over, what is bound."""

    known: Analyzer
    loops: Mapping[PrimVar, Range]
    bound: Values
    span: Span | None

    def of(self, e: PrimExpr) -> PrimExpr:
        """An expression over loops only."""
        return substitute_prim(e, self.bound)


@dataclass(frozen=True, slots=True)
class _Stored:
    """What one statement stores at most.

    Attributes:
        ends: The least and the greatest index of each axis; None where they are not known.
        count: How many elements; None where that is not known.
        known: Of the variables there.
        span: Its place.
    """

    ends: tuple[tuple[PrimExpr, PrimExpr] | None, ...]
    count: int | None
    known: Analyzer
    span: Span | None


def _stores(s: Stmt, buffer: Buffer, scope: _Scope) -> Iterator[_Stored]:
    """What statements store to a buffer, if all that may run does."""
    scope = replace(scope, span=getattr(s, "span", None) or scope.span)
    inner = scope
    match s:
        case Store():
            if s.buffer is buffer:
                yield _stored([scope.of(i) for i in s.indices], scope)
            return
        case For():
            over = Range(scope.of(s.begin), scope.of(s.extent))
            known = scope.known.with_extent(s.var, over.begin, over.extent)
            inner = replace(scope, known=known, loops={**scope.loops, s.var: over})
        case Let():
            inner = replace(scope, bound={**scope.bound, s.var: scope.of(s.value)})
        case Block():
            values: Values = {a.var: scope.of(a.value) for a in s.axes}
            inner = replace(scope, bound={**scope.bound, **values})
        case _:
            pass
    for child in stmt_children(s):
        yield from _stores(child, buffer, inner)


def _stored(indices: Sequence[PrimExpr], scope: _Scope) -> _Stored:
    simple = [scope.known.simplify(i) for i in indices]
    used = {x for i in simple for x in walk_prim(i) if isinstance(x, PrimVar)} & set(scope.loops)
    for r in [scope.loops[v] for v in used]:
        moving = [x for e in (r.begin, r.extent) for x in walk_prim(e)]
        if any(isinstance(x, PrimVar | Load | Intrinsic) for x in moving):
            return _Stored((None,) * len(simple), None, scope.known, scope.span)
    loops = {v: scope.loops[v] for v in used}
    extents = [r.extent.value for r in loops.values() if isinstance(r.extent, Imm)]
    even = not any(_unsteady(i) for i in simple)
    return _Stored(
        tuple(None if _unsteady(i) else extremes(i, loops, scope.known) for i in simple),
        prod(int(n) for n in extents) if even and len(extents) == len(loops) else None,
        scope.known,
        scope.span,
    )


def _unsteady(index: PrimExpr) -> bool:
    """Whether an index may take several values in one iteration of the loops, or in lanes."""
    return index.dtype.lanes > 1 or any(
        isinstance(x, Load | Intrinsic) or x.dtype.lanes > 1 for x in walk_prim(index)
    )


def _unset(buffer: Buffer, stores: Sequence[_Stored], known: Analyzer) -> str | None:
    """What of a buffer nothing is stored to, for all sizes; None if there may be nothing such."""
    if not stores:
        return "nothing is stored"
    for k, size in enumerate(buffer.shape):
        ends = [s.ends[k] for s in stores]
        pairs = [(e, s.known) for e, s in zip(ends, stores, strict=True) if e is not None]
        if len(pairs) < len(stores):
            continue
        axis = f"axis {k}, whose extent is {text(size)}"
        if all(_is_below(e[1] + 1, size, at) for e, at in pairs):
            last = {known.simplify(e[1]) for e, _ in pairs}
            where = f"behind index {text(last.pop())}" if len(last) == 1 else "at the end"
            return f"nothing is stored {where} of {axis}"
        if all(at.prove(Compare("gt", e[0], imm(0))) for e, at in pairs):
            return f"nothing is stored at the begin of {axis}"
    sizes = [n.value for n in buffer.shape if isinstance(n, Imm)]
    counts = [s.count for s in stores if s.count is not None]
    if len(sizes) == len(buffer.shape) and len(counts) == len(stores):
        total, all_ = sum(counts), prod(int(n) for n in sizes)
        if total < all_:
            return f"{total} of {all_} elements are stored at most"
    return None


def _is_below(e: PrimExpr, size: PrimExpr, known: Analyzer) -> bool:
    """Whether an expression is surely below a size; that ``a // c * c <= a`` is used here."""
    if known.prove(Compare("lt", e, size)):
        return True
    p = from_expr(known.simplify(Binary("sub", e, size)))
    for monomial, factor in p.items():
        match monomial:
            case (Binary("floordiv", a, Imm(int() as c)),) if factor > 0 and c > 1:
                rest = to_expr({m: k for m, k in p.items() if m != monomial})
                most = Binary("add", Binary("mul", rest, imm(c)), Binary("mul", a, imm(factor)))
                if known.prove(Compare("lt", most, imm(0))):
                    return True
            case _:
                pass
    return False
