"""Programs as text: the language that `unity.script.parser` reads back to an equal program."""

from __future__ import annotations

from .display import html, register, show
from .fragment import fragment
from .module import constants_of, print_module, text

__all__ = ["constants_of", "fragment", "html", "print_module", "register", "show", "text"]
