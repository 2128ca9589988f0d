"""``unity bisect``: which pass changes what a model computes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from rich.console import Console

from unity.checking import watched
from unity.compiler import compile as unity_compile
from unity.ir.module import IRModule
from unity.transform import Context, Pass
from unity.transform.instruments import DumpIR

from .model import read_model
from .options import Options


@dataclass(slots=True)
class Progress:
    """Prints every pass that the watch before it let go, and how long both took."""

    console: Console
    start: float = field(default_factory=perf_counter)

    def before(self, step: Pass, module: IRModule, ctx: Context) -> None:
        """Nothing yet."""

    def after(self, step: Pass, module: IRModule, ctx: Context) -> None:
        """Tell."""
        self.console.print(f"{perf_counter() - self.start:6.1f} s  {step.name}", highlight=False)


def bisect_model(model: Path, tolerance: float, trace: Path | None, options: Options) -> None:
    """Run a target's pipeline with the numbers compared after each pass.

    Raises:
        UnityError: They differ; names the pass.
    """
    module = read_model(model)
    watch = watched(module, tolerance)
    extra = () if trace is None else (DumpIR(trace),)
    console = Console()
    looking = (*extra, watch, Progress(console))
    unity_compile(module, **options.compiling, instruments=looking, check=True)
    console.print("every pass keeps the numbers, and so does the compiled code")
