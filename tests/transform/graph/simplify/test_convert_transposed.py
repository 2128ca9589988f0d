"""ConvertTransposed: the same numbers, and nothing of the weights is left to do at run time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

import unity
from tests.transform.cases import apply, floats, keeps_meaning
from unity.interpreter import interpret
from unity.ir.dtype import Array
from unity.ir.graph import Call, Constant, Op
from unity.ir.module import IRModule
from unity.ir.visit import walk_bindings
from unity.script import parse
from unity.transform.graph import ConvertTransposed, EliminateDeadCode, FoldBatchNorm

STEPS = [ConvertTransposed(), EliminateDeadCode()]


@dataclass(frozen=True, slots=True)
class Layer:
    """A transposed convolution of an image whose first size is known only at run time."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    extra: tuple[int, ...]
    groups: int = 1
    made: int = 2

    @property
    def rank(self) -> int:
        return len(self.kernel)

    @property
    def weight(self) -> Array:
        return floats(3, (2 * self.groups, self.made, *self.kernel))[0]

    def x(self, first: int = 5) -> Array:
        return floats(4, (2, 2 * self.groups, first, *(6, 4)[: self.rank - 1]))[0]

    def module(self, after: str = "y = c", **constants: Array) -> IRModule:
        sizes = "".join(f", {n}" for n in (6, 4)[: self.rank - 1])
        attrs = (
            f"strides={self.strides}, padding={self.padding}, dilation={self.dilation}, "
            f"output_padding={self.extra}, groups={self.groups}"
        )
        text = f"""
h = dim("h", min=5)
@script.function
def main(x: f32[Tensor, 2, {2 * self.groups}, h{sizes}]) -> f32[Tensor, ...]:
    with R.dataflow():
        c = R.nn.conv{self.rank}d_transpose(x, R.const("weight"), {attrs})
        {after}
    return y
"""
        return parse(text, {"weight": self.weight, **constants})


def random_layer(seed: int) -> Layer:
    rng = np.random.default_rng(seed)

    def ints(low: int, high: int, count: int) -> tuple[int, ...]:
        return tuple(int(v) for v in rng.integers(low, high, count))

    rank = int(rng.integers(1, 4))
    strides, dilation = ints(1, 4, rank), ints(1, 3, rank)
    padding = ints(0, 3, 2 * rank)
    extra = tuple(int(rng.integers(0, max(s, d))) for s, d in zip(strides, dilation, strict=True))
    kernel = ints(1, 5, rank)
    groups = int(rng.integers(1, 3))
    return Layer(kernel, strides, padding, dilation, extra, groups, int(rng.integers(1, 4)))


def ops(module: IRModule) -> list[str]:
    found = []
    for binding in walk_bindings(module.graph_functions()["main"]):
        assert isinstance(binding.value, Call)
        assert isinstance(binding.value.callee, Op)
        found.append(binding.value.callee.name)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_random_layers_keep_their_numbers(seed: int) -> None:
    layer = random_layer(seed)
    try:
        module = layer.module()
    except unity.UnityError:
        pytest.skip("more is cropped than there is")
    keeps_meaning(STEPS, module, [layer.x()])


def test_most_random_layers_become_convolutions() -> None:
    found: list[list[str]] = []
    for seed in range(60):
        try:
            module = random_layer(seed).module()
        except unity.UnityError:
            continue
        found.append(ops(apply(STEPS, module)))
    converted = [names for names in found if not any("transpose" in n for n in names)]
    assert len(converted) > len(found) // 2


STRIDED = Layer((4, 4), (2, 2), (1, 1), (1, 1), (0, 0), 2)
"""Of which borders are cropped."""


def test_phases_are_interleaved_and_cropped() -> None:
    got = keeps_meaning(STEPS, STRIDED.module(), [STRIDED.x()])
    assert ops(got) == ["nn.conv2d", "interleave_phases", "strided_slice"]


def test_windows_that_touch_need_no_cropping() -> None:
    layer = Layer((2, 2), (2, 2), (0, 0), (1, 1), (0, 0))
    assert ops(keeps_meaning(STEPS, layer.module(), [layer.x()])) == [
        "nn.conv2d",
        "interleave_phases",
    ]


def test_without_strides_it_is_a_convolution() -> None:
    layer = Layer((3, 2), (1, 1), (1, 0), (1, 2), (0, 0))
    assert ops(keeps_meaning(STEPS, layer.module(), [layer.x()])) == ["nn.conv2d"]


def test_too_many_zeros_between_taps_are_not_multiplied() -> None:
    layer = Layer((3, 3), (2, 2), (0, 0), (5, 5), (0, 0))
    assert ops(keeps_meaning(STEPS, layer.module(), [layer.x()])) == ["nn.conv2d_transpose"]


def test_a_weight_known_at_run_time_stays() -> None:
    text = """
@script.function
def main(x: f32[Tensor, 1, 2, 3, 3], w: f32[Tensor, 2, 3, 2, 2]) -> f32[Tensor, ...]:
    return R.nn.conv2d_transpose(x, w, strides=2)
"""
    args = floats(5, (1, 2, 3, 3), (2, 3, 2, 2))
    assert ops(keeps_meaning(STEPS, text, args)) == ["nn.conv2d_transpose"]


