"""A schedule as a Python program: the kernel it starts from, its steps, what they make of it."""

from __future__ import annotations

from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc
from unity.machine.target import Target
from unity.script import print_module

from ..source import Source
from .trace import Trace

_HOME = "unity.transform.schedule"


def as_python(start: PrimFunc, target: Target | None, trace: Trace, name: str) -> str:
    """A program that takes a trace's steps and prints the kernel they give, to be changed and run.

    Args:
        start: The kernel before the first step.
        target: The machine that the schedule is for.
        trace: The steps.
        name: What the kernel is to be called.
    """
    source = Source()
    source.imported("unity.script", "parse")
    source.imported(_HOME, "Schedule")
    steps = trace.to_python()
    if "IndexMap." in steps:
        source.imported(_HOME, "IndexMap")
    kernel = print_module(IRModule({name: start}))
    quoted = f"r'''\n{kernel}'''" if "'''" not in kernel else repr(kernel)
    machine = source.text(target)  # writes down what it imports
    return "\n".join(
        [
            *source.statements(),
            "",
            f"TARGET = {machine}",
            f"KERNEL = {quoted}",
            "",
            "",
            steps,
            "",
            f'schedule = Schedule(parse(KERNEL).prim_funcs()["{name}"], TARGET)',
            "steps(schedule)",
            "print(schedule.func)",
            "",
        ]
    )
