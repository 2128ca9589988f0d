"""How programs show themselves: the methods are here, the printer is set from above.

The IR may not import the language it prints as, so `unity` hands the printer down once, when it is
imported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from unity.errors import UnityError


@dataclass(frozen=True, slots=True)
class Printer:
    """What prints modules and functions; each takes the node and the name to print it under."""

    text: Callable[[Any, str], str]
    show: Callable[[Any, str], None]
    html: Callable[[Any, str], str]


_printers: list[Printer] = []


def set_printer(printer: Printer) -> None:
    """Use this printer from now on."""
    _printers[:] = [printer]


def current_printer() -> Printer:
    """The printer in use.

    Raises:
        UnityError: None was set.
    """
    if not _printers:
        raise UnityError("nothing prints programs yet", hint="import unity")
    return _printers[0]


class Displayed:
    """The methods that modules and functions are shown by."""

    __slots__ = ()

    def script(self, name: str = "main") -> str:
        """The Python source that parses to an equal program; a function's is named `name`."""
        return current_printer().text(self, name)

    def show(self, name: str = "main") -> None:
        """Print `script`, coloured in a terminal."""
        current_printer().show(self, name)

    def __str__(self) -> str:
        """The source, once ``unity`` is imported."""
        return self.script() if _printers else repr(self)

    def _repr_html_(self) -> str:
        """Shown by notebooks."""
        return current_printer().html(self, "main")
