"""trim_neutral, trim_unread: rows of a triangle, and what is refused."""

from __future__ import annotations

import pytest

from tests.transform.rules.kernels import lowered
from tests.transform.tensor.kernels import CPU, assert_same
from unity.errors import UnityError
from unity.script import parse
from unity.transform.schedule import Schedule

from .printed import difference, run_printed

TRIANGLE = """
n = dim("n")
m = dim("m")

@script.prim_func
def main(a: f32[Buffer, n, m], v: f32[Buffer, m], c: f32[Buffer, n], d: f32[Buffer, n]) -> None:
    for b in range((n + 3) // 4):
        with T.block("rows"):
            vb = T.axis.spatial((n + 3) // 4, b)
            t = T.alloc((4, m), "float32")
            u = T.alloc((4, m), "float32")
            for i, j in T.grid(4, m):
                with T.block("shifted"):
                    vi, vj = T.axis.remap("SS", i, j)
                    t[vi, vj] = T.select(vb * 4 + vi < n, a[vb * 4 + vi, vj], 1.0) + 1.0
            for i, j in T.grid(4, m):
                with T.block("lower"):
                    vi, vj = T.axis.remap("SS", i, j)
                    u[vi, vj] = T.select(CONDITION, t[vi, vj], 0.0)
            for i, j in T.grid(4, m):
                with T.block("sum"):
                    vi, vj = T.axis.remap("SR", i, j)
                    T.where(b * 4 + i < n)
                    with T.init():
                        c[vb * 4 + vi] = 0.0
                    c[vb * 4 + vi] += u[vi, vj] * v[vj]
            for i, j in T.grid(4, m):
                with T.block("largest"):
                    vi, vj = T.axis.remap("SR", i, j)
                    T.where(b * 4 + i < n)
                    with T.init():
                        d[vb * 4 + vi] = T.imm("float32", "-inf")
                    d[vb * 4 + vi] = T.max(d[vb * 4 + vi], T.select(LARGEST))
"""
LOWER = "vj <= vb * 4 + vi"


def triangle(
    condition: str = LOWER,
    largest: str = 'vj <= vb * 4 + vi, t[vi, vj], T.imm("float32", "-inf")',
) -> Schedule:
    text = TRIANGLE.replace("CONDITION", condition).replace("LARGEST", largest)
    return Schedule(parse(text).prim_funcs()["main"])


def extents(sch: Schedule) -> dict[str, str]:
    """How far the loops over j go."""
    lines = str(sch.func).splitlines()
    heads = {
        line.split('"')[1]: lines[k - 1].split("4, ", 1)[-1].removesuffix("):")
        for k, line in enumerate(lines)
        if "T.block(" in line
    }
    return {name: heads[name] for name in ("shifted", "lower", "sum", "largest")}


def trimmed(sch: Schedule) -> Schedule:
    for name in ("largest", "sum"):
        sch.trim_neutral(sch.get_loops(name)[-1])
    for name in ("lower", "shifted"):
        sch.trim_unread(sch.get_loops(name)[-1])
    return sch


@pytest.mark.parametrize(
    ("condition", "end"),
    [
        ("vj <= vb * 4 + vi", "vb * 4 + 4"),
        ("vb * 4 + vi >= vj", "vb * 4 + 4"),
        ("vj < vb * 4 + vi", "vb * 4 + 3"),
        ("vj <= vb * 4 + vi - n + m", None),
        ("vj * 2 < vb * 4 + vi and vj < 5", None),
    ],
)
def test_rows_of_a_triangle(condition: str, end: str | None) -> None:
    largest = f'{condition.split(" and ", maxsplit=1)[0]}, t[vi, vj], T.imm("float32", "-inf")'
    before, sch = triangle(condition, largest), trimmed(triangle(condition, largest))
    if end is not None:
        assert set(extents(sch).values()) == {f"T.min(m, {end})"}
    assert difference(sch.func, run_printed(sch, "triangle").func) is None
    low = lowered(sch.func, CPU)
    for n, m in ((0, 3), (1, 1), (4, 9), (9, 4), (7, 7), (5, 0)):
        assert_same(before.func, sch.func, {"n": n, "m": m})
        assert_same(before.func, low, {"n": n, "m": m})


