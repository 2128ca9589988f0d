"""Sequences and optional values, as onnxruntime computes them, of lengths known or not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime as ort
import pytest

import unity
from tests.conformance.suite import by_compiler, by_interpreter
from tests.frontend.onnx.programs import main_of
from unity.errors import UnityError, UnsupportedError
from unity.frontend.onnx import from_onnx
from unity.ir.graph import While
from unity.ir.visit import walk_bindings

Value = object
HEAD = '<ir_version: 9, opset_import: ["" : 18]>'


def parsed(text: str) -> onnx.ModelProto:
    """A model of a graph in ONNX's textual form."""
    return onnx.parser.parse_model(f"{HEAD} {text}")


def agree(model: onnx.ModelProto, *, compiled: bool = False, **feeds: Value) -> list[Value]:
    """What a model gives, which is compared with what onnxruntime gives."""
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    want = session.run(None, feeds)
    run = by_compiler if compiled else by_interpreter
    got = [*run(from_onnx(model), [feeds[i.name] for i in model.graph.input])]
    same(got, want)
    return got


def same(got: object, want: object) -> None:
    """Check that values, lists of them perhaps, are equal."""
    if isinstance(want, list):
        assert isinstance(got, list)
        assert len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            same(one, other)
        return
    if want is None:
        assert got is None
        return
    np.testing.assert_array_equal(np.asarray(got), np.asarray(want), strict=True)


def rows(*lengths: int) -> list[Value]:
    """Matrices of three columns and so many rows."""
    rng = np.random.default_rng(0)
    return [rng.standard_normal((n, 3)).astype(np.float32) for n in lengths]


AT = parsed("""
g (float[a, 3] x, float[b, 3] y, int64 k, int64 p) => (float[c, 3] z, int64 n) {
  s = SequenceConstruct (x, y, x)
  t = SequenceInsert (s, y, k)
  u = SequenceErase (t, p)
  z = SequenceAt (u, k)
  n = SequenceLength (u)
}""")


@pytest.mark.rotated(1 / 6)
@pytest.mark.parametrize(("k", "p"), [(0, 0), (2, -1), (-1, 3), (-3, 1), (1, -4)])
def test_positions_known_at_run_time(k: int, p: int) -> None:
    x, y = rows(2, 4)
    agree(AT, compiled=k == 2, x=x, y=y, k=np.array(k), p=np.array(p))


@pytest.mark.parametrize(("k", "p"), [(3, 0), (-4, 0), (0, 4), (0, -5)])
def test_a_position_beyond_the_end_is_an_error_that_names_the_node(k: int, p: int) -> None:
    x, y = rows(2, 4)
    with pytest.raises(UnityError, match="position"):
        by_interpreter(from_onnx(AT), [x, y, np.array(k), np.array(p)])


JOIN = """
g (seq(float[m, 3]) s) => (float[p, q] z) {{
  z = ConcatFromSequence <axis: int = {axis}, new_axis: int = {new}> (s)
}}"""


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("transposed", [False, True])
def test_items_are_joined_along_any_axis(axis: int, transposed: bool) -> None:
    declared = "float[3, m]" if transposed else "float[m, 3]"
    model = parsed(JOIN.format(axis=axis, new=0).replace("float[m, 3]", declared))
    lengths = (2, 2, 2)
    if axis == (1 if transposed else 0) or (axis == -1 and transposed):
        lengths = (2, 0, 5)
    items = [
        np.ascontiguousarray(x.T) if transposed else x for x in map(np.asarray, rows(*lengths))
    ]
    agree(model, s=items)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_items_are_stacked_along_a_new_axis(axis: int) -> None:
    model = parsed(JOIN.format(axis=axis, new=1).replace("[p, q]", "[p, q, r]"))
    agree(model, s=rows(2, 2, 2))


def test_items_that_cannot_be_joined_are_an_error_at_run_time() -> None:
    module = from_onnx(parsed(JOIN.format(axis=1, new=0)))
    with pytest.raises(UnityError, match="shape"):
        by_interpreter(module, [rows(2, 4)])
    with pytest.raises(UnityError, match="items_less_one"):
        by_interpreter(module, [[]])


SPLIT = """
g (float[n, 4] x, int64{of} parts) => (seq(float) s, float[a, b] first) {{
  zero = Constant <value_int: int = 0> ()
  s = SplitToSequence <axis: int = {axis}> (x, parts)
  first = SequenceAt (s, zero)
}}"""


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("parts", [3, [1, 3], [4, 0], [2, 2]])
def test_parts_known_at_run_time(axis: int, parts: int | list[int]) -> None:
    model = parsed(SPLIT.format(axis=axis, of="[k]" if isinstance(parts, list) else ""))
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    agree(model, x=x, parts=np.asarray(parts))


def test_parts_that_do_not_make_up_the_axis_are_an_error() -> None:
    module = from_onnx(parsed(SPLIT.format(axis=1, of="[k]")))
    with pytest.raises(UnityError, match="parts"):
        by_interpreter(module, [np.zeros((2, 4), np.float32), np.array([1, 2])])


@pytest.mark.parametrize("extent", ["4", "n"])
@pytest.mark.parametrize("keep", [0, 1])
def test_single_slices(extent: str, keep: int) -> None:
    model = parsed(f"""
    g (float[{extent}, 4] x) => (seq(float) s, int64 n) {{
      s = SplitToSequence <axis: int = 0, keepdims: int = {keep}> (x)
      n = SequenceLength (s)
    }}""")
    agree(model, x=np.arange(16, dtype=np.float32).reshape(4, 4))


