"""Implementations of call sites: what they may be, and which is taken."""

from unity.runtime.engines.engine import Compiled

from .call_site import CallSite, Candidate, scopes_of, sites_of
from .engine import ENGINES, Engine, OpSite, engine_of, register_engine
from .forms_by_record import FORMED, FormByRecord, RecordedForm, call_identity, numbered_sizes
from .library import (
    LIBRARY_FUNCTIONS,
    FixedKernel,
    LibraryFunction,
    fixed_kernel,
    library_function,
    oracles,
    register_library_function,
    sealed,
)
from .lower_library_calls import LowerLibraryCalls
from .policy import Choice, Policy, policy_of
from .policy import Resolve as ResolveOption
from .resolve import EXPLANATION, Resolve
from .seal_engines import SealEngines
from .written_calls import written_choices

__all__ = [
    "ENGINES",
    "EXPLANATION",
    "FORMED",
    "LIBRARY_FUNCTIONS",
    "CallSite",
    "Candidate",
    "Choice",
    "Compiled",
    "Engine",
    "FixedKernel",
    "FormByRecord",
    "LibraryFunction",
    "LowerLibraryCalls",
    "OpSite",
    "Policy",
    "RecordedForm",
    "Resolve",
    "ResolveOption",
    "SealEngines",
    "call_identity",
    "engine_of",
    "fixed_kernel",
    "library_function",
    "numbered_sizes",
    "oracles",
    "policy_of",
    "register_engine",
    "register_library_function",
    "scopes_of",
    "sealed",
    "sites_of",
    "written_choices",
]
