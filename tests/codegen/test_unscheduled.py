"""What an executable tells of its kernels' schedules, however their code came to be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import dedent

import pytest

import unity
from tests.codegen.engine.stub import StubEngine
from unity.codegen.engine import register_engine
from unity.codegen.unscheduled import require_by_default
from unity.errors import UnityError
from unity.ir.equality import first_difference
from unity.ir.module import IRModule
from unity.machine.target import Target
from unity.runtime.executable import Executable
from unity.script import parse
from unity.transform import Context, Pass
from unity.transform.graph import PlanMemory
from unity.transform.instruments import Timing
from unity.transform.schedule import (
    AppliedRule,
    Schedule,
    ScheduleByRule,
    ScheduleDefault,
    Trace,
    default_schedule,
)

PROGRAM = """
n = dim("n")

@script.prim_func(attrs={"scheduled": True})
def by_hand(x: f32[Buffer, n, 30], y: f32[Buffer, n, 30]) -> None:
    for i in T.parallel(n):
        for j in range(30):
            with T.block("by_hand"):
                vi, vj = T.axis.remap("SS", i, j)
                y[vi, vj] = x[vi, vj] + 1.0

@script.function
def main(x: f32[Tensor, n, 30], w: f32[Tensor, 30, 4]) -> f32[Tensor, n, 4]:
    return R.matmul(R.call_tir(by_hand, (R.nn.relu(R.exp(x)),), out=f32[Tensor, n, 30]), w)
"""
KERNELS = ("by_hand", "fused_exp_relu", "matmul")


@cache
def plain() -> Executable:
    return unity.compile(parse(PROGRAM))


def assert_same(exe: Executable) -> None:
    """It tells of its elementwise kernel what the default rules say."""
    assert exe.kernels == plain().kernels
    before, made = exe.kernel("fused_exp_relu"), exe.schedule("fused_exp_relu")
    assert first_difference(before, plain().kernel("fused_exp_relu")) is None
    assert first_difference(made.func, default_schedule(before, exe.target).func) is None


def test_a_kernels_schedule_is_the_default_one_and_replays() -> None:
    assert sorted(plain().kernels) == sorted(KERNELS)
    assert_same(plain())
    made = plain().schedule("fused_exp_relu")
    again = Schedule(plain().kernel("fused_exp_relu"), plain().target)
    again.replay(Trace.from_json(made.trace.to_json()))
    assert first_difference(again.func, made.func) is None
    assert plain().schedule("matmul").trace


def test_no_kernel_is_copied_or_made_again() -> None:
    assert plain().kernel("matmul") is plain().kernel("matmul")


@dataclass(frozen=True, slots=True)
class Foreign(Pass):
    """A pass of somebody else's behind the schedule: the cache is asked after it."""

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        return module


@pytest.mark.parametrize("how", ["no cache", "from the cache", "watched", "a pass behind"])
def test_it_tells_the_same_however_its_code_was_made(how: str, tmp_path: Path) -> None:
    module, behind = parse(PROGRAM), unity.pipeline().insert_before(PlanMemory, Foreign())
    make: dict[str, Callable[[], Executable]] = {
        "no cache": lambda: unity.compile(module, cache=None),
        "from the cache": lambda: unity.compile(module, cache=tmp_path),
        "watched": lambda: unity.compile(module, instruments=[Timing()]),
        "a pass behind": lambda: unity.compile(module, pipeline=behind),
    }
    if how == "from the cache":
        unity.compile(module, cache=tmp_path)
    assert_same(make[how]())


def test_an_unknown_kernel_is_told_by_those_like_it() -> None:
    with pytest.raises(
        UnityError, match=r"no kernel 'fused_relu'\nhint: did you mean fused_exp_relu\?"
    ):
        plain().schedule("fused_relu")
    with pytest.raises(
        UnityError, match=r"no kernel 'zzz'\nhint: exe.kernels, or inspect --kernels, lists all"
    ):
        plain().kernel("zzz")


