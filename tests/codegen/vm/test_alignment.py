"""Constants begin on cache lines, and a module keeps no others beside them."""

from __future__ import annotations

import numpy as np

from unity.codegen.vm.alignment import with_aligned_constants
from unity.codegen.vm.build import build_program
from unity.ir.aligned import LINE
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
