"""TVM's normalizations: by the batch, without scale or offset, over other axes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

import unity
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.script import tvmscript

RNG = np.random.default_rng(0)
Floats = npt.NDArray[np.float32]
X = RNG.standard_normal((3, 4, 5, 2), np.float32) * 3 + 1
GAMMA, BETA, MEAN = RNG.standard_normal((3, 4), np.float32)
VARIANCE = RNG.random(4, np.float32) + np.float32(0.5)


def graph(call: str, *, vectors: int, shape: tuple[int | str, ...] = (3, 4, 5, 2)) -> str:
    names = ", ".join(f'{n}: R.Tensor((4,), "float32")' for n in "gbmv"[:vectors])
    return f'@R.function\ndef main(x: R.Tensor({shape}, "float32"), {names}):\n    return {call}\n'


def run(text: str, *args: Floats) -> list[Floats]:
    """What the interpreter and the compiled program say."""
    module = tvmscript.parse(text)
    said = interpret(module, "main", list(args))
    found = [np.asarray(v) for v in (said if isinstance(said, tuple) else (said,))]
    compiled = unity.compile(module)(*args)
    for a, b in zip(compiled if isinstance(compiled, tuple) else (compiled,), found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    return found


def normal(x: Floats, axes: tuple[int, ...]) -> Floats:
    deviation = np.sqrt(x.var(axes, keepdims=True) + np.float32(0.1))
    return np.asarray((x - x.mean(axes, keepdims=True)) / deviation)


def spread(vector: Floats, axis: int = 1) -> Floats:
    return vector.reshape([-1 if k == axis else 1 for k in range(4)])


@pytest.mark.parametrize("axis", [1, -3])
def test_a_batch_norm_of_training(axis: int) -> None:
    call = f"R.nn.batch_norm(x, g, b, m, v, axis={axis}, epsilon=0.1, momentum=0.25)"
    found = run(graph(call, vectors=4), X, GAMMA, BETA, MEAN, VARIANCE)
    axes = (0, 2, 3)
    expected = normal(X, axes) * spread(GAMMA) + spread(BETA)
    np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[1], 0.75 * MEAN + 0.25 * X.mean(axes), rtol=1e-5)
    np.testing.assert_allclose(found[2], 0.75 * VARIANCE + 0.25 * X.var(axes), rtol=1e-5)


def test_a_batch_norm_without_scale_and_offset() -> None:
    call = "R.nn.batch_norm(R.abs(x), g, b, m, v, 1, center=False, scale=False, training={})"
    mean, variance = spread(MEAN), spread(VARIANCE)
    for training in (True, False):
        found = run(graph(call.format(training), vectors=4), X, GAMMA, BETA, MEAN, VARIANCE)
        a = np.abs(X)
        m = a.mean((0, 2, 3), keepdims=True) if training else mean
        v = a.var((0, 2, 3), keepdims=True) if training else variance
        np.testing.assert_allclose(found[0], (a - m) / np.sqrt(v + 1e-5), rtol=1e-4, atol=1e-5)
        if not training:
            np.testing.assert_array_equal(found[1], MEAN)


FLAGS = [(True, False), (False, True), (False, False)]
NORMS: dict[str, Callable[[Floats], Floats]] = {
    "layer_norm(x, g, b, -3": lambda x: normal(x, (1,)),
    "layer_norm(R.permute_dims(x, [0, 2, 3, 1]), g, b, [-1]": lambda x: np.moveaxis(
        normal(x, (1,)), 1, -1
    ),
    "group_norm(x, g, b, 2, 1, [2, 3]": lambda x: normal(
        x.reshape(3, 2, 2, 5, 2), (2, 3, 4)
    ).reshape(x.shape),
    "instance_norm(x, g, b, 1, [2, 3]": lambda x: normal(x, (2, 3)),
    "instance_norm(x, g, b, 1, [3]": lambda x: normal(x, (3,)),
}


@pytest.mark.parametrize(("scale", "center"), FLAGS)
@pytest.mark.parametrize("call", NORMS)
def test_norms_without_scale_or_offset(call: str, scale: bool, center: bool) -> None:
    """As TVM documents it, and torch has it. TVM 0.27 itself leaves both flags unread."""
    text = graph(f"R.nn.{call}, epsilon=0.1, scale={scale}, center={center})", vectors=2)
    (found,) = run(text, X, GAMMA, BETA)
    axis = 3 if "permute" in call else 1
    expected = NORMS[call](X)
    if scale:
        expected = expected * spread(GAMMA, axis)
    if center:
        expected = expected + spread(BETA, axis)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_norms_without_scale_and_offset_are_torchs() -> None:
    torch = pytest.importorskip("torch", reason="torch is the oracle here")
    functional, x = torch.nn.functional, torch.from_numpy(X)
    wanted = {
        "layer_norm(x, g, g, [-1]": (functional.layer_norm(x, (2,), eps=0.1), 2),
        "group_norm(x, g, g, 2, 1, [2, 3]": (functional.group_norm(x, 2, eps=0.1), 4),
        "instance_norm(x, g, g, 1, [2, 3]": (functional.instance_norm(x, eps=0.1), 4),
    }
    for call, (value, size) in wanted.items():
        text = graph(f"R.nn.{call}, epsilon=0.1, scale=False, center=False)", vectors=1)
        (found,) = run(text.replace("(4,)", f"({size},)"), X, GAMMA[:size])
        np.testing.assert_allclose(found, value.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("axes", ["[2, 3]", "[-1, -2]", "[3, 2]"])
def test_group_and_instance_norms_over_all_but_the_batch(axes: str) -> None:
    call = f"R.nn.group_norm(x, g, b, num_groups=2, channel_axis=1, axes={axes}, epsilon=0.1)"
    (found,) = run(graph(call, vectors=2), X, GAMMA, BETA)
    groups = normal(X.reshape(3, 2, 2, 5, 2), (2, 3, 4)).reshape(X.shape)
    np.testing.assert_allclose(found, groups * spread(GAMMA) + spread(BETA), rtol=1e-4, atol=1e-5)
    call = f"R.nn.instance_norm(x, g, b, channel_axis=1, axes={axes}, epsilon=0.1)"
    (found,) = run(graph(call, vectors=2), X, GAMMA, BETA)
    expected = normal(X, (2, 3)) * spread(GAMMA) + spread(BETA)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("axes", [(0, 2, 3), (3,), (1, 2)])
def test_an_instance_norm_over_other_axes(axes: tuple[int, ...]) -> None:
    call = f"R.nn.instance_norm(x, g, b, channel_axis=-3, axes={list(axes)}, epsilon=0.1)"
    (found,) = run(graph(call, vectors=2, shape=("n", 4, 5, 2)), X, GAMMA, BETA)
    expected = normal(X, axes) * spread(GAMMA) + spread(BETA)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("group_norm(x, g, b, 2, 1, [2])", "'x' must have rank 3 for axes=\\[2\\]"),
        ("group_norm(x, g, b, 2, 1, [0, 2, 3])", "Unity has no axes=\\[0, 2, 3\\]"),
        ("group_norm(x, g, b, 2, 1, g)", "'axes' and 'channel_axis' must be integers"),
        ("batch_norm(x, g, b, g, b, 1, training=2)", "'training' must be True or False, got 2"),
        ("batch_norm(x, g, b, g, b, 1, center=None)", "'center' must be True or False, got None"),
        ("layer_norm(x, g, b, -1, center=g)", "'center' must be True or False, got"),
    ],
)
def test_norms_that_are_refused(call: str, message: str) -> None:
    with pytest.raises(UnityError, match=message) as caught:
        tvmscript.parse(graph(f"R.nn.{call}", vectors=2))
    assert caught.value.span is not None
