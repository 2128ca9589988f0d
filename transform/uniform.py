"""What inputs may hold throughout, one number each, such that conditions that load are decided.

A kernel that leaves a part of its output unset for one of these is wrong; that none is found says
nothing. Temporaries that one statement stores to hold what that comes to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from math import nan

import numpy as np

from unity.ir.dtype import DType
from unity.ir.foreign import addressed
from unity.ir.prim_expr import Compare, Imm, Load, PrimExpr, PrimVar, imm
from unity.ir.stmt import Block, Buffer, IfThen, Let, PrimFunc, Stmt, Store
from unity.ir.visit import stmt_exprs, walk_prim, walk_stmt

from .evaluate import Data, folded


def uniform_inputs(func: PrimFunc) -> Iterator[Data]:
    """What the inputs that conditions depend on may hold, and temporaries then.

    >>> from unity.script import parse
    >>> func = parse('''
    ... @script.prim_func
    ... def relu(x: f32[Buffer, 8], y: f32[Buffer, 8]) -> None:
    ...     for i in range(8):
    ...         if x[i] > 0.0:
    ...             y[i] = x[i]
    ... ''').prim_funcs()["relu"]
    >>> [held[func.buffers[0]].value for held in uniform_inputs(func)]
    [-1.0, 0.0, 1.0, nan]
    """
    inside = list(walk_stmt(func.body))
    stored: dict[Buffer, list[PrimExpr]] = {}
    for s in inside:
        if isinstance(s, Store):
            stored.setdefault(s.buffer, []).append(s.value)
    passed = {b for s in inside for e in stmt_exprs(s) for b in addressed(e)}  # to C functions
    passed |= set(func.buffers)
    once = {b: of[0] for b, of in stored.items() if len(of) == 1 and b not in passed}
    bound = {s.var: s.value for s in inside if isinstance(s, Let)}
    decisive = list(_followed([c for s in inside if (c := _condition(s)) is not None], bound, once))
    loaded = {x.buffer for x in decisive if isinstance(x, Load)}
    loaded -= {b for x in decisive for b in _selecting(x, bound)}
    inputs = [b for b in func.buffers if b in loaded and b not in stored]
    named = {x.value for x in decisive if isinstance(x, Imm)} | {0}
    numbers = sorted({n + k for n in named if n == n for k in (-1, 0, 1)})
    for data in _choices(inputs, [*numbers, nan]) if inputs else ():
        for buffer, value in once.items():
            found = folded(value, data)
            if isinstance(found, Imm):
                data[buffer] = found
        yield data


def _followed(
    conditions: Sequence[PrimExpr],
    bound: Mapping[PrimVar, PrimExpr],
    once: Mapping[Buffer, PrimExpr],
) -> Iterator[PrimExpr]:
    """All that conditions are made of, through variables and temporaries."""
    left, seen = list(conditions), set[PrimVar | Buffer]()
    while left:
        for x in walk_prim(left.pop()):
            yield x
            of = x.buffer if isinstance(x, Load) else x if isinstance(x, PrimVar) else None
            value = bound.get(of) if isinstance(of, PrimVar) else once.get(of) if of else None
            if of is not None and value is not None and of not in seen:
                seen.add(of)
                left.append(value)


def _selecting(e: PrimExpr, bound: Mapping[PrimVar, PrimExpr]) -> set[Buffer]:
    """What is loaded to be compared with a loop's variable: it says which element is meant.

    Of such an input it is agreed that it names elements there are.
    """
    match e:
        case Compare("eq", a, b):
            sides = [list(walk_prim(x)) for x in (a, b)]
            loads = [{x.buffer for x in side if isinstance(x, Load)} for side in sides]
            loops = [any(isinstance(x, PrimVar) and x not in bound for x in s) for s in sides]
            if not (loads[0] and loads[1]):
                return (loads[0] if loops[1] else set()) | (loads[1] if loops[0] else set())
        case _:
            pass
    return set()


def _condition(s: Stmt) -> PrimExpr | None:
    match s:
        case IfThen():
            return s.condition
        case Block() | Store():
            return s.predicate
        case _:
            return None


def _choices(inputs: Sequence[Buffer], numbers: Sequence[float]) -> Iterator[dict[Buffer, Imm]]:
    """Each number in all inputs that can hold it, then in one of them; 0 in the others."""
    zero = {b: imm(0, b.dtype) for b in inputs}
    alone = [[b] for b in inputs] if len(inputs) > 1 else []
    for some, number in ((some, n) for some in chain([inputs], alone) for n in numbers):
        held = {b: v for b in some if (v := _literal(number, b.dtype)) is not None}
        if held:
            yield {**zero, **held}


def _literal(number: float, dtype: DType) -> Imm | None:
    """A number as a literal of a dtype; None where it is none of its numbers."""
    if number != number:
        return imm(nan, dtype) if dtype.kind in ("float", "bfloat") else None
    with np.errstate(all="ignore"):
        found = np.asarray(number, np.float64).astype(dtype.numpy).item()
    return imm(found, dtype) if float(found) == float(number) else None
