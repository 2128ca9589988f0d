"""Libraries that call sites may be resolved to: shared objects and descriptions of functions."""

from unity.transform.graph.resolve import (
    LIBRARY_FUNCTIONS,
    LibraryFunction,
    fixed_kernel,
    register_library_function,
    sealed,
)

from . import openblas
from .shared_library import SharedLibrary, ThreadControl

openblas.register()

__all__ = [
    "LIBRARY_FUNCTIONS",
    "LibraryFunction",
    "SharedLibrary",
    "ThreadControl",
    "fixed_kernel",
    "register_library_function",
    "sealed",
]
