"""Programs as text: the language that `unity.script.parser` reads back to an equal program."""

from __future__ import annotations

from .display import PRINTER, html, show
from .fragment import fragment
from .module import constants_of, print_module, text

__all__ = ["PRINTER", "constants_of", "fragment", "html", "print_module", "show", "text"]
