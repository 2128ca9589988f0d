"""Programs that tests of tuning need."""

from __future__ import annotations

from unity.ir.module import IRModule
from unity.machine.target import Target
from unity.script import parse
from unity.transform import Context, pipeline
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


def tasks(text: str, target: Target = TARGET, **sizes: int) -> list[Task]:
    """The tasks of a program."""
    return tasks_of(module(text), pipeline(), Context(target), [sizes])


def module(text: str) -> IRModule:
    """A program."""
    return parse(text)
