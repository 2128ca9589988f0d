"""Optional values: made, asked for, and taken."""

from __future__ import annotations

import numpy as np
import onnx

from unity.errors import UnityError
from unity.frontend.run_time.ragged import Ragged
from unity.ir.graph import Constant

from ..node import Converter, Node, Outcome, Value
from .held import Listed, Maybe, is_there, listed, present
from .types import declared_form


def _optional(node: Node) -> Outcome:
    declared = node.attribute("type")
    if not node.has(0):
        if declared is None:
            raise UnityError("has neither a value nor a type")
        whole = onnx.TypeProto()
        whole.optional_type.elem_type.CopyFrom(declared.tp)
        form = declared_form(whole, "an optional")
        if form is None:
            raise node.gap("an optional value that is neither a tensor nor a sequence")
        return Maybe(form.kind, form.is_tensor)
    held = node.outcome(0)
    if isinstance(held, Maybe):
        raise UnityError("is an optional of an optional")
    if isinstance(held, Listed | Ragged):
        return Maybe(held.kind, is_tensor=False, value=held)
    return Maybe(listed(node, (held,)).kind, is_tensor=True, value=held)


def _has_element(node: Node) -> Value:
    if not node.has(0):
        return Constant(np.asarray(False))
    held = node.outcome(0)
    return is_there(held) if isinstance(held, Maybe) else Constant(np.asarray(True))


def _get_element(node: Node) -> Outcome:
    held = node.outcome(0)
    return present(node, held) if isinstance(held, Maybe) else held


CONVERTERS: dict[str, Converter] = {
    "Optional": _optional,
    "OptionalGetElement": _get_element,
    "OptionalHasElement": _has_element,
}
