"""Schedules: how a kernel's loops are laid out on a machine.

`ScheduleDefault` does it by rule, from the structure of each stage; the rules are in `rules`.
`ScheduleByRule` comes before with rules of users and backends, made of steps of a `Schedule`.
`Schedule` is what users and tuners do it with, one of the `primitives` at a time.
"""

from typing import TYPE_CHECKING

from unity.lazy import exports

if TYPE_CHECKING:
    from .by_default import ScheduleDefault
    from .by_rule import ScheduleByRule, ScheduleRule
    from .default import default_schedule
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

__getattr__ = exports(
    __name__,
    {
        "BlockRef": ".refs",
        "Decision": ".refs",
        "IndexMap": ".index_map",
        "Instruction": ".trace",
        "LoopRef": ".refs",
        "Schedule": ".schedule",
        "ScheduleByRule": ".by_rule",
        "ScheduleDefault": ".by_default",
        "ScheduleRule": ".by_rule",
        "TensorIntrinsic": ".tensor_intrinsic",
        "Trace": ".trace",
        "default_schedule": ".default",
        "register_intrinsic": ".intrinsics",
    },
)
