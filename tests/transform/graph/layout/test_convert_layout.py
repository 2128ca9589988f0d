"""ConvertLayout: channels in blocks from the first convolution to the last, the same numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from tests.transform.cases import floats
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.dtype import BFLOAT16, Array
from unity.ir.graph import Call, Op
from unity.ir.module import IRModule
from unity.ir.visit import walk_bindings
from unity.ir.well_formed.verify import verify
from unity.script import parse, print_module
from unity.transform.graph import ConvertLayout, EliminateDeadCode
from unity.transform.passes import Context

SHAPES = {
    "first": (8, 3, 3, 3),
    "w1": (16, 8, 1, 1),
    "w3": (8, 16, 3, 3),
    "w12": (12, 8, 3, 3),
    "deep": (8, 1, 3, 3),
    "narrow": (64, 1, 5, 5),
    "bias": (1, 8, 1, 1),
    "twelve": (1, 12, 1, 1),
    "f1": (16, 8, 1, 1, 1),
    "f3": (8, 16, 3, 3, 3),
    "frames": (8, 16, 3, 1, 1),
    "lines": (16, 8, 1, 3, 3),
    "f12": (12, 8, 3, 3, 3),
    "single": (8, 1, 3, 3, 3),
    "of frames": (1, 8, 1, 1, 1),
}
CONSTANTS = dict(zip(SHAPES, floats(0, *SHAPES.values()), strict=True))
TRANSPOSE = "permute_dims"


def program(lines: str, channels: int = 8, size: int = 6, sizes: str = "") -> IRModule:
    text = f"""
n = dim("n")
t = dim("t")
h = dim("h")
w = dim("w")
@script.function
def main(x: f32[Tensor, n, {channels}, {sizes or f"{size}, {size}"}]) -> f32[Tensor, ...]:
    with R.dataflow():
{lines}
    return y