def test_nothing_is_left_of_sequences_of_known_length() -> None:
    model = parsed("""
    g (float[4, n] x) => (float[4, n] z) {
      two = Constant <value_int: int = 2> ()
      s = SplitToSequence <axis: int = 0> (x, two)
      t = SequenceMap <body: graph = twice (float[2, n] a) => (float[2, n] b) { b = Add(a, a) }> (s)
      z = ConcatFromSequence <axis: int = 0> (t)
    }""")
    main = main_of(from_onnx(model))
    assert not any(isinstance(b.value, While) for b in walk_bindings(main.body))
    agree(model, x=np.arange(12, dtype=np.float32).reshape(4, 3))


MAP = parsed("""
g (seq(float[m, 3]) s, float[3] w) => (seq(float[m, 3]) t) {
  t = SequenceMap <body: graph = scale (float[m, 3] a, float[3] b) => (float[m, 3] c) {
    c = Mul(a, b)
  }> (s, w)
}""")


@pytest.mark.parametrize("lengths", [(), (2,), (1, 4, 0, 2)])
def test_what_is_done_to_each_item_of_an_input(lengths: tuple[int, ...]) -> None:
    agree(MAP, compiled=len(lengths) == 1, s=rows(*lengths), w=np.array([1, 2, 3], np.float32))


STACKED = parsed("""
g (int64 most, float[2] x, float limit) => (float[2] last, float[k, 2] each, seq(float) s) {
  yes = Constant <value: tensor = bool {1}> ()
  none = SequenceEmpty ()
  last, s, each = Loop (most, yes, x, none) <body: graph = step
    (int64 i, bool on, float[2] v, seq(float) before)
    => (bool more, float[2] w, seq(float) after, float[2] out) {
      w = Add (v, v)
      out = Identity (w)
      after = SequenceInsert (before, w)
      sum = ReduceSum <keepdims: int = 0> (w)
      more = Less (sum, limit)
    }>
}""")


@pytest.mark.parametrize("most", [1, 3, 9])
def test_a_loop_that_ends_early_stacks_and_collects(most: int) -> None:
    feeds = {"most": np.array(most), "limit": np.array(40, np.float32)}
    last, each, items = agree(STACKED, compiled=most == 3, x=np.array([1, 2], np.float32), **feeds)
    assert isinstance(items, list)
    assert 0 < len(items) <= most
    np.testing.assert_array_equal(np.asarray(each), np.stack(items))
    np.testing.assert_array_equal(np.asarray(last), items[-1])


BRANCH = parsed(
    """
g (bool c, float[n] x) => (seq(float) s) {
  s = If (c) <
    then_branch: graph = a () => (seq(float) p) { y = Neg (x)  p = SequenceConstruct (x, y) },
    else_branch: graph = b () => (seq(float) q) { z = Unsqueeze (x, ax)  q = SequenceConstruct (z) }
  >
}""".replace("s = If", "ax = Constant <value_ints: ints = [0]> ()\n  s = If")
)


@pytest.mark.parametrize("c", [False, True])
def test_branches_give_sequences_of_different_lengths_and_ranks(c: bool) -> None:
    agree(BRANCH, c=np.array(c), x=np.arange(3, dtype=np.float32))


OPTIONAL = parsed("""
g (optional(float[n]) o, float[n] d) => (float[n] z, bool there) {
  there = OptionalHasElement (o)
  z = If (there) <
    then_branch: graph = a () => (float[n] p) { p = OptionalGetElement (o) },
    else_branch: graph = b () => (float[n] q) { q = Neg (d) }
  >
}""")


def test_a_tensor_that_may_be_absent() -> None:
    x, d = np.arange(3, dtype=np.float32), np.ones(3, np.float32)
    exe = unity.compile(OPTIONAL)
    same(list(exe(x, d)), [x, np.array(True)])
    same(list(exe(None, d)), [-d, np.array(False)])


def test_what_is_absent_and_taken_is_an_error() -> None:
    text = "g (optional(seq(float[n])) o) => (seq(float[n]) s) { s = OptionalGetElement (o) }"
    exe = unity.compile(parsed(text))
    same(exe([np.ones(2, np.float32)]), [np.ones(2, np.float32)])
    with pytest.raises(UnityError, match="is_there"):
        exe(None)


def test_an_optional_output_is_none_where_there_is_nothing() -> None:
    model = parsed("""
    g (bool c, float[n] x) => (optional(seq(float)) o) {
      o = If (c) <
        then_branch: graph = a () => (optional(seq(float)) p) {
          s = SequenceConstruct (x, x)
          p = Optional (s)
        },
        else_branch: graph = b () => (optional(seq(float)) q) {
          q = Optional <type: type_proto = seq(float)> ()
        }
      >
    }""")
    exe, x = unity.compile(model), np.ones(2, np.float32)
    same(exe(np.array(True), x), [x, x])
    assert exe(np.array(False), x) is None


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ones((2, 3), np.float32), "must be a list of float32 arrays, got ndarray"),
        ([np.ones((2, 3))], r"\[0\] must be float32, got float64"),
        ([np.ones((1, 2, 3), np.float32)], r"\[0\] has 3 axes, but there may be 2 at most"),
    ],
)
def test_what_is_no_such_sequence_is_refused(value: object, message: str) -> None:
    with pytest.raises(UnityError, match=message):
        unity.compile(parsed(JOIN.format(axis=0, new=0)))(value)


def test_sequences_go_through_a_saved_artifact(tmp_path: Path) -> None:
    unity.compile(MAP).save(tmp_path / "map.unity")
    weights = np.array([1, 2, 3], np.float32)
    items = rows(2, 1)
    got = unity.load(tmp_path / "map.unity")(items, weights)
    same(got, [np.asarray(x) * weights for x in items])


def test_sequences_of_strings_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="a sequence that is not of numbers"):
        from_onnx(parsed("g (seq(string) s) => (int64 n) { n = SequenceLength (s) }"))
