"""Schedules: how a kernel's loops are laid out on a machine.

`ScheduleDefault` does it by rule, from the structure of each stage; the rules are in `rules`.
`ScheduleByRule` comes before with rules of users and backends, made of steps of a `Schedule`.
`Schedule` is what users and tuners do it with, one of the `primitives` at a time.
"""

from .by_rule import ScheduleByRule, ScheduleRule
from .default import ScheduleDefault, default_schedule
from .index_map import IndexMap
from .intrinsics import register_intrinsic
from .refs import BlockRef, Decision, LoopRef
from .schedule import Schedule
from .tensor_intrinsic import TensorIntrinsic
from .trace import Instruction, Trace

__all__ = [
    "BlockRef",
    "Decision",
    "IndexMap",
    "Instruction",
    "LoopRef",
    "Schedule",
    "ScheduleByRule",
    "ScheduleDefault",
    "ScheduleRule",
    "TensorIntrinsic",
    "Trace",
    "default_schedule",
    "register_intrinsic",
]
