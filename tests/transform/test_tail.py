"""Where pipelines are cut: behind every pass that might look at more than a kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import pytest

from unity.ir.equality import first_difference
from unity.ir.module import IRModule
from unity.machine.target import Target
from unity.script import parse
from unity.transform import Context, Pass, Pipeline, pipeline
from unity.transform.graph import LowerCalls, PlanMemory
from unity.transform.schedule import ScheduleDefault
from unity.transform.tail import Tail, split
from unity.transform.tensor import SimplifyTir, UnrollLoops, VectorizeLoops


@dataclass(frozen=True, slots=True)
class Mine(Pass):
    """Somebody's pass, of which nothing is known."""

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        return module


@dataclass(frozen=True, slots=True)
class Inherits(SimplifyTir):
    """Somebody's pass that says it is one of ours."""


@dataclass(frozen=True, slots=True)
class Asks(SimplifyTir):
    """A pass with an option whose text does not tell it."""

    rule: Callable[[int], int] = abs


Asks.__module__ = SimplifyTir.__module__


@pytest.mark.parametrize("step", [Mine(), Inherits(), Asks()])
def test_a_pass_that_is_not_known_ends_what_is_cached(step: Pass) -> None:
    _, tail = split(pipeline().insert_after(VectorizeLoops, step))
    behind = [
        "ForwardStores", "HoistFunctions", "UnrollLoops", "SimplifyTir", "HoistMasks",
        "TileRegisters",
    ]  # fmt: skip
    assert [p.name for p in tail.passes] == behind
    whole, tail = split(pipeline() + Pipeline((step,)))
    assert tail == Tail(())
    assert len(whole.passes) == len(pipeline().passes) + 1


def test_options_are_part_of_what_a_tail_is() -> None:
    plain = split(pipeline())[1].identity
    assert plain == split(pipeline())[1].identity
    assert (
        split(pipeline().replace(VectorizeLoops, VectorizeLoops(max_lanes=8)))[1].identity != plain
    )
    assert split(pipeline().without(UnrollLoops))[1].identity != plain
    # The plan of memory changes no kernel but by what it lets it write over, which is asked apart.
    assert split(pipeline().replace(PlanMemory, PlanMemory(in_place=False)))[1].identity == plain


PROGRAM = """
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 64], w: f32[Tensor, 64, 64]) -> f32[Tensor, n, 64]:
    y = R.nn.softmax(R.matmul(x, w), axis=1)
    return R.matmul(y, w)
"""
TARGET = Target("cpu", "x86_64-unknown-linux-gnu", "haswell", ("avx2", "fma"), 256, 16, threads=2)


def test_a_kernel_alone_becomes_what_it_becomes_in_its_module() -> None:
    ctx = Context(TARGET)
    head, tail = split(pipeline())
    before = head.run(parse(PROGRAM), ctx)
    after = Pipeline(tail.passes).run(before, ctx)
    kernels = [name for name in before.prim_funcs() if name in after]
    assert len(kernels) >= 2
    for name in kernels:
        alone = tail.lowered(name, before.prim_funcs()[name], ctx)
        there = after.prim_funcs()[name]
        assert first_difference(alone.body, there.body) is None
        assert len(alone.params) == len(there.params)


def test_passes_are_given_nothing_that_the_key_does_not_hold() -> None:
    """A new field of the context that kernels depend on must be named in `setting_of`."""
    assert [f.name for f in fields(Context)] == ["target", "instruments", "reports"]


def test_the_default_tail() -> None:
    _, tail = split(pipeline())
    assert tail.passes[0] == ScheduleDefault()
    assert LowerCalls() in tail.passes
    assert LowerCalls() not in tail.steps
