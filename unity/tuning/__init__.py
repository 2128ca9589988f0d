"""Choosing by measurement on this machine: segments, plans, and what was measured before."""

from .database import Database
from .measured_program import MeasuredProgram
from .plan import measured_resolution
from .timing import assignments

__all__ = ["Database", "MeasuredProgram", "assignments", "measured_resolution"]
