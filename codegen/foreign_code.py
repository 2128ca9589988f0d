"""Who has the C functions that kernels call: found when a program is compiled, told by kernel.

Comes in: kernels. Comes out: the symbols that they call and the libraries that have them, or an
error that says which kernel calls what; the linker's own would name neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from unity.errors import UnityError
from unity.ir.foreign import foreign_symbols
from unity.ir.stmt import PrimFunc
from unity.runtime.implementation import ImplementationError
from unity.runtime.linking.foreign import Provider, library_of, provider_of


@dataclass(frozen=True, slots=True)
class ForeignCode:
    """What kernels call.

    Attributes:
        symbols: ``library.function``, in order.
        libraries: Who has them, by library.
    """

    symbols: tuple[str, ...]
    libraries: Mapping[str, Provider]

    def addresses(self) -> dict[str, int]:
        """Where each function lies in this process."""
        return {s: _address(self.libraries[library_of(s)], s) for s in self.symbols}


def foreign_code(funcs: Mapping[str, PrimFunc], *, here: bool) -> ForeignCode:
    """What kernels call of others.

    Args:
        funcs: The kernels by name.
        here: Whether they are to be called in this process, so that the functions must be there.

    Raises:
        UnityError: A symbol names no library that is registered, or one that has no such function.
    """
    callers: dict[str, str] = {}
    for name, func in funcs.items():
        for symbol in foreign_symbols(func):
            callers.setdefault(symbol, name)
    libraries: dict[str, Provider] = {}
    for symbol, name in callers.items():
        try:
            provider = libraries[library_of(symbol)] = provider_of(symbol)
            if here:
                _address(provider, symbol)
        except ImplementationError as error:
            message = f"the kernel {name!r} calls {symbol!r}: {error.message}"
            raise ImplementationError(error.implementation, message, error.hint) from error
        except UnityError as error:
            message = f"the kernel {name!r} calls {symbol!r}: {error.message}"
            raise UnityError(message, funcs[name].span, error.hint) from error
    return ForeignCode(tuple(callers), libraries)


def _address(provider: Provider, symbol: str) -> int:
    return provider.address(symbol.partition(".")[2])
