"""Conditions all through loops: asking for one changes nothing that is asked for later."""

from __future__ import annotations

from unity.arith import Analyzer
from unity.ir.prim_expr import Compare, PrimVar, SizeVar, imm
from unity.ir.stmt import For, Seq
from unity.transform.blocks.throughout import throughout


def test_the_same_question_has_the_same_answer() -> None:
    i, n = PrimVar("i"), SizeVar("n")
    condition = Compare("ge", n // 4 * 4 - i, imm(1))
    loop = For(i, imm(0), imm(4), Seq(()))
    first = throughout([condition], [loop], Analyzer())
    assert first == Compare("ge", n // 4 * 4 - 4, imm(0))
    assert throughout([condition], [loop], Analyzer()) == first
