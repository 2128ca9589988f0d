"""What an expression holds, whole: variables, loads, calls, choices and divisions.

Expressions are never changed and shared by many, so it is found once for each and kept in it.
"""

from __future__ import annotations

from typing import NamedTuple, assert_never

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
)
from unity.quick_init import setter


class Leaves(NamedTuple):
    """What an expression and everything in it are made of.

    Attributes:
        variables: Its variables.
        sizes: Its symbols of the graph level.
        loads: What it loads, outside first, with repeats.
        calls: The intrinsics that it calls; these and the following likewise.
        selects: Its choices.
        divisions: Its quotients and rests of integers.
    """

    variables: frozenset[PrimVar]
    sizes: frozenset[SizeVar]
    loads: tuple[Load, ...]
    calls: tuple[Intrinsic, ...]
    selects: tuple[Select, ...]
    divisions: tuple[Binary, ...]


_NO_VARIABLES: frozenset[PrimVar] = frozenset()
_NO_SIZES: frozenset[SizeVar] = frozenset()
_NOTHING = Leaves(_NO_VARIABLES, _NO_SIZES, (), (), (), ())


_set_leaves = setter(PrimVar, "leaves")


def leaves(e: PrimExpr) -> Leaves:
    """What an expression holds."""
    found = e.leaves
    if found is None:
        found = _found(e)
        _set_leaves(e, found)
    return found


def variables(e: PrimExpr) -> frozenset[PrimVar]:
    """The variables in an expression."""
    return leaves(e).variables


def prim_loads(e: PrimExpr) -> tuple[Load, ...]:
    """The loads in an expression, outside first."""
    return leaves(e).loads


def _found(e: PrimExpr) -> Leaves:
    match e:
        case Binary():  # first, being the most frequent
            both = _both(e.a.leaves or leaves(e.a), e.b.leaves or leaves(e.b))
            if e.op in DIVISIONS:
                variables, sizes, loads, calls, selects, divisions = both
                return Leaves(variables, sizes, loads, calls, selects, (e, *divisions))
            return both
        case Compare():
            return _both(leaves(e.a), leaves(e.b))
        case Imm():
            return _NOTHING
        case PrimVar():
            return Leaves(frozenset((e,)), _NO_SIZES, (), (), (), ())
        case SizeVar():
            return Leaves(_NO_VARIABLES, frozenset((e,)), (), (), (), ())
        case Not():
            return leaves(e.a)
        case Cast() | Broadcast():
            return leaves(e.value)
        case Select():
            variables, sizes, loads, calls, selects, divisions = _all(
                (e.condition, e.then, e.orelse)
            )
            return Leaves(variables, sizes, loads, calls, (e, *selects), divisions)
        case Ramp():
            return _both(leaves(e.base), leaves(e.stride))
        case Load():
            inside = _all(e.indices)
            inside = inside if e.predicate is None else _both(inside, leaves(e.predicate))
            variables, sizes, loads, calls, selects, divisions = inside
            return Leaves(variables, sizes, (e, *loads), calls, selects, divisions)
        case Intrinsic():
            variables, sizes, loads, calls, selects, divisions = _all(e.args)
            return Leaves(variables, sizes, loads, (e, *calls), selects, divisions)
        case _:
            assert_never(e)


def _all(parts: tuple[PrimExpr, ...]) -> Leaves:
    result = _NOTHING
    for part in parts:
        result = _both(result, leaves(part))
    return result


def _both(a: Leaves, b: Leaves) -> Leaves:
    if b is _NOTHING:
        return a
    if a is _NOTHING:
        return b
    variables, sizes, loads, calls, selects, divisions = b
    held, measured, *_ = a
    if not (loads or calls or selects or divisions) and variables <= held and sizes <= measured:
        return a
    return Leaves(
        held | variables if variables else held,
        measured | sizes if sizes else measured,
        a.loads + loads,
        a.calls + calls,
        a.selects + selects,
        a.divisions + divisions,
    )
