"""annotate_buffer_access: regions that are given are kept while they hold, and printed."""

from __future__ import annotations

from tests.transform.schedule.hostile import Program, differ
from unity.ir.equality import structural_equal
from unity.script import parse
from unity.transform.blocks.regions import GIVEN
from unity.transform.blocks.tree import block_path, with_regions
from unity.transform.schedule import Schedule, Trace

LINES = Program(
    "a: f32[Buffer, n, 4], c: f32[Buffer, n * 2, 4]",
    """
t = T.alloc((n, 4), "float32")
for i, j in T.grid(n, 4):
    with T.block("double"):
        vi, vj = T.axis.remap("SS", i, j)
        t[vi, vj] = a[vi, vj] * 2.0
for i, j in T.grid(n * 2, 4):
    with T.block("between"):
        vi, vj = T.axis.remap("SS", i, j)
        c[vi, vj] = t[vi // 2, vj] + t[T.min(vi // 2 + 1, n - 1), vj]
""",
    ({"n": 5}, {"n": 1}, {"n": 0}),
)


def lines() -> Schedule:
    sch = Schedule(LINES.func())
    sch.annotate_buffer_access("between", "t", "read", lambda i, j: (i // 2, i // 2 + 2, j, j + 1))
    return sch


def test_what_is_computed_at_a_loop() -> None:
    sch = lines()
    rows, _ = sch.split(sch.get_loops("between")[0], [None, 4])
    sch.compute_at("double", rows)
    assert [str(s) for s in (differ(LINES, LINES.func(), sch.func),)] == ["None"]
    assert "for i_at, j_at in T.grid(3, 4):" in str(sch.func)


def test_it_reads_back_and_replays() -> None:
    sch = lines()
    assert structural_equal(parse(str(sch.func)).prim_funcs()["main"], sch.func)
    again = Schedule(sch.func)
    assert structural_equal(again.func, sch.func)
    replayed = Schedule(LINES.func()).replay(Trace.from_json(sch.trace.to_json()))
    assert structural_equal(replayed.func, sch.func)


def test_kept_while_it_holds() -> None:
    sch = lines()
    sch.set_scope("double", 0, "local")
    _, block = block_path(sch.func, "between")
    assert GIVEN in block.attrs
    assert with_regions(block).reads == block.reads
    sch.compute_inline("double")
    _, block = block_path(sch.func, "between")
    assert [r.buffer.name for r in block.reads] == ["a"]
