"""The debugging dial: print the module after named passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from unity.arguments import public_class
from unity.ir.module import IRModule
from unity.script import print_module

from ..passes import Context, Pass


@public_class
@dataclass(frozen=True, slots=True)
class Print:
    """Prints the module after the passes named (after all of them if none is named).

    Attributes:
        names: Class names of passes, ``("FuseOps",)``.
        only: Print this function alone.
        write: Where the text goes.
    """

    names: tuple[str, ...] = ()
    only: str | None = None
    write: Callable[[str], None] = print

    def before(self, step: Pass, module: IRModule, ctx: Context) -> None:
        """Nothing: only results are shown."""

    def after(self, step: Pass, module: IRModule, ctx: Context) -> None:
        """Show the module under a heading that names the pass."""
        if self.names and step.name not in self.names:
            return
        shown = module
        if self.only is not None and self.only in module:
            shown = IRModule({self.only: module[self.only]}, module.attrs)
        self.write(f"# after {step.name}\n{print_module(shown)}")
