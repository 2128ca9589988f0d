"""SimplifyTir asks a condition once: before loops that do not change it, for all in a row."""

from __future__ import annotations

from textwrap import dedent

from tests.transform.tensor.kernels import after, assert_same
from unity.ir.equality import structural_equal
from unity.ir.stmt import For, IfThen, PrimFunc
from unity.ir.visit import walk_stmt
from unity.script import parse
from unity.transform.tensor import SimplifyTir


def kernel(body: str) -> PrimFunc:
    head = "@script.prim_func\ndef main(a: f32[Buffer, 8], c: f32[Buffer, 8, 8]) -> None:"
    lines = dedent(body).strip().splitlines()
    return parse("\n".join([head, *(f"    {line}" for line in lines)])).prim_funcs()["main"]


def check(before: str, expected: str) -> None:
    func = kernel(before)
    done = after(func, SimplifyTir())
    assert structural_equal(done, kernel(expected)), done
    assert_same(func, done, {})


def test_loops_in_a_row_under_opposite_conditions() -> None:
    check(
        """
        for i in range(8):
            for j in range(4):
                if i < 3:
                    c[i, j] = a[j]
            for j in T.vectorized(4):
                if i < 3:
                    c[i, j + 4] = 1.0
            for j in range(8):
                if not i < 3:
                    c[i, j] = 0.0
        """,
        """
        for i in range(8):
            if i < 3:
                for j in range(4):
                    c[i, j] = a[j]
                for j in T.vectorized(4):
                    c[i, j + 4] = 1.0
            else:
                for j in range(8):
                    c[i, j] = 0.0
        """,
    )


def test_what_memory_holds_is_asked_where_it_stands() -> None:
    """What is stored in between may change it."""
    same = """
        for i in range(8):
            for j in range(8):
                if c[i, 0] < 3.0:
                    c[i, j] = a[j]
            if c[i, 0] < 3.0:
                c[i, 7] = 5.0
            if c[i, 0] < 3.0:
                c[i, 0] = 5.0
        """
    check(same, same)


ONCE = """
n = dim("n")


@script.prim_func
def main(a: f32[Buffer, n], c: f32[Buffer, n]) -> None:
    for i in range(T.max(0, n - 1), n):
        c[i] = a[i]
    for i in range(n % 2):
        c[i] = a[i] + 1.0
"""


def test_a_loop_of_at_most_one_iteration_is_a_condition() -> None:
    func = parse(ONCE).prim_funcs()["main"]
    done = after(func, SimplifyTir())
    kinds = [type(s) for s in walk_stmt(done.body) if isinstance(s, For | IfThen)]
    assert kinds == [IfThen, IfThen]
    for n in range(4):
        assert_same(func, done, {"n": n})
