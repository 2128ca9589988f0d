"""Copies that one iteration of a loop has for itself, and copies that are updated in place."""

from __future__ import annotations

import pytest

from tests.transform.schedule.cases import Steps, assert_kept, assert_refused
from tests.transform.schedule.hostile import HOSTILE, Program
from unity.transform.schedule import Schedule

HALO = Program(
    "a: f32[Buffer, n], c: f32[Buffer, n]",
    """
t = T.alloc((n,), "float32")
for i in range(n):
    with T.block("double"):
        vi = T.axis.spatial(n, i)
        t[vi] = a[vi] * 2.0
for i in range(n - 2):
    with T.block("window"):
        vi = T.axis.spatial(n - 2, i)
        c[vi] = t[vi] + t[vi + 2]
""",
    ({"n": 19}, {"n": 2}),
)
UPDATE = Program(
    "a: f32[Buffer, 5, 7], c: f32[Buffer, 7, 5]",
    """
for i, j in T.grid(5, 6):
    with T.block("add"):
        vi, vj = T.axis.remap("SS", i, j)
        c[vj, vi] = c[vj, vi] * 0.5 + a[vi, vj]
""",
)


STRETCH = Program(
    "a: f32[Buffer, 3, n], c: f32[Buffer, 3, n * 2]",
    """
for i, j in T.grid(3, n * 2):
    with T.block("stretch"):
        vi, vj = T.axis.remap("SS", i, j)
        c[vi, vj] = a[vi, vj // 2] + a[(vi + 1) % 3, vj // 2]
""",
    ({"n": 5}, {"n": 0}),
)


def _tiles_of_windows(s: Schedule) -> None:
    outer, _ = s.split(s.get_loops("window")[0], [None, 4])
    s.read_at("window", "t", outer, "local")
    s.write_at("window", "c", outer, "local")
    s.parallel(outer)


def _rows_of_sums(s: Schedule) -> None:
    i, j, k = s.get_loops("b")
    s.reorder(j, i, k)
    s.read_at("b", "b", j, "local")
    s.write_at("b", "c", j, "local")
    s.parallel(j)


def _looked_up(s: Schedule) -> None:
    rows, columns = s.get_loops("stretch")
    (table,) = s.cache_index("stretch", "global", 1)
    assert s.axis_kinds(table) == "S"
    s.parallel(rows)
    s.vectorize(s.split(columns, [None, 4])[1])


ROUNDED = Program(
    "a: f32[Buffer, n, 7], b: bf16[Buffer, 8, 5], c: f32[Buffer, n, 5]",
    """
for i, j, k in T.grid(n, 5, 8):
    with T.block("product"):
        vi, vj, vk = T.axis.remap("SSR", i, j, k)
        with T.init():
            c[vi, vj] = 0.0
        c[vi, vj] += T.cast(
            "float32", T.cast("bfloat16", T.select(vk < 7, a[vi, vk], 0.0))
        ) * T.cast("float32", b[vk, vj])
""",
    ({"n": 6}, {"n": 0}),
)


def _rounded_once(s: Schedule) -> None:
    i, j, k = s.get_loops("product")
    copy = s.cache_operand("product", 0, "local")
    assert s.axis_kinds(copy) == "SS"
    assert 'product_operand = T.alloc((n, 8), "bfloat16"' in str(s.func)
    rows, row = s.split(i, [None, 4])
    s.reorder(rows, j, row, k)
    s.compute_at(copy, rows)
    s.store_at(copy, 0, rows)
    s.parallel(rows)


def _again(times: str) -> Program:
    """Stores of the same values over and over, some times for each row."""
    return Program(
        "a: f32[Buffer, 4], b: f32[Buffer, n], c: f32[Buffer, 4]",
        f"""
for i in range(4):
    for j in range({times}):
        with T.block("again"):
            vi = T.axis.spatial(4, i)
            c[vi] = a[vi] * 2.0
""",
        ({"n": 3}, {"n": 0}),
    )


LEGAL: dict[str, tuple[Program, Steps]] = {
    "rows made at least once": (
        _again("i + 1"),
        lambda s: s.write_at("again", 0, s.get_loops("again")[0], "local"),
    ),
    "rows stored at least once": (
        _again("i + 1"),
        lambda s: s.cache_write("again", 0, "local", s.get_loops("again")[0]),
    ),
    "tiles of windows": (HALO, _tiles_of_windows),
    "columns of a product": (HOSTILE["matmul"], _rows_of_sums),
    "a stretched row": (STRETCH, _looked_up),
    "an operand rounded once": (ROUNDED, _rounded_once),
    "an update": (UPDATE, lambda s: s.cache_inplace("add", "c", "global")),
}


