"""What is certain of values: floats that are numbers, or not above zero; masks of the first lanes.

What is done with them takes less then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from unity.ir.dtype import INT64
from unity.ir.foreign import addressed
from unity.ir.prim_expr import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    CompareOp,
    Imm,
    Load,
    PrimExpr,
    PrimVar,
    Ramp,
    Select,
)
from unity.ir.stmt import Allocate, Buffer, Stmt, Store
from unity.ir.visiting.visit_stmt import stmt_exprs, walk_stmt


def numbers_in(body: Stmt) -> frozenset[Buffer]:
    """The temporaries of floats that never hold NaN, where what is read was written before.

    All are taken to be such, and then those left out that something else is stored to.

    >>> from unity.script import parse
    >>> kernel = parse('''
    ... @script.prim_func
    ... def peak(x: f32[Buffer, 8], y: f32[Buffer, 1]) -> None:
    ...     most = T.alloc((1,), "float32")
    ...     last = T.alloc((1,), "float32")
    ...     most[0] = 0.0
    ...     for i in range(8):
    ...         most[0] = T.fmax(most[0], x[i])
    ...         last[0] = T.max(most[0], x[i])
    ...     y[0] = most[0] + last[0]
    ... ''')["peak"]
    >>> sorted(b.name for b in numbers_in(kernel.body))
    ['most']
    """
    allocated: set[Buffer] = set()
    stored: defaultdict[Buffer, list[PrimExpr]] = defaultdict(list)
    given: set[Buffer] = set()
    for s in walk_stmt(body):
        if isinstance(s, Allocate) and s.buffer.dtype.is_float:
            allocated.add(s.buffer)
        elif isinstance(s, Store):
            stored[s.buffer].append(s.value)
        given.update(b for e in stmt_exprs(s) for b in addressed(e))
    numbers = allocated - given
    while True:
        kept = {b for b in numbers if all(is_number(e, numbers) for e in stored[b])}
        if kept == numbers:
            return frozenset(numbers)
        numbers = kept


def is_number(e: PrimExpr, numbers: Collection[Buffer]) -> bool:
    """Whether a float is certainly not NaN.

    Args:
        e: It, or lanes of such.
        numbers: Buffers that hold none.
    """
    match e:
        case Imm():
            return e.value == e.value
        case Load():
            return e.buffer in numbers
        case Broadcast(value, _):
            return is_number(value, numbers)
        case Cast(_, value):
            return not value.dtype.is_float or is_number(value, numbers)
        case Binary("fmin" | "fmax", a, b):
            return is_number(a, numbers) or is_number(b, numbers)
        case Binary("min" | "max", a, b) | Select(_, a, b):
            return is_number(a, numbers) and is_number(b, numbers)
        case _:
            return False


def is_nonpositive(e: PrimExpr) -> bool:
    """Whether a float is certainly not above zero, or NaN."""
    match e:
        case Imm():
            return not e.value > 0
        case Broadcast(value, _):
            return is_nonpositive(value)
        case Binary("min", a, b):
            return is_nonpositive(a) or is_nonpositive(b)
        case _:
            return False


def takes_first(mask: PrimExpr, known: Collection[PrimVar]) -> bool:
    """Whether a mask is on in some of the first lanes, and off behind them.

    Args:
        mask: It.
        known: Variables that are such masks.
    """
    match mask:
        case Compare("lt", Ramp(_, Imm(1), _), Broadcast()):
            return True
        case Binary("and", a, b):
            return takes_first(a, known) and takes_first(b, known)
        case _:
            return mask in known


@dataclass(frozen=True, slots=True)
class Split:
    """A mask of the first lanes, or of the others: their indices are compared with one number.

    Attributes:
        begin: The index of the first lane.
        end: What indices of the first lanes are below, or at most.
        past: Whether they may be equal to that.
        first: Whether these lanes are on, rather than the others.
    """

    begin: PrimExpr
    end: PrimExpr
    past: bool
    first: bool


_TURNED: dict[CompareOp, CompareOp] = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
"""Orders, and those of operands that changed places."""


def split_of(mask: Compare) -> Split | None:
    """What lanes a mask parts from what others; None where it is no such.

    >>> at, n = PrimVar("at"), PrimVar("n")
    >>> split = split_of(Compare("gt", Ramp(at, Imm(1, INT64), 4), Broadcast(n, 4)))
    >>> split is not None and (split.past, split.first)
    (True, False)
    """
    match mask:
        case Compare(op, Ramp(begin, Imm(1), _), Broadcast(end, _)) if op in _TURNED:
            order = op
        case Compare(op, Broadcast(end, _), Ramp(begin, Imm(1), _)) if op in _TURNED:
            order = _TURNED[op]
        case _:
            return None
    if begin.dtype != INT64:
        return None
    return Split(begin, end, past=order in ("le", "gt"), first=order in ("lt", "le"))


def is_broadcast_alone(a: PrimExpr, b: PrimExpr, c: PrimExpr) -> bool:
    """Whether a factor is read and broadcast for ``a * b + c`` alone, and the sum is in a buffer.

    The other factor is not read here, which the instruction could do itself.
    """
    factors = (a, b)
    lone = any(isinstance(v, Broadcast) and isinstance(v.value, Load) for v in factors)
    return lone and isinstance(c, Load) and not any(isinstance(v, Load) for v in factors)
