"""prefetch: what is asked for is what is read later; nothing else changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from textwrap import dedent

import pytest

from tests.transform.rules.contraction.test_tiled import number_of
from tests.transform.tensor.kernels import after, assert_same
from unity.errors import UnityError
from unity.ir.module import IRModule
from unity.ir.prim_expr import Intrinsic, Load, PrimVar
from unity.ir.stmt import Block, Evaluate, For, PrimFunc, Stmt
from unity.ir.visit import stmt_children, stmt_exprs, walk_prim, walk_stmt
from unity.script import parse, print_module
from unity.transform.schedule import Schedule, Trace
from unity.transform.tensor import lowering

Place = tuple[int, ...]


def product(m: int, n: int, k: int) -> PrimFunc:
    return parse(f"""
@script.prim_func
def main(a: f32[Buffer, {m}, {k}], b: f32[Buffer, {k}, {n}], c: f32[Buffer, {m}, {n}]) -> None:
    for i, j, l in T.grid({m}, {n}, {k}):
        with T.block("product"):
            vi, vj, vk = T.axis.remap("SSR", i, j, l)
            with T.init():
                c[vi, vj] = 0.0
            c[vi, vj] += a[vi, vk] * b[vk, vj]
""").prim_funcs()["main"]


def strips(
    m: int = 12,
    n: int = 70,
    k: int = 5,
    width: int = 20,
    distance: int = 1,
    sharers: int | None = None,
) -> tuple[Schedule, PrimVar, PrimVar]:
    """Tiles of rows pass over strips of columns, the next of which they fetch."""
    sch = Schedule(product(m, n, k))
    i, j, step = sch.get_loops("product")
    strip, column = sch.split(j, [None, width])
    tile, row = sch.split(i, [None, 2])
    sch.reorder(strip, tile, step, row, column)
    (block,) = (s for s in walk_stmt(sch.func.body) if isinstance(s, Block))
    index = next(k for k, r in enumerate(block.reads) if r.buffer.name == "b")
    sch.prefetch("product", index, strip, step, tile, distance, sharers=sharers)
    loops = [s.var for s in walk_stmt(sch.func.body) if isinstance(s, For)]
    return sch, loops[0], loops[1]


def loads(
    s: Stmt, fetched: bool, at: PrimVar, values: dict[PrimVar, int]
) -> Iterator[tuple[int, Place]]:
    """Where `b` is loaded, or asked for, and in which iteration of a loop."""
    match s:
        case For():
            begin, extent = (number_of(e, values) for e in (s.begin, s.extent))
            for i in range(begin, begin + extent):
                yield from loads(s.body, fetched, at, {**values, s.var: i})
        case Block():
            if s.predicate is None or number_of(s.predicate, values):
                bound = {a.var: number_of(a.value, values) for a in s.axes}
                yield from loads(s.body, fetched, at, {**values, **bound})
        case _:
            is_fetch = isinstance(s, Evaluate) and isinstance(s.value, Intrinsic)
            for e in (x for own in stmt_exprs(s) for x in walk_prim(own)):
                if isinstance(e, Load) and e.buffer.name == "b" and is_fetch == fetched:
                    yield values[at], tuple(number_of(i, values) for i in e.indices)
            for child in stmt_children(s):
                yield from loads(child, fetched, at, values)


@pytest.mark.rotated(2)
@pytest.mark.parametrize("seed", range(6))
def test_lines_that_are_read_later_are_asked_for(seed: int) -> None:
    random = Random(seed)
    n, distance = random.choice([64, 70, 90]), random.choice([1, 2])
    width = random.choice([16, 20, 48])
    sch, strip, _ = strips(random.choice([2, 4, 9]), n, 3, width, distance)
    asked = set(loads(sch.func.body, True, strip, {}))
    begins = {s: s * width for s, _ in asked}
    for s, (k, j) in set(loads(sch.func.body, False, strip, {})):
        if s >= distance:  # the end of each line from where a strip begins, or of the strip
            line = (j - begins[s]) // 16
            last = min(begins[s] + min(line * 16 + 15, width - 1), n - 1)
            assert (s - distance, (k, last)) in asked
    assert all(0 <= j < n for _, (_, j) in asked)


@pytest.mark.rotated(1)
def test_each_tile_asks_for_its_share() -> None:
    sch, _, tile = strips(m=12, n=256, k=3, width=64)
    asked = [(t, place) for t, place in loads(sch.func.body, True, tile, {})]
    assert len(asked) == 3 * 4 * 3 + 3 * 4 * 1  # four lines by the first four tiles of six
    assert {t for t, _ in asked} == {0, 1, 2, 3}


@pytest.mark.parametrize(("sharers", "tiles"), [(1, 1), (2, 2), (3, 2), (100, 4)])
def test_so_many_tiles_share_at_most(sharers: int, tiles: int) -> None:
    """Whole lines: of four, three tiles have two each, so that the third has none left.

    What is behind these asks for the last share again, without a condition.
    """
    sch, strip, tile = strips(m=12, n=256, k=3, width=64, sharers=sharers)
    asked: dict[int, set[object]] = {}
    for t, place in loads(sch.func.body, True, tile, {}):
        asked.setdefault(t, set()).add(place)
    assert set(asked) == set(range(6))
    assert len({frozenset(asked[t]) for t in range(tiles)}) == tiles
    assert all(asked[t] == asked[tiles - 1] for t in range(tiles, 6))
    places = {place for _, place in loads(sch.func.body, True, strip, {})}
    assert sorted({j for _, j in places}) == list(range(79, 256, 16))
    assert_same(product(12, 256, 3), after(sch.func, *lowering()), {})


def test_nobody_who_shares_is_refused() -> None:
    with pytest.raises(UnityError, match="argument 9 'sharers': it must be positive, got 0"):
        strips(sharers=0)


def test_nothing_is_computed_by_it() -> None:
    for sizes in ((12, 70, 5), (3, 26, 1), (1, 100, 4)):
        sch, *_ = strips(*sizes)
        assert_same(product(*sizes), sch.func, {})
        low = after(sch.func, *lowering())
        assert_same(product(*sizes), low, {})
        fetches = [s for s in walk_stmt(low.body) if isinstance(s, Evaluate)]
        assert fetches


def test_what_was_made_before_the_loop_is_asked_for() -> None:
    sch = Schedule(product(3, 26, 5))
    sch.cache_read("product", 0, "global")
    asks(0, 0, 0)(sch)
    assert_same(product(3, 26, 5), sch.func, {})
    assert_same(product(3, 26, 5), after(sch.func, *lowering()), {})


def test_it_is_printed_replayed_and_moved_around() -> None:
    sch, *_ = strips()
    again = Schedule(product(12, 70, 5)).replay(Trace.from_json(sch.trace.to_json()))
    assert str(again.func) == str(sch.func)
    module = IRModule({"main": sch.func})
    assert print_module(parse(print_module(module))) == print_module(module)
    strip, tile = sch.get_loops("product")[:2]
    sch.parallel(sch.fuse(strip, tile))
    assert_same(product(12, 70, 5), sch.func, {})
    assert_same(product(12, 70, 5), after(sch.func, *lowering()), {})


def test_a_loop_beside_the_block_asks() -> None:
    """What one stage reads of the next row is asked for while another works on this one."""
    before = parse("""
