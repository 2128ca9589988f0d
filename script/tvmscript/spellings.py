"""Names of TVMScript that are other names here: of operators, scalar functions and dtypes."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from unity.ir.dtype import SHORT_NAMES

SHORT: Mapping[str, str] = {long: short for short, long in SHORT_NAMES.items()}
"""Short names of dtypes by long ones."""
OPERATIONS: Mapping[str, type[ast.operator]] = {
    "T.Add": ast.Add,
    "T.Sub": ast.Sub,
    "T.Mul": ast.Mult,
    "T.FloorDiv": ast.FloorDiv,
    "T.FloorMod": ast.Mod,
    "T.floordiv": ast.FloorDiv,
    "T.floormod": ast.Mod,
}
"""Arithmetic written as calls."""
RENAMED: Mapping[str, str] = {
    "T.sblock": "T.block",
    "T.Select": "T.select",
    "T.Min": "T.min",
    "T.Max": "T.max",
    "T.if_then_else": "T.select",
    "T.Cast": "T.cast",
    "T.Ramp": "T.ramp",
    "T.Broadcast": "T.broadcast",
    "T.power": "T.pow",
    "T.fabs": "T.abs",
    "T.nearbyint": "T.round",
    "T.thread_binding": "T.thread",
    "T.axis.S": "T.axis.spatial",
    "T.axis.R": "T.axis.reduce",
    "T.axis.scan": "T.axis.opaque",
    "T.bitwise_and": "T.and_",
    "T.bitwise_or": "T.or_",
    "T.bitwise_xor": "T.xor",
    "T.shift_left": "T.shl",
    "T.shift_right": "T.shr",
    "R.prim_value": "R.prim",
    "R.call_dps_packed": "R.call_library",
    "R.Callable": "R.Func",
    "R.str": "R.text",
    "R.Any": "R.Object",
}
"""What else is spelled differently."""
