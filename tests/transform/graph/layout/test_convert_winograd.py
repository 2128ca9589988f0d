"""ConvertWinograd: the same convolution with fewer multiplications, where that is faster."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import unity
from tests.transform.cases import floats
from unity.interpreter import interpret
from unity.ir.dims import Dynamic, dim, floordiv
from unity.ir.dtype import Array
from unity.ir.graph import Call, Op
from unity.ir.module import IRModule
from unity.ir.symbols.representative import IMAGES
from unity.ir.visit import walk_bindings
from unity.ir.well_formed.verify import verify
from unity.op.convolution.conv_winograd import sampled_error
from unity.script import parse
from unity.transform.graph import ConvertWinograd
from unity.transform.graph.layout.winograd_estimate import winograd_cycles
from unity.transform.passes import Context

CONTEXT = Context(replace(Context().target, vector_bits=128, l2_bytes=1 << 20))


def program(weight: Array, size: int = 12, lanes: int = 4, options: str = "padding=1") -> IRModule:
    channels = weight.shape[1]
    return parse(
        f"""
@script.function
def main(x: f32[Tensor, 1, {channels}, {size}, {size}, {lanes}]) -> f32[Tensor, ...]:
    with R.dataflow():
        y = R.nn.relu(R.nn.conv2d_blocked(x, R.const("weight"), {options}))
    return y
""",
        {"weight": weight},
    )


def tile_of(module: IRModule) -> object:
    """The tile of the one convolution there is; None where it is a plain one."""
    (found,) = (
        b.value
        for f in module.graph_functions().values()
        for b in walk_bindings(f)
        if isinstance(b.value, Call)
        and isinstance(b.value.callee, Op)
        and b.value.callee.name.startswith(("nn.conv2d", "nn.conv3d"))
    )
    assert isinstance(found.callee, Op)
    return found.attrs["tile"] if found.callee.name.endswith("winograd") else None


@pytest.mark.parametrize(("largest", "tile"), [(4, 4), (2, 2), (0, None)])
def test_it_computes_the_same(largest: int, tile: int | None) -> None:
    (weight,) = floats(1, (16, 16, 3, 3, 4, 4))
    before = program(weight, 8)
    after = ConvertWinograd(largest)(before, CONTEXT)
    verify(after)
    assert tile_of(after) == tile
    (x,) = floats(2, (1, 16, 8, 8, 4))
    expected, got = (np.asarray(interpret(m, "main", [x])) for m in (before, after))
    np.testing.assert_allclose(got, expected, atol=1e-5 * float(abs(expected).max()))


@pytest.mark.parametrize(("taps", "largest", "tile"), [(5, 4, 4), (5, 2, 2), (7, 4, 2)])
def test_wider_windows_have_tiles_of_their_own(taps: int, largest: int, tile: int) -> None:
    (weight,) = floats(1, (8, 8, taps, taps, 4, 4))
    before = program(weight, 9, options="padding=2")
    after = ConvertWinograd(largest)(before, CONTEXT)
    verify(after)
    assert tile_of(after) == tile
    (x,) = floats(2, (1, 8, 9, 9, 4))
    expected, got = (np.asarray(interpret(m, "main", [x])) for m in (before, after))
    np.testing.assert_allclose(got, expected, atol=3e-5 * float(abs(expected).max()))


@pytest.mark.parametrize("taps", [1, 2, 3])
@pytest.mark.parametrize("padding", ["1", "(2, 0, 1, 0, 1, 1)"])
def test_frames_are_images(taps: int, padding: str) -> None:
    (weight,) = floats(1, (16, 8, taps, 3, 3, 4, 4))
    before = parse(
        f"""
@script.function
def main(x: f32[Tensor, 2, 8, 3, 9, 8, 4]) -> f32[Tensor, ...]:
    return R.nn.conv3d_blocked(x, R.const("weight"), padding={padding})
""",
        {"weight": weight},
    )
    after = ConvertWinograd()(before, CONTEXT)
    verify(after)
    assert tile_of(after) == 4
    (x,) = floats(2, (2, 8, 3, 9, 8, 4))
    expected, got = (np.asarray(interpret(m, "main", [x])) for m in (before, after))
    np.testing.assert_allclose(got, expected, atol=1e-5 * float(abs(expected).max()))


@pytest.mark.parametrize("strides", ["(2, 1, 1)", "(1, 2, 2)"])
def test_steps_over_frames_or_pixels_stay(strides: str) -> None:
    (weight,) = floats(1, (16, 8, 3, 3, 3, 4, 4))
    module = parse(
        f"""
@script.function
def main(x: f32[Tensor, 2, 8, 5, 16, 16, 4]) -> f32[Tensor, ...]:
    return R.nn.conv3d_blocked(x, R.const("weight"), padding=1, strides={strides})