@pytest.mark.parametrize("groups", [1, 2])
def test_a_normalization_goes_into_the_weight(groups: int) -> None:
    layer = Layer((3, 3), (2, 2), (1, 1), (1, 1), (1, 1), groups, 3)
    names = ("gamma", "beta", "mean", "variance")
    values = floats(6, *((3 * groups,),) * 4)
    constants = dict(zip(names, [*values[:3], np.abs(values[3]) + 0.5], strict=True))
    given = ", ".join(f'R.const("{name}")' for name in names)
    module = layer.module(f"y = R.nn.batch_norm(c, {given})", **constants)
    got = keeps_meaning([FoldBatchNorm(), *STEPS], module, [layer.x()])
    assert ops(got) == ["nn.conv2d", "add", "interleave_phases", "strided_slice"]


LATER = {
    "y = R.nn.relu(c)": True,
    "y = R.tanh(R.multiply(R.const(2.0, 'float32'), c))": True,
    "y = R.divide(R.const('channels'), R.exp(c))": True,
    "y = R.add(c, R.const('image'))": False,
    "y = R.multiply(c, R.sum(x))": False,
    "y = R.concat((R.exp(c), c))": False,
    "y = R.multiply(c, c)": False,
    "y = R.nn.softmax(c)": False,
}
"""What may follow, and whether it can be done to the phases."""


@pytest.mark.parametrize("after", list(LATER))
@pytest.mark.parametrize("groups", [1, 2])
def test_what_follows_is_done_to_the_phases(groups: int, after: str) -> None:
    layer = Layer((4, 4), (2, 2), (1, 1), (1, 1), (0, 0), groups)
    channels, image = floats(7, (2 * groups, 1, 1), (12,))
    module = layer.module(after, channels=channels, image=image)
    names = ops(keeps_meaning(STEPS, module, [layer.x()]))
    assert (names[-2:] == ["interleave_phases", "strided_slice"]) == LATER[after]
    assert names.count("interleave_phases") == 1


DILATED = Layer((3, 3), (3, 3), (0, 0), (2, 2), (0, 0))


def test_phases_of_no_power_of_two_are_transposed() -> None:
    got = keeps_meaning(STEPS, DILATED.module(), [DILATED.x()])
    assert ops(got)[:4] == ["nn.conv2d", "reshape", "permute_dims", "reshape"]


@pytest.mark.parametrize("layer", [STRIDED, DILATED], ids=["strided", "dilated"])
def test_nothing_is_done_to_weights_at_run_time(layer: Layer) -> None:
    module = layer.module("y = R.tanh(c)")
    exe = unity.compile(module, threads=1)
    for first in (5, 9):
        x = layer.x(first)
        got, expected = np.asarray(exe(x)), interpret(module, "main", [x])
        assert isinstance(expected, np.ndarray)
        assert got.shape == expected.shape
        assert np.allclose(got, expected.astype(np.float32), rtol=1e-4, atol=1e-5)
    work = [r.label for r in exe.profile(layer.x()).rows if r.what != "LoadConst"]
    assert work
    assert not any("weight" in label or "transpose" in label for label in work)


@pytest.mark.rotated(1)
@pytest.mark.parametrize("kernel", [(3, 3), (3, 4), (5, 3), (3,), (3, 3, 3)])
@pytest.mark.parametrize("padding", [0, 1])
def test_phases_of_few_taps_are_convolutions_of_their_own(
    kernel: tuple[int, ...], padding: int
) -> None:
    """Zeros that fill windows up to whole steps of the stride are not multiplied."""
    rank = len(kernel)
    layer = Layer(kernel, (2,) * rank, (padding,) * rank, (1,) * rank, (padding,) * rank, made=32)
    after = keeps_meaning(STEPS, layer.module(), [layer.x()])
    own = [
        x.data.size // (2 * layer.made)
        for b in walk_bindings(after.graph_functions()["main"])
        if isinstance(b.value, Call) and b.value.callee == Op(f"nn.conv{rank}d")
        for x in b.value.args
        if isinstance(x, Constant)
    ]
    whole = math.prod(-(-k // 2) for k in kernel) * 2**rank
    if math.prod(kernel) <= 0.7 * whole:
        assert len(own) == 2**rank
        assert sum(own) == math.prod(kernel)
    else:
        assert own == [whole]
    later = layer.module("y = R.nn.relu(R.add(c, R.const(0.5, 'float32')))")
    want, got = interpret(later, "main", [layer.x()]), unity.compile(later)(layer.x())
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "layer",
    [
        Layer((4, 2), (1, 2), (0, 0, 0, 0), (3, 3), (0, 0), made=32),
        Layer((3, 2), (1, 2), (2, 1, 2, 1), (2, 3), (0, 0), made=32),
        Layer((2, 3), (2, 1), (0, 1, 0, 1), (3, 2), (1, 0), made=32),
    ],
)
def test_taps_of_phases_lie_apart_along_axes_without_strides(layer: Layer) -> None:
    got = keeps_meaning(STEPS, layer.module(), [layer.x(8)])
    assert ops(got).count("nn.conv2d") == 2, "phases are convolutions of their own"
