"""Pipelines are data, and instruments look on without being known to the passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.graph import Body, Constant, Function
from unity.ir.module import IRModule
from unity.script import parse
from unity.transform import Context, Pass, Pipeline, Precision, map_functions, pipeline
from unity.transform import graph as graph_passes
from unity.transform.graph import (
    EliminateCommonSubexpr,
    EliminateDeadCode,
    FoldConstants,
    FuseOps,
    LegalizeOps,
    Normalize,
    PlanMemory,
    SimplifyOps,
)
from unity.transform.instruments import NumericCheck, Print, Timing, Verify, bisect
from unity.transform.schedule import Schedule, ScheduleByRule, ScheduleDefault

MODULE = """
@script.function
def main(x: f32[Tensor, 3]) -> f32[Tensor, 3]:
    y = x
    return R.exp(y)
"""


@dataclass(frozen=True, slots=True)
class Break(Pass):
    """Makes every function return zeros: a pass with a mistake."""

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        zeros = Constant(np.zeros(3, np.float32))

        def broken(f: Function) -> Function:
            return Function(f.params, Body(f.body.blocks, zeros), f.result)

        return map_functions(module, broken)


@dataclass(frozen=True, slots=True)
class Unbind(Pass):
    """Drops every binding but keeps their uses: the result does not verify."""

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        return map_functions(
            module, lambda f: Function(f.params, Body((), f.body.result), f.result)
        )


def names(p: Pipeline) -> list[str]:
    return [step.name for step in p.passes]


SHORT = Pipeline((Normalize(), FoldConstants(), EliminateDeadCode(), EliminateDeadCode()))


def test_insertion() -> None:
    before = SHORT.insert_before(FoldConstants, SimplifyOps())
    assert names(before)[:3] == ["Normalize", "SimplifyOps", "FoldConstants"]
    after = SHORT.insert_after(EliminateDeadCode, SimplifyOps())
    assert names(after)[-2:] == ["EliminateDeadCode", "SimplifyOps"]
    assert len(SHORT.passes) == 4


def test_replacement_and_removal() -> None:
    assert names(SHORT.without(EliminateDeadCode)) == ["Normalize", "FoldConstants"]
    replaced = SHORT.replace(FoldConstants, FoldConstants(limit=1))
    assert FoldConstants(limit=1) in replaced.passes
    assert FoldConstants() not in replaced.passes
    assert names(SHORT.until(EliminateDeadCode)) == ["Normalize", "FoldConstants"]
    assert names(SHORT + Pipeline((Break(),)))[-1] == "Break"


@pytest.mark.parametrize("edit", ["insert_before", "insert_after", "replace", "without"])
def test_a_pass_that_is_not_there(edit: str) -> None:
    with pytest.raises(UnityError, match="has no FuseOps") as caught:
        getattr(SHORT, edit)(FuseOps)
    assert caught.value.hint is not None
    assert "Normalize, FoldConstants, EliminateDeadCode" in caught.value.hint


@pytest.mark.parametrize("edit", ["insert_before", "insert_after", "replace", "without"])
def test_passes_are_named_by_their_class(edit: str) -> None:
    with pytest.raises(UnityError, match=r"named by their class, got FoldConstants"):
        getattr(SHORT, edit)(FoldConstants())


def test_a_pipeline_holds_passes_only() -> None:
    classes: list[Any] = [Normalize]
    with pytest.raises(UnityError, match=r"(?s)made of passes, got Normalize.*write Normalize\(\)"):
        Pipeline(tuple(classes))


def test_repr_is_runnable() -> None:
    scope = {**vars(graph_passes), "Pipeline": Pipeline}
    for p in (SHORT, Pipeline(), Pipeline((PlanMemory(in_place=False),))):
        assert eval(repr(p), scope) == p


@pytest.mark.parametrize("precision", ["f32", "bf16", "f16"])
def test_what_print_shows_makes_the_pipeline(precision: Precision) -> None:
    given = pipeline("cpu", precision)
    scope: dict[str, object] = {}
    exec(str(given), scope)
    assert scope["pipeline"] == given
    assert hash(scope["pipeline"]) == hash(given)


def test_passes_of_users_print_with_their_imports() -> None:
    def halves(schedule: Schedule) -> bool:
        return False

    text = str(Pipeline((Break(), ScheduleByRule((halves, outermost)))))
    assert f"from {__name__} import Break, outermost\n" in text
    assert "# halves is local to a function: it must be in scope\n" in text
    scope: dict[str, object] = {"halves": halves}
    exec(text, scope)
    assert scope["pipeline"] == Pipeline((Break(), ScheduleByRule((halves, outermost))))


def outermost(schedule: Schedule) -> bool:
    return True


def test_default_pipeline_order() -> None:
    found = names(pipeline("cpu"))
    for first, then in [
        (Normalize, LegalizeOps),
        (EliminateCommonSubexpr, LegalizeOps),
        (LegalizeOps, FuseOps),
        (FuseOps, PlanMemory),
    ]:
        assert found.index(first.__name__) < found.index(then.__name__)


def test_passes_give_the_same_module_when_there_is_nothing_to_do() -> None:
    module = Pipeline((Normalize(), EliminateDeadCode())).run(parse(MODULE), Context())
    for step in (Normalize(), FoldConstants(), SimplifyOps(), EliminateCommonSubexpr()):
        assert step(module, Context()) is module
    assert EliminateDeadCode()(module, Context()) is module


def test_timing() -> None:
    timing = Timing()
    SHORT.run(parse(MODULE), Context(instruments=(timing,)))
    assert timing.calls == {"Normalize": 1, "FoldConstants": 1, "EliminateDeadCode": 2}
    lines = str(timing).splitlines()
    assert [line.split()[0] for line in lines] == [*timing.calls, "total"]
    assert timing.total == pytest.approx(sum(timing.seconds.values()))


def test_print_after_named_passes() -> None:
    shown: list[str] = []
    dial = Print(("Normalize",), write=shown.append)
    SHORT.run(parse(MODULE), Context(instruments=(dial,)))
    (text,) = shown
    assert text.startswith("# after Normalize\n")
    assert "R.exp(x)" in text


def test_verify_names_the_pass() -> None:
    broken = Pipeline((Normalize(), Unbind()))
    with pytest.raises(UnityError, match=r"after Unbind: main.* not in scope"):
        broken.run(parse(MODULE), Context(instruments=(Verify(),)))


def test_verify_checks_what_a_pass_is_given() -> None:
    module = Unbind()(parse(MODULE), Context())
    with pytest.raises(UnityError, match=r"before Normalize"):
        SHORT.run(module, Context(instruments=(Verify(),)))


def test_numeric_check_names_the_first_diverging_pass() -> None:
    args = [np.ones(3, np.float32)]
    check = NumericCheck(interpret, {"main": args})
    wrong = Pipeline((Normalize(), Break(), EliminateDeadCode()))
    with pytest.raises(UnityError, match=r"^Break changed what 'main' computes: at \[0\]"):
        wrong.run(parse(MODULE), Context(instruments=(check,)))


@pytest.mark.parametrize("place", range(5))
def test_bisect_finds_the_culprit(place: int) -> None:
    args = [np.ones(3, np.float32)]
    steps: Sequence[Pass] = SHORT.passes
    wrong = Pipeline((*steps[:place], Break(), *steps[place:]))
    expected = np.exp(args[0])

    def good(module: IRModule) -> bool:
        result = interpret(module, "main", args)
        return isinstance(result, np.ndarray) and bool(np.allclose(result, expected))

    assert bisect(wrong, parse(MODULE), Context(), good) == Break()
    assert bisect(SHORT, parse(MODULE), Context(), good) is None


def test_what_is_no_option_of_a_pass_is_refused() -> None:
    passes: dict[str, Callable[..., object]] = {
        "FuseOps": FuseOps,
        "ScheduleDefault": ScheduleDefault,
    }
    for name, make in passes.items():
        with pytest.raises(UnityError, match=f"{name} has no parameter 'bogus'") as caught:
            make(bogus=1)
        assert caught.value.hint is not None
        assert caught.value.hint.startswith(f"{name}(")
