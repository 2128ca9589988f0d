"""UnrollLoops loads once what all copies of a loop's body load, and nothing else."""

from __future__ import annotations

import pytest

from tests.transform.tensor.kernels import CTX, assert_same
from unity.ir.module import IRModule
from unity.ir.stmt import Let, PrimFunc, Store
from unity.ir.visit import stmt_loads, walk_stmt
from unity.script import parse
from unity.transform.tensor import UnrollLoops


def written_out(func: PrimFunc) -> PrimFunc:
    return UnrollLoops()(IRModule({"main": func}), CTX).prim_funcs()["main"]


def kernel(body: str) -> PrimFunc:
    return parse(f"""
@script.prim_func
def main(a: f32[Buffer, 8], b: f32[Buffer, 8], c: f32[Buffer, 8]) -> None:
    sums = T.alloc((8,), "float32", scope="local")
{body}
    for z in range(8):
        c[z] = sums[z]
""").prim_funcs()["main"]


def test_a_tile_loads_its_rows_and_columns_once() -> None:
    before = kernel("""
    for z in range(8):
        sums[z] = 0.0
    for k in range(4):
        for i in T.unroll(2):
            for j in T.unroll(4):
                sums[i * 4 + j] += a[k + i * 4] * b[k + j]
""")
    done = written_out(before)
    loads = [x.buffer.name for s in walk_stmt(done.body) for x in stmt_loads(s)]
    assert (loads.count("a"), loads.count("b")) == (2, 4)
    assert_same(before, done, {})


STAYS = {
    "a parameter where another is written, which may lie in its memory": """
    for j in T.unroll(4):
        c[j] = a[0] + b[j]
    for z in range(8):
        sums[z] = c[z % 4]
""",
    "what the loop itself writes": """
    for z in range(8):
        sums[z] = b[z]
    for j in T.unroll(4):
        sums[j] = sums[0] * 2.0
""",
    "what only some iterations load": """
    for z in range(8):
        sums[z] = b[z]
    for j in T.unroll(4):
        if a[j] > 0.0:
            sums[j] = a[0]
""",
    "what a choice leaves alone": """
    for z in range(8):
        sums[z] = b[z]
    for k in range(4):
        for j in T.unroll(4):
            sums[j] = T.select(b[j] > 0.0, a[k + 4], b[j])
""",
    "what a loop inside may not come to": """
    for z in range(8):
        sums[z] = b[z]
    for k in range(4):
        for j in T.unroll(4):
            for i in range(k):
                sums[j] += a[k + 4]
""",
}


@pytest.mark.parametrize("case", STAYS)
def test_what_stays(case: str) -> None:
    before = kernel(STAYS[case])
    done = written_out(before)
    assert not any(isinstance(s, Let) for s in walk_stmt(done.body))
    assert sum(isinstance(s, Store) for s in walk_stmt(done.body)) >= 4
    assert_same(before, done, {})