"""
    return parse(text, CONSTANTS)


def converted(module: IRModule, vector_bits: int = 256) -> IRModule:
    context = Context()
    context = replace(context, target=replace(context.target, vector_bits=vector_bits))
    got = EliminateDeadCode()(ConvertLayout()(module, context), context)
    verify(got)
    return got


def ops(module: IRModule) -> list[str]:
    calls = [b.value for b in walk_bindings(module.graph_functions()["main"])]
    return [c.callee.name for c in calls if isinstance(c, Call) and isinstance(c.callee, Op)]


def same(before: IRModule, after: IRModule, x: Array) -> None:
    expected, got = (run(m, x) for m in (before, after))
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


def run(module: IRModule, x: Array) -> npt.NDArray[np.float64]:
    result = interpret(module, "main", [x])
    assert isinstance(result, np.ndarray)
    return result.astype(np.float64)


CHAINS = {
    "strided, with bias and activation": """
        a = R.nn.conv2d(x, R.const("w1"), strides=2)
        b = R.nn.conv2d(R.nn.relu(a), R.const("w3"), padding=1)
        y = R.clip(R.add(b, R.const("bias")), min=0.0, max=6.0)""",
    "a residual": """
        a = R.nn.relu(R.nn.conv2d(x, R.const("w1")))
        b = R.nn.conv2d(a, R.const("w3"), padding=1)
        c = R.nn.conv2d(x, R.const("deep"), padding=1, groups=8)
        d = R.nn.conv2d(R.nn.conv2d(x, R.const("w1")), R.const("w3"), padding=1)
        y = R.add(R.add(b, d), c)""",
    "pools": """
        a = R.nn.conv2d(x, R.const("w1"))
        b = R.nn.max_pool2d(a, pool_size=(3, 3), strides=2, padding=1, ceil_mode=True)
        y = R.nn.avg_pool2d(b, pool_size=2, strides=(1, 2), padding=(1, 0, 0, 1))""",
    "a mean and joined branches": """
        a = R.nn.conv2d(x, R.const("w1"))
        b = R.concat((a, R.multiply(a, 2.0)), axis=1)
        y = R.mean(b, axis=(-1, -2), keepdims=True)""",
    "divisions and repetitions": """
        a = R.divide(R.nn.conv2d(x, R.const("w1")), 6.0)
        b = R.repeat(R.repeat(a, repeats=2, axis=2), repeats=3, axis=-1)
        y = R.nn.conv2d(b, R.const("w3"), padding=1)""",
    "channels that fill no block": """
        a = R.add(R.nn.conv2d(x, R.const("w12"), padding=(0, 1, 2, 1)), 1.0)
        b = R.nn.conv2d(R.nn.relu(a), R.permute_dims(R.const("w12"), axes=(1, 0, 2, 3)))
        y = R.add(R.sigmoid(a), 0.0)""",
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_keeps_its_meaning(name: str) -> None:
    before = program(CHAINS[name])
    after = converted(before)
    assert "nn.conv2d_blocked" in ops(after)
    (x,) = floats(1, (2, 8, 6, 6))
    same(before, after, x)


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_in_blocks_for_dot_products_keeps_its_meaning(name: str) -> None:
    before = program(CHAINS[name])
    context = Context()
    target = replace(context.target, vector_bits=512, features=("avx512bf16",))
    context = replace(context, target=target)
    after = EliminateDeadCode()(ConvertLayout(BFLOAT16)(before, context), context)
    verify(after)
    assert "nn.conv2d_blocked" not in ops(after) or "groups" in CHAINS[name]
    (x,) = floats(1, (2, 8, 6, 6))
    same(before, after, x)


FRAMES = {
    "a residual": """
        a = R.nn.relu(R.add(R.nn.conv3d(x, R.const("f1")), 1.0))
        b = R.add(R.nn.conv3d(a, R.const("f3"), padding=1), R.const("of frames"))
        c = R.nn.conv3d(x, R.const("single"), padding=1, groups=8)
        y = R.nn.relu(R.add(R.add(b, x), c))""",
    "lines and frames apart, strided": """
        a = R.nn.relu(R.nn.conv3d(x, R.const("lines"), strides=(1, 2, 2), padding=(0, 1, 1)))
        y = R.nn.conv3d(a, R.const("frames"), strides=(2, 1, 1), padding=(1, 0, 0))""",
    "pools": """
        a = R.nn.conv3d(x, R.const("f1"))
        b = R.nn.max_pool3d(a, pool_size=3, strides=2, padding=1, ceil_mode=True)
        y = R.nn.avg_pool3d(b, pool_size=2, strides=(1, 2, 1), padding=(0, 1, 0, 1, 0, 0))""",
    "a mean and joined branches": """
        a = R.nn.conv3d(x, R.const("f1"))
        b = R.concat((a, R.multiply(a, 2.0)), axis=-4)
        y = R.mean(b, axis=(-1, 2, -2), keepdims=True)""",
    "repeated and cut": """
        a = R.nn.conv3d(x, R.const("f1"))
        b = R.repeat(R.repeat(a, repeats=2, axis=2), repeats=3, axis=-1)
        y = R.strided_slice(b, axes=(1,), begin=(8,), end=(16,))""",
    "channels that fill no block": """
        a = R.add(R.nn.conv3d(x, R.const("f12"), padding=(0, 1, 2, 1, 1, 0)), 1.0)
        y = R.add(R.sigmoid(a), 0.0)""",
}


@pytest.mark.parametrize("sizes", ["4, 6, 5", "t, h, w"])
@pytest.mark.parametrize("name", FRAMES)
def test_a_chain_over_frames_keeps_its_meaning(name: str, sizes: str) -> None:
    before = program(FRAMES[name], sizes=sizes)
    after = converted(before)
    assert "nn.conv3d_blocked" in ops(after)
    assert "nn.conv3d" not in ops(after)
    assert ops(after).count(TRANSPOSE) <= 2, "one to come in, one to go out"
    (x,) = floats(1, (2, 8, 4, 6, 5))
    same(before, after, x)


def test_frames_that_are_channels_of_an_image_are_no_blocks() -> None:
    """Added to images over frames, the channels of one without meet the frames."""
    before = parse(
        """
@script.function
def main(x: f32[Tensor, 1, 8, 8, 6, 6], z: f32[Tensor, 1, 8, 6, 6]) -> f32[Tensor, ...]:
    a = R.nn.conv2d(z, R.const("w3"), padding=1)
    b = R.nn.conv2d(a, R.const("w3"), padding=1)
    c = R.nn.conv3d(x, R.const("f3"), padding=1)
    return R.add(c, b)
