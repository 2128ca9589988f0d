"""Logs of TVM's tuners: read, and their tile sizes offered to kernels of ours."""

from .candidates import Candidate, ScheduleByLog, applied, candidate
from .measuring import measured
from .records import DECISIONS, Record, best, read_log, summary

__all__ = [
    "DECISIONS",
    "Candidate",
    "Record",
    "ScheduleByLog",
    "applied",
    "best",
    "candidate",
    "measured",
    "read_log",
    "summary",
]
