"""Attributes: the static, hashable named arguments of calls, functions, blocks and modules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from unity.ir.dims import Dim
from unity.ir.dtype import DType

AttrValue: TypeAlias = "bool | int | float | str | DType | Dim | tuple[AttrValue, ...] | None"


class Attrs(Mapping[str, AttrValue]):
    """An immutable, hashable mapping in name order.

    >>> Attrs(axis=1).with_(keepdims=True)
    Attrs(axis=1, keepdims=True)
    """

    __slots__ = ("_items",)
    _items: dict[str, AttrValue]

    def __init__(
        self, values: Mapping[str, AttrValue] | None = None, /, **named: AttrValue
    ) -> None:
        merged = {**(values or {}), **named}
        object.__setattr__(self, "_items", {k: merged[k] for k in sorted(merged)})

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: attributes are immutable."""
        raise AttributeError("Attrs are immutable; use with_()")

    def __getitem__(self, key: str) -> AttrValue:
        """The value of a name."""
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        """The names, sorted."""
        return iter(self._items)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._items)

    def __hash__(self) -> int:
        """By content."""
        return hash(tuple(self._items.items()))

    def __eq__(self, other: object) -> bool:
        """By content."""
        return isinstance(other, Attrs) and self._items == other._items

    def __repr__(self) -> str:
        """As a call that makes it."""
        return f"Attrs({', '.join(f'{k}={v!r}' for k, v in self._items.items())})"

    def with_(self, **named: AttrValue) -> Attrs:
        """A copy with some values set."""
        return Attrs(self._items, **named)

    def without(self, *names: str) -> Attrs:
        """A copy lacking some names."""
        return Attrs({k: v for k, v in self._items.items() if k not in names})


NO_ATTRS = Attrs()
