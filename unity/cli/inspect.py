"""`unity inspect`: a model's program, at any point of the pipeline."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from rich.console import Console
from rich.table import Table

from unity.compilation import prepared
from unity.compiler import compile as unity_compile
from unity.errors import UnityError
from unity.ir.module import IRModule
from unity.runtime.artifact.naming import is_executable
from unity.script import show
from unity.transform import Context, Pipeline

from .artifact import show_artifact
from .model import read_model
from .options import Options
from .schedule import list_kernels, print_schedule
from .source import only_models


def inspect_model(
    model: Path,
    passes: bool,
    after: str | None,
    kernel: str | None,
    kernels: bool,
    schedule: str | None,
    result: bool,
    options: Options,
) -> None:
    """Print what was asked for; the module as imported if nothing was."""
    if result and schedule is None:
        raise UnityError("--result without --schedule", hint="it prints what the steps give")
    if is_executable(model):
        if passes or kernels or any(x is not None for x in (after, kernel, schedule, options.db)):
            only_models(
                model, "inspect --passes, --after, --kernel, --kernels, --schedule and --db"
            )
        show_artifact(model)
        return
    module = read_model(model)
    if schedule is not None:
        print_schedule(module, schedule, result, options)
    elif kernels:
        list_kernels(module, options)
    elif kernel is not None:
        _print_kernel(module, kernel, options)
    elif passes or after is not None:
        _run_passes(*prepared(module, **options.compiling), after)
    else:
        show(module)


def _run_passes(module: IRModule, chosen: Pipeline, context: Context, after: str | None) -> None:
    console = Console(highlight=False)
    table = Table("pass", "graph functions", "prim funcs", "bindings")
    names = [each.name for each in chosen.passes]
    if after is not None and after not in names:
        near = [n for n in dict.fromkeys(names) if after.lower() in n.lower()]
        near = near or get_close_matches(after, names, 3)
        hint = f"did you mean {', '.join(near)}? " if near else ""
        raise UnityError(f"the pipeline has no pass {after!r}", hint=f"{hint}--passes lists them")
    for each in chosen.passes:
        module = each(module, context)
        graphs = module.graph_functions()
        bindings = sum(len(b.bindings) for f in graphs.values() for b in f.body.blocks)
        table.add_row(each.name, str(len(graphs)), str(len(module.prim_funcs())), str(bindings))
        if each.name == after:
            show(module)
            return
    console.print(table)


def _print_kernel(module: IRModule, kernel: str, options: Options) -> None:
    executable = unity_compile(module, **options.compiling)
    for title, text in (
        ("TensorIR", executable.ir(kernel)),
        ("LLVM", executable.llvm(kernel)),
        ("assembly", executable.asm(kernel)),
    ):
        print(f"# --- {title}\n{text}\n")