""",
        dict(zip(("w3", "f3"), floats(0, (8, 8, 3, 3), (8, 8, 3, 3, 3)), strict=True)),
    )
    after = converted(before)
    args = floats(1, (1, 8, 8, 6, 6), (1, 8, 6, 6))
    expected, got = (interpret(m, "main", list(args)) for m in (before, after))
    np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=1e-4, atol=1e-4)


def test_transposes_stand_at_the_borders_only() -> None:
    after = converted(program(CHAINS["strided, with bias and activation"]))
    blocked = ["nn.conv2d_blocked", "nn.relu", "nn.conv2d_blocked", "add", "clip"]
    into, out = ["reshape", TRANSPOSE], [TRANSPOSE, "reshape"]
    assert ops(after) == [*into, *blocked, *out]


def test_divisions_by_constants_and_repetitions_follow() -> None:
    after = converted(program(CHAINS["divisions and repetitions"]))
    blocked = ["nn.conv2d_blocked", "divide", "repeat", "repeat", "nn.conv2d_blocked"]
    into, out = ["reshape", TRANSPOSE], [TRANSPOSE, "reshape"]
    assert ops(after) == [*into, *blocked, *out]


@pytest.mark.parametrize(
    "line",
    [
        "R.divide(R.nn.conv2d(x, R.const('w12')), R.nn.conv2d(x, R.const('w12')))",
        "R.divide(R.nn.conv2d(x, R.const('w12')), 0.0)",
        "R.divide(R.nn.conv2d(x, R.const('w12')), R.const('twelve'))",
    ],
)
def test_divisions_that_may_pad_by_nan_do_not_follow(line: str) -> None:
    """What pads a block is multiplied by zeros later: it must be finite."""
    assert "divide" in ops(converted(program(f"        y = {line}")))[-1:]


def test_an_image_of_few_channels_is_read_as_it_is() -> None:
    before = program('        y = R.nn.conv2d(x, R.const("first"), padding=1)', channels=3)
    after = converted(before)
    assert ops(after) == ["reshape", "nn.conv2d_blocked", TRANSPOSE, "reshape"]
    (x,) = floats(2, (1, 3, 6, 6))
    same(before, after, x)


@pytest.mark.parametrize(
    "line",
    [
        'y = R.nn.conv2d(x, R.const("deep"), groups=8)',  # alone it would not repay transposes
        'y = R.nn.relu(R.add(R.nn.conv2d(x, R.const("w1")), 1.0))',  # a product by itself
        "y = R.nn.max_pool2d(x, pool_size=2)",
        'y = R.nn.conv2d(R.strided_slice(x, (2, 3), (0, 0), (2, 2)), R.const("w1"))',
        "y = R.nn.conv2d(x, R.ones((16, 8, 1, 1), 'float32'))",
    ],
)
def test_what_does_not_repay_it_stays(line: str) -> None:
    before = program(f"        {line}")
    assert ops(converted(before)) == ops(before)


@pytest.mark.parametrize(
    ("sizes", "strides", "blocks"),
    [("9, 9", 1, True), ("9, w", 2, True), ("64, 64", 1, False), ("112, w", 1, False)],
)
def test_lone_depthwise_convolutions_of_short_lines_repay_it(
    sizes: str, strides: int, blocks: bool
) -> None:
    line = f'        y = R.nn.conv2d(x, R.const("narrow"), groups=64, padding=2, strides={strides})'
    before = program(line, 64, sizes=sizes)
    after = converted(before)
    assert ("nn.conv2d_blocked" in ops(after)) is blocks
    if blocks:
        same(before, after, floats(5, (1, 64, 9, 9))[0])


def test_short_registers_have_no_blocks() -> None:
    before = program(CHAINS["pools"])
    assert ops(converted(before, vector_bits=64)) == ops(before)


def test_sizes_are_asserted_in_blocks() -> None:
    before = parse(
        """
n = dim("n")
h = dim("h")
@script.function
def main(x: f32[Tensor, n, 8, h, h]) -> f32[Tensor, ...]:
    a = R.nn.conv2d(x, R.const("w3"), padding=1)
    b = R.nn.conv2d(a, R.const("w3"), padding=1, strides=2)
    c = R.repeat(R.repeat(b, repeats=2, axis=2), repeats=2, axis=3)
    d = R.match_cast(c, f32[Tensor, n, 8, h, h])
    y = R.nn.relu(R.add(a, d))
    return y
""",
        {"w3": floats(0, (8, 8, 3, 3))[0]},
    )
    after = converted(before)
    assert ops(after).count(TRANSPOSE) == 2, "one to come in, one to go out"
    same(before, after, floats(1, (2, 8, 6, 6))[0])
    for module in (before, after):
        with pytest.raises(UnityError, match=r"'d', dim 2, is h, which is 5 .*got 6"):
            interpret(module, "main", floats(1, (2, 8, 5, 5)))


@pytest.mark.parametrize(("size", "blocks"), [(7, True), (8, False), (56, False)])
def test_a_product_of_few_pixels_is_in_blocks_where_lanes_would_be_idle(
    size: int, blocks: bool
) -> None:
    """49 pixels fill 3 registers and a lane of a fourth: more is wasted than blocks cost."""
    weight = np.ones((640, 320, 1, 1), np.float32)
    before = parse(
        f"""
@script.function
def main(x: f32[Tensor, 1, 320, {size}, {size}]) -> f32[Tensor, 1, 640, {size}, {size}]:
    return R.nn.conv2d(x, R.const("weight"))
""",
        {"weight": weight},
    )
    ctx = Context()
    ctx = replace(ctx, target=replace(ctx.target, vector_bits=512))
    text = print_module(ConvertLayout()(before, ctx))
    assert ("conv2d_blocked" in text) == blocks
