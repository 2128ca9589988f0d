"""Loops that count up to a size by a condition, as Keras's recurrent layers are exported."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

import unity
from unity.frontend.onnx import from_onnx
from unity.ir.dtype import Array
from unity.ir.graph import Scan, While
from unity.ir.visit import walk_bindings

from .programs import check, main_of, model

f4 = np.float32
LAYER = """
g (float[t, b, 3] x, float[b, 4] h, bool flag)
    => (float[p, q] last, float[r, s, u] all, float[3, 4] w2)
<int32 first = {FIRST}, float none = {NONE}, int64[1] at = {0}, int64[1] one = {1},
 int64 most = {5}> {
    shape = Shape(x)
    row = Slice(shape, at, one)
    n = Squeeze(row, at)
    small = Cast<to=6>(n)
    real = Cast<to=1>(n)
    begins = Less(none, real)
    yes = Constant<value = bool {1}>()
    count_after, last, limit_after, w2, v2, all = Loop(MOST, BEGIN, first, h, small, w, v) <
        body = step (int64 i, bool on, int32 count, float[b, 4] state, int32 limit,
            float[3, 4] left, float[4, 4] right)
        => (bool more, int32 next, float[b, 4] after, int32 same, float[3, 4] kept,
            float[4, 4] also, float[b, 4] given)
        <int32 step_by = {1}> {
        next = Add(count, step_by)
        now = Gather<axis=0>(x, count)
        a = MatMul(now, left)
        c = MatMul(state, right)
        sum = Add(a, c)
        after = Tanh(sum)
        given = Identity(after)
        same = Identity(limit)
        kept = Identity(left)
        also = Identity(right)
        lower = Cast<to=1>(next)
        upper = Cast<to=1>(limit)
        more = Less(lower, upper)
    }>
}"""


def layer(first: str = "0", begin: str = "begins", most: str = "") -> str:
    """The layer's text: where it begins to count, on which condition, and the most steps."""
    text = LAYER.replace("MOST", most or '""').replace("BEGIN", begin).replace("FIRST", first)
    return text.replace("NONE", first)


def agrees(text: str, lengths: tuple[int, ...], *kinds: type) -> None:
    """Compiled as onnxruntime computes it, by a loop of a kind, or by one in another."""
    rng = np.random.default_rng(0)
    weights: dict[str, Array] = {
        "w": rng.standard_normal((3, 4)).astype(f4),
        "v": np.eye(4, dtype=f4) / 2,
    }
    of = model(text, weights=weights)
    module = from_onnx(of)
    check(module)
    loops = [type(b.value) for b in walk_bindings(main_of(module))]
    assert [k for k in loops if k in (Scan, While)] == [*kinds]
    exe = unity.compile(of)
    assert exe.native()["main"] == "native"
    session = ort.InferenceSession(of.SerializeToString())
    for t in lengths:
        x = rng.standard_normal((t, 2, 3)).astype(f4)
        feeds = {"x": x, "h": np.ones((2, 4), f4), "flag": np.asarray(True)}
        for got, want in zip(exe.run(feeds).values(), session.run(None, feeds), strict=True):
            assert np.asarray(got).shape == np.asarray(want).shape
            np.testing.assert_allclose(np.asarray(got, f4), np.asarray(want, f4), 1e-5, 1e-6)


@pytest.mark.parametrize("first", ["0", "2"])
def test_a_loop_that_counts_is_a_scan(first: str) -> None:
    agrees(layer(first), (3, 6), Scan)


def test_a_condition_that_is_cast_is_the_same() -> None:
    text = layer().replace(
        "more = Less(lower, upper)", "less = Less(lower, upper)\nmore = Cast<to=9>(less)"
    )
    agrees(text, (3, 6), Scan)


def test_no_steps_give_nothing() -> None:
    weights: dict[str, Array] = {"w": np.ones((3, 4), f4), "v": np.eye(4, dtype=f4)}
    exe = unity.compile(model(layer("2"), weights=weights))
    feeds = {"x": np.ones((1, 2, 3), f4), "h": np.ones((2, 4), f4), "flag": np.asarray(True)}
    found = exe.run(feeds)
    np.testing.assert_array_equal(found["last"], feeds["h"])
    assert np.asarray(found["all"]).shape == (0, 2, 4)


def test_steps_are_no_more_than_are_asked_for() -> None:
    agrees(layer(most="most"), (1, 3, 9), Scan)


def test_the_first_step_is_done_where_nothing_is_asked_before() -> None:
    agrees(layer(begin="yes"), (1, 4), Scan)
    agrees(layer("2", begin="yes"), (3, 4), Scan)


def test_a_loop_that_begins_by_another_condition_stays_one() -> None:
    agrees(layer(begin="flag"), (1, 4), While, Scan)
