"""Loops as Relay's frontends write them: functions that end in a call of themselves."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity.frontend.relay import from_relay
from unity.interpreter import interpret
from unity.ir.graph import While
from unity.ir.module import IRModule
from unity.ir.visiting.visit_graph import walk_bindings
from unity.ir.well_formed.verify import verify

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def module(text: str) -> IRModule:
    found = from_relay(f'#[version = "0.0.5"]\n{text}')
    verify(found)
    return found


def loops(found: IRModule) -> int:
    bodies = [f.body for f in found.graph_functions().values()]
    return sum(isinstance(b.value, While) for body in bodies for b in walk_bindings(body))


COUNT = """
def @loop(%i: int32, %s: Tensor[(2, 3), float32]) -> (int32, Tensor[(2, 3), float32]) {
  if (CONDITION) { THEN } else { ELSE }
}
def @main(%x: Tensor[(2, 3), float32]) { @loop(0, %x) }
"""
GOES_ON = "@loop(%i + 1, %s + 1f)"


@pytest.mark.parametrize(
    ("condition", "then", "orelse"),
    [
        ("less(%i, 5000)", GOES_ON, "(%i, %s)"),
        ("greater_equal(%i, 5000)", "(%i, %s)", GOES_ON),
    ],
)
def test_a_loop_runs_as_long_as_it_has_to(condition: str, then: str, orelse: str) -> None:
    text = COUNT.replace("CONDITION", condition).replace("THEN", then).replace("ELSE", orelse)
    found = module(text)
    assert loops(found) == 1
    count, total = unity.compile(found)(X)
    assert int(np.asarray(count)) == 5000
    np.testing.assert_array_equal(np.asarray(total), X + 5000)


def test_values_of_before_the_condition_are_read_in_both_branches() -> None:
    text = """
    def @loop(%i: int32, %s: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {
      let %twice = %s * 2f;
      let %more = less(%i, 4);
      if (%more) {
        if (equal(%i, 2)) { @stop(%twice) } else { @stop(%twice) };
        let %next = if (equal(%i, 1)) { %twice + 1f } else { %twice };
        @loop(%i + 1, %next)
      } else { %twice - 3f }
    }
    def @stop(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] { %x }
    def @main(%x: Tensor[(2, 3), float32]) { @loop(0, %x) }
    """.replace("if (equal(%i, 2)) { @stop(%twice) } else { @stop(%twice) };\n", "")
    found = module(text)
    assert loops(found) == 1
    wanted = X
    for i in range(4):
        wanted = wanted * 2 + (i == 1)
    wanted = wanted * 2 - 3
    np.testing.assert_array_equal(np.asarray(unity.compile(found)(X)), wanted)
    np.testing.assert_array_equal(np.asarray(interpret(found, "main", [X])), wanted)


def test_a_closure_carries_what_it_captured() -> None:
    text = """
    def @main(%n: int32, %x: Tensor[(2, 3), float32]) {
      let %loop = fn (%i: int32, %s: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {
        if (less(%i, %n)) { %loop(%i + 1, %s + %x) } else { %s }
      };
      %loop(0, %x)
    }
    """
    found = module(text)
    n = np.asarray(1500, np.int32)
    np.testing.assert_allclose(np.asarray(unity.compile(found)(n, X)), X * 1501, rtol=1e-5)


@pytest.mark.parametrize(
    "text",
    [
        """def @fact(%i: int32) -> int32 {
          if (less(%i, 2)) { 1 } else { %i * @fact(%i - 1) }
        }
        def @main(%n: int32) { @fact(%n) }""",
        """def @fib(%i: int32) -> int32 {
          if (less(%i, 2)) { %i } else { @fib(%i - 1) + @fib(%i - 2) }
        }
        def @main(%n: int32) { @fib(%n) }""",
    ],
)
def test_calls_that_are_not_the_last_thing_stay_calls(text: str) -> None:
    found = module(text)
    assert loops(found) == 0
    wanted = 120 if "fact" in text else 5
    assert int(np.asarray(unity.compile(found)(np.asarray(5, np.int32)))) == wanted
