"""A schedule printed as a program does the same when it is run."""

from __future__ import annotations

import pytest

from tests.transform.schedule.printed import difference, run_printed
from tests.transform.tensor.kernels import CPU
from unity import te
from unity.ir.equality import first_difference
from unity.ir.stmt import PrimFunc
from unity.machine.target import Target
from unity.transform.schedule import Schedule


def product() -> PrimFunc:
    a, b = te.placeholder((12, 8), "float32", "a"), te.placeholder((8, 24), "float32", "b")
    k = te.reduce_axis(8, "k")
    y = te.compute((12, 24), lambda i, j: te.sum(a[i, k] * b[k, j], [k]), "product")
    return te.create_prim_func([a, b, y])


@pytest.mark.parametrize("target", [None, CPU], ids=["no machine", "a machine"])
def test_the_printed_program_gives_the_same_kernel(target: Target | None) -> None:
    sch = Schedule(product(), target, seed=0)
    sch.transform_block_layout("product", lambda i, j, k: (j, i, k))
    outer, inner, _ = sch.get_loops("product")
    parts = sch.sample_perfect_tile(inner, 2)
    sch.split(inner, list(parts))
    sch.cache_read("product", "b", "local")
    sch.annotate(outer, "note", "it's")
    again = run_printed(sch.copy())
    assert again.target == target
    assert first_difference(again.start, sch.start) is None
    assert first_difference(again.func, sch.func) is None


def test_names_that_mean_something_else_in_a_text_do_no_harm() -> None:
    """A buffer ``max`` is printed ``max_``, and what steps make of it is called after that."""
    x = te.placeholder((8, 8, 8, 8, 8), "float32", "max")
    y = te.compute((8, 8, 8, 8, 8), lambda *i: x[i] * 2.0, "f32")
    sch = Schedule(te.create_prim_func([x, y]))
    sch.transform_block_layout("f32", lambda a, b, c, d, e: (a, c, b, d, e))  # the last is i4
    copy = sch.cache_read("f32", 0, "local")
    sch.compute_at(copy, sch.get_loops("f32")[1])
    assert difference(run_printed(sch).func, sch.func) is None