@script.prim_func
def main(a: f32[Buffer, 8, 64], c: f32[Buffer, 8, 64]) -> None:
    t = T.alloc((64,), "float32")
    for i in range(8):
        for j in range(64):
            with T.block("copy"):
                vi, vj = T.axis.remap("SS", i, j)
                t[vj] = a[vi, vj]
        for j in range(64):
            with T.block("power"):
                vi, vj = T.axis.remap("SS", i, j)
                c[vi, vj] = T.exp(t[vj])
""").prim_funcs()["main"]
    sch = Schedule(before)
    row, column = sch.get_loops("power")
    step, _ = sch.split(column, [4, None])
    with pytest.raises(UnityError, match="it is not around the block"):
        sch.prefetch("copy", 0, row, step)
    lines = sch.prefetch("copy", 0, row, step, step)
    assert sch.get_loops(lines)[:2] == (row, step)
    asked = [s.value for s in walk_stmt(sch.func.body) if isinstance(s, Evaluate)]
    assert len(asked) == 1  # a line of each four
    assert "a[vi, vj]" in str(sch.func)
    assert "vi = T.axis.spatial(8, T.min(7, i + 1))" in str(sch.func)
    assert_same(before, after(sch.func, *lowering()), {})


def asks(
    index: int, loop: int, at: int, shared_by: int | None = None, distance: int = 1
) -> Callable[[Schedule], object]:
    """A step with the product's loops by number."""

    def step(s: Schedule) -> object:
        loops = s.get_loops("product")
        shared = None if shared_by is None else loops[shared_by]
        return s.prefetch("product", index, loops[loop], loops[at], shared, distance)

    return step


def _temporary(s: Schedule) -> None:
    copy = s.cache_read("product", 0, "global")
    s.compute_at(copy, s.get_loops("product")[0])
    asks(0, 0, 0)(s)


