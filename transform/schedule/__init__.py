"""Schedules: how a kernel's loops are laid out on a machine.

`ScheduleDefault` does it by rule, from the structure of each stage; the rules are in `rules`.
"""

from .default import ScheduleDefault, schedule

__all__ = ["ScheduleDefault", "schedule"]
