"""What TVM prints after each pass of its pipeline for CPUs: read, and the numbers stay the same."""

from __future__ import annotations

from functools import cache
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from unity.errors import UnityError
from unity.interpreter import run_prim_func
from unity.script import parse, print_module, tvmscript
from unity.script.program import ScriptPrimFunc

from .tvm_oracle import Array

HEAD = """
@I.ir_module(s_tir=True)
class Module:
    @T.prim_func(s_tir=True)
    def main(a: T.handle, b: T.handle, c: T.handle):
"""
KERNELS = {
    "a sum of known sizes": """
        A = T.match_buffer(a, (3, 5), "float32")
        B = T.match_buffer(b, (5, 4), "float32")
        C = T.match_buffer(c, (3, 4), "float32")
        for i, j, k in T.grid(3, 4, 5):
            with T.sblock("c"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    """,
    "sizes that a call says": """
        n = T.int64()
        A = T.match_buffer(a, (n, 32), "float32")
        B = T.match_buffer(b, (32,), "float32")
        C = T.match_buffer(c, (n, 32), "float32")
        D = T.sblock_alloc_buffer((n, 32), "float32")
        for i, j in T.grid(n, 32):
            with T.sblock("d"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = A[vi, vj] + B[vj]
        for i, j0 in T.grid(n, 4):
            for j1 in T.vectorized(8):
                with T.sblock("c"):
                    vi = T.axis.spatial(n, i)
                    vj = T.axis.spatial(32, j0 * 8 + j1)
                    C[vi, vj] = D[vi, 31 - vj] * T.if_then_else(vj < 5, A[vi, 0], T.float32(1))
    """,
    "places in an array": """
        at = T.int32()
        A = T.match_buffer(a, (8, 8), "float32", elem_offset=at)
        B = T.match_buffer(b, (8,), "float32")
        C = T.match_buffer(c, (8, 8), "float32")
        for i in T.parallel(8):
            for j in T.unroll(4):
                C[i, j * 2] = T.max(A[j, i], B[j])
    """,
}
SIZES = {
    "a sum of known sizes": ((3, 5), (5, 4), (3, 4)),
    "sizes that a call says": ((2, 32), (32,), (2, 32)),
    "places in an array": ((8, 8), (8,), (8, 8)),
}
PACKED = "tirx.MakePackedAPI"


@cache
def stages(kernel: str) -> dict[str, str]:
    """The texts that TVM prints, by the pass after which it printed each first."""
    tvm = pytest.importorskip("tvm", reason="TVM prints them")
    found: dict[str, str] = {}

    class Printing:
        def run_after_pass(self, module: Any, info: object) -> None:
            text = module.script() if isinstance(module, tvm.IRModule) else ""
            if text and text not in found.values() and PACKED not in found:
                found[str(getattr(info, "name", info))] = text

    body = "\n".join("        " + line for line in dedent(KERNELS[kernel]).strip().splitlines())
    given = tvm.script.from_source(HEAD + body + "\n")
    found["start"] = given.script()
    printing = tvm.instrument.pass_instrument(Printing)()
    with tvm.transform.PassContext(instruments=[printing]):
        tvm.compile(given, target="llvm")
    return found


@pytest.mark.long("TVM is imported for the first of them")
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_stage_computes_the_same(kernel: str) -> None:
    texts = stages(kernel)
    assert len(texts) > 5
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-4, 5, shape).astype(np.float32) for shape in SIZES[kernel])
    results: dict[str, Array] = {}
    for stage, text in texts.items():
        if stage == PACKED:
            continue
        module = tvmscript.parse(text)
        assert print_module(parse(print_module(module))) == print_module(module)
        out = c.copy()
        run_prim_func(module.prim_funcs()["main"], [a, b, out])
        results[stage] = out
    compiled = c.copy()
    ScriptPrimFunc("main", tvmscript.parse(texts["start"]).prim_funcs()["main"])(a, b, compiled)
    for stage, result in results.items():
        np.testing.assert_array_equal(result, compiled, err_msg=stage)
    assert not np.array_equal(compiled, c)


def test_the_convention_of_packed_functions_is_refused_by_name() -> None:
    with pytest.raises(UnityError, match="way of calling packed functions") as caught:
        tvmscript.parse(stages("a sum of known sizes")[PACKED])
    assert "MakePackedAPI" in str(caught.value.hint)


def test_sizes_of_a_whole_module() -> None:
    text = """
n = TypeVar("n")

@T.prim_func
def f(A: T.Buffer((n, 2), "float32"), B: T.Buffer((n, 2), "float32")):
    A_1 = A.view(n * 2)
    for i in range(n * 2):
        B[i // 2, i % 2] = A_1[i]
"""
    printed = print_module(tvmscript.parse(text))
    assert "A: f32[Buffer, n, 2]" in printed
    assert "A[i // 2, i % 2]" in printed


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('x = A.view("int32")', "takes the extents of another shape"),
        (
            'x = T.alloc_buffer((4,), annotations={"buffer_allocated_addr": [8]})',
            "no 'buffer_allocated_addr' for an allocation",
        ),
        ('x = T.alloc_buffer((4,), annotations={"pace": 2})', "no 'pace' for an allocation"),
    ],
)
def test_what_has_no_meaning_is_refused(line: str, message: str) -> None:
    text = f'@T.prim_func\ndef f(A: T.Buffer((4,), "float32")):\n    {line}\n    A[0] = 1.0\n'
    with pytest.raises(UnityError, match=message) as caught:
        tvmscript.parse(text)
    assert caught.value.span is not None
