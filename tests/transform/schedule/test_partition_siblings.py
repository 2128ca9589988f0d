"""partition_siblings, trim, round_up: rows that fill whole blocks, and those that are left."""

from __future__ import annotations

import pytest

from tests.transform.rules.kernels import lowered
from tests.transform.tensor.kernels import CPU, assert_same
from unity.errors import UnityError
from unity.script import parse
from unity.transform.schedule import Schedule

from .printed import difference, run_printed
from .test_fuse_siblings import SOFTMAX, parsed

STAGES = ("largest", "exp", "sum", "share")


def in_blocks() -> Schedule:
    """Softmax: whole blocks of four rows, and the rows that are left, rounded up to four."""
    sch = Schedule(parsed(SOFTMAX))
    rows = [sch.get_loops(name)[0] for name in STAGES]
    rest = [b.name for b in sch.partition_siblings("n // 4 * 4", *rows)]
    for blocks in (STAGES, rest):
        within = [sch.split(sch.get_loops(b)[0], [None, 4])[1] for b in blocks]
        block = sch.fuse_siblings(*(sch.get_loops(b)[0] for b in blocks))
        for name in blocks[:-1]:
            sch.set_scope(name, 0, "local")
            sch.store_at(name, 0, block)
            sch.compact_buffer(name, 0)
        if blocks is rest:
            sch.round_up(*blocks[:-1])
            sch.trim(within[-1])
    return sch


def test_softmax_in_blocks_of_rows() -> None:
    before, sch = parsed(SOFTMAX), in_blocks()
    assert difference(sch.func, run_printed(sch, "softmax").func) is None
    low = lowered(sch.func, CPU)
    for n in (0, 1, 3, 4, 9):
        assert_same(before, sch.func, {"n": n})
        assert_same(before, low, {"n": n})


CHAIN = """
@script.prim_func
def main(a: f32[Buffer, 13], c: f32[Buffer, 13], s: f32[Buffer, 1]) -> None:
    t = T.alloc((16,), "float32", scope="local")
    for i in range(13):
        with T.block("p"):
            vi = T.axis.spatial(13, i)
            t[vi] = a[vi] + 1.0
    for i in range(13):
        with T.block("q"):
            vi = T.axis.spatial(13, i)
            c[vi] = t[12 - vi]
    for i in range(13):
        with T.block("r"):
            vi = T.axis.reduce(13, i)
            with T.init():
                s[0] = 0.0
            s[0] += t[vi]
"""


SUMMED = """
n = dim("n")

@script.prim_func
def main(a: f32[Buffer, SIZE], s: f32[Buffer, 1]) -> None:
    for i in range(SIZE):
        with T.block("sum"):
            vi = T.axis.reduce(SIZE, i)
            with T.init():
                s[0] = 0.0
            s[0] += a[vi]
"""


def refused(step: str, sch: Schedule, *args: object) -> str:
    with pytest.raises(UnityError) as caught:
        getattr(sch, step)(*args)
    return caught.value.message


def test_what_is_refused() -> None:
    sch = Schedule(parse(CHAIN).prim_funcs()["main"])
    p, q, r = (sch.get_loops(b)[0] for b in "pqr")
    assert "may touch of 't'" in refused("partition_siblings", sch, 4, p, q)
    assert "drives the reduction 'r'" in refused("partition_siblings", sch, 4, p, r)
    assert "this is no number" in refused("partition_siblings", sch, "a = 4", p, q)
    assert "by no predicate" in refused("trim", sch, p)
    assert "has no predicate" in refused("round_up", sch, "p")
    _, inner = sch.split(q, [None, 4])
    assert "'c' is no temporary" in refused("round_up", sch, "q")
    sch.trim(inner)
    assert_same(parse(CHAIN).prim_funcs()["main"], sch.func, {})


@pytest.mark.parametrize(
    ("at", "message"), [("n // 0", "divides by 0"), ("n // (n - 1)", "divides by n")]
)
def test_a_stretch_is_a_number_at_any_size(at: str, message: str) -> None:
    sch = Schedule(parsed(SOFTMAX))
    rows = [sch.get_loops(name)[0] for name in STAGES]
    assert message in refused("partition_siblings", sch, at, *rows)


@pytest.mark.parametrize(("n", "factors"), [(13, [4, None]), (None, [3, None]), (9, [4, None])])
def test_pieces_of_a_sum_end_with_it(n: int | None, factors: list[int | None]) -> None:
    func = parsed(SUMMED.replace("SIZE", str(n or "n")))
    sch = Schedule(func)
    piece, inner = sch.split(sch.get_loops("sum")[0], factors)
    sch.rfactor(piece)
    sch.blockize_body(piece)
    sch.trim(inner)
    assert "T.select" not in str(sch.func)
    for k in (0, 1, 4, 13) if n is None else (n,):
        assert_same(func, sch.func, {} if n else {"n": k})
        assert_same(func, lowered(sch.func, CPU), {} if n else {"n": k})


def test_places_that_others_need_are_not_filled() -> None:
    func = parse(CHAIN).prim_funcs()["main"]
    sch = Schedule(func)
    first, second = sch.loop_partition(sch.get_loops("p")[0], [10])
    sch.split(first, [None, 4])
    assert "'p_1' may touch what 'p' is to fill" in refused("round_up", sch, "p")
    assert second is not None
    whole = Schedule(func)
    whole.split(whole.get_loops("p")[0], [None, 4])
    whole.round_up("p")
    assert_same(func, whole.func, {})
