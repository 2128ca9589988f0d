"""peel: borders apart, and sums that begin with their first step."""

from __future__ import annotations

from tests.transform.tensor.kernels import after, assert_same
from unity.ir.equality import first_difference
from unity.ir.prim_expr import Binary, Select
from unity.ir.stmt import Block, PrimFunc
from unity.ir.visit import stmt_exprs, walk_prim, walk_stmt
from unity.script import parse
from unity.transform.schedule import BlockRef, Schedule, Trace
from unity.transform.tensor import lowering


def parsed(text: str) -> PrimFunc:
    return parse(text).prim_funcs()["main"]


PADDED = """
n = dim("n")
@script.prim_func
def main(a: f32[Buffer, n], c: f32[Buffer, n]) -> None:
    for i in range(n):
        with T.block("sum"):
            vi = T.axis.spatial(n, i)
            c[vi] = T.select(vi >= 1, a[vi - 1], 0.0) + T.select(vi < n - 1, a[vi + 1], 0.0)
"""


def selects(func: PrimFunc) -> int:
    exprs = (e for s in walk_stmt(func.body) for x in stmt_exprs(s) for e in walk_prim(x))
    return sum(isinstance(e, Select) for e in exprs)


def test_borders_apart() -> None:
    """Only they ask whether there is a neighbour, and have names to be scheduled by."""
    func = parsed(PADDED)
    sch = Schedule(func)
    first, middle, last = sch.peel(sch.get_loops("sum")[0], 1, 1)
    assert sch.get_child_blocks(first) == (BlockRef("sum"),)
    assert sch.get_child_blocks(middle) == (BlockRef("sum_1"),)
    assert sch.get_child_blocks(last) == (BlockRef("sum_2"),)
    sch.vectorize(sch.split(middle, [None, 4])[1])
    for n in (0, 1, 2, 7):
        assert_same(func, sch.func, {"n": n})
        assert_same(func, after(sch.func, *lowering()), {"n": n})
    sch = Schedule(func)
    sch.specialize({"n": 9})
    sch.peel(sch.get_loops("sum")[0], 1, 1)
    assert selects(sch.func) == 0


CLAMPED = """
n = dim("n")
@script.prim_func
def main(a: f32[Buffer, n], c: f32[Buffer, n + 5]) -> None:
    for i in range(n + 5):
        with T.block("edge"):
            vi = T.axis.spatial(n + 5, i)
            c[vi] = a[T.min(n - 1, T.max(0, vi - 2))]
"""


def test_indices_between_the_borders_are_the_least_of_nothing() -> None:
    func = parsed(CLAMPED)
    sch = Schedule(func)
    sch.peel(sch.get_loops("edge")[0], 2, 3)
    least = {
        block.name: sum(
            isinstance(e, Binary) and e.op in ("min", "max")
            for s in walk_stmt(block.body)
            for x in stmt_exprs(s)
            for e in walk_prim(x)
        )
        for block in walk_stmt(sch.func.body)
        if isinstance(block, Block)
    }
    assert least["edge_1"] == 0 < least["edge"]
    for n in (1, 2, 7):
        assert_same(func, sch.func, {"n": n})


SUM = """
n = dim("n")
@script.prim_func
def main(a: f32[Buffer, 6, n], c: f32[Buffer, n]) -> None:
    for k, i in T.grid(6, n):
        with T.block("r"):
            vi, vk = T.axis.remap("SR", i, k)
            with T.init():
                c[vi] = {init}
            c[vi] = {step}
"""


def begun(init: str, step: str) -> str:
    """What the first step stores, once it is peeled."""
    func = parsed(SUM.format(init=init, step=step))
    sch = Schedule(func)
    sch.peel(sch.get_loops("r")[0])
    again = Schedule(func).replay(Trace.from_json(sch.trace.to_json()))
    assert first_difference(again.func, sch.func) is None
    for n in (0, 1, 5):
        assert_same(func, sch.func, {"n": n})
        assert_same(func, after(sch.func, *lowering()), {"n": n})
    blocks = [s for s in walk_stmt(sch.func.body) if isinstance(s, Block)]
    assert all(b.init is None for b in blocks[1:])
    return "init" if blocks[0].init is not None else str(sch.func).splitlines()[8].strip()


def test_the_first_step_begins_the_sum() -> None:
    assert begun("0.0", "c[vi] + a[vk, vi] * 2.0") == "c[vi] = a[0, vi] * 2.0"
    assert begun("1.0", "c[vi] * a[vk, vi]") == "c[vi] = a[0, vi]"
    assert begun("0.0", "T.max(c[vi], a[vk, vi])") == "c[vi] = T.max(0.0, a[0, vi])"


def test_what_is_no_sum_keeps_its_init() -> None:
    assert begun("1.0", "c[vi] * 0.5 + a[vk, vi]") == "init"
