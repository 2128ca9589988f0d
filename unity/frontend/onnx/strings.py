"""Strings as numbers: a program sees codes, and whoever calls it strings.

A model's own strings (labels, categories, keys) have the codes 0, 1, 2 ... in the order in which
they come up while it is imported. Strings that come in at run time and are none of these get codes
behind them, each its own (`unity.runtime.host_forms`). So what compares, moves and looks up
strings does so with codes, and what looks into them comes before the program (`text.steps`).
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import numpy as np
import onnx

from unity.errors import UnityError
from unity.ir.dtype import Array

STRING = onnx.TensorProto.STRING
MOVING = frozenset({
    "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Concat", "Gather",
    "GatherElements", "GatherND", "Slice", "Expand", "Tile", "Where", "Split",
})  # fmt: skip
"""Operators whose results hold what their inputs do, wherever that is put."""
LOOKED_INTO = frozenset({"RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"})
"""Operators that look into strings, before the program runs (`text.steps`)."""
LOOKED_UP = frozenset({"Equal", "TfIdfVectorizer"})
"""Operators that ask which strings are the same."""
_ALIKE = {"Concat": 0, "Where": 1, "Equal": 0}
"""Operators whose inputs from one on are all strings if one is."""


def take_strings(op_type: str, inputs: Sequence[str], strings: AbstractSet[str]) -> bool:
    """Whether an operator of the default domain takes its strings as codes.

    Raises:
        UnityError: Numbers stand beside strings.
    """
    if op_type in LOOKED_INTO:
        return True
    if op_type not in MOVING | LOOKED_UP:
        return False
    given = inputs[_ALIKE[op_type] :] if op_type in _ALIKE else inputs[:1]
    if not all(i in strings for i in given) or any(i in strings for i in {*inputs} - {*given}):
        raise UnityError("takes strings beside numbers")
    return True


@dataclass(slots=True)
class Vocabulary:
    """The strings of a model, in the order of their codes."""

    codes: dict[str, int] = field(default_factory=dict)

    def code(self, text: str) -> int:
        """The code of a string, a new one if it has none."""
        return self.codes.setdefault(text, len(self.codes))

    def array(self, texts: Array | list[str] | tuple[str, ...]) -> Array:
        """The codes of strings, int64."""
        given = np.asarray(texts, object)
        found = [self.code(str(t)) for t in given.reshape(-1)]
        return np.asarray(found, np.int64).reshape(given.shape)


def is_strings(tensor: onnx.TensorProto) -> bool:
    """Whether a tensor holds strings."""
    return tensor.data_type == STRING


def require_strings(info: onnx.ValueInfoProto) -> None:
    """Check that a value of strings is declared as such, if it is.

    Raises:
        UnityError: It is declared as another type.
    """
    if info.type.tensor_type.elem_type not in (0, STRING):
        raise UnityError(f"the output {info.name!r} is strings, declared as another type")


def texts_of(tensor: onnx.TensorProto, what: str) -> Array:
    """The strings of a tensor, an array of objects.

    Raises:
        UnityError: There are more or fewer than its shape says, or one is no UTF-8.
    """
    shape = tuple(int(d) for d in tensor.dims)
    if len(tensor.string_data) != int(np.prod(shape)):
        raise UnityError(
            f"{what} declares the shape {shape}, but holds {len(tensor.string_data)} strings"
        )
    try:
        texts = [t.decode() for t in tensor.string_data]
    except UnicodeDecodeError:
        raise UnityError(f"{what} holds a string that is no UTF-8") from None
    return np.array(texts, object).reshape(shape)
