"""Registering library functions of users, which are checked then; see `agreement`."""

from __future__ import annotations

from unity.transform.graph.resolve import LIBRARY_FUNCTIONS, LibraryFunction
from unity.transform.graph.resolve import register_library_function as register


def register_library_function(function: LibraryFunction, *, check: bool = True) -> LibraryFunction:
    """Make a function known; one of the same name is replaced.

    Args:
        function: The function.
        check: Whether its pattern, its oracle and the call itself are compared on random inputs.
            That can be done where its kernel is a `fixed_kernel`, of which types are known, and a
            call can be written for its pattern; the call itself is left out where the library is
            not installed.

    Raises:
        UnityError: Its inputs are names that its pattern doesn't capture, or two of the three
            differ: which ones, where and by how much.
    """
    earlier = LIBRARY_FUNCTIONS.get(function.name)
    register(function)
    if check:
        from .agreement import check_function  # imports the interpreter

        try:
            check_function(function)
        except BaseException:
            del LIBRARY_FUNCTIONS[function.name]
            if earlier is not None:
                register(earlier)
            raise
    return function
