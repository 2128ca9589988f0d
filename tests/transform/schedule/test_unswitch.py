"""unswitch: one loop for each way that a choice goes, which is asked before them."""

from __future__ import annotations

from tests.transform.schedule.cases import Steps, assert_kept, assert_refused
from tests.transform.schedule.hostile import HOSTILE, Program
from tests.transform.tensor.kernels import after
from unity.ir.prim_expr import Select
from unity.ir.stmt import For, IfThen, PrimFunc, Stmt
from unity.ir.visit import stmt_exprs, walk_prim, walk_stmt
from unity.transform.blocks.tree import all_blocks
from unity.transform.schedule import Schedule
from unity.transform.tensor import lowering

LINES = Program(
    "a: f32[Buffer, n, 8], b: f32[Buffer, n, 10], c: f32[Buffer, n + 2, 10]",
    """
for i, j in T.grid(n + 2, 10):
    with T.block("pad"):
        vi, vj = T.axis.remap("SS", i, j)
        c[vi, vj] = T.select(
            vi - 1 >= 0 and vi - 1 < n and 1 <= vj and 9 > vj, a[vi - 1, vj - 1], 1.0
        ) + T.select(vi < n, b[vi, vj], 2.0)
""",
    ({"n": 5}, {"n": 1}, {"n": 0}),
)


def _twice(s: Schedule) -> None:
    there, elsewhere = s.unswitch(s.get_loops("pad")[1])
    for loop in (*s.unswitch(there), elsewhere):
        s.vectorize(s.split(loop, [None, 5])[1])


def _runs(s: Schedule) -> None:
    i, j = s.get_loops("pad")
    s.parallel(i)
    _, middle, _ = s.loop_partition(j, [1, 8])
    for loop in s.unswitch(middle):
        s.vectorize(loop)


LEGAL: dict[str, Steps] = {
    "a line": lambda s: s.unswitch(s.get_loops("pad")[1]),
    "both choices": _twice,
    "what of a line is in its middle": _runs,
}


def test_compiled() -> None:
    assert_kept({name: (LINES, steps) for name, steps in LEGAL.items()})


TILES = Program(
    "a: f32[Buffer, n, 8], c: f32[Buffer, n, 8]",
    """
for t, r, j in T.grid((n + 3) // 4, 4, 8):
    with T.block("copy"):
        vi = T.axis.spatial(n, t * 4 + r)
        vj = T.axis.spatial(8, j)
        T.where(t * 4 + r < n)
        c[vi, vj] = T.select(vi + 1 < n, a[vi + 1, vj], 0.0) + T.select(vi >= 1, a[vi - 1, vj], 0.0)
""",
    ({"n": 11}, {"n": 4}, {"n": 3}, {"n": 0}),
)


def test_tiles_within_an_image_ask_nothing() -> None:
    def steps(s: Schedule) -> None:
        _, row, lane = s.get_loops("copy")
        s.reorder(row, lane)
        s.unswitch(row, throughout=True)
        s.vectorize(lane)

    assert_kept({"tiles": (TILES, steps)})
    sch = Schedule(TILES.func())
    steps(sch)
    there, elsewhere = sch.get_blocks()
    found = {b.name: b for b in all_blocks(sch.func.body)}
    assert not any(isinstance(e, Select) for e in _in(found[there.name].body))
    assert any(isinstance(e, Select) for e in _in(found[elsewhere.name].body))


def test_what_is_chosen_is_asked_outside_the_loop() -> None:
    sch = Schedule(LINES.func())
    _twice(sch)
    low = after(sch.func, *lowering())
    inner = [s for s in walk_stmt(low.body) if isinstance(s, For) and not _loops(s)]
    assert not any(isinstance(s, IfThen) for loop in inner for s in walk_stmt(loop))
    assert sum(isinstance(e, Select) for e in _exprs(low)) == 2  # where a line begins and ends


def _loops(loop: For) -> bool:
    return any(isinstance(s, For) for s in walk_stmt(loop.body))


def _exprs(func: PrimFunc) -> list[object]:
    return _in(func.body)


def _in(body: Stmt) -> list[object]:
    return [e for s in walk_stmt(body) for x in stmt_exprs(s) for e in walk_prim(x)]


READS = Program(
    "a: f32[Buffer, 8], c: f32[Buffer, 8]",
    """
for i in range(8):
    for j in range(8):
        with T.block("step"):
            vi, vj = T.axis.remap("SR", i, j)
            c[vi] = T.select(c[vi] > a[vj], c[vi], a[vj])
""",
    ({},),
)


def test_refused() -> None:
    where = "unswitch, argument 1 'loop': "
    nothing = f"{where}nothing in it is chosen by a condition that it does not change"
    assert_refused(LINES, lambda s: s.unswitch(s.get_loops("pad")[0]), nothing)
    assert_refused(
        LINES,
        lambda s: s.unswitch(s.get_loops("pad")[1], throughout=True),
        f"{where}no condition is known under which all in it is there",
    )
    assert_refused(READS, lambda s: s.unswitch(s.get_loops("step")[1]), nothing)
    assert_refused(
        HOSTILE["matmul"],
        lambda s: s.unswitch(s.get_loops("b")[0]),
        f"{where}the reduction 'b' may begin in it",
    )
