"""Foreign functions of this process: who provides a symbol that compiled code calls.

A symbol is ``library.function``. Its address is looked up when code that calls it is linked, so a
library may be missing as long as nothing needs it.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Protocol

from unity.errors import UnityError

if TYPE_CHECKING:
    from unity.runtime.linking.foreign_library import LibraryRecord


class Provider(Protocol):
    """A library, as symbols are looked up in it and as artifacts describe it."""

    def address(self, function: str) -> int:
        """Where a function lies; raises `UnityError` where there is none."""
        ...

    def record(self) -> LibraryRecord:
        """How it is found again."""
        ...

    def serial_object(self) -> bytes:
        """Object code that goes with it; empty if it needs none."""
        ...


_libraries: dict[str, Provider] = {}


def provide(library: str, provider: Provider) -> None:
    """Say who has a library's functions; a later call for the same name replaces an earlier."""
    _libraries[library] = provider


def library_of(symbol: str) -> str:
    """The library of a symbol ``library.function``."""
    return symbol.partition(".")[0]


def registered(library: str) -> Provider | None:
    """Who has a library's functions; None if nobody said so."""
    return _libraries.get(library)


def provider_of(symbol: str) -> Provider:
    """Who has a foreign function.

    Args:
        symbol: ``library.function``.

    Raises:
        UnityError: Nobody provides the library, or the symbol names none.
    """
    library = library_of(symbol)
    provider = _libraries.get(library)
    if provider is None:
        known = ", ".join(sorted(_libraries)) or "(none)"
        if "." not in symbol:
            raise UnityError(
                f"{symbol!r} names no library",
                hint=f"write T.call_extern('library.{symbol}', ...); registered are: {known}",
            )
        raise UnityError(
            f"no library {library!r} is registered",
            hint="register it: unity.codegen.library.SharedLibrary(name, files).register(); "
            f"registered are: {known}",
        )
    return provider


def address(symbol: str) -> int:
    """Where a foreign function lies.

    Raises:
        UnityError: Nobody provides the library, it can't be loaded, or it lacks the function.
    """
    return provider_of(symbol).address(symbol.partition(".")[2])


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
