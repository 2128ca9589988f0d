"""If: decided during the import where the condition is known, else both branches are kept."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, parser

import unity
from unity.errors import UnityError
from unity.frontend.onnx import from_onnx
from unity.ir.dtype import Array
from unity.ir.graph import If
from unity.ir.visit import walk_bindings

from .programs import assert_close, check, imported, main_of, model, ops_of, run

f4 = np.float32
BRANCHES = """
    y = If(c) <
        then_branch = yes () => (float[p, q] t) { t = Add(x, w) },
        else_branch = no () => (float[p, q] e) { h = Relu(x) e = Mul(h, w) }
    >
"""
WEIGHTS: dict[str, Array] = {"w": np.asarray([1, 2], f4)}


def test_both_branches_are_kept_and_see_the_values_around_them() -> None:
    graph = f"g (float[n, 2] x, bool c) => (float[a, b] y) {{ {BRANCHES} }}"
    module = imported(graph, weights=WEIGHTS)
    assert any(isinstance(b.value, If) for b in walk_bindings(main_of(module)))
    x = np.asarray([[-1, 3]], f4)
    assert_close(run(module, x, np.asarray(True)), np.asarray([[0, 5]], f4))
    assert_close(run(module, x, np.asarray(False)), np.asarray([[0, 6]], f4))


def test_a_branch_decided_by_a_constant_stands_in_place() -> None:
    graph = f"g (float[n, 2] x) => (float[a, b] y) <bool c = {{0}}> {{ {BRANCHES} }}"
    module = imported(graph, weights=WEIGHTS)
    assert ops_of(module) == ["nn.relu", "multiply"]


def test_a_branch_decided_by_a_rank_stands_in_place() -> None:
    """What torch's scripted squeeze exports: is this dim 1?"""
    graph = f"""
        g (float[n, 2] x) => (float[a, b] y) <int64 one = {{1}}> {{
            s = Shape(x)
            last = Gather<axis=0>(s, one)
            c = Equal(last, one)
            {BRANCHES}
        }}"""
    assert ops_of(imported(graph, weights=WEIGHTS)) == ["nn.relu", "multiply"]


def test_branches_of_different_shapes_join_to_their_rank() -> None:
    proto = model(
        """
        g (float[n, 2] x, float[m, 3] z, bool c) => (float[a, b] y) {
            y = If(c) <
                then_branch = yes () => (float[p, q] t) { t = Identity(x) },
                else_branch = no () => (float[r, s] e) { e = Identity(z) }
            >
        }"""
    )
    module = from_onnx(proto)
    check(module)
    x, z = np.ones((4, 2), f4), np.zeros((1, 3), f4)
    assert run(module, x, z, np.asarray(True)).shape == (4, 2)
    assert run(module, x, z, np.asarray(False)).shape == (1, 3)


def test_what_branches_give_of_different_lengths_is_worked_on() -> None:
    """As a decoder that appends a token only if it is one: the state of a loop grows by an If."""
    proto = model(
        """
        g (int64[n] tokens) => (int64[m] kept, int64[k] twice)
        <int64 zero = {0}, bool yes = {1}, int64[0] none = {}> {
            shape = Shape(tokens)
            n = Squeeze(shape)
            kept = Loop(n, yes, none) <
                body = step (int64 i, bool on, int64[a] before) => (bool go, int64[b] after)
                <int64[1] axis = {0}> {
                    go = Identity(on)
                    token = Gather<axis=0>(tokens, i)
                    blank = Equal(token, zero)
                    after = If(blank) <
                        then_branch = t () => (int64[p] same) { same = Identity(before) },
                        else_branch = e () => (int64[q] more) {
                            row = Unsqueeze(token, axis)
                            more = Concat<axis=0>(before, row)
                        }
                    >
                }
            >
            twice = Concat<axis=0>(kept, kept)
        }"""
    )
    check(from_onnx(proto))
    exe = unity.compile(proto)
    assert exe.native() == {"main": "native"}
    for tokens in ([3, 0, 5, 0, 0, 7], [0], [2], []):
        kept = [t for t in tokens if t]
        found = exe.run({"tokens": np.asarray(tokens, np.int64)})
        np.testing.assert_array_equal(found["kept"], kept)
        np.testing.assert_array_equal(found["twice"], kept + kept)


def test_functions_of_the_model_are_taken_in() -> None:
    proto = model("g (float[n] x) => (float[n] y) { y = local.twice(x) }")
    text = '<domain: "local", opset_import: ["" : 18]> twice (a) => (b) { b = Add(a, a) }'
    proto.functions.append(parser.parse_function(text))
    proto.opset_import.append(helper.make_opsetid("local", 1))
    assert ops_of(from_onnx(proto)) == ["add"]


def test_an_axis_taken_away_where_its_extent_is_1_as_torch_writes_it() -> None:
    """Where what follows needs to know the axes, an extent of 1 is checked when it runs."""
    text = """
    <ir_version: 9, opset_import: ["" : 18]>
    g (float[n, m] x) => (float[a, n] y) {
      shape = Shape (x)
      one = Constant <value_ints: ints = [1]> ()
      extent = Gather (shape, one)
      is_one = Equal (extent, one)
      row = If (is_one) <
        then_branch: graph = t () => (float[n] s) { s = Squeeze (x, one) },
        else_branch: graph = e () => (float[n, m] i) { i = Identity (x) }
      >
      again = Shape (row)
      wide = Concat <axis: int = 0> (one, again)
      y = Expand (row, wide)
    }"""
    exe = unity.compile(parser.parse_model(text))
    x = np.arange(3, dtype=np.float32).reshape(3, 1)
    np.testing.assert_array_equal(exe(x), x.reshape(1, 3))
    assert exe.native() == {"main": "native"}, "sizes are compared as such"
    with pytest.raises(UnityError, match="the branch that takes an axis away must be taken; got "):
        exe(np.zeros((3, 2), np.float32))
