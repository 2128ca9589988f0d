"""Fingerprints of kernels agree exactly where structural equality does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from random import Random

import pytest

from tests.generators.prim_func import prim_func
from unity.errors import Span
from unity.ir.attrs import Attrs
from unity.ir.dims import Facts
from unity.ir.dtype import BOOL, FLOAT32, INT64
from unity.ir.equality import structural_equal
from unity.ir.fingerprint import fingerprint
from unity.ir.prim_expr import Binary, Compare, Imm, Load, PrimExpr, PrimVar, SizeVar, imm
from unity.ir.stmt import Buffer, Evaluate, For, PrimFunc, Seq, Store
from unity.ir.visit import rewrite_stmt
from unity.transform.graph.fuse.merge_kernels import fresh_copy


def renamed(func: PrimFunc) -> PrimFunc:
    """The same kernel with every variable and buffer another one of another name."""
    params = tuple(
        replace(p, name=f"{p.name}_other", span=Span("f.py", 1, 0, 1, 3))
        if isinstance(p, Buffer)
        else p
        for p in func.params
    )
    into = dict(zip(func.buffers, (p for p in params if isinstance(p, Buffer)), strict=True))
    return PrimFunc(params, fresh_copy(func.body, {}, into), func.attrs)


def mutated(func: PrimFunc, rng: Random) -> PrimFunc:
    """The kernel with one of its expressions changed, or with none."""
    at, count = rng.randrange(40), 0

    def change(e: PrimExpr) -> PrimExpr | None:
        nonlocal count
        count += 1
        if count - 1 != at:
            return None
        match e:
            case Imm(value, dtype):
                other = not value if dtype == BOOL else value + 1
                return imm(other, dtype)
            case Binary("add", a, b):
                return Binary("sub", a, b)
            case Binary(op, a, b):
                return Binary(op, b, a)
            case Compare("lt", a, b):
                return Compare("le", a, b)
            case Load(buffer, indices) if indices:
                return Load(buffer, (*indices[:-1], indices[-1] + 0))
            case _:
                return None

    return replace(func, body=rewrite_stmt(func.body, None, change))


@pytest.mark.rotated(3)
@pytest.mark.parametrize("seed", range(60))
def test_equal_fingerprints_are_equal_programs(seed: int) -> None:
    rng = Random(seed)
    func = prim_func(Random(seed))
    family = [func, renamed(func), prim_func(Random(seed), Random(seed + 1000))]
    family += [mutated(func, rng) for _ in range(4)]
    family += [renamed(each) for each in family[2:4]]
    for a, b in combinations(family, 2):
        assert (fingerprint(a) == fingerprint(b)) == structural_equal(a, b)
    assert fingerprint(func) == fingerprint(renamed(func))


def fill(value: float | bool = 1.0, extent: int = 8, **attrs: bool | float | str) -> PrimFunc:
    c, i = Buffer("c", (imm(8),), FLOAT32), PrimVar("i")
    return PrimFunc((c,), For(i, imm(0), imm(extent), Store(c, (i,), Imm(value, FLOAT32))),
                    Attrs(attrs))  # fmt: skip


def test_small_differences_count() -> None:
    kernels = [
        fill(1.0), fill(2.0), fill(0.0), fill(-0.0), fill(float("nan")), fill(1.0, 7),
        fill(1.0, a=1), fill(1.0, a=True), fill(1.0, a=1.0), fill(1.0, a="1"), fill(1.0, b=1),
    ]  # fmt: skip
    assert len({fingerprint(k) for k in kernels}) == len(kernels)
    assert fingerprint(fill(float("nan"))) == fingerprint(fill(-float("nan")))


def sized(size: SizeVar) -> PrimFunc:
    return PrimFunc((Buffer("c", (size,), FLOAT32),), Seq(()))


def test_symbols_count_with_their_facts() -> None:
    sizes = [SizeVar("n"), SizeVar("m"), SizeVar("n", Facts(min=1)), SizeVar("n", Facts(max=1))]
    assert len({fingerprint(sized(s)) for s in sizes}) == len(sizes)


def test_which_variable_is_meant_counts() -> None:
    def second(pick: Callable[[PrimVar, PrimVar], PrimVar]) -> PrimFunc:
        i, j = PrimVar("i", INT64), PrimVar("i", INT64)
        return PrimFunc(
            (), For(i, imm(0), imm(2), For(j, imm(0), imm(2), Evaluate(pick(i, j))))
        )  # fmt: skip

    first, last = second(lambda i, j: i), second(lambda i, j: j)
    assert fingerprint(first) != fingerprint(last)
    assert not structural_equal(first, last)
