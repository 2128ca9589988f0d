"""Constants begin on cache lines, and a module keeps no others beside them."""

from __future__ import annotations

import numpy as np

import unity
from unity.codegen.vm.alignment import on_lines, with_aligned_constants
from unity.codegen.vm.build import build_program
from unity.interpreter import interpret
from unity.ir.arrays.aligned import LINE
from unity.ir.equality import structural_equal
from unity.machine.target import Target
from unity.script import constants_of, parse
from unity.transform import Context, pipeline

TEXT = """
@script.function
def main(x: f32[Tensor, 40]) -> f32[Tensor, 40]:
    if R.const(True, "bool"):
        y = R.add(x, R.const("a"))
    else:
        y = R.add(x, R.const("b"))
    return R.add(y, R.const("a"))
"""

CLOSURE = """
@script.function
def main(x: f32[Tensor, 4, 4]):
    @script.function
    def closure(y: f32[Tensor, 4, 4]):
        places = R.nonzero(R.greater(R.const("table"), y))
        return places
    places_of = closure(x)
    return places_of
"""


def test_the_program_reads_the_constants_that_the_module_has() -> None:
    odd = np.arange(82, dtype=np.float32)[1:]
    weights = {"a": odd[:40], "b": odd[41:]}
    assert any(w.ctypes.data % LINE for w in weights.values())
    module = pipeline("cpu").run(parse(TEXT, weights), Context(Target("cpu", "x86_64", "", ())))
    moved = with_aligned_constants(module)
    assert structural_equal(moved, module)
    data = list(constants_of(moved).values())
    assert data
    assert all(d.ctypes.data % LINE == 0 for d in data)
    read = [c for c in build_program(moved).constants if c.size == 40]
    assert {id(c) for c in read} <= {id(d) for d in data}
    assert with_aligned_constants(moved) is moved


def test_a_constant_with_gaps_is_read_without_them() -> None:
    gapped = np.arange(64, dtype=np.float32).reshape(4, 16)[:, 2:6]
    (constant,) = on_lines([gapped])
    assert constant.flags.c_contiguous
    np.testing.assert_array_equal(constant, gapped)
    module = parse(CLOSURE, {"table": gapped})
    x = np.full((4, 4), 34, np.float32)
    compiled = unity.compile(module, cache=None, check=True)
    assert "bytecode" in repr(compiled)  # native code has constants of its own
    np.testing.assert_array_equal(compiled(x), interpret(module, "main", [x]))
