"""What stands in for functions that nobody has: what it gives, and that both machines run it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import unity
from unity.interpreter import interpret
from unity.ir.dtype import FLOAT32
from unity.ir.types import TensorType
from unity.script import tvmscript

from .stand_ins import Expected, StandIn, parameters, stand_ins, with_stand_ins
from .tvmscript_numbers import by_tvm, by_unity, entry, flat
from .tvmscript_sources import Outcome, Script

CALLS = """
@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32"),
             put: R.Callable([R.Prim("int64"), R.Any], R.Tuple([]), purity=False)):
        a = R.call_pure_packed("my_product", x, y, ty_args=R.Tensor((2, 3), "float32"))
        b = R.call_dps_packed("my_cell", (a, x), R.Tensor((2, 3), dtype="float32"))
        c = R.call_packed("get", R.prim_value(1), ty_args=(R.Any,))
        d = R.match_cast(c, R.Tensor((3,), "float32"))
        put(R.prim_value(0), b)
        return (a, b, d)
"""


def test_it_is_the_weighted_mean_of_what_it_is_given() -> None:
    it = StandIn([Expected(TensorType((2,), FLOAT32))])
    a, b = np.array([3, 6], np.float32), np.array([0, 3], np.float32)
    np.testing.assert_allclose(np.asarray(it(a, b)), [1, 4])
    np.testing.assert_allclose(np.asarray(it(b, a)), [2, 5])
    target = np.zeros((2, 2), np.float32)
    StandIn(outputs=1).write(a, target)
    np.testing.assert_array_equal(target, [[3, 6], [3, 6]])
    assert it.given == []
    loud = StandIn(effects=True)
    loud(1, (a, b))
    assert [g.tolist() for g in loud.given] == [1, [3, 6], [0, 3]]


def test_it_gives_what_the_program_expects_of_the_call() -> None:
    module = tvmscript.parse(CALLS)
    found = stand_ins(module)
    assert sorted(found) == ["get", "my_cell", "my_product"]
    assert [e.numbers for e in found["get"].expected] == [(1,)]
    assert np.asarray(found["get"](1)).shape == (3,)
    assert (found["my_cell"].outputs, found["my_product"].effects) == (1, False)
    assert [p.name for p in parameters(entry(module)[1])] == ["put"]


def test_interpreted_and_compiled_call_it() -> None:
    module = tvmscript.parse(CALLS)
    bound = parameters(entry(module)[1])
    put = next(iter(bound.values()))
    made = with_stand_ins(module, "main", stand_ins(module), bound)
    x, y = np.full((2, 3), 3, np.float32), np.zeros((2, 3), np.float32)
    for run in (lambda: interpret(made, "main", [x, y]), lambda: unity.compile(made)["main"](x, y)):
        put.given.clear()
        a, b, d = flat(run())
        assert [np.ravel(v)[0] for v in (a, b, d)] == pytest.approx([1, 7 / 3, 1])
        np.testing.assert_array_equal(put.given[1], b)


@pytest.mark.long("TVM compiles a program")
def test_tvm_calls_it_too(tmp_path: Path) -> None:
    pytest.importorskip("tvm", reason="TVM is the oracle here")
    script = Script("head", "here:1 Module", "module", CALLS, counts=True, device=None)
    assert by_tvm(str(tmp_path), script) == Outcome("read")
    assert by_unity(str(tmp_path), script) == Outcome("read")
