"""Loops whose steps append to a sequence, as TorchScript writes lists: stacked, natively."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

import unity
from unity.errors import UnityError
from unity.frontend.onnx import from_onnx
from unity.interpreter import interpret
from unity.ir.graph import Scan, While
from unity.ir.visit import walk_bindings

from ..programs import check, main_of
from .test_sequences import parsed

f4 = np.float32
SCANNED = """
g (float[b, t, 3] x, float[b, 3] first) => (float[p, q, r] y, float[b, 3] last)
<int64 one = {1}, int64[1] end = {9223372036854775807}, int64[1] none = {0}> {
    yes = Constant<value = bool {1}>()
    shape = Shape(x)
    steps = Gather(shape, one)
    empty = SequenceEmpty<dtype=1>()
    last, kept = Loop(steps, yes, first, empty) <body = step
        (int64 i, bool on, float[b, 3] h, seq(float[u, v]) held)
        => (bool same, float[b, 3] next, seq(float[u, v]) more) {
        same = Identity(yes)
        part = Slice(x, none, end, none)
        row = Gather<axis=1>(part, i)
        sum = Add(row, h)
        next = Tanh(sum)
        more = SequenceInsert(held, next)
    }>
    y = ConcatFromSequence<JOINED>(kept)
}"""


@pytest.mark.parametrize("joined", ["axis=1, new_axis=1", "axis=-1, new_axis=1", "axis=1"])
def test_a_list_that_grows_by_one_in_each_step_is_a_stack(joined: str) -> None:
    text = SCANNED.replace("JOINED", joined)
    text = text if "new" in joined else text.replace("float[p, q, r] y", "float[p, q] y")
    model = parsed(text)
    module = from_onnx(model)
    check(module)
    kinds = [type(b.value) for b in walk_bindings(main_of(module))]
    assert Scan in kinds
    assert While not in kinds
    exe = unity.compile(model)
    assert exe.native() == {"main": "native"}
    session = ort.InferenceSession(model.SerializeToString())
    for shape in ((2, 5, 3), (1, 1, 3), (3, 70, 3)):
        x = np.random.default_rng(0).standard_normal(shape).astype(f4)
        feeds = {"x": x, "first": np.ones((shape[0], 3), f4)}
        for got, want in zip(exe.run(feeds).values(), session.run(None, feeds), strict=True):
            np.testing.assert_allclose(np.asarray(got, f4), np.asarray(want, f4), 1e-5, 1e-6)
    none = np.zeros((2, 0, 3), f4), np.ones((2, 3), f4)
    with pytest.raises(UnityError, match="it joins a sequence of no items"):
        exe(*none)
    with pytest.raises(UnityError, match="it joins a sequence of no items"):
        interpret(module, "main", none)


READ = """
g (float[t, 3] x) => (float[p, 3] y) <int64 zero = {0}> {
    yes = Constant<value = bool {1}>()
    shape = Shape(x)
    steps = Gather(shape, zero)
    empty = SequenceEmpty<dtype=1>()
    kept = Loop(steps, yes, empty) <body = step
        (int64 i, bool on, seq(float[u, v]) held) => (bool same, seq(float[u, v]) more) {
        same = Identity(on)
        row = Gather(x, i)
        STEP
    }>
    y = ConcatFromSequence<axis=0>(kept)
}"""
GROWN = """
        one = Constant<value = int64[1] {1}>()
        n = SequenceLength(held)
        m = Add(n, one)
        three = Constant<value = int64[1] {3}>()
        to = Concat<axis=0>(m, three)
        item = Expand(row, to)
        more = SequenceInsert(held, item)"""
FIRST = """
        front = Constant<value = int64 {0}>()
        axis = Constant<value = int64[1] {0}>()
        item = Unsqueeze(row, axis)
        more = SequenceInsert(held, item, front)"""
UNEVEN = """
        first = Constant<value = int64[1] {0}>()
        to = Unsqueeze(i, first)
        three = Constant<value = int64[1] {3}>()
        target = Concat<axis=0>(to, three)
        item = Expand(row, target)
        more = SequenceInsert(held, item)"""


@pytest.mark.parametrize("step", [GROWN, FIRST, UNEVEN], ids=["read", "in front", "uneven"])
def test_other_lists_stay_sequences(step: str) -> None:
    """Read within the loop, filled from the front, of items of unequal lengths."""
    model = parsed(READ.replace("STEP", step))
    kinds = [type(b.value) for b in walk_bindings(main_of(from_onnx(model)))]
    assert While in kinds
    x = np.arange(12, dtype=f4).reshape(4, 3)
    want = ort.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    np.testing.assert_array_equal(unity.compile(model).run({"x": x})["y"], np.asarray(want))


def test_a_condition_and_slices_of_lengths_that_only_running_tells() -> None:
    """What torch writes for a bag of embeddings: conditions and bounds cut out of vectors."""
    model = parsed("""
    g (float[n, 2] x, int64[k] at, int64[1] i) => (float[p, 2] y) {
        one = Constant<value = int64[1] {1}>()
        two = Constant<value = int64[1] {2}>()
        j = Add(i, one)
        k2 = Add(i, two)
        start = Slice(at, i, j)
        end = Slice(at, j, k2)
        empty = Equal(start, end)
        y = If(empty) <
            then_branch = none () => (float[u, 2] a) { a = Slice(x, start, end) },
            else_branch = some () => (float[v, 2] b) { c = Slice(x, start, end)
                b = Neg(c) }
        >
    }""")
    exe = unity.compile(model)
    session = ort.InferenceSession(model.SerializeToString())
    x, at = np.arange(12, dtype=f4).reshape(6, 2), np.asarray([0, 2, 2, 6])
    for i in range(3):
        feeds = {"x": x, "at": at, "i": np.asarray([i])}
        np.testing.assert_array_equal(exe.run(feeds)["y"], session.run(None, feeds)[0])
    with pytest.raises(UnityError):
        exe.run({"x": x, "at": at, "i": np.asarray([3])})
