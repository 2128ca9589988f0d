"""Coloured text in a terminal and in notebooks; plain text elsewhere."""

from __future__ import annotations

import sys

from unity import notebook
from unity.arguments import public
from unity.ir.display import Printer
from unity.ir.graph import Function
from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc

from .module import text

Shown = IRModule | Function | PrimFunc
_THEME = "ansi_dark"


@public
def show(node: Shown, name: str = "main") -> None:
    """Print a module or a function to standard output, coloured if that is a terminal."""
    source = text(node, name)
    if not sys.stdout.isatty():
        sys.stdout.write(source)
        return
    from rich.console import Console  # only a terminal needs it
    from rich.syntax import Syntax

    console = Console()
    console.print(
        Syntax(source, "python", theme=_THEME, background_color="default"), soft_wrap=True
    )


def html(node: Shown, name: str = "main") -> str:
    """A module or a function as HTML that brings its style along, for ``_repr_html_``."""
    return notebook.page(notebook.program(text(node, name)))


PRINTER = Printer(text, show, html)
"""What `unity` hands down to the IR."""
