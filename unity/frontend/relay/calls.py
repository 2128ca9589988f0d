"""Calls of operators as every reader makes them: in today's operators, attributes complete."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from unity.errors import Span

from .schema import complete
from .schema.legacy import upgraded
from .syntax import Attributes, Call, Constant, Expr, Op


def operator_call(
    operator: Op,
    arguments: tuple[Expr, ...],
    given: Attributes,
    span: Span | None,
    *,
    places: Mapping[str, Span] | None = None,
    before_0_8: bool = False,
) -> Call:
    """A call of an operator.

    Args:
        operator: What the source calls.
        arguments: What it calls it with.
        given: The attributes in the source.
        span: The call.
        places: Where each attribute stands.
        before_0_8: Whether the source is surely of TVM 0.7 or older.

    Raises:
        UnityError: The operator is unknown, or the call is not as it takes it.
    """
    now = upgraded(operator.name, given, len(arguments), before_0_8)
    if now.appended is not None:
        value = np.array(now.appended, np.float32)
        value.flags.writeable = False
        arguments = (*arguments, Constant(value, span))
    if now.operator != operator.name:
        operator = Op(now.operator, operator.span)
    attributes = complete(now.operator, now.attributes, len(arguments), span, places)
    return Call(operator, arguments, attributes, tuple(given), span)