def test_compiled() -> None:
    assert_kept(LEGAL)


REFUSED: dict[str, tuple[Program, Steps, str]] = {
    "no read": (
        HALO,
        lambda s: s.read_at("window", 1, s.get_loops("window")[0], "local"),
        "read_at, argument 2 'index': 'window' has 1 reads, got 1",
    ),
    "another nest": (
        HALO,
        lambda s: s.read_at("window", 0, s.get_loops("double")[0], "local"),
        "read_at, argument 3 'loop': it is not around 'window'",
    ),
    "lanes": (
        HOSTILE["matmul"],
        lambda s: (
            s.vectorize(s.get_loops("b")[1]),
            s.write_at("b", 0, s.get_loops("b")[1], "local"),
        ),
        "write_at, argument 3 'loop': its iterations are vectorized: none has memory of its own",
    ),
    "made in the loop": (
        HALO,
        lambda s: (
            s.compute_at("double", s.get_loops("window")[0]),
            s.read_at("window", 0, s.get_loops("window")[0], "local"),
        ),
        "read_at, argument 2 'index': 't' is made in the loop by others",
    ),
    "read in the loop": (
        HALO,
        lambda s: (
            s.compute_at("double", s.get_loops("window")[0]),
            s.write_at("double", 0, s.get_loops("window")[0], "local"),
        ),
        "write_at, argument 2 'index': 't' is made in the loop by others",
    ),
    "part of a sum": (
        HOSTILE["matmul"],
        lambda s: s.write_at("b", 0, s.get_loops("b")[2], "local"),
        "write_at, argument 3 'loop': 'c' is complete only after 'k'",
    ),
    "an empty sum": (
        HOSTILE["symbolic"],
        lambda s: s.read_at("b", 0, s.get_loops("b")[1], "local"),
        "read_at, argument 3 'loop': 'k' may be empty and drives the reduction 'b'",
    ),
    "no such factor": (
        ROUNDED,
        lambda s: s.cache_operand("product", 2, "local"),
        "cache_operand, argument 2 'index': 'product' has 2 factors, got 2",
    ),
    "no product": (
        HALO,
        lambda s: s.cache_operand("window", 0, "local"),
        "cache_operand, argument 2 'index': 'window' has 0 factors, got 0",
    ),
    "a factor under a predicate": (
        ROUNDED,
        lambda s: (
            s.split(s.get_loops("product")[0], [None, 4]),
            s.cache_operand("product", 0, "local"),
        ),
        "cache_operand, argument 2 'index': 'product' does not compute it at all points of its "
        "axes",
    ),
    "what is there before": (
        UPDATE,
        lambda s: s.write_at("add", 0, s.get_loops("add")[0], "local"),
        "write_at, argument 2 'index': the block starts from what 'c' holds before",
    ),
    "points that read others": (
        HOSTILE["selfread"],
        lambda s: s.write_at("b", 0, s.get_loops("b")[0], "local"),
        "write_at, argument 2 'index': points of block 'b' may read what others write to 'c'",
    ),
    "no known box": (
        HALO,
        lambda s: (
            s.transform_layout("double", 0, lambda i: (i * 2,)),
            s.write_at("double", 0, s.split(s.get_loops("double")[0], [None, 4])[0], "local"),
        ),
        "write_at, argument 2 'index': what is made of 't' in an iteration is no known box",
    ),
    "rows that may not be made": (
        _again("n"),
        lambda s: s.write_at("again", 0, s.get_loops("again")[0], "local"),
        "write_at, argument 2 'index': what is made of 'c' in an iteration is no known box",
    ),
    "a row that is not made": (
        _again("T.max(0, 1 - i * 4)"),
        lambda s: s.cache_write("again", 0, "local", s.get_loops("again")[0]),
        "cache_write, argument 4 'at': what 'again' makes of 'c' in an iteration is no box",
    ),
    "nothing to update": (
        HOSTILE["matmul"],
        lambda s: s.cache_inplace("b", "a", "local"),
        "cache_inplace, argument 2 'index': 'b' does not write 'a'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    assert_refused(*REFUSED[name])
