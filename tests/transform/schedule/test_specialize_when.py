"""Versions by a run-time fact: what each of them knows, what it has of its own, what is refused."""

from __future__ import annotations

import pytest

from tests.transform.schedule.hostile.program import Program, differ
from unity.errors import UnityError
from unity.ir.equality import first_difference
from unity.ir.prim_expr import Compare, SizeVar, imm
from unity.ir.stmt import IfThen
from unity.ir.visit import walk_stmt
from unity.script import parse
from unity.transform.schedule import Schedule, Trace

STRETCHED = Program(
    "a: f32[Buffer, n], b: f32[Buffer, m], c: f32[Buffer, n]",
    """
t = T.alloc((n,), "float32")
for i in range(n):
    with T.block("double"):
        vi = T.axis.spatial(n, i)
        t[vi] = a[vi] * 2.0
for i in range(n):
    with T.block("add"):
        vi = T.axis.spatial(n, i)
        c[vi] = t[vi] + T.select(m > 0, b[T.min(vi, m - 1)], 0.0)
""",
    ({"n": 3, "m": 3}, {"n": 0, "m": 0}, {"n": 5, "m": 2}, {"n": 4, "m": 0}),
)
SUM = Program(
    "a: f32[Buffer, 4, n], c: f32[Buffer, 4]",
    """
for k, i in T.grid((n + 2) // 3, 4):
    for j in range(3):
        with T.block("sum"):
            vi = T.axis.spatial(4, i)
            vk = T.axis.reduce(n, k * 3 + j)
            T.where(k * 3 + j < n)
            with T.init():
                c[vi] = 1.0
            c[vi] += a[vi, vk]
""",
    ({"n": 0}, {"n": 1}, {"n": 2}, {"n": 7}),
)


def test_a_fact_decides_what_is_read() -> None:
    sch = Schedule(STRETCHED.func())
    assert [b.name for b in sch.specialize_when("m == n")] == ["double_1", "add_1"]
    both = str(sch.func).split("else:")
    assert "t[vi] + b[vi]" in both[0]
    assert "T.min(vi, m - 1)" in both[1]
    assert [half.count("T.alloc") for half in both] == [1, 1]
    assert differ(STRETCHED, STRETCHED.func(), sch.func) is None


def test_some_nests_and_steps_in_one_version() -> None:
    sch = Schedule(STRETCHED.func())
    sch.specialize_when(Compare("ge", SizeVar("n"), imm(4)), "add")
    sch.compute_inline("double")
    sch.vectorize(sch.split(sch.get_loops("add")[0], [None, 4])[1])
    assert differ(STRETCHED, STRETCHED.func(), sch.func) is None
    for again in (Trace.from_json(sch.trace.to_json()), sch.trace):
        done = Schedule(STRETCHED.func()).replay(again).func
        assert first_difference(done, sch.func) is None
    assert 'sch.specialize_when("n >= 4", "add")' in sch.trace.to_python()


def test_a_version_knows_its_condition() -> None:
    sch = Schedule(STRETCHED.func())
    sch.specialize_when("n >= 2 and n < 4", "double")
    sch.loop_partition(sch.get_loops("double")[0], [2])
    assert "for i in range(2):" in str(sch.func)
    assert differ(STRETCHED, STRETCHED.func(), sch.func) is None


@pytest.mark.parametrize("fact", ["n >= 2", "n % 3 == 0", "n == 0", "n > 2 or n == 1"])
def test_a_reduction_over_nothing_has_its_init_in_both(fact: str) -> None:
    sch = Schedule(SUM.func())
    sch.specialize_when(fact, "sum")
    assert any(isinstance(s, IfThen) for s in walk_stmt(sch.func.body))
    assert differ(SUM, SUM.func(), sch.func) is None


NESTED = Program(
    "a: f32[Buffer, n, 4], c: f32[Buffer, n]",
    """
for k in range(4):
    x = 3
    for i in range(n):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", i, k)
            with T.init():
                c[vi] = 0.0
            c[vi] += a[vi, vk]
""",
)


@pytest.mark.parametrize(
    ("program", "fact", "message"),
    [
        (SUM, "k > 3", "unknown name 'k'"),
        (SUM, "n >", "not Python"),
        (SUM, "n; n", "this is no condition: 'n; n'"),
        (SUM, "n + 1", "argument 1 'condition': it is no condition, but of int64"),
        (SUM, "n >= 0", "argument 1 'condition': n >= 0 always holds"),
        (SUM, "n < 0", "argument 1 'condition': n < 0 never holds"),
        (STRETCHED, "n % m == 0", "argument 1 'condition': it divides by m, which may be 0"),
        (SUM, Compare("ge", SizeVar("z"), imm(1)), "argument 1 'condition': there is no size 'z'"),
        (NESTED, "n > 3", "argument 2 'blocks': 'k' around them drives the reduction 'sum'"),
    ],
)
def test_refused(program: Program, fact: str | Compare, message: str) -> None:
    sch = Schedule(program.func())
    with pytest.raises(UnityError) as caught:
        sch.specialize_when(fact, sch.get_blocks()[0])
    assert message in str(caught.value)


def test_a_size_may_be_called_as_the_language() -> None:
    func = parse(
        """
t = dim("T")

@script.prim_func
def main(a: f32[Buffer, t], c: f32[Buffer, t]) -> None:
    for i in range(t):
        with T.block("copy"):
            vi = T.axis.spatial(t, i)
            c[vi] = a[vi]
"""
    ).prim_funcs()["main"]
    sch = Schedule(func)
    sch.specialize_when("T.min(8, T_) >= 4")
    again = Schedule(func).replay(Trace.from_json(sch.trace.to_json()))
    assert first_difference(again.func, sch.func) is None
    same = Schedule(func)
    same.specialize_when("T >= 4")
    assert sum(isinstance(s, IfThen) for s in walk_stmt(same.func.body)) == 1
