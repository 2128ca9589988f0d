"""What a schedule refuses and how it says so; traces; handles that survive."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from unity.errors import UnityError
from unity.ir.equality import structural_equal
from unity.ir.stmt import PrimFunc
from unity.script import parse
from unity.transform.schedule import Instruction, Schedule, Trace


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
