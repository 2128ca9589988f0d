"""Sequences of arrays, and values that may be absent, as a program takes and gives them.

A caller has a list of arrays, or None. A program has two tensors: the elements of all items, one
behind another, and a row for each item with its shape, which ends in -1 where other items have more
axes. Before them stands a flag where the value may be absent; a tensor that may be is a sequence
then, of one item or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from unity.errors import UnityError
from unity.ir.dtype import Array, DType
from unity.runtime.records import Index

Layout: TypeAlias = Literal["sequence", "optional sequence", "optional tensor", "list"]
"""How a program has it; a ``list`` is a tuple of tensors, of known length."""


@dataclass(frozen=True, slots=True)
class HeldInput:
    """An input that is a sequence or may be absent.

    Attributes:
        index: Which input.
        layout: How the program takes it.
        dtype: Of the arrays.
        width: The most axes that one may have.
    """

    index: Index
    layout: Layout
    dtype: str
    width: Index

    def given(self, value: object, where: str) -> object:
        """What a caller gives, as the program takes it.

        Raises:
            UnityError: It is something else; the message says what is wanted.
        """
        if self.layout == "optional tensor":
            items = [] if value is None else [value]
        elif value is None and self.layout == "optional sequence":
            items = []
        elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
            items = [*value]
        else:
            raise UnityError(
                f"{where} must be a list of {self.dtype} arrays, got {type(value).__name__}"
            )
        pair = self._pair([self._array(v, k, where) for k, v in enumerate(items)], where)
        return pair if self.layout == "sequence" else (np.asarray(value is not None), pair)

    def _array(self, value: object, index: int, where: str) -> Array:
        found: Array = np.asarray(value)
        kind = DType(self.dtype).numpy
        if found.dtype != kind:
            raise UnityError(f"{where}[{index}] must be {self.dtype}, got {found.dtype}")
        if found.ndim > self.width:
            raise UnityError(
                f"{where}[{index}] has {found.ndim} axes, but there may be {self.width} at most"
            )
        return found

    def _pair(self, items: Sequence[Array], where: str) -> tuple[Array, Array]:
        rows = np.full((len(items), self.width), -1, np.int64)
        for row, one in zip(rows, items, strict=True):
            row[: one.ndim] = one.shape
        none: Array = np.empty(0, DType(self.dtype).numpy)
        return np.concatenate([none, *(one.reshape(-1) for one in items)]), rows


@dataclass(frozen=True, slots=True)
class HeldOutput:
    """An output that is a sequence or may be absent.

    Attributes:
        index: Which output.
        layout: How the program gives it.
    """

    index: Index
    layout: Layout

    def taken(self, value: object) -> object:
        """What the program gives, as a caller takes it: a list of arrays, an array, or None."""
        assert isinstance(value, tuple)
        if self.layout == "list":
            return [np.asarray(one) for one in value]
        if self.layout == "sequence":
            return _items(value)
        there, pair = value
        if not np.asarray(there).reshape(-1)[0]:
            return None
        items = _items(pair)
        return items[0] if self.layout == "optional tensor" else items


def _items(pair: tuple[object, ...]) -> list[Array]:
    data, rows = (np.asarray(part) for part in pair)
    shapes = [tuple(d for d in row if d >= 0) for row in rows.tolist()]
    sizes = [int(np.prod(shape, dtype=np.int64)) for shape in shapes]
    ends = np.cumsum(sizes, dtype=np.int64)
    return [
        data[end - size : end].reshape(shape)
        for shape, size, end in zip(shapes, sizes, ends.tolist(), strict=True)
    ]
