"""Results that take the storage of parameters: what a caller gives away, so that it is written to.

A graph function's attribute ``aliases`` holds pairs (result, parameter): that result *is* the
parameter's tensor after the call, and whoever calls the function must not expect the old content
any more (XLA's input_output_alias). How much is really written in place is the compiler's affair.
"""

from __future__ import annotations

from unity.errors import UnityError
from unity.ir.graph import Function
from unity.ir.types import TensorType, TupleType


def aliases_of(function: Function) -> dict[int, int]:
    """The parameter that each aliased result takes the storage of.

    Raises:
        UnityError: The attribute is no tuple of such pairs, or their types differ.
    """
    given = function.attrs.get("aliases", ())
    pairs: dict[int, int] = {}
    for pair in given if isinstance(given, tuple) else (given,):
        match pair:
            case (int() as result, int() as param) if bool not in (type(result), type(param)):
                pairs[result] = param
            case _:
                raise _error(function, f"must hold pairs (result, parameter), got {pair!r}")
    results = function.result.fields if isinstance(function.result, TupleType) else None
    types = (function.result,) if results is None else results
    for result, param in pairs.items():
        if not 0 <= result < len(types) or not 0 <= param < len(function.params):
            raise _error(function, f"({result}, {param}) is no result and parameter")
        a, b = types[result], function.params[param].type
        if not isinstance(a, TensorType) or a != b:
            name = function.params[param].name
            raise _error(function, f"result {result} is {a}, but {name!r} is {b}")
    if len(set(pairs.values())) < len(pairs):
        raise _error(function, f"a parameter has two results, {given!r}")
    return pairs


def _error(function: Function, what: str) -> UnityError:
    return UnityError(f"the attribute 'aliases' {what}", function.span)
