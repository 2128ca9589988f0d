"""Inputs of declared types: lists, trees and options as far as an example goes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from typer.testing import CliRunner

import unity
from unity.cli.app import app
from unity.errors import UnityError
from unity.frontend.relay import from_relay
from unity.frontend.relay.migration import migrate
from unity.interpreter import interpret

HEADER = '#[version = "0.0.5"]\n'
TREES = (
    HEADER
    + """type Expr { Leaf(Tensor[(?), float32]), Add(Expr, Expr), Neg(Expr), Zero }
def @eval(%e: Expr) -> Tensor[(?), float32] {
  match (%e) {
    Leaf(%x) => %x, Neg(%a) => negative(@eval(%a)), Zero => zeros(shape=[1], dtype="float32"),
    Add(%a, %b) => @eval(%a) + @eval(%b),
  }
}
def @main(%e: Expr, %xs: List[Tensor[(2), float32]], %o: (float32, Option[float32])) {
  (@eval(%e), @map(fn (%x) { %x * %o.0 }, %xs),
   match (%o.1) { Some(%v) => %v, None => 7f })
}
"""
)
EXAMPLES = {
    "e": ("Add", ("Leaf", None), ("Neg", ("Zero",))),
    "xs": [None, None],
    "o": (None, ("Some", None)),
}
X = np.array([1, 2, 3], np.float32)
Y = np.array([4, -5], np.float32)


class _Adt:
    """As an object of TVM's: a tag and fields."""

    def __init__(self, tag: int, *fields: object) -> None:
        self.tag, self.fields = tag, fields


TREE: list[Any] = [
    ("Add", ("Leaf", X), ("Neg", ("Zero",))),
    (1, (0, X), (2, (3,))),
    (np.array(1, np.int32), (np.int32(0), X), ("Neg", "Zero")),  # a result's form; a name alone
    _Adt(1, _Adt(0, X), _Adt(2, _Adt(3))),
    (X,),  # the tensors in it, as the program takes them
]
LISTS: list[Any] = [[Y, Y * 2], ("Cons", Y, ("Cons", Y * 2, ("Nil",))), (0, Y, [Y * 2])]


def _values(found: Any) -> list[npt.NDArray[Any]]:
    tree, (_, first, (_, second, (end,))), chosen = found
    assert int(end) == 1
    return [np.asarray(v) for v in (tree, first, second, chosen)]


@pytest.fixture(scope="module")
def exe() -> unity.Executable:
    return unity.compile(from_relay(TREES, examples=EXAMPLES))


def test_all_ways_to_give_a_tree(exe: unity.Executable) -> None:
    three = np.float32(3)
    for tree in TREE:
        for xs in LISTS:
            found = _values(exe(tree, xs, (three, ("Some", np.float32(5)))))
            for got, wanted in zip(found, (X, Y * 3, Y * 6, 5), strict=True):
                np.testing.assert_array_equal(got, wanted)


def test_results_go_in_again(exe: unity.Executable) -> None:
    option = (np.float32(3), (0, np.float32(5)))
    once = exe(TREE[0], [Y, Y * 2], option)[1]
    twice = _values(exe(TREE[0], once, option))
    np.testing.assert_array_equal(twice[1], Y * 9)
    named = exe.run({"e": TREE[1], "xs": once, "o": option})
    np.testing.assert_array_equal(np.asarray(named["output1"][1]), Y * 9)


def test_the_program_takes_the_tensors() -> None:
    module = from_relay(TREES, examples=EXAMPLES)
    given = [(X,), (Y, Y * 2), (np.array(3, np.float32), np.array(5, np.float32))]
    np.testing.assert_array_equal(_values(interpret(module, "main", given))[2], Y * 6)


def test_saved_and_loaded(tmp_path: Path, exe: unity.Executable) -> None:
    exe.save(tmp_path / "trees.unity")
    loaded = unity.load(tmp_path / "trees.unity")
    found = _values(loaded(TREE[3], [Y, Y], (np.float32(1), ("Some", np.float32(5)))))
    np.testing.assert_array_equal(found[2], Y)
    with pytest.raises(UnityError, match=r"input 'xs' must be Cons of 2, got a list of 0"):
        loaded(TREE[3], [], (np.float32(1), ("Some", np.float32(5))))
    with pytest.raises(UnityError, match="params and examples are for models"):
        unity.load(tmp_path / "trees.unity", examples={})