""",
        {"weight": weight},
    )
    assert tile_of(ConvertWinograd()(module, CONTEXT)) is None


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((4, 8, 3, 3, 4, 4), "padding=1, strides=2"),
        ((4, 8, 3, 3, 4, 4), "padding=1, dilation=2"),
        ((4, 8, 1, 1, 4, 4), "padding=0"),
        ((8, 1, 3, 3, 1, 4), "padding=1, depthwise=True"),
    ],
)
def test_others_stay(shape: tuple[int, ...], options: str) -> None:
    (weight,) = floats(1, shape)
    if "depthwise" in options:
        module = parse(
            """
@script.function
def main(x: f32[Tensor, 1, 8, 12, 12, 4]) -> f32[Tensor, ...]:
    return R.nn.conv2d_blocked(x, R.const("weight"), padding=1, depthwise=True)
""",
            {"weight": weight},
        )
    else:
        module = program(weight, options=options)
    assert tile_of(ConvertWinograd()(module, CONTEXT)) is None


def test_errors_decide_the_tile() -> None:
    (weight,) = floats(1, (16, 16, 3, 3, 4, 4))
    plain = weight.transpose(0, 5, 1, 4, 2, 3).reshape(64, 64, 3, 3)
    large, small = sampled_error(plain, 4), sampled_error(plain, 2)
    assert 0 < small < large < 1e-4
    assert tile_of(ConvertWinograd(tolerance=(small + large) / 2)(program(weight), CONTEXT)) == 2
    assert tile_of(ConvertWinograd(tolerance=small / 2)(program(weight), CONTEXT)) is None
    weight[0, 0, 0, 0, 0, 0] = np.inf
    assert tile_of(ConvertWinograd()(program(weight), CONTEXT)) is None


@pytest.mark.rotated(3)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("channels", "size", "taps"), [(32, 14, 3), (48, 9, 3), (16, 30, 3), (32, 19, 5), (16, 14, 7)]
)
def test_compiled_it_is_the_plain_convolution(
    channels: int, size: int, taps: int, threads: int
) -> None:
    rng = np.random.default_rng(channels)
    weight = rng.standard_normal((channels, channels, taps, taps)).astype(np.float32)
    x = rng.standard_normal((2, channels, size, size)).astype(np.float32)
    module = parse(
        f"""