def test_what_is_not_laid_out_by_default_says_who_did_it(tmp_path: Path) -> None:
    with pytest.raises(UnityError, match="'by_hand' was laid out by hand or by a rule"):
        plain().schedule("by_hand")
    assert plain().kernel("by_hand").attrs["scheduled"]
    plain().save(tmp_path / "a.unity")
    loaded = unity.load(tmp_path / "a.unity")
    assert isinstance(loaded, Executable)
    for told in (loaded.kernel, loaded.schedule):
        with pytest.raises(UnityError, match="loaded from a file, which holds no source texts"):
            told("matmul")
    register_engine(StubEngine("idle"))
    other = unity.compile(parse(PROGRAM), resolve={"*": "engine:idle"})
    part, *_ = (k.name for k in other.program.kernels if k.engine)
    with pytest.raises(UnityError, match=f"{part!r} is computed by the engine idle"):
        other.schedule(part)


def parallel(schedule: Schedule) -> bool:
    """A rule of somebody's own."""
    schedule.parallel(schedule.get_loops(schedule.get_blocks()[0])[0])
    return True


def test_other_rules_and_pipelines_without_the_default_ones_are_told_apart() -> None:
    rules = unity.pipeline().insert_before(ScheduleDefault, ScheduleByRule((parallel,)))
    exe = unity.compile(parse(PROGRAM), pipeline=rules)
    with pytest.raises(UnityError, match="'matmul' was laid out by hand or by a rule"):
        exe.schedule("matmul")
    bare = unity.compile(parse(PROGRAM), pipeline=unity.pipeline().without(ScheduleDefault))
    with pytest.raises(UnityError, match="'matmul' did not go through ScheduleDefault"):
        bare.schedule("matmul")


SOFTMAX = """
@script.function
def main(x: f32[Tensor, 20, 100]) -> f32[Tensor, 20, 100]:
    return R.nn.softmax(x)
"""


def fewer(rule: AppliedRule, target: Target) -> dict[str, int]:
    """Decisions of somebody's own: half of the vectors that rules would take."""
    return {"vectors": rule.decisions["vectors"] // 2}


def test_decisions_are_changed_by_a_call_and_by_a_pipeline() -> None:
    passes = unity.pipeline().replace(ScheduleDefault, ScheduleDefault(fewer))
    usual, other = unity.compile(parse(SOFTMAX)), unity.compile(parse(SOFTMAX), pipeline=passes)
    (rule,), (others,) = usual.rules("softmax"), other.rules("softmax")
    assert others.decisions == {**rule.decisions, **fewer(rule, usual.target)}
    changed = {"peak": {"vectors": others.decisions["vectors"]}}
    assert usual.rules("softmax", changed)[0].decisions == others.decisions
    made = usual.schedule("softmax", changed)
    assert first_difference(made.func, other.schedule("softmax").func) is None
    assert first_difference(made.func, usual.schedule("softmax").func) is not None
    assert other.rules("softmax", {"total": {"vectors": 1}})[0].decisions["vectors"] == 1
    with pytest.raises(UnityError, match="vectors=0 is not legal"):
        usual.schedule("softmax", {"peak": {"vectors": 0}})


def test_a_library_function_is_named() -> None:
    source = """
    @script.prim_func(attrs={"library": "m.cos", "scheduled": True})
    def k(x: f32[Buffer, 8], y: f32[Buffer, 8]) -> None:
        with T.block("foreign"):
            T.evaluate(T.call_extern("m.cosf_n", 8, T.address_of(x[0]), T.address_of(y[0])))
    """
    with pytest.raises(UnityError, match=r"'k' is a call of the library function m.cos"):
        require_by_default("k", parse(dedent(source)).prim_funcs()["k"])


BARE = {
    "is a call of m.cosf_n: there are no loops": """
        T.evaluate(T.call_extern("m.cosf_n", 8, T.address_of(x[0]), T.address_of(y[0])))""",
    "has loops without blocks": """
        for i in range(8):
            y[i] = x[i]""",
}


@pytest.mark.parametrize("message", BARE)
def test_what_has_no_blocks_has_nothing_to_lay_out(message: str) -> None:
    head = "@script.prim_func\ndef k(x: f32[Buffer, 8], y: f32[Buffer, 8]) -> None:"
    func = parse(head + BARE[message].replace("\n    ", "\n")).prim_funcs()["k"]
    with pytest.raises(UnityError, match=message):
        require_by_default("k", func)
