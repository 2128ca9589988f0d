"""``check=True`` understands resolved programs: library calls mean what they compute."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity.checking import watched
from unity.codegen.library import LibraryFunction, register_libraries, register_library_function
from unity.errors import UnityError
from unity.script import parse
from unity.transform.graph.resolve import LIBRARY_FUNCTIONS

PROGRAM = """
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 8], w: f32[Tensor, 5, 8]) -> f32[Tensor, n, 5]:
    with R.dataflow():
        t = R.permute_dims(w, (1, 0))
        y = R.nn.relu(R.matmul(x, t))
    return y
"""


def test_a_resolved_program_is_checked() -> None:
    exe = unity.compile(parse(PROGRAM), resolve={"matmul": "library:openblas"}, check=True)
    assert exe.explain()["matmul"].choice == "library:openblas.gemm"
    x, w = np.ones((2, 8), np.float32), np.ones((5, 8), np.float32)
    np.testing.assert_array_equal(exe(x, w), np.full((2, 5), 8, np.float32))


def test_a_library_that_computes_something_else_is_found_out() -> None:
    register_libraries()
    right = LIBRARY_FUNCTIONS["openblas.gemm"]
    register_library_function(
        LibraryFunction(
            right.name,
            right.kernel,
            lambda a, b, transposed=False: a @ (b.T if transposed else b) + 1,
            right.pattern,
            right.inputs,
            right.attrs,
            right.missing,
        )
    )
    try:
        module = parse(PROGRAM)
        watch = watched(module, 1e-4)
        with pytest.raises(UnityError, match="Resolve changed what 'main' computes"):
            unity.compile(module, resolve={"matmul": "library:openblas"}, instruments=[watch])
    finally:
        register_library_function(right)
