"""The regions of a block are the rectangles that hold its accesses."""

from __future__ import annotations

from unity.ir.dtype import FLOAT32, INT64
from unity.ir.prim_expr import Imm, Load, PrimVar, SizeVar, imm
from unity.ir.regions import block_regions
from unity.ir.stmt import (
    Allocate,
    Block,
    BlockAxis,
    Buffer,
    For,
    Let,
    Range,
    Region,
    Seq,
    Stmt,
    Store,
)

N = SizeVar("n")
A = Buffer("a", (N, imm(64)), FLOAT32)
B = Buffer("b", (N, imm(64)), FLOAT32)
IDX = Buffer("idx", (N,), INT64)
VI, VJ = PrimVar("vi"), PrimVar("vj")
ONE = imm(1)


def test_points_are_exact() -> None:
    body = Store(B, (VI, VJ), Load(A, (VI, VJ)) * 2.0)
    reads, writes = block_regions(body, None, (VI, VJ))
    point = (Range(VI, ONE), Range(VJ, ONE))
    assert reads == (Region(A, point),)
    assert writes == (Region(B, point),)


def test_inner_loop_widens() -> None:
    u = PrimVar("u")
    body = For(u, imm(0), imm(4), Store(B, (VI, VJ * 8 + u * 2), Imm(0.0, FLOAT32)))
    _, writes = block_regions(body, None, (VI, VJ))
    assert writes == (Region(B, (Range(VI, ONE), Range(VJ * 8, imm(7)))),)


def test_descending_access() -> None:
    u = PrimVar("u")
    body = For(u, imm(0), imm(4), Store(B, (VI, VJ - u), Imm(0.0, FLOAT32)))
    _, writes = block_regions(body, None, (VI, VJ))
    assert writes == (Region(B, (Range(VI, ONE), Range(VJ - 3, imm(4)))),)


def test_accesses_a_constant_apart_take_what_lies_between() -> None:
    body = Store(B, (VI, VJ), Load(A, (VI, VJ + 3)) + Load(A, (VI, VJ - 1)))
    reads, _ = block_regions(body, None, (VI, VJ))
    assert reads == (Region(A, (Range(VI, ONE), Range(VJ + (-1), imm(5)))),)


def test_differing_accesses_take_the_dimension_whole() -> None:
    body = Store(B, (VI, VJ), Load(A, (VI, VJ)) + Load(A, (VI, VI)))
    reads, _ = block_regions(body, None, (VI, VJ))
    assert reads == (Region(A, (Range(VI, ONE), Range(imm(0), imm(64)))),)


def test_loaded_index_takes_the_dimension_whole() -> None:
    body = Store(B, (VI, VJ), Load(A, (Load(IDX, (VI,)), VJ)))
    reads, _ = block_regions(body, None, (VI, VJ))
    assert reads == (
        Region(A, (Range(imm(0), N), Range(VJ, ONE))),
        Region(IDX, (Range(VI, ONE),)),
    )


def test_let_is_seen_through() -> None:
    row = PrimVar("row")
    body = Let(row, VI + 1, Store(B, (row, VJ), Imm(0.0, FLOAT32)))
    _, writes = block_regions(body, None, (VI, VJ))
    assert writes == (Region(B, (Range(VI + 1, ONE), Range(VJ, ONE))),)


def test_accumulator_is_no_read() -> None:
    init = Store(B, (VI, VJ), Imm(0.0, FLOAT32))
    update = Store(B, (VI, VJ), Load(B, (VI, VJ)) + Load(A, (VI, VJ)))
    reads, writes = block_regions(update, init, (VI, VJ))
    assert [r.buffer for r in reads] == [A]
    assert [r.buffer for r in writes] == [B]
    reads, _ = block_regions(update, None, (VI, VJ))
    assert [r.buffer for r in reads] == [B, A]


def test_nested_block_by_its_signature() -> None:
    u, vu = PrimVar("u"), PrimVar("vu")
    point = (Range(VI, ONE), Range(vu, ONE))
    inner = Block(
        "inner",
        (BlockAxis(vu, "S", Range(imm(0), imm(64)), VJ * 16 + u),),
        (Region(A, point),),
        (Region(B, point),),
        Store(B, (VI, vu), Load(A, (VI, vu))),
    )
    reads, writes = block_regions(For(u, imm(0), imm(16), inner), None, (VI, VJ))
    expected = (Range(VI, ONE), Range(VJ * 16, imm(16)))
    assert reads == (Region(A, expected),)
    assert writes == (Region(B, expected),)


def test_own_allocation_is_left_out() -> None:
    tmp = Buffer("tmp", (imm(4),), FLOAT32, scope="local")
    body = Allocate(tmp, Seq((Store(tmp, (imm(0),), Imm(1.0, FLOAT32)),)))
    assert block_regions(body, None, ()) == ((), ())


def test_variable_of_the_surroundings_takes_the_dimension_whole() -> None:
    outer = PrimVar("i")
    _, writes = block_regions(Store(B, (outer, VJ), Imm(0.0, FLOAT32)), None, (VJ,))
    assert writes == (Region(B, (Range(imm(0), N), Range(VJ, ONE))),)


def test_what_is_looked_up_again_and_again_is_not_written_out() -> None:
    """A binary search: each place is read where the one before said, and by three paths."""
    table = Buffer("table", (imm(64),), INT64)
    lets = [PrimVar(f"at{k}") for k in range(40)]
    body = Store(B, (VI, VJ), Load(A, (VI, lets[-1])))
    inner: Stmt = body
    for var, before in zip(reversed(lets), [*reversed(lets[:-1]), VI], strict=True):
        inner = Let(var, Load(table, (before + before,)) + Load(table, (before,)) + before, inner)
    reads, _ = block_regions(inner, None, (VI, VJ))
    assert reads == (
        Region(table, (Range(imm(0), imm(64)),)),
        Region(A, (Range(VI, ONE), Range(imm(0), imm(64)))),
    )
