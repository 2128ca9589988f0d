"""Implementations of call sites: what they may be, and which is taken."""

from .engine import ENGINES, Compiled, Engine, OpSite, engine_of, register_engine
from .library import (
    LIBRARY_FUNCTIONS,
    LibraryFunction,
    fixed_kernel,
    library_function,
    register_library_function,
    sealed,
)
from .lower_library_calls import LowerLibraryCalls
from .seal_engines import SealEngines

__all__ = [
    "ENGINES",
    "LIBRARY_FUNCTIONS",
    "Compiled",
    "Engine",
    "LibraryFunction",
    "LowerLibraryCalls",
    "OpSite",
    "SealEngines",
    "engine_of",
    "fixed_kernel",
    "library_function",
    "register_engine",
    "register_library_function",
    "sealed",
]
