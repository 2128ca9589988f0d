"""What an implementation that is not ours did wrong: which one it was, so that another is taken."""

from __future__ import annotations

from unity.errors import UnityError


class ImplementationError(UnityError):
    """A library or an engine can't do what it was chosen for.

    Args:
        implementation: ``library:<name>`` or ``engine:<name>``.
        message: What happened.
        hint: What to do about it.
        part: The function of the program that an engine was given, where it is that which failed.
    """

    def __init__(
        self, implementation: str, message: str, hint: str | None = None, part: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.implementation = implementation
        self.part = part