def refused(sch: Schedule, step: str, block: str, loop: int = -1) -> str:
    with pytest.raises(UnityError) as caught:
        getattr(sch, step)(sch.get_loops(block)[loop])
    assert caught.value.message.startswith(f"{step}, argument 1 'loop': ")
    return caught.value.message


def test_what_is_read_is_made() -> None:
    sch = triangle()
    for name in ("lower", "shifted"):
        before = sch.func
        sch.trim_unread(sch.get_loops(name)[-1])  # all of it is read
        assert difference(before, sch.func) is None
    sch.trim_neutral(sch.get_loops("sum")[-1])
    sch.trim_unread(sch.get_loops("lower")[-1])
    sch.trim_unread(sch.get_loops("shifted")[-1])
    assert extents(sch)["shifted"] == "m"  # the largest is still looked for in all


def test_what_is_not_known_to_be_neutral_is_taken() -> None:
    neutral = "takes no neutral element by a choice of indices"
    assert neutral in refused(
        triangle(largest="vj <= vi, t[vi, vj], 0.0"), "trim_neutral", "largest"
    )
    assert neutral in refused(triangle("v[vj] < 1.0"), "trim_neutral", "sum")
    ends = "does not fail from some iteration on"
    assert ends in refused(triangle("vj >= vb * 4 + vi"), "trim_neutral", "sum")
    assert ends in refused(triangle("vi <= 2"), "trim_neutral", "sum")
    assert "drives reduce axes" in refused(triangle(), "trim_neutral", "sum", 0)
    assert "drives reduce axes" in refused(triangle(), "trim_neutral", "lower")


def test_only_elements_of_temporaries_are_left_out() -> None:
    assert "'c' is no temporary" in refused(triangle(), "trim_unread", "sum", 1)
    sch = triangle()
    sch.split(sch.get_loops("lower")[-1], [None, 4])
    assert "one by one" in refused(sch, "trim_unread", "lower", 1)
    sch.unroll(sch.get_loops("lower")[0])
    assert "it is no serial loop of one block" in refused(sch, "trim_unread", "lower", 0)


LATER = """
@script.prim_func
def main(a: f32[Buffer, 8], c: f32[Buffer, 1]) -> None:
    with T.block("all"):
        t = T.alloc((8,), "float32")
        for i in range(8):
            with T.block("lower"):
                vi = T.axis.spatial(8, i)
                t[vi] = T.select(vi < 4, a[vi], 0.0)
        for i in range(8):
            with T.block("again"):
                vi = T.axis.spatial(8, i)
                t[vi] = WHAT
        for i in range(8):
            with T.block("sum"):
                vi = T.axis.reduce(8, i)
                with T.init():
                    c[0] = 0.0
                c[0] += t[vi]
"""


def test_the_last_store_counts() -> None:
    sch = Schedule(parse(LATER.replace("WHAT", "t[vi] + 1.0")).prim_funcs()["main"])
    assert "takes no neutral element" in refused(sch, "trim_neutral", "sum")
    sch = Schedule(parse(LATER.replace("WHAT", "t[7 - vi] + 1.0")).prim_funcs()["main"])
    assert "reads what other iterations store" in refused(sch, "trim_unread", "again")
    sch = Schedule(
        parse(LATER.replace("WHAT", "T.select(vi < 6, t[vi], 0.0)")).prim_funcs()["main"]
    )
    before = sch.func
    sch.trim_neutral(sch.get_loops("sum")[-1])
    for name in ("again", "lower"):
        sch.trim_unread(sch.get_loops(name)[-1])
    assert str(sch.func).count("range(6)") == 3
    assert_same(before, sch.func, {})


def test_an_end_that_moves_with_a_loop_further_in() -> None:
    """Nothing is read, so the loop would end where the loop within it begins to count."""
    sch = Schedule(
        parse("""
@script.prim_func
def main(a: f32[Buffer, 8], c: f32[Buffer, 8]) -> None:
    t = T.alloc((8,), "float32")
    for i in range(8):
        with T.block("exp"):
            vi = T.axis.spatial(8, i)
            t[vi] = T.exp(a[vi])
    for i in range(8):
        with T.block("copy"):
            vi = T.axis.spatial(8, i)
            c[vi] = a[vi]
""").prim_funcs()["main"]
    )
    _, _, inner = sch.split(sch.get_loops("exp")[0], [4, 2, 1])
    del inner
    assert "moves with loops" in refused(sch, "trim_unread", "exp", 1)
