"""Operators with an effect and no result: `print` and `assert_op`. Type rules; machines run them.

They are impure: none is removed, and they keep the order in which they are written, among each
other and among calls of the host (``R.call_packed``). Relax has both under these names.
"""

from __future__ import annotations

from unity.ir.types import PrimType, TensorType, TupleType, Type

from .attribute import TEXT
from .registry import OpCall, OpDef, Param, attr

PRINT, ASSERT = "print", "assert_op"
EFFECTS = frozenset({PRINT, ASSERT})
_PRINT_DOC = """\
Prints values when the program comes to it: ``format.format(*values)``, or without a format all of
them with spaces between, as Python's print does. In programs it takes them one by one,
``R.print(x, y, format="{} {}")``, or is written ``print(x, y)``. Tensors of rank 0 are numbers.
"""
_ASSERT_DOC = """\
Stops the program with an error where a scalar bool is false; the message is made as `print` makes
a line. In programs ``R.assert_op(condition, x, format="got {}")``, or ``assert condition, "text"``.
"""


def _infer_print(call: OpCall) -> Type:
    if not isinstance(call.args[0], TupleType):
        raise call.error("takes a tuple of values")
    return TupleType(())


def _infer_assert(call: OpCall) -> Type:
    match call.args[0]:
        case TensorType(() | 0 | None, kind) if kind is None or kind.kind == "bool":
            pass
        case PrimType(kind) if kind.kind == "bool":
            pass
        case found:
            raise call.error(
                f"the condition must be a scalar bool, got {found}",
                hint="R.all(...) and R.any(...) make one of a tensor of bools",
            )
    if not isinstance(call.args[1], TupleType):
        raise call.error("takes a tuple of values")
    return TupleType(())


_VALUES, _FORMAT = Param("values", "value"), attr("format", TEXT, "")
OPS: tuple[OpDef, ...] = (
    OpDef(PRINT, (_VALUES, _FORMAT), _infer_print, None, _PRINT_DOC, pure=False),
    OpDef(
        ASSERT,
        (Param("condition", "value"), _VALUES, _FORMAT),
        _infer_assert,
        None,
        _ASSERT_DOC,
        pure=False,
    ),
)
