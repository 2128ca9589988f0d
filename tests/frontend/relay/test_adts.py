"""Declared types: lists, trees, options; matches on them, and references."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import unity
from unity.errors import UnityError, UnsupportedError
from unity.frontend.relay import from_relay
from unity.interpreter import interpret
from unity.ir.module import IRModule
from unity.ir.well_formed.verify import verify
from unity.op.check import check_types

HEADER = '#[version = "0.0.5"]\n'
LIST = "Cons(%a, Cons(%b, Cons(%c, Nil)))"
FLOATS = [np.array(v, np.float32) for v in (2, -3, 5)]


def _module(text: str) -> IRModule:
    module = from_relay(HEADER + text)
    verify(module)
    check_types(module)
    return module


def _run(text: str, *inputs: object) -> Any:
    return interpret(_module(text), "main", list(inputs))


def _on_list(body: str, *more: npt.NDArray[Any], params: str = "") -> Any:
    text = f"""def @main(%a: float32, %b: float32, %c: float32{params}) {{
      let %xs = {LIST};
      {body}
    }}"""
    return _run(text, *FLOATS, *more)


def _listed(found: Any) -> list[Any]:
    """A list's elements, of the nested tuples that it is given as."""
    items: list[Any] = []
    while int(found[0]) == 0:
        items.append(found[1])
        found = found[2]
    return items


def _values(found: Sequence[Any]) -> list[float]:
    return [float(v) for v in found]


def test_functions_of_the_prelude_on_lists() -> None:
    text = """
      let %neg = fn (%x: float32) -> float32 { negative(%x) };
      let %sub = fn (%x: float32, %y: float32) -> float32 { %x - %y };
      let %pairs = @zip(%xs, @map(%neg, %xs));
      (@foldl(%sub, 0f, %xs), @foldr(%sub, 0f, %xs), @foldr1(%sub, %xs),
       @hd(@tl(%xs)), @nth(%xs, @length(%xs) - 1), @length(@concat(%xs, %xs)),
       @map(fn (%p: (float32, float32)) -> float32 { %p.0 * %p.1 }, %pairs),
       @rev(%xs), @update(%xs, 1, 9f), @map_accuml(fn (%s, %x) { (%s + %x, %s * %x) }, 1f, %xs),
       @iterate(fn (%x: float32) -> float32 { %x * 2f }, 3)(%a))"""
    found = _on_list(text)
    assert _values(found[:6]) == [-4, 10, 10, -3, 5, 6]
    assert _values(_listed(found[6])) == [-4, -9, -25]
    assert _values(_listed(found[7])) == [5, -3, 2]
    assert _values(_listed(found[8])) == [2, 9, 5]
    assert float(found[9][0]) == 5
    assert _values(_listed(found[9][1])) == [2, -9, 0]
    assert float(found[10]) == 16


def test_operators_and_constructors_as_functions() -> None:
    text = """(@foldl(add, 0f, %xs), @map(Some, %xs),
               @map_accumr(fn (%s, %x) { (%s + %x, %s) }, 0f, %xs))"""
    total, options, (state, seen) = _on_list(text)
    assert float(total) == 4
    assert [(int(o[0]), float(o[1])) for o in _listed(options)] == [(0, 2), (0, -3), (0, 5)]
    assert float(state) == 4
    assert _values(_listed(seen)) == [2, 5, 0]


def test_a_list_whose_length_data_decide() -> None:
    """Filtered by what is known only when the program runs: branches on tags, compiled too."""
    text = f"""def @main(%a: float32, %b: float32, %c: float32, %k: float32) {{
      let %big = @filter(fn (%x: float32) -> bool {{ %x > %k }}, {LIST});
      (@length(%big), @foldl(fn (%s, %x) {{ %s * 2f + %x }}, 1f, %big))
    }}"""
    module = _module(text)
    exe = unity.compile(module)
    for k in (-9, 0, 3, 9):
        kept = [x for x in FLOATS if x > k]
        folded = 1.0
        for x in kept:
            folded = folded * 2 + float(x)
        inputs = [*FLOATS, np.array(k, np.float32)]
        for found in (interpret(module, "main", inputs), exe(*inputs)):
            assert isinstance(found, tuple | list)
            assert (int(np.asarray(found[0])), float(np.asarray(found[1]))) == (len(kept), folded)


