"""Calls of foreign functions from kernels: C functions that are not ours, by name and address.

Such a call is the whole value of an `Evaluate`, a `Store` or a `Let`, one call of numbers that are
no vectors (the parser brings it there): nothing is known of what it does, so no pass repeats,
drops or moves it, makes it wider, or runs it where it was not asked for. Schedules put it on
threads nowhere either: a loop that runs it is parallel only where its author wrote so.

What it reads and writes through addresses stands in the regions of the block around it.
"""

from __future__ import annotations

from collections.abc import Sequence

from unity.errors import UnityError
from unity.ir.attrs import Attrs
from unity.ir.dtype import FLOAT32, FLOAT64, INT32, INT64, DType
from unity.ir.leaves import leaves
from unity.ir.prim_expr import Intrinsic, Load, PrimExpr
from unity.ir.stmt import Buffer, PrimFunc, Stmt
from unity.ir.visiting.visit_stmt import stmt_exprs, walk_stmt

CALL_EXTERN = "call_extern"
"""The intrinsic's name; its attribute ``symbol`` says which function, ``returns`` what it gives."""
ADDRESS_OF = "address_of"
"""The address of the one element loaded by its argument; nothing is loaded."""
ABI_DTYPES = (INT32, INT64, FLOAT32, FLOAT64)
"""What foreign functions take and give by value."""


def call_extern(symbol: str, args: Sequence[PrimExpr], returns: DType | None = None) -> Intrinsic:
    """A call of a foreign function.

    Args:
        symbol: ``library.function``, as `unity.runtime.linking.foreign` knows it.
        args: Numbers of `ABI_DTYPES`, and addresses.
        returns: What it gives; None for nothing, which reads as an int32 without meaning.

    Raises:
        UnityError: An argument can't be passed by C's rules.
    """
    for i, arg in enumerate(args):
        if not is_address(arg) and arg.dtype not in ABI_DTYPES:
            raise UnityError(
                f"{symbol}: argument {i} is {arg.dtype}, which C functions are not given by value",
                hint=f"cast it to one of {', '.join(map(str, ABI_DTYPES))}",
            )
    if returns is not None and returns not in ABI_DTYPES:
        raise UnityError(f"{symbol} can't return {returns}")
    given = "void" if returns is None else str(returns)
    return Intrinsic(
        CALL_EXTERN, tuple(args), returns or INT32, Attrs(symbol=symbol, returns=given)
    )


def address_of(element: Load) -> Intrinsic:
    """The address of an element."""
    return Intrinsic(ADDRESS_OF, (element,), INT64)


def is_address(e: PrimExpr) -> bool:
    """Whether an expression is an address."""
    return isinstance(e, Intrinsic) and e.name == ADDRESS_OF


def addressed(e: PrimExpr) -> tuple[Buffer, ...]:
    """The buffers whose addresses a foreign call is given."""
    if not isinstance(e, Intrinsic) or e.name != CALL_EXTERN:
        return ()
    elements = [x for a in e.args if isinstance(a, Intrinsic) for x in a.args if is_address(a)]
    return tuple(x.buffer for x in elements if isinstance(x, Load))


def foreign_symbols(func: PrimFunc) -> tuple[str, ...]:
    """The foreign functions that a kernel calls, in order."""
    return symbols_in(func.body)


def symbols_in(body: Stmt) -> tuple[str, ...]:
    """The foreign functions that a statement and those in it call, in order."""
    exprs = (e for s in walk_stmt(body) for e in stmt_exprs(s))
    found = (foreign_symbol(x) for e in exprs for x in leaves(e).calls)
    return tuple(dict.fromkeys(s for s in found if s is not None))


def foreign_symbol(e: PrimExpr) -> str | None:
    """The function that a foreign call calls; None for any other expression."""
    if isinstance(e, Intrinsic) and e.name == CALL_EXTERN:
        return str(e.attrs["symbol"])
    return None
