"""How programs show themselves: the methods are here, the printer is handed down from above.

The IR may not import the language it prints as. So `unity` itself says, when it is imported, where
the printer is found; it is loaded when something is first shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from unity.arguments import public_class
from unity.errors import UnityError


@dataclass(frozen=True, slots=True)
class Printer:
    """What prints modules and functions; each takes the node and the name to print it under."""

    text: Callable[[Any, str], str]
    show: Callable[[Any, str], None]
    html: Callable[[Any, str], str]


_loaders: list[Callable[[], Printer]] = []


def set_printer(load: Callable[[], Printer]) -> None:
    """Say where the printer comes from."""
    _loaders[:] = [load]


def current_printer() -> Printer:
    """The printer in use.

    Raises:
        UnityError: None was set.
    """
    if not _loaders:
        raise UnityError("nothing prints programs yet", hint="import unity")
    return _loaders[0]()


@public_class
class Displayed:
    """The methods that modules and functions are shown by.

    A function has no name of its own, it is a key of a module: it is shown under the one by which
    it was found last, else as ``main``. That is no part of what it is: neither equality, hash nor
    a changed copy know of it.
    """

    __slots__ = ("_shown_as",)
    _shown_as: str

    def script(self, name: str | None = None) -> str:
        """The Python source that parses to an equal program; a function's is named `name`."""
        return current_printer().text(self, name or shown_as(self))

    def show(self, name: str | None = None) -> None:
        """Print `script`, coloured in a terminal."""
        current_printer().show(self, name or shown_as(self))

    def __str__(self) -> str:
        """The source."""
        return self.script()

    def _repr_html_(self) -> str:
        """Shown by notebooks."""
        return current_printer().html(self, shown_as(self))


def show_as(node: object, name: str) -> None:
    """Remember the name that a function of a module is shown by."""
    if isinstance(node, Displayed):
        object.__setattr__(node, "_shown_as", name)


def shown_as(node: Displayed) -> str:
    """The name that a function is shown by."""
    try:
        return node._shown_as
    except AttributeError:
        return "main"
