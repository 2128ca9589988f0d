"""A rule whose steps are refused passes stages on, and what takes them tells why."""

from __future__ import annotations

from tests.transform.tensor.kernels import CPU, KERNELS
from unity.errors import UnityError
from unity.ir.stmt import PrimFunc
from unity.machine.target import Target
from unity.transform.blocks.nest import Nest, nest_of
from unity.transform.rules.decisions import AppliedRule
from unity.transform.rules.elementwise import ELEMENTWISE
from unity.transform.rules.fallback import AS_WRITTEN
from unity.transform.rules.rule import Nothing, by_steps, first_of
from unity.transform.schedule import Schedule


def kernel() -> PrimFunc:
    """Some elementwise kernel."""
    return next(k for k in KERNELS if k.name == "channels").make()


def _any(nest: Nest, _target: Target) -> Nest:
    return nest


def _too_far(sch: Schedule, nest: Nest, _how: Nothing, _result: str) -> None:
    sch.unroll(sch.get_loops(nest.name)[-1])
    raise UnityError("the step is not known to be legal")


REFUSED = by_steps(
    "refused",
    _any,
    decide=lambda *_: Nothing(),
    legal=lambda *_: {},
    nest=lambda nest: nest,
    steps=_too_far,
)


def test_what_was_passed_on_is_told() -> None:
    nest = nest_of(kernel().body)
    assert nest is not None
    found = first_of((REFUSED, ELEMENTWISE, AS_WRITTEN), nest, CPU)
    assert found.rule == "elementwise"
    assert found.passed == ("refused: the step is not known to be legal",)
    rule = AppliedRule(found.rule, ("y",), {"lanes": 8}, {}, found.passed)
    line = "elementwise(lanes=8) on y; not refused: the step is not known to be legal"
    assert str(rule) == line
    assert first_of((REFUSED, AS_WRITTEN), nest, CPU).rule == "as_written"
