"""A call of TVM's whose parameters are not ours: the record that the tables here are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from unity.arguments import Signature

ANY = "any value"
"""What a parameter says makes no difference to Unity, whatever it is."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """A call of TVM's.

    Attributes:
        signature: What it takes.
        ours: What we call its parameters, where that differs.
        same: Parameters that Unity lacks, with the values that change nothing; `ANY` for all.
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
