"""Checks of accesses: few instructions, none twice, and every one that is outside is found."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity.codegen.llvm import host_target
from unity.codegen.llvm.abilities import abilities
from unity.codegen.llvm.bounds import new_conditions
from unity.codegen.llvm.emitter import Emitter, Unit
from unity.codegen.llvm.facts.proven import proven
from unity.codegen.llvm.memory import At, Run
from unity.errors import UnityError
from unity.ir.dtype import FLOAT32
from unity.ir.prim_expr import Load, PrimVar, imm
from unity.ir.stmt import Buffer, For, Seq, Store
from unity.script import parse


def emitter() -> Emitter:
    return Emitter(Unit(abilities(host_target()), ""))


def test_ends_of_a_run_are_checked_once() -> None:
    em = emitter()
    assert len(new_conditions(em, Run("%i"), 8, "64")) == 2
    assert not new_conditions(em, Run("%i"), 8, "64")
    assert not new_conditions(em, At("%i"), 1, "64")
    assert len(new_conditions(em, Run("%i", backwards=True), 8, "64")) == 1
    assert not new_conditions(em, Run("56"), 8, "64")
    assert len(new_conditions(em, Run("57"), 8, "64")) == 1
    assert len(new_conditions(em, At("-1"), 1, "64")) == 1


def test_what_a_branch_checked_is_unknown_behind_it() -> None:
    em = emitter()
    mark = em.mark()
    new_conditions(em, At("%i"), 1, "64")
    em.forget(mark)
    assert len(new_conditions(em, At("%i"), 1, "64")) == 1


def test_a_comparison_is_no_check() -> None:
    em = emitter()
    em.pure("icmp ult i64 %i, 64")
    assert len(new_conditions(em, At("%i"), 1, "64")) == 1


def test_a_run_that_leaves_the_buffer_at_either_end_is_refused() -> None:
    program = parse("""
@script.function
def main(a: f32[Tensor, 32], at: i64[Tensor, 1]) -> f32[Tensor, 8]:
    c = R.call_tir(kernel, (a, at), out=f32[Tensor, 8])
    return c

@script.prim_func
def kernel(a: f32[Buffer, 32], at: i64[Buffer, 1], c: f32[Buffer, 8]) -> None:
    first = T.let(at[0])
    for i in T.vectorized(8):
        c[i] = a[first + i]
""")
    exe = unity.compile(program, check_bounds=True, cache=None)
    x = np.arange(32, dtype=np.float32)
    for at in (0, 24):
        np.testing.assert_array_equal(exe(x, np.array([at])), x[at : at + 8])
    for at in (-1, 25, -8, 32, 2**62, -(2**62)):
        with pytest.raises(UnityError, match="an access is out of bounds"):
            exe(x, np.array([at]))


@pytest.mark.parametrize("size", ["9", "n"])
def test_what_is_surely_inside_is_not_checked(size: str) -> None:
    """Where it was, 20 layers of a CNN took 13 s to compile instead of 6."""
    program = parse(f"""
n = dim("n")

@script.function
def main(x: f32[Tensor, {size}, 40], w: f32[Tensor, 40]) -> f32[Tensor, {size}, 40]:
    return R.nn.relu(R.add(x, w))
""")
    exe = unity.compile(program, check_bounds=True, cache=None)
    assert "ret i32 -2" not in exe.llvm()
    x, w = np.linspace(-1, 1, 360).reshape(9, 40).astype("f4"), np.ones(40, "f4")
    np.testing.assert_array_equal(np.asarray(exe(x, w)), np.maximum(x + w, 0))


def test_a_remainder_by_a_size_that_may_be_0_is_checked() -> None:
    program = parse("""
n = dim("n", min=0)

@script.prim_func
def kernel(a: f32[Buffer, n], c: f32[Buffer, 8]) -> None:
    for i in range(8):
        c[i] = a[i % n]

@script.function
def main(a: f32[Tensor, n]) -> f32[Tensor, 8]:
    return R.call_tir(kernel, (a,), out=f32[Tensor, 8])
""")
    exe = unity.compile(program, check_bounds=True, cache=None)
    np.testing.assert_array_equal(exe(np.arange(3, dtype=np.float32)), np.arange(8) % 3)
    with pytest.raises(UnityError, match="an access is out of bounds"):
        exe(np.zeros(0, np.float32))


def test_one_expression_in_two_loops_is_inside_in_both_or_in_none() -> None:
    a, c = (Buffer(name, (imm(8),), FLOAT32) for name in "ac")
    i = PrimVar("i")
    load, other = Load(a, (i,)), Load(a, (i,))
    short, far = Store(c, (i,), load), Store(c, (i,), load)
    loops = (For(i, imm(0), imm(8), short), For(i, imm(4), imm(8), far))
    found = proven(Seq((*loops, For(i, imm(0), imm(8), Store(c, (i,), other)))))
    assert id(other) in found
    assert id(short) in found
    assert not {id(load), id(far)} & found
