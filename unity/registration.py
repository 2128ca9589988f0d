"""What registering gives: something that a program made known, until it takes it back."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from unity.arguments import public_class


@public_class
class Registration:
    """Something registered in this process; used as a context manager, until its end.

    Args:
        name: What is registered.
        undo: Makes it unknown again.
    """

    def __init__(self, name: str, undo: Callable[[], None]) -> None:
        self.name = name
        self._undo: Callable[[], None] | None = undo

    @property
    def active(self) -> bool:
        """Whether it is still known."""
        return self._undo is not None

    def remove(self) -> None:
        """Make it unknown again; the second time does nothing."""
        undo, self._undo = self._undo, None
        if undo is not None:
            undo()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.remove()

    def __repr__(self) -> str:
        """What is registered, and whether it still is."""
        return f"<Registration of {self.name}{'' if self.active else ', removed'}>"
