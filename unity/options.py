"""What options of `unity.compile` may be, as types: known where the compiler need not be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

Precision: TypeAlias = Literal["f32", "bf16", "f16"]
"""In what contractions of float32 compute: as they are, or with operands in a narrow float."""

WeightBits: TypeAlias = Literal["int4", "int8"]
"""How large constant matrices of products are rounded."""

Caches: TypeAlias = "Mapping[str, str] | bool"
"""Output name -> input name, of each cache; True for all that are found."""
