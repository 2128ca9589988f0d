"""Registers of what is in scope, within a function and the ones around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Key = TypeVar("Key")


class Scope(dict[Key, str]):
    """Registers of what is in scope; what is not, is asked for from the function around."""

    enclosing: Callable[[Key], str] | None = None

    def __missing__(self, key: Key) -> str:
        """Bring something in from outside."""
        if self.enclosing is None:
            raise KeyError(key)
        self[key] = value = self.enclosing(key)
        return value
