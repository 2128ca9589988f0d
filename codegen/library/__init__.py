"""Libraries that call sites may be resolved to: shared objects and descriptions of functions."""

from unity.runtime.linking.foreign_library import PackageFiles, ThreadControl
from unity.transform.graph.resolve import (
    LIBRARY_FUNCTIONS,
    LibraryFunction,
    fixed_kernel,
    sealed,
)

from . import openblas
from .registration import register_library_function
from .shared_library import SharedLibrary


def register_libraries() -> None:
    """Make known what Unity describes by itself."""
    openblas.register()


__all__ = [
    "LIBRARY_FUNCTIONS",
    "LibraryFunction",
    "PackageFiles",
    "SharedLibrary",
    "ThreadControl",
    "fixed_kernel",
    "register_libraries",
    "register_library_function",
    "sealed",
]
