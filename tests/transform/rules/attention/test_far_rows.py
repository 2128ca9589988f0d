"""Keys and values whose rows lie far apart are laid together where no cache would keep them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.transform.schedule.printed import difference, run_printed
from tests.transform.tensor.kernels import CPU, assert_same
from unity.ir.dims import Dim, dim
from unity.ir.stmt import Allocate, PrimFunc
from unity.ir.visit import walk_stmt
from unity.transform.rules.default import default_schedule, schedule

from ..kernels import lowered
from .test_blocks import attention

SMALL = replace(CPU, vector_bits=128, l2_bytes=1 << 10, threads=1)
N, M = dim("n"), dim("m")
SIDE_BY_SIDE, BEHIND = ("BLHD",) * 4, ("BHLD",) * 4


def copied(func: PrimFunc) -> list[str]:
    """What lies in memory of its own for all blocks of rows."""
    allocated = [s.buffer for s in walk_stmt(func.body) if isinstance(s, Allocate)]
    return sorted(b.name for b in allocated if b.name.endswith("_global"))


@pytest.mark.parametrize(
    ("queries", "keys", "layouts", "large", "names"),
    [
        (256, 8, SIDE_BY_SIDE, False, ["k_global", "v_global"]),
        (256, 8, SIDE_BY_SIDE, True, []),  # the cache keeps them
        (256, 8, BEHIND, False, []),  # they lie together as they are
        (48, 8, SIDE_BY_SIDE, False, []),  # few blocks of rows would read the copy
        (256, M, SIDE_BY_SIDE, False, ["k_global", "v_global"]),
        (256, dim("m", max=4), SIDE_BY_SIDE, False, []),  # never so many
        (dim("n", max=100), 8, SIDE_BY_SIDE, False, []),
        (256, 8, ("BLHD", "BLHD", "BHLD", "BLHD"), False, ["k_global"]),
    ],
)
def test_what_lies_far_apart_is_copied(
    queries: Dim, keys: Dim, layouts: tuple[str, ...], large: bool, names: list[str]
) -> None:
    func = attention(queries, keys, heads=4, size=4, layouts=layouts)
    target = replace(SMALL, l2_bytes=1 << 20) if large else SMALL
    assert copied(schedule(func, target)) == names


@pytest.mark.parametrize("extra", [(), ("heads",)])
@pytest.mark.parametrize("threads", [1, 2])
def test_it_computes_the_same(extra: tuple[str, ...], threads: int) -> None:
    func = attention(40, 6, extra, heads=2, size=3)
    target = replace(SMALL, l2_bytes=1 << 8, threads=threads)
    decisions = {"scores": {"rows": 4}}
    sch = default_schedule(func, target, decisions)
    assert copied(sch.func)[-2:] == ["k_global", "v_global"]
    assert difference(sch.func, run_printed(sch, "attention").func) is None
    assert_same(func, lowered(sch.func, target), {})


@pytest.mark.rotated(1 / 2)
@pytest.mark.long("computes in the interpreter")
@pytest.mark.parametrize(("queries", "keys"), [(N, N), (N, N + M), (40, M), (N, 6)], ids=str)
def test_of_unknown_number_it_is_done_where_there_are_many(queries: Dim, keys: Dim) -> None:
    func = attention(queries, keys, ("full",), heads=2, size=2)
    target = replace(SMALL, l2_bytes=1 << 8)
    sch = default_schedule(func, target, {"scores": {"rows": 4}})
    assert copied(sch.func)[-2:] == ["k_global", "v_global"]
    assert "n >= 32" in str(sch.func) or queries == 40
    low = lowered(sch.func, target)
    for n, m in ((1, 4), (33, 3), (36, 5)):
        assert_same(func, low, {"n": n, "m": m})
