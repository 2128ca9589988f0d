"""What a schedule refuses and how it says so; traces; handles that survive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import pytest

from tests.transform.tensor.kernels import after, assert_same
from unity.errors import UnityError
from unity.ir.equality import structural_equal
from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc
from unity.ir.well_formed.verify import verify
from unity.script import parse
from unity.transform.schedule import (
    Instruction,
    LoopRef,
    Schedule,
    TensorIntrinsic,
    Trace,
    register_intrinsic,
)
from unity.transform.schedule.intrinsics import INTRINSICS
from unity.transform.tensor import lowering


def program() -> PrimFunc:
    """Three stages: point by point, a window, a sum of rows."""
    return parse("""
n = dim("n")

@script.prim_func
def main(x: f32[Buffer, n + 2, 8], y: f32[Buffer, n]) -> None:
    t = T.alloc((n + 2, 8), "float32")
    u = T.alloc((n, 8), "float32")
    for i, j in T.grid(n + 2, 8):
        with T.block("double"):
            vi, vj = T.axis.remap("SS", i, j)
            t[vi, vj] = x[vi, vj] * 2.0
    for i, j in T.grid(n, 8):
        with T.block("window"):
            vi, vj = T.axis.remap("SS", i, j)
            u[vi, vj] = t[vi, vj] + t[vi + 2, vj]
    for i, k in T.grid(n, 8):
        with T.block("rows"):
            vi, vk = T.axis.remap("SR", i, k)
            with T.init():
                y[vi] = 0.0
            y[vi] += u[vi, vk]
""").prim_funcs()["main"]


def _parallel_halo(s: Schedule) -> None:
    loop = s.get_loops("window")[0]
    s.compute_at("double", loop)
    s.parallel(loop)


REFUSED: dict[str, tuple[Callable[[Schedule], object], str]] = {
    "factors": (
        lambda s: s.split(s.get_loops("rows")[0], [2, 4]),
        "split, argument 2 'factors': their product 8 is not known to reach n",
    ),
    "two unknown factors": (
        lambda s: s.split(s.get_loops("rows")[0], [None, None]),
        "split, argument 2 'factors': one of them may be None, got [None, None]",
    ),
    "reduction on threads": (
        lambda s: s.parallel(s.get_loops("rows")[1]),
        "parallel, argument 1 'loop': it drives a reduce axis of block 'rows'",
    ),
    "overlapping windows on threads": (
        _parallel_halo,
        "parallel, argument 1 'loop': different iterations reach one point of block 'double'",
    ),
    "lanes without number": (
        lambda s: s.vectorize(s.get_loops("double")[0]),
        "vectorize, argument 1 'loop': its extent is no constant",
    ),
    "loops of two nests": (
        lambda s: s.reorder(s.get_loops("rows")[0], s.get_loops("window")[0]),
        "reorder, argument 1 'loops': 'i' is not in one nest with 'i'",
    ),
    "inline of an output": (
        lambda s: s.compute_inline("rows"),
        "compute_inline, argument 1 'block': 'rows' is more than the store of one formula",
    ),
    "taken before it is complete": (
        lambda s: s.reverse_compute_at("window", s.get_loops("double")[0]),
        "reverse_compute_at, argument 1 'block': it reads 't' elsewhere than at its axes",
    ),
    "scope of a parameter": (
        lambda s: s.set_scope("rows", 0, "local"),
        "set_scope, argument 2 'index': 'y' is a parameter, whose layout callers rely on",
    ),
    "a map that joins elements": (
        lambda s: s.transform_layout("double", 0, lambda i, j: (i + j,)),
        "transform_layout, argument 3 'index_map': it is not known to send each element to a "
        "place of its own",
    ),
    "no such block": (lambda s: s.get_block("sum"), "there is no block 'sum'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    step, message = REFUSED[case]
    with pytest.raises(UnityError) as caught:
        step(Schedule(program()))
    assert caught.value.message == message


def test_a_refused_step_leaves_everything_as_it_was() -> None:
    sch = Schedule(program())
    (i, k), before = sch.get_loops("rows"), sch.func
    length = len(sch.trace)
    with pytest.raises(UnityError):
        sch.fuse(k, i)
    assert sch.func is before
    assert len(sch.trace) == length


def test_handles_survive_what_happens_around_them() -> None:
    sch = Schedule(program())
    i, j = sch.get_loops("window")
    sch.split(sch.get_loops("rows")[0], [None, 4])
    sch.compute_at("double", i)
    outer, inner = sch.split(j, [2, 4])
    sch.vectorize(inner)
    assert sch.get_loops("window") == (i, outer, inner)
    with pytest.raises(UnityError, match="the loop 'j' is gone"):
        sch.unroll(j)


def test_who_reads_what() -> None:
    sch = Schedule(program())
    assert [b.name for b in sch.get_producers("window")] == ["double"]
    assert [b.name for b in sch.get_consumers("window")] == ["rows"]
    assert [b.name for b in sch.get_child_blocks(sch.get_loops("rows")[0])] == ["rows"]
    assert [b.name for b in sch.get_output_blocks()] == ["rows"]


def test_results_of_a_block() -> None:
    """What a block around others leaves behind, those within it leave."""
    sch = Schedule(program())
    outer = sch.blockize(sch.get_loops("double")[1])
    assert [b.name for b in sch.get_output_blocks(outer)] == ["double"]
    assert [b.name for b in sch.get_output_blocks()] == ["rows"]


def test_a_reader_of_two_is_done_in_the_later_one() -> None:
    before = parse("""
