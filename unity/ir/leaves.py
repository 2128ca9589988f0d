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


def leaves(e: PrimExpr) -> Leaves:
    """What an expression holds."""
    try:
        return e.leaves
    except AttributeError:
        found = _found(e)
        object.__setattr__(e, "leaves", found)
        return found


def variables(e: PrimExpr) -> frozenset[PrimVar]:
    """The variables in an expression."""
    return leaves(e).variables


def prim_loads(e: PrimExpr) -> tuple[Load, ...]:
    """The loads in an expression, outside first."""
    return leaves(e).loads


def _found(e: PrimExpr) -> Leaves:
    match e:
        case Binary():
            both = _both(leaves(e.a), leaves(e.b))
            if e.op in DIVISIONS:
                return both._replace(divisions=(e, *both.divisions))
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
            inside = _all((e.condition, e.then, e.orelse))
            return inside._replace(selects=(e, *inside.selects))
        case Ramp():
            return _both(leaves(e.base), leaves(e.stride))
        case Load():
            inside = _all(e.indices)
            inside = inside if e.predicate is None else _both(inside, leaves(e.predicate))
            return inside._replace(loads=(e, *inside.loads))
        case Intrinsic():
            inside = _all(e.args)
            return inside._replace(calls=(e, *inside.calls))
        case _:
            assert_never(e)


def _all(parts: tuple[PrimExpr, ...]) -> Leaves:
    result = _NOTHING
    for part in parts:
        result = _both(result, leaves(part))
    return result


def _both(a: Leaves, b: Leaves) -> Leaves:
    if a is _NOTHING:
        return b
    if b is _NOTHING:
        return a
    variables, sizes, loads, calls, selects, divisions = b
    plain = not (loads or calls or selects or divisions)
    if plain and variables <= a.variables and sizes <= a.sizes:
        return a
    return Leaves(
        a.variables | variables if variables else a.variables,
        a.sizes | sizes if sizes else a.sizes,
        a.loads + loads,
        a.calls + calls,
        a.selects + selects,
        a.divisions + divisions,
    )
