"""Programs that tests of tuning need."""

from __future__ import annotations

from unity.ir.module import IRModule
from unity.machine.target import Target
from unity.script import parse
from unity.transform import Context, pipeline
from unity.transform.schedule.schedule import Schedule
from unity.tuning.tasks import Task, tasks_of

TARGET = Target(
    "cpu", "x86_64-unknown-linux-gnu", "generic", ("avx", "avx2", "fma"), 256, 16, threads=2
)

MATMUL = """
@script.function
def main(x: f32[Tensor, 32, 48], w: f32[Tensor, 48, 64]) -> f32[Tensor, 32, 64]:
    return R.nn.relu(R.matmul(x, w))
"""
SMALL = MATMUL.replace(" 32,", " 16,").replace(" 48", " 12").replace(" 64", " 32")
"""What the interpreter does in no time."""
ROWS = """
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 96]) -> f32[Tensor, n, 96]:
    y = R.nn.softmax(x)
    return R.nn.softmax(y)
"""
DOUBLED = """
@script.prim_func
def doubled(a: f32[Buffer, 4, 16], c: f32[Buffer, 4, 16]) -> None:
    for i, j in T.grid(4, 16):
        with T.block("doubled"):
            vi, vj = T.axis.remap("SS", i, j)
            c[vi, vj] = a[vi, vj] * 2.0

@script.function
def main(x: f32[Tensor, 4, 16]) -> f32[Tensor, 4, 16]:
    return R.call_tir(doubled, (x,), out=f32[Tensor, 4, 16])
"""
EIGHT = """
@script.prim_func
def said(a: f32[Buffer, 8], c: f32[Buffer, 8]) -> None:
    for i in range(8):
        with T.block("said"):
            vi = T.axis.spatial(8, i)
            c[vi] = a[vi] * 2.0

@script.prim_func
def done(a: f32[Buffer, 8], c: f32[Buffer, 8]) -> None:
{does}
    for i in T.vectorized(8):
        c[i] = a[i] * {factor}
"""
"""An intrinsic of eight lanes: what it is said to do, and what it does."""


def tasks(text: str, target: Target = TARGET, **sizes: int) -> list[Task]:
    """The tasks of a program."""
    return tasks_of(module(text), pipeline(), Context(target), [sizes])


def module(text: str) -> IRModule:
    """A program."""
    return parse(text)


def rows_at_once(sch: Schedule) -> None:
    sch.split(sch.get_loops("b0")[0], [None, 4])