@pytest.mark.parametrize(
    ("place", "value", "what"),
    [
        (0, ("Add", ("Leaf", X), ("Leaf", X)), "'e'[1] must be Neg of 1, got Leaf of 1"),
        (0, (1, (0, X), (1, (3,))), "'e'[1] must be Neg of 1, got the constructor 1 of 1 fields"),
        (0, (7, X, X), "'e' must be Add of 2, got the constructor 7 of 2 fields"),
        (0, X, "'e' must be Add of 2, got ndarray"),
        (1, [Y], "'xs'[1] must be Cons of 2, got a list of 0"),
        (1, [Y, Y, Y], "'xs'[1][1] must be Nil of 0, got a list of 1"),
        (1, (0, Y), "'xs' must be Cons of 2, got the constructor 0 of 1 fields"),
        (1, 5, "'xs' must be Cons of 2, got int"),
        (2, (np.float32(1), ("None",)), "'o'[1] must be Some of 1, got None of 0"),
        (2, (np.float32(1), "Some"), "'o'[1] must be Some of 1, got Some of 0"),
        (2, _Adt(0, 1, 2), "'o' must be a tuple of 2, got the constructor 0 of 2 fields"),
    ],
)  # fmt: skip
def test_other_forms_are_refused(
    exe: unity.Executable, place: int, value: object, what: str
) -> None:
    given: list[Any] = [TREE[0], LISTS[0], (np.float32(1), ("Some", np.float32(5)))]
    given[place] = value
    with pytest.raises(UnityError) as caught:
        exe(*given)
    assert f"input {what}" in caught.value.message
    assert "examples=" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "example", "what"),
    [
        ("e", ("Sub", None, None), "must be of the type Expr (Leaf, Add, Neg, Zero), got Sub of 2"),
        ("e", ("Add", None), "Add has 2 fields, got 1"),
        ("e", ("Leaf", X.astype(np.int32)), "declared as float32, and it is int32"),
        ("e", ("Leaf", X[None]), "declared with 1 axes, and it has 2"),
        ("e", ("Leaf", "x"), "must be a tensor, got str"),
        ("e", [None], "must be of the type Expr (Leaf, Add, Neg, Zero), got list"),
        ("xs", 3, "must be of the type List (Cons, Nil), got int"),
        ("o", [None], "the example of 'o' must be a tuple of 2"),
        ("x", [None], "no input of a declared type"),
    ],
)
def test_other_examples_are_refused(name: str, example: object, what: str) -> None:
    with pytest.raises(UnityError) as caught:
        from_relay(TREES, examples={**EXAMPLES, name: example})
    assert what in str(caught.value)


def test_without_an_example_the_error_says_how_to_give_one() -> None:
    with pytest.raises(UnityError) as caught:
        from_relay(TREES)
    assert "test_adt" not in caught.value.message
    assert "the parameter 'e' of the entry is of a declared type" in caught.value.message
    assert "examples={'e': ...}" in str(caught.value)
    text = HEADER + "def @main(%f: List[fn (float32) -> float32]) { @length(%f) }"
    with pytest.raises(UnityError, match="is a function or a reference, which no input can be"):
        from_relay(text, examples={"f": [None]})
    with pytest.raises(UnityError, match="the source declares no type"):
        from_relay(HEADER + "def @main(%x: List[_]) { @length(%x) }", examples={"x": [None]})


def test_types_that_only_the_example_knows() -> None:
    text = HEADER + "def @main(%x: List[_]) { @foldl(add, @hd(%x), @tl(%x)) }"
    found = unity.compile(from_relay(text, examples={"x": [X, X]}))([X, X * 2])
    np.testing.assert_array_equal(found, X * 3)


def test_long_lists_need_no_recursion() -> None:
    text = HEADER + "def @main(%xs: List[float32]) { @foldl(add, 0f, %xs) }"
    module = from_relay(text, examples={"xs": [None] * 1200})
    given = (tuple(np.array(i, np.float32) for i in range(1200)),)
    assert float(np.asarray(interpret(module, "main", list(given)))) == 1200 * 1199 / 2
    with pytest.raises(UnityError, match=r"gives a value that is 1200 .* results are 150 deep"):
        from_relay(text.replace("@foldl(add, 0f, %xs)", "%xs"), examples={"xs": [None] * 1200})


def test_the_command_takes_examples(tmp_path: Path) -> None:
    model, forms = tmp_path / "trees.relay", tmp_path / "forms.json"
    model.write_text(TREES)
    forms.write_text(
        json.dumps({
            "e": ["Add", ["Leaf", None], ["Neg", ["Zero"]]],
            "xs": [None, None],
            "o": [None, ["Some", None]],
        })
    )  # fmt: skip
    for command in ("check", "run"):
        done = CliRunner().invoke(
            app, [command, str(model), "--examples", str(forms), "--dim", "e_0_d0=5"]
        )
        assert done.exit_code == 0, done.output
        assert "output1[2][1]" in done.output
    forms.write_text("[1]")
    refused = CliRunner().invoke(app, ["run", str(model), "--examples", str(forms)])
    assert "holds no examples by name" in str(refused.exception or refused.output)


def test_a_report_tells_the_form() -> None:
    told = migrate(TREES, examples=EXAMPLES).report
    assert "the input `xs` is of one form, that of its example: `Cons _ Cons _ Nil`" in told
