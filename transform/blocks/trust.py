"""Steps on stages that are known to be sound: what would be asked of each is not asked again.

Most of what a primitive asks is whether blocks keep their word and whether loops reach each point
once. Of a stage whose blocks do, in loops that are its axes, no split, order or place of its loops
changes that. So a rule asks once and takes its steps here; whoever schedules by hand is always
checked, and so are rules' programs where tests replay them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import ParamSpec

P = ParamSpec("P")

_TRUSTED: ContextVar[bool] = ContextVar("trusted", default=False)


@contextmanager
def trusted(sound: bool) -> Iterator[None]:
    """While steps are taken on a stage; `sound` is what was found of it."""
    before = _TRUSTED.set(sound)
    try:
        yield
    finally:
        _TRUSTED.reset(before)


def is_trusted() -> bool:
    """Whether steps are taken that are known to be legal."""
    return _TRUSTED.get()


def unless_trusted(question: Callable[P, str | None]) -> Callable[P, str | None]:
    """A question why something may not be done; nothing speaks against what is trusted."""

    @wraps(question)
    def asked(*args: P.args, **kwargs: P.kwargs) -> str | None:
        return None if is_trusted() else question(*args, **kwargs)

    return asked
