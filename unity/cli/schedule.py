"""`unity inspect --kernels` and `--schedule`: what lays each kernel of a model out, and how."""

from __future__ import annotations

from rich.console import Console
from rich.table import Column, Table

from unity.compiler import compile as unity_compile
from unity.errors import UnityError
from unity.ir.module import IRModule
from unity.runtime.executable import Executable
from unity.script import print_module

from .options import Options


def list_kernels(module: IRModule, options: Options) -> None:
    """Print each kernel with the rules that take its blocks."""
    executable = _compiled(module, options)
    rows: list[tuple[str, list[str], str]] = []
    for name in executable.kernels:
        try:
            rules = list(map(str, executable.rules(name)))
            rows.append((name, rules, str(len(executable.schedule(name).trace))))
        except UnityError as error:
            rows.append((name, [error.message], ""))
    console = Console(highlight=False)
    if not console.is_terminal:  # a line for each, to be searched and cut
        for name, rules, steps in rows:
            for rule in rules:
                print(name, rule, steps, sep="\t")
        return
    table = Table("kernel", Column("laid out by", overflow="fold"), "steps")
    for name, rules, steps in rows:
        table.add_row(name, "\n".join(rules), steps)
    console.print(table)


def print_schedule(module: IRModule, kernel: str, result: bool, options: Options) -> None:
    """Print a kernel's schedule as a program, and what it gives if that is asked for.

    Raises:
        UnityError: There is no such kernel, or none that steps lay out; what is known is printed.
    """
    executable = _compiled(module, options)
    func = executable.kernel(kernel)
    try:
        rules, schedule = executable.rules(kernel), executable.schedule(kernel)
    except UnityError:
        print(print_module(IRModule({kernel: func})))
        raise
    for rule in rules:
        print(f"# {rule}")
        for name, legal in rule.legal.items():
            print(f"#   {name}={rule.decisions[name]}, of {legal}")
    print(schedule.to_python(kernel), end="")
    if result:
        laid_out = print_module(IRModule({kernel: schedule.kernel()}))
        print("\n# --- what it gives\n", *(f"# {line}\n" for line in laid_out.splitlines()), sep="")


def _compiled(module: IRModule, options: Options) -> Executable:
    return unity_compile(module, **options.compiling)
