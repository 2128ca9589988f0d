"""Outputs that a kernel surely leaves unset, or reads before it sets them, found before compiling.

Comes in: a module as written. Comes out: nothing, or an error with the place and the buffer. The
memory of an output is the compiler's, and holds anything: what a kernel does not store there is
what the result is. Outputs that take an input's memory (``inplace=``) hold that input, and are not
looked at. Let pass is what some sizes or loaded indices may make whole. Where a condition loads,
inputs are tried that hold one number throughout: one for which an output isn't whole is enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from math import prod

import numpy as np

from unity.arith import Analyzer
from unity.arith.polynomial import from_expr, to_expr
from unity.errors import Span, UnityError
from unity.ir.foreign import addressed
from unity.ir.graph import CallTir
from unity.ir.module import IRModule
from unity.ir.prim_expr import Binary, Compare, Imm, PrimExpr, PrimVar, imm
from unity.ir.stmt import Buffer, PrimFunc, Store
from unity.ir.visit import prim_loads, stmt_exprs, walk_bindings, walk_stmt
from unity.script.printer import text

from .check_temporaries import check_temporaries
from .evaluate import Data
from .stores import LISTED, Indices, Scope, Stored, stores
from .uniform import uniform_inputs

TRIED = 64
"""Choices of what inputs hold that are tried."""


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
    passed = {b for s in walk_stmt(func.body) for e in stmt_exprs(s) for b in addressed(e)}
    for buffer in outputs:
        if buffer in passed or any(n == imm(0) for n in buffer.shape):
            continue  # a C function stores there; or there is nothing to store
        known = Analyzer()
        for size in buffer.shape:
            known = known.with_extent(PrimVar("at"), imm(0), size)  # there are elements
        for data in _tried(func, buffer):
            found = list(stores(func.body, buffer, Scope(known, {}, {}, (), data, func.span)))
            why = _unset(buffer, found, known)
            if why is not None:
                written = found or _stores_to(func, buffer)
                raise _error(name, func, buffer, why, data, written[-1].span if written else None)


def _error(
    name: str, func: PrimFunc, buffer: Buffer, why: str, data: Data, span: Span | None
) -> UnityError:
    held = [f"all of {b.name!r} is {v.value}" for b, v in data.items() if b in func.buffers]
    if held:
        why = f"{why}, where {' and '.join(held)}"
        hint = "store to the same elements in an `else`, or to all of it first"
    else:
        hint = (
            "store to all of it; an output that keeps what it holds is an input given by inplace="
        )
    return UnityError(f"{name}: of the output {buffer.name!r} {why}", span or func.span, hint)


def _tried(func: PrimFunc, output: Buffer) -> Iterator[Data]:
    """What to try: nothing known, then some inputs, unless these say what elements are stored."""
    yield {}
    places = [i for s in _stores_to(func, output) for i in s.indices]
    loads = [x.buffer for i in places for x in prim_loads(i)]
    if not any(b in func.buffers for b in loads):
        yield from islice(uniform_inputs(func), TRIED)


def _stores_to(func: PrimFunc, buffer: Buffer) -> list[Store]:
    return [s for s in walk_stmt(func.body) if isinstance(s, Store) and s.buffer is buffer]


def _unset(buffer: Buffer, found: Sequence[Stored], known: Analyzer) -> str | None:
    """What of a buffer nothing is stored to, for all sizes; None if there may be nothing such."""
    if not found:
        return "nothing is stored"
    for k, size in enumerate(buffer.shape):
        ends = [s.ends[k] for s in found]
        pairs = [(e, s.known) for e, s in zip(ends, found, strict=True) if e is not None]
        if len(pairs) < len(found):
            continue
        axis = f"axis {k}, whose extent is {text(size)}"
        if all(_is_below(e[1] + 1, size, at) for e, at in pairs):
            last = {known.simplify(e[1]) for e, _ in pairs}
            where = f"behind index {text(last.pop())}" if len(last) == 1 else "at the end"
            return f"nothing is stored {where} of {axis}"
        if all(_is_below(imm(0), e[0], at) for e, at in pairs):
            return f"nothing is stored at the begin of {axis}"
    sizes = [n.value for n in buffer.shape if isinstance(n, Imm)]
    counts = [s.count for s in found if s.count is not None]
    if len(sizes) == len(buffer.shape) and len(counts) == len(found):
        total, all_ = sum(counts), prod(int(n) for n in sizes)
        if total < all_:
            return f"{total} of {all_} elements are stored at most"
    listed = [s.listed() for s in found]
    whole = [indices for indices in listed if indices is not None]
    if sizes and len(sizes) == len(buffer.shape) and len(whole) == len(found):
        return _missing([int(n) for n in sizes], whole)
    return None


def _missing(shape: Sequence[int], listed: Sequence[Indices]) -> str | None:
    """The first element that is not among those listed."""
    if prod(shape) > LISTED * len(listed):
        return None  # counted above
    stored = np.zeros(shape, np.bool_)
    for indices in listed:
        inside = np.ones(indices[0].shape, np.bool_)
        for index, size in zip(indices, shape, strict=True):
            inside &= (index >= 0) & (index < size)  # others are refused, or found at run time
        stored[tuple(index[inside] for index in indices)] = True
    if stored.all():
        return None
    at = ", ".join(str(k) for k in np.argwhere(~stored)[0])
    return f"nothing is stored to the element [{at}]"


def _is_below(e: PrimExpr, size: PrimExpr, known: Analyzer) -> bool:
    """Whether an expression is surely below a size.

    Used here is that ``a // c * c <= a``, and that a minimum is at most either of its parts.
    """
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
            case (Binary("min" | "max" as op, a, b),) if (factor > 0) == (op == "min"):
                rest = to_expr({m: k for m, k in p.items() if m != monomial})
                parts = [Binary("add", rest, Binary("mul", x, imm(factor))) for x in (a, b)]
                return any(_is_below(x, imm(0), known) for x in parts)
            case _:
                pass
    return False