def test_nested_patterns_take_the_first_that_fits() -> None:
    text = """type Shape[A] { Dot, Line(A, A), Both(Shape[A], Shape[A]) }
    def @area(%s: Shape[float32]) -> float32 {
      match (%s) {
        Both(Line(%x, _), Line(_, %y)) => %x * %y,
        Both(Dot, %other) => 100f + @area(%other),
        Both(%left, %right) => @area(%left) + @area(%right),
        Line(%x, %y) => %x + %y,
        Dot => 1f,
      }
    }
    def @main(%x: float32, %c: bool, %d: bool) {
      let %first = if (%c) { Line(%x, 7f) } else { Dot };
      let %second = if (%d) { Line(5f, %x) } else { Both(%first, %first) };
      @area(Both(%first, %second))
    }"""
    module = _module(text)
    for c in (True, False):
        for d in (True, False):
            first = 3 + 7 if c else 1
            both = 3 * 7 if c else 101
            wanted = (3 * 3 if d else first + both) if c else 100 + (5 + 3 if d else both)
            given = [np.array(3, np.float32), np.array(c), np.array(d)]
            assert float(np.asarray(interpret(module, "main", given))) == wanted


def test_a_tuple_in_a_pattern() -> None:
    text = """def @swap(%p: (float32, (float32, float32))) {
      match (%p) { (%x, (%y, _)) => (%y, %x) }
    }
    def @main(%x: float32, %p: (float32, float32)) { (@swap((%x, %p)), @swap((%x, (1f, 2f)))) }"""
    found = _run(text, FLOATS[0], (FLOATS[1], FLOATS[2]))
    assert _values([*found[0], *found[1]]) == [-3, 2, 1, 2]


TREE_LSTM = """def @cell(%x: Tensor[(1, 3), float32], %below: List[(Tensor[(1, 2), float32],
    Tensor[(1, 2), float32])], %w: Tensor[(8, 3), float32], %u: Tensor[(8, 2), float32]) {
  let %zero = zeros(shape=[1, 2], dtype="float32");
  let %sum = @foldl(fn (%s, %child) { %s + %child.0 }, %zero, %below);
  let %gates = split(nn.dense(%x, %w) + nn.dense(%sum, %u), indices_or_sections=4, axis=1);
  let %keep = fn (%s, %child) { %s + sigmoid(%gates.1 + %child.0) * %child.1 };
  let %kept = @foldl(%keep, %zero, %below);
  let %c = sigmoid(%gates.0) * tanh(%gates.3) + %kept;
  (sigmoid(%gates.2) * tanh(%c), %c)
}
def @lstm(%tree: Tree[Tensor[(1, 3), float32]], %w: Tensor[(8, 3), float32],
          %u: Tensor[(8, 2), float32]) {
  let %below = fn (%t: Tree[Tensor[(1, 3), float32]]) { @lstm(%t, %w, %u) };
  match (%tree) { Rose(%x, %children) => @cell(%x, @map(%below, %children), %w, %u) }
}
def @main(%a: Tensor[(1, 3), float32], %b: Tensor[(1, 3), float32], %w: Tensor[(8, 3), float32],
          %u: Tensor[(8, 2), float32]) {
  let %leaf = Rose(%a, Nil);
  let %tree = Rose(%b, Cons(%leaf, Cons(Rose(%a, Cons(%leaf, Nil)), Nil)));
  (@lstm(%tree, %w, %u), @size(%tree), @lstm(@tmap(fn (%x) { negative(%x) }, %tree), %w, %u).0)
}"""


