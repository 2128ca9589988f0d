"""States that no step of a loop reads, begun with a tensor of another rank, as Paddle does."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

import unity
from unity.errors import UnityError
from unity.frontend.onnx import from_onnx

from .programs import check, model

f4 = np.float32
TEXT = """
g (float[n, 3] x, int64 steps, bool on) => (float[a, b] last, float[n, 3] total, float[n, 3] x2) {
    nothing = Constant<value = float {0}>()
    last, total = Loop(steps, on, nothing, x) <body = step
        (int64 i, bool was, float[p, q] unread, float[n, 3] sum)
        => (bool goes, float[p, q] now, float[n, 3] more) {
        f = Cast<to=1>(i)
        more = Add(sum, f)
        now = Neg(more)
        limit = Constant<value = float {30}>()
        all = ReduceSum<keepdims=0>(more)
        goes = Less(all, limit)
    }>
    x2 = Identity(x)
}"""


def test_the_last_step_says_what_they_are() -> None:
    of = model(TEXT)
    check(from_onnx(of))
    exe = unity.compile(of)
    assert exe.native() == {"main": "native"}
    session = ort.InferenceSession(of.SerializeToString())
    for rows, steps in ((2, 1), (2, 3), (1, 100)):
        x = np.ones((rows, 3), f4)
        feeds = {"x": x, "steps": np.asarray(steps), "on": np.asarray(True)}
        for got, want in zip(exe.run(feeds).values(), session.run(None, feeds), strict=True):
            np.testing.assert_allclose(np.asarray(got, f4), np.asarray(want, f4))


@pytest.mark.parametrize(("steps", "on"), [(0, True), (3, False)])
def test_without_a_step_they_are_refused(steps: int, on: bool) -> None:
    exe = unity.compile(model(TEXT))
    feeds = {"x": np.ones((2, 3), f4), "steps": np.asarray(steps), "on": np.asarray(on)}
    with pytest.raises(UnityError, match="takes_no_step"):
        exe.run(feeds)
