"""Choosing by measurement on this machine: segments, plans, and what was measured before."""

from .database import Database
from .plan import measured_resolution
from .program import Program
from .timing import assignments

__all__ = ["Database", "Program", "assignments", "measured_resolution"]
