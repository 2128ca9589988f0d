"""Foreign functions of this process: who provides a symbol that compiled code calls.

A symbol is ``library.function``. Its address is looked up when code that calls it is linked, so a
library may be missing as long as nothing needs it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from unity.errors import UnityError

Finder = Callable[[str], int]
"""The address of a library's function; raises `UnityError` where there is none."""

_libraries: dict[str, Finder] = {}


def provide(library: str, find: Finder) -> None:
    """Say where a library's functions are; a later call for the same name replaces an earlier."""
    _libraries[library] = find


def address(symbol: str) -> int:
    """Where a foreign function lies.

    Args:
        symbol: ``library.function``.

    Raises:
        UnityError: Nobody provides the library, it can't be loaded, or it lacks the function.
    """
    library, _, function = symbol.partition(".")
    find = _libraries.get(library)
    if find is None:
        known = ", ".join(sorted(_libraries)) or "(none)"
        raise UnityError(
            f"a kernel calls {symbol!r}, and no library {library!r} is registered",
            hint=f"register it (unity.codegen.library); registered are: {known}",
        )
    return find(function)


def call(symbol: str, returns: str, args: list[int | float], kinds: list[str]) -> int | float:
    """Call a foreign function, as the interpreter does.

    Args:
        symbol: Which.
        returns: ``void`` or a dtype's name.
        args: Numbers, addresses among them.
        kinds: The arguments' dtypes, ``address`` for an address.
    """
    result = None if returns == "void" else _C[returns]
    function = ctypes.CFUNCTYPE(result, *(_C[k] for k in kinds))(address(symbol))
    given: object = function(*args)
    return given if isinstance(given, int | float) else 0


_C: dict[str, type] = {
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
    "address": ctypes.c_void_p,
}
