"""A call of TVM's whose parameters are not ours: the record that the tables here are made of."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from unity.arguments import Signature

ANY = "any value"
"""What is read where the call is made anew, and refused there."""
ANY_INTEGER = "an integer or None"
ANY_NUMBER = "a number"
ANY_FLAG = "True or False"
ANY_TEXT = "text"
"""What a parameter says makes no difference to Unity, as long as it is of the kind it takes."""
_KINDS: Mapping[str, tuple[type, ...]] = {
    ANY_INTEGER: (int, type(None)),
    ANY_NUMBER: (int, float),
    ANY_FLAG: (bool,),
    ANY_TEXT: (str,),
}


def is_of(kind: str, value: object) -> bool:
    """Whether a literal is of a kind of those above; what a program captured is taken."""
    if isinstance(value, ast.Name | ast.Attribute):
        return True
    return kind == ANY or type(value) in _KINDS[kind]


@dataclass(frozen=True, slots=True)
class Foreign:
    """A call of TVM's.

    Attributes:
        signature: What it takes.
        ours: What we call its parameters, where that differs.
        same: Parameters that Unity lacks, with the values that change nothing: some, or
            all of a kind.
        says: Values of parameters that are left out, where Unity's defaults differ.
    """

    signature: Signature
    ours: Mapping[str, str] = field(default_factory=dict[str, str])
    same: Mapping[str, tuple[object, ...] | str] = field(
        default_factory=dict[str, "tuple[object, ...] | str"]
    )
    says: Mapping[str, int | str] = field(default_factory=dict[str, "int | str"])


def foreign(
    text: str,
    ours: Mapping[str, str] | None = None,
    same: Mapping[str, tuple[object, ...] | str] | None = None,
    **says: int | str,
) -> Foreign:
    """A row, from the text of a signature."""
    return Foreign(Signature.parse(text), ours or {}, same or {}, says)
