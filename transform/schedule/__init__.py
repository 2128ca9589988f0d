"""Schedules: how a kernel's loops are laid out on a machine.

`Schedule` is what users and tuners do it with, one of the `primitives` at a time.
`ScheduleDefault` does it by rule, from the structure of each stage; the rules are in
`unity.transform.rules`. `ScheduleByRule` comes before with rules of users and backends.
"""

from typing import TYPE_CHECKING

from unity.lazy import exports

if TYPE_CHECKING:
    from ..rules.by_default import ScheduleDefault
    from ..rules.by_rule import ScheduleByRule, ScheduleRule
    from ..rules.decisions import AppliedRule
    from ..rules.default import default_rules, default_schedule
    from .index_map import IndexMap
    from .intrinsics import register_intrinsic
    from .refs import BlockRef, Decision, LoopRef
    from .schedule import Schedule
    from .tensor_intrinsic import TensorIntrinsic
    from .trace import Instruction, Trace

__all__ = [
    "AppliedRule",
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
    "default_rules",
    "default_schedule",
    "register_intrinsic",
]

__getattr__ = exports(
    __name__,
    {
        "AppliedRule": "..rules.decisions",
        "BlockRef": ".refs",
        "Decision": ".refs",
        "IndexMap": ".index_map",
        "Instruction": ".trace",
        "LoopRef": ".refs",
        "Schedule": ".schedule",
        "ScheduleByRule": "..rules.by_rule",
        "ScheduleDefault": "..rules.by_default",
        "ScheduleRule": "..rules.by_rule",
        "TensorIntrinsic": ".tensor_intrinsic",
        "Trace": ".trace",
        "default_rules": "..rules.default",
        "default_schedule": "..rules.default",
        "register_intrinsic": ".intrinsics",
    },
)