def test_a_tree_lstm() -> None:
    draw = np.random.default_rng(0)
    a, b, w, u = (draw.normal(size=s).astype(np.float32) for s in ((1, 3), (1, 3), (8, 3), (8, 2)))

    def sigmoid(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.asarray(1 / (1 + np.exp(-x)))

    def lstm(tree: Any, sign: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        below = [lstm(t, sign) for t in tree[1:]]
        total = sum((h for h, _ in below), np.zeros((1, 2)))
        i, f, o, g = np.split(sign * tree[0] @ w.T + total @ u.T, 4, 1)
        c = sigmoid(i) * np.tanh(g) + sum((sigmoid(f + h) * c for h, c in below), np.zeros((1, 2)))
        return sigmoid(o) * np.tanh(c), c

    module = _module(TREE_LSTM)
    tree = (b, (a,), (a, (a,)))
    results: list[Any] = [
        interpret(module, "main", [a, b, w, u]),
        unity.compile(module)(a, b, w, u),
    ]
    for state, size, negated in results:
        np.testing.assert_allclose(state[0], lstm(tree, 1)[0], rtol=2e-5)
        np.testing.assert_allclose(state[1], lstm(tree, 1)[1], rtol=2e-5)
        assert int(np.asarray(size)) == 4
        np.testing.assert_allclose(negated, lstm(tree, -1)[0], rtol=2e-5)


def test_references_hold_what_was_written_last() -> None:
    text = """def @main(%x: float32, %c: bool) {
      let %r = ref(%x);
      let %xs = ref(Nil);
      let %bump = fn (%by: float32) { ref_write(%r, ref_read(%r) + %by) };
      %bump(1f);
      let %before = ref_read(%r);
      if (%c) { %bump(10f); ref_write(%xs, Cons(ref_read(%r), ref_read(%xs))) } else { () };
      (%before, ref_read(%r), @length(ref_read(%xs)))
    }"""
    module = _module(text)
    for c in (True, False):
        found = interpret(module, "main", [FLOATS[0], np.array(c)])
        assert isinstance(found, tuple)
        assert _values(found) == [3, 13 if c else 3, int(c)]


def test_a_match_without_a_clause_that_fits() -> None:
    with pytest.raises(UnityError, match="no clause of the match takes Nil") as error:
        _module("def @main(%x: float32) { (%x, @hd(@tl(Cons(%x, Nil)))) }")
    assert error.value.span is not None
    at = """def @main(%n: int32, %x: float32) {
      @hd(if (equal(%n, 0)) { Cons(%x, Nil) } else { Nil })
    }"""
    module = _module(at)
    exe = unity.compile(module)
    for run in (lambda n: interpret(module, "main", [n, FLOATS[0]]), lambda n: exe(n, FLOATS[0])):
        assert float(np.asarray(run(np.array(0, np.int32)))) == 2
        with pytest.raises(UnityError):
            run(np.array(1, np.int32))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("let %f = fn (%i: int32, %l: List[int32]) -> List[int32] { if (less(%i, %n)) "
         "{ %f(add(%i, 1), Cons(%i, %l)) } else { %l } }; @length(%f(0, Nil))",
         "without an end that is known"),
        ("let %r = ref(%n); let %f = fn (%i: int32) -> int32 { if (less(%i, %n)) "
         "{ %f(add(%i, ref_read(%r))) } else { %i } }; %f(0)", "a reference made outside"),
        ("let %r = ref(fn (%i: int32) -> int32 { %i }); ref_write(%r, fn (%i: int32) -> int32 "
         "{ ref_read(%r)(%i) }); ref_read(%r)(%n)", "calls itself by a reference"),
        ("(if (less(%n, 1)) { fn (%i: int32) { %i } } else { fn (%i: int32) { %i + 1 } })(%n)",
         "a function chosen when the program runs"),
    ],
)  # fmt: skip
def test_what_is_refused_is_told_with_its_place(body: str, said: str) -> None:
    with pytest.raises(UnsupportedError, match=said) as error:
        from_relay(f"{HEADER}def @main(%n: int32) {{ {body} }}")
    assert ":2:" in str(error.value)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("add(%n, Nil)", "add takes tensors, and this is a value of the type List"),
        ("match (%n) { Nil => 1 }", "Nil makes a List, and the match is on a value of no declared"),
        ("match (Some(%n)) { Cons(_, _) => 1, Nil => 2 }", "the match is on Some"),
        ("@hd(fn (%x: int32) { %x })", "Cons makes a List"),
        ("let %x: int32 = Nil; %n", "is a value of the type List"),
        ("Cons(%n, Nil).0", "has no fields"),
        ("if (Nil) { 1 } else { 2 }", "a condition is a value of the type List"),
        ("ref_read(%n)", "a reference is expected, and this is a tensor"),
        ("fn (%x: int32) { %x }", "@main gives a function"),
    ],
)
def test_mistakes_with_declared_types(body: str, said: str) -> None:
    with pytest.raises(UnityError, match=said) as error:
        from_relay(f"{HEADER}def @main(%n: int32) {{ {body} }}")
    assert error.value.span is not None
