"""Programs whose steps are refused, and how their loops are named before there is a schedule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.transform.schedule.hostile import Program
from unity.ir.prim_expr import Operand
from unity.transform.schedule import LoopRef, Schedule

Do = Callable[[Schedule], object]


@dataclass(frozen=True)
class Loop:
    """A loop around a block, by number."""

    block: str
    k: int

    def of(self, sch: Schedule) -> LoopRef:
        return sch.get_loops(self.block)[self.k]


def at(block: str, k: int) -> Callable[[Schedule], LoopRef]:
    return Loop(block, k).of


def swapped(i: Operand, j: Operand) -> Sequence[Operand]:
    return j, i


FACTS = Program(
    "a: f32[Buffer, 4, few], c: f32[Buffer, 4]",
    """
for i, k in T.grid(4, few):
    with T.block("b"):
        vi, vk = T.axis.remap("SR", i, k)
        with T.init():
            c[vi] = 0.0
        c[vi] += a[vi, vk]
""",
)
FEW = Program(
    "a: f32[Buffer, 4, few, 3], c: f32[Buffer, 4]",
    """
for i, k, l in T.grid(4, few, 3):
    with T.block("b"):
        vi, vk, vl = T.axis.remap("SRR", i, k, l)
        with T.init():
            c[vi] = 0.0
        c[vi] += a[vi, vk, vl]
""",
)
INIT_BEHIND = Program(
    "a: f32[Buffer, 4, 6], c: f32[Buffer, 4], d: f32[Buffer, 4]",
    """
for i, k in T.grid(4, 6):
    with T.block("sum"):
        vi, vk = T.axis.remap("SR", i, k)
        c[vi] += a[vi, vk]
for i in range(4):
    with T.block("zero"):
        vi = T.axis.spatial(4, i)
        c[vi] = 0.0
for i in range(4):
    with T.block("copy"):
        vi = T.axis.spatial(4, i)
        d[vi] = c[vi]
for i, k in T.grid(4, 6):
    with T.block("again"):
        vi, vk = T.axis.remap("SR", i, k)
        d[vi] += a[vi, vk]
""",
)
FOREIGN = Program(
    "a: f32[Buffer, 8, 8], c: f32[Buffer, 8, 8]",
    """
t = T.alloc((8, 8), "float32")
for i, j in T.grid(8, 8):
    with T.block("p"):
        vi, vj = T.axis.remap("SS", i, j)
        t[vi, vj] = a[vi, vj] * 2.0
with T.block("call"):
    T.evaluate(T.call_extern("lib.f", 8, T.address_of(t[0, 0]), T.address_of(c[0, 0])))
for i, j in T.grid(8, 8):
    with T.block("q"):
        vi, vj = T.axis.remap("SS", i, j)
        c[vi, vj] = c[vi, vj] + t[vj, vi]
""",
)
NESTED = Program(
    "a: f32[Buffer, 6, 6], x: f32[Buffer, 6], c: f32[Buffer, 6]",
    """
for k in range(6):
    for i in range(k, 6):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", i, k)
            with T.init():
                c[vi] = 0.0
            c[vi] += a[vi, vk] * x[vi]
""",
)

STAGES = Program(
    "a: f32[Buffer, 9, 6], c: f32[Buffer, 9], d: f32[Buffer, 8]",
    """
t = T.alloc((9,), "float32")
s = T.alloc((1,), "float32")
for j in range(8):
    with T.block("shorter"):
        vj = T.axis.spatial(8, j)
        d[vj] = 0.0
for i, k in T.grid(9, 6):
    with T.block("rows"):
        vi, vk = T.axis.remap("SR", i, k)
        with T.init():
            c[vi] = 0.0
        c[vi] += a[vi, vk]
for i in range(9):
    with T.block("total"):
        vi = T.axis.reduce(9, i)
        with T.init():
            s[0] = 0.0
        s[0] += c[vi]
for i in range(9):
    with T.block("share"):
        vi = T.axis.spatial(9, i)
        t[vi] = c[vi] / s[0]
for i in range(9):
    with T.block("window"):
        vi = T.axis.spatial(9, i)
        c[vi] = t[vi] + t[T.min(vi + 1, 8)]
for i in range(9):
    with T.block("again"):
        vi = T.axis.spatial(9, i)
        t[vi] = c[vi] * 2.0
""",
)
