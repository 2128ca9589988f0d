"""Everything that is measured, by name."""

from __future__ import annotations

from collections.abc import Mapping

from .models import MODELS
from .operators import OPERATORS
from .work import Work

WORKS: Mapping[str, Work] = {**MODELS, **OPERATORS}
