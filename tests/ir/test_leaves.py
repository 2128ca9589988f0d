"""What expressions hold, and that rewriting leaves what does not hold it as it is."""

from __future__ import annotations

from unity.arith.polynomial import from_expr, to_expr
from unity.ir.dtype import FLOAT32
from unity.ir.prim_expr import (
    Binary,
    Cast,
    Compare,
    Intrinsic,
    Load,
    Not,
    PrimExpr,
    PrimVar,
    Select,
    SizeVar,
    imm,
)
from unity.ir.stmt import Buffer, For, Seq, Store
from unity.ir.visit import (
    leaves,
    map_stmts,
    rewrite_loads,
    rewrite_stmt,
    substitute_prim,
    walk_prim,
)

X = Buffer("x", (imm(8),), FLOAT32)
Y = Buffer("y", (imm(8),), FLOAT32)
A, B, N = PrimVar("i"), PrimVar("j"), SizeVar("n")
VALUE: PrimExpr = Select(
    Not(Compare("lt", A, N)),
    Load(X, (A // 4, ), Compare("lt", B, imm(3))),
    Intrinsic("exp", (Cast(FLOAT32, A % B) * Load(Y, (B,)),), FLOAT32),
)  # fmt: skip


def test_leaves_are_what_a_walk_finds() -> None:
    for e in walk_prim(VALUE):
        inside, held = list(walk_prim(e)), leaves(e)
        assert held.variables == {x for x in inside if isinstance(x, PrimVar)}
        assert held.sizes == {x for x in inside if isinstance(x, SizeVar)}
        assert list(held.loads) == [x for x in inside if isinstance(x, Load)]
        assert list(held.calls) == [x for x in inside if isinstance(x, Intrinsic)]
        assert list(held.selects) == [x for x in inside if isinstance(x, Select)]
        divisions = [x for x in inside if isinstance(x, Binary) and x.op.startswith("floor")]
        assert list(held.divisions) == divisions
        assert leaves(e) is held


def test_substitution_keeps_what_it_does_not_touch() -> None:
    assert isinstance(VALUE, Select)
    done = substitute_prim(VALUE, {N: imm(5)})
    assert isinstance(done, Select)
    assert done.then is VALUE.then
    assert done.orelse is VALUE.orelse
    assert not leaves(done).sizes
    moved = substitute_prim(VALUE, {}, {Y: X})
    assert {x.buffer for x in leaves(moved).loads} == {X}
    assert substitute_prim(VALUE, {PrimVar("k"): imm(1)}, {Buffer("z", (), FLOAT32): X}) is VALUE


def test_loads_are_rewritten_from_inside() -> None:
    at = Load(X, (Cast(A.dtype, Load(Y, (B,))),))

    def on_load(e: Load) -> PrimExpr | None:
        return imm(0.5, FLOAT32) if e.buffer is Y else None

    assert rewrite_loads(at, on_load) == Load(X, (Cast(A.dtype, imm(0.5, FLOAT32)),))
    store = Store(X, (A,), Load(Y, (A,)))
    assert rewrite_stmt(store, None, load_fn=on_load) == Store(X, (A,), imm(0.5, FLOAT32))
    assert rewrite_stmt(store, None, load_fn=lambda _: None) is store


def test_statements_within_are_mapped_alone() -> None:
    store = Store(X, (A,), imm(0.0, FLOAT32))
    loop = For(A, imm(0), imm(8), store)
    assert map_stmts(loop, lambda s: s) is loop
    assert map_stmts(loop, lambda s: Seq((s, s))) == For(A, imm(0), imm(8), Seq((store, store)))


def test_variables_of_one_name_are_ordered_by_who_is_asked_first() -> None:
    pairs = [(PrimVar("v"), PrimVar("v")) for _ in range(20)]
    for first, second in pairs:
        one = to_expr(from_expr(first + second))
        assert one == first + second
        assert to_expr(from_expr(second + first)) == one
