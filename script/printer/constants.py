"""Constants: small ones are written out, others have a name and their data beside the text."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from unity.ir.dtype import Array, dtype
from unity.ir.graph import Constant

from .literals import float_text, string_text, tuple_text

INLINE_LIMIT = 16
"""Elements of the largest constant that is written out where nothing else is said."""


class ConstantPool:
    """The named constants of a module, in order of appearance.

    Args:
        weights: What the text calls a dict that holds them; None where they stand by name alone.
        inline: Elements of the largest constant that is written out.
    """

    def __init__(self, weights: str | None = None, inline: int = INLINE_LIMIT) -> None:
        self._weights, self._inline = weights, inline
        self._names: dict[Constant, str] = {}
        self._arrays: dict[str, Array] = {}

    @property
    def arrays(self) -> dict[str, Array]:
        """The data by name."""
        return dict(self._arrays)

    def text(self, constant: Constant) -> str:
        """``R.const(...)``."""
        found = inline(constant.data, self._inline)
        if found:
            return found
        name = string_text(self.name(constant))
        return f"R.const({name})" if self._weights is None else f"R.const({self._weights}[{name}])"

    def name(self, constant: Constant) -> str:
        """The name of a large constant: its own, made unique."""
        name = self._names.get(constant)
        if name is None:
            base = name = constant.name or f"const_{len(self._arrays)}"
            count = 1
            while name in self._arrays:
                name, count = f"{base}_{count}", count + 1
            self._names[constant] = name
            self._arrays[name] = constant.data
        return name


Nested: TypeAlias = "bool | int | float | list[Nested]"


def inline(data: npt.NDArray[np.generic], limit: int = INLINE_LIMIT) -> str | None:
    """A small array written out, if it reads back bit for bit; else None."""
    if data.size > limit:
        return None
    if data.size == 0:
        return f'R.const([], "{dtype(data.dtype)}", shape={tuple_text(list(map(str, data.shape)))})'
    for exact in (False, True):
        values = _values(data, exact)
        back = np.array(values, data.dtype)
        if back.shape == data.shape and back.tobytes() == data.tobytes():
            return f'R.const({_source(values)}, "{dtype(data.dtype)}")'
    return None


def bare_number(data: npt.NDArray[np.generic]) -> str | None:
    """A finite scalar as a plain Python number, if that reads back bit for bit; else None."""
    if data.shape or (dtype(data.dtype).is_float and not np.isfinite(data.astype(np.float64))):
        return None
    for exact in (False, True):
        value = _values(data, exact)
        if np.asarray(value).astype(data.dtype).tobytes() == data.tobytes():
            return _source(value)
    return None


def _values(data: npt.NDArray[np.generic], exact: bool) -> Nested:
    """Python numbers; floats by their shortest decimal, or exactly."""
    if data.ndim:
        return [_values(np.asarray(row), exact) for row in data]
    value, kind = data[()], dtype(data.dtype)
    if kind.kind == "bool":
        return bool(value)
    if not kind.is_float:
        return int(str(value))
    # through text, so that a NaN loses the bits that no text keeps
    return float(repr(float(data.astype(np.float64)))) if exact else float(str(value))


def _source(values: Nested) -> str:
    match values:
        case list():
            return f"[{', '.join(_source(v) for v in values)}]"
        case float():
            return float_text(values)
        case _:
            return str(values)