@script.function
def main(x: f32[Tensor, 2, {channels}, {size}, {size}]) -> f32[Tensor, ...]:
    with R.dataflow():
        y = R.nn.relu(R.add(R.nn.conv2d(x, R.const("weight"), padding={taps // 2}), x))
    return y
""",
        {"weight": weight},
    )
    expected = np.asarray(interpret(module, "main", [x]))
    got = unity.compile(module, threads=threads)(x)
    error = 1e-5 if taps == 3 else 3e-5
    np.testing.assert_allclose(got, expected, atol=error * float(abs(expected).max()))


@pytest.mark.rotated(2)
@pytest.mark.parametrize("threads", [1, 2])
def test_images_of_unknown_size_are_convolved_by_one_executable(threads: int) -> None:
    rng = np.random.default_rng(3)
    weight = rng.standard_normal((32, 32, 3, 3)).astype(np.float32)
    module = parse(
        """
n = dim("n")
h = dim("h")
w = dim("w")
@script.function
def main(x: f32[Tensor, n, 32, h, w]) -> f32[Tensor, ...]:
    with R.dataflow():
        y = R.nn.relu(R.add(R.nn.conv2d(x, R.const("weight"), padding=1), x))
    return y
""",
        {"weight": weight},
    )
    exe = unity.compile(module, threads=threads)
    assert "winograd" in " ".join(exe.kernels)
    for shape in ((1, 32, 56, 56), (2, 32, 7, 7), (1, 32, 1, 30), (3, 32, 33, 2), (0, 32, 4, 4)):
        x = rng.standard_normal(shape).astype(np.float32)
        fixed: Dynamic = {"x": dict(zip((0, 2, 3), (shape[0], *shape[2:]), strict=True))}
        expected = unity.compile(module, dynamic=fixed, resolve={"main/conv2d": "tir:direct"})(x)
        scale = float(abs(expected).max(initial=1))
        np.testing.assert_allclose(exe(x), expected, atol=1e-5 * scale)


@pytest.mark.rotated(2)
@pytest.mark.parametrize("sizes", ["19, 17", "h, w"])
def test_channels_that_fill_no_block_are_padded(sizes: str) -> None:
    rng = np.random.default_rng(5)
    weight = rng.standard_normal((36, 50, 3, 3)).astype(np.float32)
    module = parse(
        f"""
h = dim("h", typical=56)
w = dim("w", typical=56)
@script.function
def main(x: f32[Tensor, 2, 50, {sizes}]) -> f32[Tensor, ...]:
    with R.dataflow():
        y = R.nn.relu(R.nn.conv2d(x, R.const("weight"), padding=1))
        z = R.add(y, R.mean(x, axis=[1], keepdims=True))
    return z
""",
        {"weight": weight},
    )
    exe = unity.compile(module, resolve={"main/conv2d": "tir:winograd.4"})
    assert "winograd" in " ".join(exe.kernels)
    x = rng.standard_normal((2, 50, 19, 17)).astype(np.float32)
    expected = np.asarray(interpret(module, "main", [x]))
    np.testing.assert_allclose(exe(x), expected, atol=1e-5 * float(abs(expected).max()))


@pytest.mark.rotated(2)
@pytest.mark.parametrize("threads", [1, 2])
def test_videos_of_unknown_size_are_convolved_by_one_executable(threads: int) -> None:
    rng = np.random.default_rng(3)
    weight = rng.standard_normal((32, 32, 3, 3, 3)).astype(np.float32)
    module = parse(
        """
n = dim("n")
t = dim("t")
h = dim("h")
w = dim("w")
@script.function
def main(x: f32[Tensor, n, 32, t, h, w]) -> f32[Tensor, ...]:
    with R.dataflow():
        y = R.nn.relu(R.add(R.nn.conv3d(x, R.const("weight"), padding=1), x))
    return y
""",
        {"weight": weight},
    )
    exe = unity.compile(module, threads=threads)
    assert "winograd" in " ".join(exe.kernels)
    for shape in ((1, 32, 4, 28, 28), (2, 32, 1, 7, 7), (1, 32, 3, 1, 30), (1, 32, 2, 33, 2)):
        x = rng.standard_normal(shape).astype(np.float32)
        at = (shape[0], *shape[2:])
        fixed: Dynamic = {"x": dict(zip((0, 2, 3, 4), at, strict=True))}
        expected = unity.compile(module, dynamic=fixed, resolve={"main/conv3d": "tir:direct"})(x)
        scale = float(abs(expected).max(initial=1))
        np.testing.assert_allclose(exe(x), expected, atol=1e-5 * scale)
        np.testing.assert_allclose(
            unity.compile(module, dynamic=fixed)(x), expected, atol=1e-5 * scale
        )


@pytest.mark.parametrize(
    ("size", "tile"), [("", 4), (", typical=3", None), (", max=2", None), (", max=64", 4)]
)
def test_what_is_typical_of_unknown_sizes_decides(size: str, tile: int | None) -> None:
    (weight,) = floats(1, (4, 4, 3, 3, 4, 4))
    module = parse(
        f"""
h = dim("h"{size})
@script.function
def main(x: f32[Tensor, 1, 4, h, h, 4]) -> f32[Tensor, ...]:
    return R.nn.conv2d_blocked(x, R.const("weight"), padding=1)
""",
        {"weight": weight},
    )
    assert tile_of(ConvertWinograd()(module, CONTEXT)) == tile


def test_without_winograd_an_output_sees_its_own_pixels_only() -> None:
    """By tiles, one NaN would spread over a tile, and a pixel of 1e6 shift its neighbours."""
    (weight,) = floats(0, (32, 32, 3, 3))
    module = parse(
        """
@script.function
def main(x: f32[Tensor, 1, 32, 14, 14]) -> f32[Tensor, 1, 32, 14, 14]:
    return R.nn.conv2d(x, R.const("weight"), padding=1)
""",
        {"weight": weight},
    )
    executable = unity.compile(module, winograd=False)
    assert ConvertWinograd.__name__ not in unity.pipeline(winograd=False).names
    (x,) = floats(1, (1, 32, 14, 14))
    plain = np.asarray(executable(x), np.float64)
    sees = np.zeros((14, 14), bool)
    sees[4:7, 6:9] = True
    for value in (np.nan, np.inf, 1e6):
        spoiled = x.copy()
        spoiled[0, 3, 5, 7] = value
        got = np.asarray(executable(spoiled), np.float64)
        np.testing.assert_array_equal(got[..., ~sees], plain[..., ~sees])
        assert not np.isclose(got[..., sees], plain[..., sees]).any()
    with pytest.raises(unity.UnityError, match="a pipeline and winograd=False"):
        unity.compile(module, pipeline=unity.pipeline(), winograd=False)


def test_of_unknown_sizes_the_mean_of_several_images_decides() -> None:
    h, w = dim("h"), dim("w")
    of = partial(winograd_cycles, 16, 16, 1, lanes=16, target=Context().target)
    known = [of((n // 16, n // 16)) for n in IMAGES]
    mean = of((floordiv(h, 16), floordiv(w, 16)))
    for tile, cycles in mean.items():
        assert min(k[tile] for k in known) < cycles < max(k[tile] for k in known)
    assert of((dim("h", typical=14), dim("w", typical=14))) == of((14, 14))
