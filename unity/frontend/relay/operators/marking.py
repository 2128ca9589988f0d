"""Operators that say something of a value to TVM's passes, and compute nothing."""

from __future__ import annotations

from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.ir.graph import Expr


def _same(c: RelayCall) -> Expr:
    c.drop(*c.attributes)
    return c.operands[0]


CONVERTERS: dict[str, Converter] = dict.fromkeys(
    (
        "annotation.stop_fusion",
        "annotation.cast_hint",
        "annotation.with_funcid",
        "annotation.checkpoint",
        "annotation.compiler_begin",
        "annotation.compiler_end",
        "annotation.on_device",
        "on_device",
        "device_copy",
        "debug",
    ),
    _same,
)
