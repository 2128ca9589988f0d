"""`unity inspect --kernels` and `--schedule`: what lays each kernel of a model out, and how."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from unity.compiler import compile as unity_compile
from unity.errors import UnityError
from unity.ir.module import IRModule
from unity.runtime.executable import Executable
from unity.script import print_module
from unity.transform.blocks.nest import opened
from unity.transform.rules.cover import cover, parts_of

from .options import Options


def list_kernels(module: IRModule, options: Options) -> None:
    """Print each kernel with the rules that take its blocks."""
    executable = _compiled(module, options)
    table = Table("kernel", "laid out by", "steps")
    for name in executable.kernels:
        try:
            rules = "\n".join(_rules(executable, name))
            table.add_row(name, rules, str(len(executable.schedule(name).trace)))
        except UnityError as error:
            table.add_row(name, error.message, "")
    Console(highlight=False, soft_wrap=True).print(table)


def print_schedule(module: IRModule, kernel: str, result: bool, options: Options) -> None:
    """Print a kernel's schedule as a program, and what it gives if that is asked for.

    Raises:
        UnityError: There is no such kernel, or none that steps lay out; what is known is printed.
    """
    executable = _compiled(module, options)
    func = executable.kernel(kernel)
    for rule in _rules(executable, kernel):
        print(f"# {rule}")
    try:
        schedule = executable.schedule(kernel)
    except UnityError:
        print(print_module(IRModule({kernel: func})))
        raise
    print(schedule.to_python(kernel), end="")
    if result:
        laid_out = print_module(IRModule({kernel: schedule.kernel()}))
        print("\n# --- what it gives\n", *(f"# {line}\n" for line in laid_out.splitlines()), sep="")


def _compiled(module: IRModule, options: Options) -> Executable:
    return unity_compile(
        module, options.target, precision=options.precision, winograd=options.winograd
    )


def _rules(executable: Executable, kernel: str) -> Iterator[str]:
    """Which rule takes which blocks of a kernel."""
    temporaries, stages = opened(executable.kernel(kernel).body)
    for taken in cover(parts_of(stages, set(temporaries)), set(temporaries), executable.target):
        yield f"{taken.rule}: {', '.join(taken.names) or 'loops by hand'}"