@script.prim_func
def main(x: f32[Buffer, 4], y: f32[Buffer, 4]) -> None:
    t = T.alloc((4,), "float32")
    u = T.alloc((4,), "float32")
    for i in range(4):
        with T.block("first"):
            vi = T.axis.spatial(4, i)
            t[vi] = x[vi] * 2.0
    for i in range(4):
        with T.block("second"):
            vi = T.axis.spatial(4, i)
            u[vi] = x[vi] + 1.0
    for i in range(4):
        with T.block("both"):
            vi = T.axis.spatial(4, i)
            y[vi] = t[vi] * u[vi]
""").prim_funcs()["main"]
    sch = Schedule(before)
    sch.reverse_compute_inline("both")
    assert [b.name for b in sch.get_producers("second")] == ["first"]
    assert_same(before, sch.func, {})


def test_decisions_are_replayed_and_may_be_changed() -> None:
    sch = Schedule(program(), seed=3)
    loop = sch.get_loops("rows")[1]
    factors = sch.sample_perfect_tile(loop, 2)
    sch.split(loop, factors)
    trace = Trace.from_json(sch.trace.to_json())
    again = Schedule(program(), seed=99).replay(trace)
    assert structural_equal(again.func, sch.func)
    other = Schedule(program()).replay(trace.with_decision(1, [4, 2]))
    expected = Schedule(program())
    expected.split(expected.get_loops("rows")[1], [4, 2])
    assert structural_equal(other.func, expected.func)


def test_a_seed_draws_the_same() -> None:
    drawn = {
        tuple(sch.sample_perfect_tile(sch.get_loops("rows")[1], 3))
        for sch in (Schedule(program(), seed=5) for _ in range(3))
    }
    assert len(drawn) == 1


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        (Trace((Instruction("exec", ()),)), "there is no instruction 'exec'"),
        (
            Trace((Instruction("unroll", ({"loop": "l7"},)),)),
            "the trace uses 'l7' before anything gives it",
        ),
    ],
)
def test_traces_that_do_not_fit(trace: Trace, message: str) -> None:
    with pytest.raises(UnityError, match=message):
        Schedule(program()).replay(trace)


def test_what_is_no_trace() -> None:
    with pytest.raises(UnityError, match="no trace"):
        Trace.from_json("[]")


@cache
def product_intrinsic() -> TensorIntrinsic:
    """Two rows by two columns, over three steps: as loops, and written out by rows."""
    text = """
@script.prim_func
def described(a: f32[Buffer, 2, 3], b: f32[Buffer, 3, 2], c: f32[Buffer, 2, 2]) -> None:
    for i, j, k in T.grid(2, 2, 3):
        with T.block("product"):
            vi, vj, vk = T.axis.remap("SSR", i, j, k)
            c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]

@script.prim_func
def made(a: f32[Buffer, 2, 3], b: f32[Buffer, 3, 2], c: f32[Buffer, 2, 2]) -> None:
    for k in range(3):
        for j in T.vectorized(2):
            c[0, j] = c[0, j] + a[0, k] * b[k, j]
        for j in T.vectorized(2):
            c[1, j] = c[1, j] + a[1, k] * b[k, j]
"""
    both = parse(text).prim_funcs()
    return TensorIntrinsic(both["described"], both["made"])


def product(op: str = "*") -> PrimFunc:
    text = f"""
@script.prim_func
def main(a: f32[Buffer, 5, 4, 6], b: f32[Buffer, 5, 6, 8], c: f32[Buffer, 5, 4, 8]) -> None:
    for n, i, j, k in T.grid(5, 4, 8, 6):
        with T.block("product"):
            vn, vi, vj, vk = T.axis.remap("SSSR", n, i, j, k)
            with T.init():
                c[vn, vi, vj] = 0.0
            c[vn, vi, vj] = c[vn, vi, vj] + a[vn, vi, vk] {op} b[vn, vk, vj]
"""
    return parse(text).prim_funcs()["main"]


def tiled(sch: Schedule) -> LoopRef:
    _, i, j, k = sch.get_loops("product")
    (i0, i1), (j0, j1), (k0, k1) = (
        sch.split(loop, [None, f]) for loop, f in ((i, 2), (j, 2), (k, 3))
    )
    sch.reorder(i0, j0, k0, i1, j1, k1)
    return i1


@pytest.fixture
def intrinsic() -> Iterator[str]:
    """An intrinsic of the product, which is there during the test alone."""
    register_intrinsic("test_product", product_intrinsic())
    yield "test_product"
    del INTRINSICS["test_product"]


def test_tensorize(intrinsic: str) -> None:
    before = product()
    sch = Schedule(before)
    sch.tensorize(tiled(sch), intrinsic)
    verify(IRModule({"main": sch.func}))
    assert_same(before, sch.func, {})
    assert_same(before, after(sch.func, *lowering()), {})
    again = Schedule(before).replay(Trace.from_json(sch.trace.to_json()))
    assert structural_equal(again.func, sch.func)


def test_tensorize_refuses_what_is_not_described(intrinsic: str) -> None:
    sch = Schedule(product("-"))
    loop = tiled(sch)
    with pytest.raises(UnityError, match="does not compute what 'test_product' describes"):
        sch.tensorize(loop, intrinsic)
    with pytest.raises(UnityError, match="there is no tensor intrinsic 'amx'"):
        sch.tensorize(loop, "amx")
