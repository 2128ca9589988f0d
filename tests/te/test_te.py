"""Tensor expressions: what they compute, and the blocks they become."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from unity import structural_equal, te
from unity.errors import UnityError
from unity.interpreter import run_prim_func
from unity.ir.dims import dim
from unity.ir.dtype import Array, dtype
from unity.ir.module import IRModule
from unity.ir.prim_expr import Binary, Load, PrimExpr, PrimVar, Select, SizeVar, imm
from unity.ir.stmt import Allocate, Block, Buffer, Evaluate, For, PrimFunc, Range, Seq, Stmt, Store
from unity.ir.visit import walk_stmt
from unity.ir.well_formed.verify import verify

N = dim("n")


def run(func: PrimFunc, *inputs: Array, sizes: dict[SizeVar, int] | None = None) -> Array:
    verify(IRModule({"main": func}))
    return run_prim_func(func, inputs, sizes or {})[0]


def blocks(func: PrimFunc) -> list[Block]:
    return [s for s in walk_stmt(func.body) if isinstance(s, Block)]


def test_a_compute_is_one_block_with_its_regions() -> None:
    a = te.placeholder((N, 8), "float32", "a")
    func = te.create_prim_func([a, te.compute((N, 8), lambda i, j: a[i, j] * 2, "c")])
    (block,) = blocks(func)
    assert [(x.var.name, x.kind) for x in block.axes] == [("vi", "S"), ("vj", "S")]
    (read,), (write,) = block.reads, block.writes
    point = tuple(Range(x.var, imm(1)) for x in block.axes)
    assert (read.buffer.name, read.ranges) == ("a", point)
    assert (write.buffer.name, write.ranges) == ("c", point)
    assert func.attrs["num_outputs"] == 1


def test_a_reduction_has_an_init_and_reduce_axes() -> None:
    a = te.placeholder((4, N), "float32", "a")
    k = te.reduce_axis(N, "k")
    func = te.create_prim_func([a, te.compute((4,), lambda i: te.sum(a[i, k], [k]), "c")])
    (block,) = blocks(func)
    assert [x.kind for x in block.axes] == ["S", "R"]
    assert isinstance(block.init, Store)
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.testing.assert_array_equal(run(func, x), x.sum(1))


def test_a_reduction_may_begin_elsewhere() -> None:
    a = te.placeholder((6,), "int64", "a")
    k = te.reduce_axis((2, 3), "k")
    func = te.create_prim_func([a, te.compute((), lambda: te.sum(a[k], [k]), "c")])
    assert run(func, np.arange(6)) == 2 + 3 + 4


@pytest.mark.parametrize(
    ("kind", "of", "expected"),
    [
        ("sum", "int32", 6),
        ("prod", "int32", 6),
        ("max", "int32", 3),
        ("min", "int32", 1),
        ("max", "float16", 3),
        ("min", "float8_e4m3fn", 1),
        ("any", "bool", True),
        ("all", "bool", True),
    ],
)
def test_combiners(kind: str, of: str, expected: float) -> None:
    a = te.placeholder((3,), of, "a")
    k = te.reduce_axis(3, "k")
    func = te.create_prim_func([a, te.compute((), lambda: te.reduce(kind, (a[k],), [k]), "c")])
    assert run(func, np.asarray([1, 3, 2]).astype(dtype(of).numpy)) == expected


@pytest.mark.parametrize(
    ("values", "at"),
    [
        ([1, 5, 5], 1),
        ([float("-inf")] * 3, 0),
        ([1, float("nan"), 7], 1),
        ([float("nan"), float("nan"), 7], 0),
    ],
)
def test_argmax_is_the_first_and_nan_wins(values: list[float], at: int) -> None:
    a = te.placeholder((3,), "float32", "a")
    k = te.reduce_axis(3, "k")
    found, best = te.compute_many((), lambda: te.argmax(k, a[k], [k]), ("at", "best"))
    func = te.create_prim_func([a, found, best])
    assert len(blocks(func)) == 1
    x = np.asarray(values, np.float32)
    assert run(func, x) == at == np.argmax(x)
    found, best = te.compute_many((), lambda: te.argmin(k, a[k], [k]), ("at", "best"))
    assert run(te.create_prim_func([a, found, best]), x) == np.argmin(x)


def test_what_lies_between_is_allocated_and_computed_once() -> None:
    a = te.placeholder((N,), "float32", "a")
    b = te.compute((N,), lambda i: a[i] + 1, "b")
    c = te.compute((N,), lambda i: b[i] * b[i], "c")
    func = te.create_prim_func([a, c])
    assert isinstance(func.body, Allocate)
    assert [x.name for x in blocks(func)] == ["b", "c"]
    np.testing.assert_array_equal(run(func, np.ones(3, np.float32)), [4, 4, 4])


def test_one_tensor_in_two_functions_shares_no_buffer() -> None:
    a = te.placeholder((N,), "float32", "a")
    b = te.compute((N,), lambda i: a[i] + 1, "b")
    one, two = te.create_prim_func([a, b]), te.create_prim_func([a, b])
    assert not {*one.buffers} & {*two.buffers}
    assert all(type(x) is Buffer for x in one.buffers)


def test_an_output_is_a_parameter_of_its_own() -> None:
    a = te.placeholder((3,), "float32", "a")
    b = te.compute((3,), lambda i: a[i] + 1, "b")
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(run(te.create_prim_func([a, a]), x), x)
    func = te.create_prim_func([a, b, b])
    np.testing.assert_array_equal(run_prim_func(func, [x])[1], x + 1)


def test_sizes_that_no_shape_gives_become_parameters() -> None:
    a = te.placeholder((N,), "int64", "a")
    m = SizeVar("m")
    func = te.create_prim_func([a, te.compute((N,), lambda i: a[i] + m, "c")])
    assert func.params[-1] == m
    np.testing.assert_array_equal(run(func, np.arange(3), sizes={m: 5}), [5, 6, 7])


def test_indices_of_other_integers_are_cast() -> None:
    t, x = te.placeholder((4,), "float32", "t"), te.placeholder((N,), "uint8", "x")
    func = te.create_prim_func([t, x, te.compute((N,), lambda i: t[x[i]], "c")])
    table = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(run(func, table, np.asarray([3, 0], np.uint8)), [3, 0])


def test_extern_bodies_are_wrapped_in_a_block() -> None:
    a = te.placeholder((3,), "float32", "a")

    def reverse(inputs: list[Buffer], outputs: list[Buffer]) -> Stmt:
        i = PrimVar("i")
        value = Load(inputs[0], (Binary("sub", imm(2), i),))
        return For(i, imm(0), imm(3), Seq((Evaluate(value), Store(outputs[0], (i,), value))))

    (c,) = te.extern([((3,), "float32")], [a], lambda i, o: reverse([*i], [*o]), "reverse")
    func = te.create_prim_func([a, c])
    (block,) = blocks(func)
    assert block.reads[0].ranges == (Range(imm(0), imm(3)),)
    np.testing.assert_array_equal(run(func, np.arange(3, dtype=np.float32)), [2, 1, 0])


def test_mistakes_are_told() -> None:
    a, b = te.placeholder((3,), "float32", "a"), te.placeholder((3,), "int32", "b")
    with pytest.raises(UnityError, match="a has 1 dim, got 2 indices"):
        te.compute((3,), lambda i: a[i, i])
    with pytest.raises(UnityError, match="the tensor 'a' is used but is not an argument"):
        te.create_prim_func([b, te.compute((3,), lambda i: a[i])])
    with pytest.raises(UnityError, match="exp is defined on float dtypes, got int32"):
        te.compute((3,), lambda i: te.exp(b[i]))


def test_one_of_hundreds_is_found_by_halves() -> None:
    found = te.compute((300,), lambda i: te.one_of(300, lambda n: imm(n * n), lambda n: i < n), "c")
    func = te.create_prim_func([found])
    assert run(func).tolist() == [n * n for n in range(300)]
    (stored,) = [s for s in walk_stmt(func.body) if isinstance(s, Store)]
    assert depth(stored.value) == 9


def depth(e: PrimExpr) -> int:
    return 1 + max(depth(e.then), depth(e.orelse)) if isinstance(e, Select) else 0


def test_one_axis_stands_for_itself() -> None:
    x = te.placeholder((3, 4), "float32", "x")
    k = te.reduce_axis(4, "k")
    lone = te.compute((3,), lambda i: te.sum(x[i, k], axis=k), "y")
    listed = te.compute((3,), lambda i: te.sum(x[i, k], axis=[k]), "y")
    assert structural_equal(te.create_prim_func([x, lone]), te.create_prim_func([x, listed]))
    with pytest.raises(UnityError, match="'axis': expected a ReduceAxis or reduce axes"):
        te.sum(x[0, 0], axis=cast("Any", 1))
