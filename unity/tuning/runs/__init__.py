"""Who runs a program that is measured whole: this process, or a child, which may crash or hang."""

from .here import ProgramRuns, RunsHere
from .in_child import RunsInChild

__all__ = ["ProgramRuns", "RunsHere", "RunsInChild"]