def _loop_of_another_block(s: Schedule) -> None:
    copy = s.cache_read("product", 1, "global")
    s.prefetch("product", 0, s.get_loops("product")[0], s.get_loops(copy)[0])


REFUSED: dict[str, tuple[Callable[[Schedule], object], str]] = {
    "no such read": (
        asks(2, 0, 1),
        "prefetch, argument 2 'index': 'product' has 2 reads, got 2",
    ),
    "what the kernel makes": (
        _temporary,
        "prefetch, argument 2 'index': 'a_global' is no parameter: the kernel makes it when it",
    ),
    "the same in each iteration": (
        asks(0, 1, 2),
        "prefetch, argument 3 'loop': each iteration of 'j' reads the same of 'a'",
    ),
    "loops the wrong way round": (
        asks(0, 1, 0),
        "prefetch, argument 3 'loop': it is not around 'at'",
    ),
    "a loop of another block": (
        _loop_of_another_block,
        "prefetch, argument 4 'at': it is not around the block",
    ),
    "shared by a loop that moves": (
        asks(1, 1, 2, 2),
        "prefetch, argument 5 'shared_by': what is read of 'b' is not the same in each",
    ),
    "shared by a loop outside": (
        asks(1, 1, 2, 0),
        "prefetch, argument 5 'shared_by': it is not between 'j' and 'at'",
    ),
    "back in time": (
        asks(0, 0, 1, distance=0),
        "prefetch, argument 6 'distance': it must be positive, got 0",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    step, message = REFUSED[case]
    with pytest.raises(UnityError) as error:
        step(Schedule(product(4, 8, 3)))
    assert message in str(error.value)


def test_sizes_must_be_known() -> None:
    source = """
    n = dim("n")

    @script.prim_func
    def main(a: f32[Buffer, 8, n], c: f32[Buffer, 8, n]) -> None:
        for i, j in T.grid(8, n):
            with T.block("copy"):
                vi, vj = T.axis.remap("SS", i, j)
                c[vi, vj] = a[vi, vj]
    """
    sch = Schedule(parse(dedent(source)).prim_funcs()["main"])
    i, j = sch.get_loops("copy")
    with pytest.raises(UnityError, match="how much of 'a' is read in an iteration is not known"):
        sch.prefetch("copy", 0, i, i)
    sch.prefetch("copy", 0, i, j)


@pytest.mark.parametrize("k", [0, 3])
def test_a_sum_over_nothing_is_begun_where_it_is_fetched_ahead(k: int) -> None:
    """What only fetches stands beside the block in the loop that may be empty."""
    before = parse("""
n = dim("n")

@script.prim_func
def main(a: f32[Buffer, n, 4], c: f32[Buffer, 4]) -> None:
    for j, l in T.grid(4, n):
        with T.block("sums"):
            vj, vk = T.axis.remap("SR", j, l)
            with T.init():
                c[vj] = 2.0
            c[vj] += a[vk, vj]
""").prim_funcs()["main"]
    sch = Schedule(before)
    _, step = sch.get_loops("sums")
    sch.prefetch("sums", 0, step, step)
    assert_same(before, sch.func, {"n": k})
    assert_same(before, after(sch.func, *lowering()), {"n": k})


def test_so_many_lines_are_asked_for_where_a_fact_holds() -> None:
    """Their number stays one: the fact is asked, and no loop counts them."""
    before = parse("""
m = dim("m")


@script.prim_func
def main(
    a: f32[Buffer, m, 4], b: f32[Buffer, 4, 64], c: f32[Buffer, m, 64], m: T.size
) -> None:
    for j, i, l, k in T.grid(2, m, 4, 32):
        with T.block("product"):
            vi = T.axis.spatial(m, i)
            vj = T.axis.spatial(64, j * 32 + k)
            vk = T.axis.reduce(4, l)
            with T.init():
                c[vi, vj] = 0.0
            c[vi, vj] += a[vi, vk] * b[vk, vj]
""").prim_funcs()["main"]
    sch = Schedule(before)
    strip, row, step, _ = sch.get_loops("product")
    (block,) = (s for s in walk_stmt(sch.func.body) if isinstance(s, Block))
    index = next(k for k, r in enumerate(block.reads) if r.buffer.name == "b")
    lines = sch.prefetch(
        "product", index, strip, step, row, when="m > 2", sharers=1, all_share=True
    )
    assert sch.extent(sch.get_loops(lines)[-1]) == 2
    assert "T.where(m > 2)" in str(sch.func)
    again = Schedule(before).replay(Trace.from_json(sch.trace.to_json()))
    assert str(again.func) == str(sch.func)
    for m in (1, 5):
        assert_same(before, after(sch.func, *lowering()), {"m": m})
