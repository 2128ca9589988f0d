"""An iteration as a block, and temporaries of the size that it uses: steps within, and refusals."""

from __future__ import annotations

import pytest

from tests.transform.schedule.cases import Steps, assert_kept, assert_refused
from tests.transform.schedule.hostile import Program
from unity.errors import UnityError
from unity.script import parse
from unity.transform.schedule import LoopRef, Schedule

LINES = Program(
    "a: f32[Buffer, n, 3, 8], c: f32[Buffer, n, 3, 6], d: f32[Buffer, n, 3]",
    """
p = T.alloc((n, 3, 8), "float32")
t = T.alloc((n, 3), "float32")
for b, i, j in T.grid(n, 3, 8):
    with T.block("double"):
        vb, vi, vj = T.axis.remap("SSS", b, i, j)
        p[vb, vi, vj] = a[vb, vi, vj] * 2.0
for b, i, j in T.grid(n, 3, 8):
    with T.block("sum"):
        vb, vi, vj = T.axis.remap("SSR", b, i, j)
        with T.init():
            t[vb, vi] = 0.0
        t[vb, vi] += p[vb, vi, vj]
for b, i, j in T.grid(n, 3, 6):
    with T.block("windows"):
        vb, vi, vj = T.axis.remap("SSS", b, i, j)
        c[vb, vi, vj] = p[vb, vi, vj] * t[vb, vi] - p[vb, vi, vj + 2]
""",
    ({"n": 4}, {"n": 1}, {"n": 0}),
)
BLOCKS = ("double", "sum", "windows")


def _together(s: Schedule, depth: int) -> LoopRef:
    """The loops of all blocks as one, as deep as that, with temporaries of an iteration."""
    loop, *_ = [
        s.fuse_siblings(*(s.get_loops(b)[level] for b in BLOCKS)) for level in range(depth)
    ][::-1]
    for block in ("double", "sum"):
        s.store_at(block, 0, loop)
        s.compact_buffer(block, 0)
    return loop


def _image(s: Schedule) -> None:
    s.blockize_body(_together(s, 1))
    for block, loops in (("double", 2), ("sum", 2), ("windows", 2)):
        assert len(s.get_loops(block)) == loops


def _line(s: Schedule) -> None:
    line = _together(s, 2)
    s.blockize_body(line)
    s.parallel(s.fuse(*s.get_loops("windows_o")))
    assert s.axis_kinds("sum") == "R"
    (j,) = s.get_loops("windows")
    s.vectorize(s.split(j, [None, 4])[1])


def _steps_within(s: Schedule) -> None:
    s.blockize_body(_together(s, 1))
    i, j = s.get_loops("windows")
    s.reorder(j, i)
    s.transform_block_layout("double", lambda i, j: (i * 8 + j,))
    s.decompose_reduction("sum", s.get_loops("sum")[1])


def _block_in_block(s: Schedule) -> None:
    """Around a loop within a block around an iteration."""
    s.blockize_body(_together(s, 1))
    line = s.fuse_siblings(*(s.get_loops(b)[0] for b in BLOCKS))
    s.store_at("double", 0, line)
    s.blockize_body(line)
    s.vectorize(s.get_loops("windows")[0])


LEGAL: dict[str, tuple[Program, Steps]] = {
    "images": (LINES, _image),
    "lines on threads, in lanes": (LINES, _line),
    "steps within": (LINES, _steps_within),
    "a block in a block": (LINES, _block_in_block),
}


def test_legal() -> None:
    assert_kept(LEGAL)


def test_axes_that_stand_still_are_gone() -> None:
    sch = Schedule(LINES.func())
    sch.blockize_body(_together(sch, 2))
    assert [sch.axis_kinds(b) for b in ("windows_o", *BLOCKS)] == ["SS", "S", "R", "S"]
    shapes = [line.split("alloc(")[1] for line in str(sch.func).splitlines() if "alloc(" in line]
    assert sorted(shapes) == ['(), "float32")', '(8,), "float32")']


REDUCED = Program(
    "a: f32[Buffer, 4, 6], c: f32[Buffer, 4]",
    """
for i, k in T.grid(4, 6):
    with T.block("sum"):
        vi, vk = T.axis.remap("SR", i, k)
        with T.init():
            c[vi] = 0.0
        c[vi] += a[vi, vk]
""",
)
CHAINED = Program(
    "a: f32[Buffer, 6], c: f32[Buffer, 6]",
    """
for i in range(1, 6):
    with T.block("next"):
        vi = T.axis.opaque((1, 6), i)
        c[vi] = c[vi - 1] + a[vi]
""",
)
REFUSED: dict[str, tuple[Program, Steps, str]] = {
    "steps of a sum": (
        REDUCED,
        lambda s: s.blockize_body(s.get_loops("sum")[1]),
        "points of block 'sum_o' may write to one place of 'c'",
    ),
    "what an iteration makes of the one before": (
        CHAINED,
        lambda s: s.blockize_body(s.get_loops("next")[0]),
        "points of block 'next_o' may read what others write to 'c'",
    ),
    "lanes": (
        LINES,
        lambda s: (
            s.vectorize(lane := s.split(s.get_loops("windows")[2], [None, 2])[1]),
            s.blockize_body(lane),
        ),
        "'j_1' is vectorized",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    program, steps, why = REFUSED[case]
    assert_refused(program, steps, f"blockize_body, argument 1 'loop': {why}")


def test_a_temporary_that_iterations_share_stays() -> None:
    """`double` is made for all lines before the windows, so no line has its own."""
    sch = Schedule(LINES.func())
    before = sch.func
    sch.compact_buffer("double", 0)
    assert sch.func is before


def test_no_parameter_is_compacted() -> None:
    assert_refused(
        LINES,
        lambda s: s.compact_buffer("windows", 0),
        "compact_buffer, argument 2 'index': 'c' is a parameter, whose layout callers rely on",
    )


def test_a_loop_that_never_runs_takes_no_init_out() -> None:
    """Its init would run where the block does not."""
    sch = Schedule(
        parse("""
@script.prim_func
def main(x: f32[Buffer, 1], c: f32[Buffer, 1]) -> None:
    for i, k in T.grid(1, 1):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", i, k)
            with T.init():
                c[vi] = 5.0
            c[vi] += x[vk]
""").prim_funcs()["main"]
    )
    _, middle, _ = sch.peel(sch.fuse(*sch.get_loops("sum")), 1, 1)
    with pytest.raises(UnityError, match="may be empty: the init would run"):
        sch.blockize(middle)
