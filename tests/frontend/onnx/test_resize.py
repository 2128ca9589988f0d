"""Resize: positions as onnxruntime's, at known sizes constants, at unknown ones computed."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import unity
from unity.errors import UnityError
from unity.frontend.onnx import from_onnx
from unity.frontend.resize_positions import COORDINATES, NEAREST
from unity.interpreter import interpret

from .programs import check, imported, model, ops_of, result_shape, run

f4 = np.float32
SIZES = ((5, 7), (6, 4), (2, 9))
TARGETS = ((10, 9), (3, 4), (1, 17))
NEVER_AT_RUN_TIME = {"arange", "dims", "floor", "astype", "where", "divide"}


def by_sizes(method: str, image: str = "h, w", target: str = "a, b") -> onnx.ModelProto:
    """An image resized to the size of another."""
    return model(
        f"g (float[n, 2, {image}] x, float[n, 2, {target}] z) => (float[n, c, r, s] y) "
        f'{{ sizes = Shape(z) y = Resize<{method}>(x, "", "", sizes) }}'
    )


def by_scales(method: str, h: str, w: str, image: str = "h, w", of: str = "float") -> str:
    """An image resized by two scales."""
    return (
        f"g ({of}[n, 2, {image}] x) => ({of}[n, c, r, s] y) "
        f"<float[4] scales = {{1.0, 1.0, {h}, {w}}}> "
        f'{{ y = Resize<{method}>(x, "", scales) }}'
    )


def session(of: onnx.ModelProto) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.log_severity_level = 4  # one of the modes is deprecated
    options.intra_op_num_threads = 1
    return ort.InferenceSession(of.SerializeToString(), options)


def image(h: int, w: int) -> np.ndarray:
    return np.random.default_rng(h * w).standard_normal((2, 2, h, w)).astype(f4)


def methods() -> list[str]:
    """Every way of finding positions, with every way of reading there."""
    found: list[str] = []
    for i, coordinates in enumerate(COORDINATES):
        given = f'coordinate_transformation_mode="{coordinates}", '
        found += [
            f'{given}mode="nearest", nearest_mode="{NEAREST[i % 4]}"',
            f'{given}mode="nearest", nearest_mode="{NEAREST[(i + 2) % 4]}"',
            f'{given}mode="linear"',
            f'{given}mode="cubic", exclude_outside={i % 2}',
        ]
    return found


@pytest.mark.rotated(3)
@pytest.mark.parametrize("method", methods())
def test_interpreted_as_onnxruntime_does(method: str) -> None:
    for of, z in ((by_sizes(method), True), (model(by_scales(method, "1.5", "0.7")), False)):
        module, other = from_onnx(of), session(of)
        check(module)
        for size, target in zip(SIZES, TARGETS, strict=True):
            feeds = {"x": image(*size), **({"z": image(*target)} if z else {})}
            found = interpret(module, "main", list(feeds.values()))
            np.testing.assert_allclose(
                np.asarray(found), np.asarray(other.run(None, feeds)[0], f4), rtol=1e-4, atol=1e-5
            )


@pytest.mark.rotated(2)
@pytest.mark.parametrize("method", methods()[::5])
def test_compiled_as_interpreted(method: str) -> None:
    of = by_sizes(method)
    executable, module = unity.compile(of), from_onnx(of)
    for size, target in zip(SIZES, TARGETS, strict=True):
        x, z = image(*size), image(*target)
        want = interpret(module, "main", [x, z])
        np.testing.assert_allclose(
            np.asarray(executable(x, z)), np.asarray(want), rtol=1e-5, atol=1e-6
        )


@pytest.mark.parametrize("method", methods()[::3])
def test_positions_at_known_sizes_are_constants(method: str) -> None:
    ops = ops_of(imported(by_scales(method, "1.5", "0.7", "6, 10")))
    assert ops
    assert not NEVER_AT_RUN_TIME & set(ops)


def different_in_double() -> list[tuple[int, int]]:
    """Extents between which the nearest element below depends on the precision."""
    found: list[tuple[int, int]] = []
    for old in range(1, 24):
        for new in range(1, 40):
            x = np.arange(new)
            single = np.floor(x.astype(f4) / (f4(new) / f4(old)))
            if not np.array_equal(np.floor(x / (new / old)), single):
                found.append((old, new))
    return found


@pytest.mark.parametrize(("old", "new"), different_in_double()[::6])
def test_positions_are_those_of_float32(old: int, new: int) -> None:
    method = 'coordinate_transformation_mode="asymmetric", mode="nearest", nearest_mode="floor"'
    x, z = np.arange(2 * old, dtype=f4).reshape(1, 2, 1, old), np.zeros((1, 2, 1, new), f4)
    want = session(by_sizes(method)).run(None, {"x": x, "z": z})[0]
    for of in (by_sizes(method), by_sizes(method, f"1, {old}", f"1, {new}")):
        np.testing.assert_array_equal(np.asarray(interpret(from_onnx(of), "main", [x, z])), want)


@pytest.mark.parametrize(
    ("scale", "extent"), [("0.7", "FloorDiv(7*h, 10)"), ("2.0", "2*h"), ("1.5", "FloorDiv(3*h, 2)")]
)
def test_an_unknown_extent_is_scaled_by_a_fraction(scale: str, extent: str) -> None:
    shape = result_shape(imported(by_scales('mode="linear"', scale, "1.0")))
    assert shape == f"n, 2, {extent}, w"


def test_a_known_extent_is_scaled_in_float32() -> None:
    """10 * 0.7 is 6.9999999 in double precision of the float32 0.7."""
    of = model(by_scales('mode="nearest"', "0.7", "1.0", "10, 3"))
    want = session(of).run(None, {"x": image(10, 3)})[0]
    assert want.shape[2] == 7
    np.testing.assert_array_equal(run(from_onnx(of), image(10, 3)), want)


def test_a_scale_that_is_no_fraction_is_refused() -> None:
    with pytest.raises(UnityError, match=r'no simple fraction.*dynamic=\{"h": \.\.\.\}'):
        from_onnx(model(by_scales('mode="linear"', "3.14159265", "1.0")))


def test_whole_scales_of_unknown_extents_still_repeat() -> None:
    method = 'mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"'
    text = by_scales(method, "2.0", "3.0")
    assert ops_of(imported(text)) == ["repeat", "repeat"]


@pytest.mark.parametrize(("of", "kind"), [("uint8", np.uint8), ("float16", np.float16)])
def test_narrow_elements_are_weighed_in_float32(of: str, kind: type[np.generic]) -> None:
    for size in ("h, w", "5, 7"):
        proto = model(by_scales('mode="linear"', "1.5", "1.5", size, of))
        x = (np.random.default_rng(1).random((2, 2, 5, 7)) * 200).astype(kind)
        want = session(proto).run(None, {"x": x})[0]
        found = run(from_onnx(proto), x)
        assert found.dtype == want.dtype
        # Sums of whole numbers are cut off, which a rounding error may take to the next.
        np.testing.assert_allclose(found.astype(f4), want.astype(f4), atol=1, rtol=0)


def test_integers_are_not_weighed_by_cubics() -> None:
    with pytest.raises(UnityError, match="mode 'cubic' of uint8"):
        from_onnx(model(by_scales('mode="cubic"', "1.5", "1.5", of="uint8")))


def test_an_upsampled_image_joins_one_of_that_size() -> None:
    """A UNet's last steps; halves doubled are not always what was halved."""
    of = model("""
    g (float[n, 2, h, w] x) => (float[n, c, r, s] y) {
        low = MaxPool<kernel_shape=[2, 2], strides=[2, 2]>(x)
        sizes = Shape(x)
        first = Resize<mode="linear">(low, "", "", sizes)
        y = Concat<axis=1>(first, x)
    }""")
    executable, other = unity.compile(of), session(of)
    for size in ((8, 6), (9, 5), (2, 3)):
        x = image(*size)
        want = np.asarray(other.run(None, {"x": x})[0], f4)
        np.testing.assert_allclose(np.asarray(executable(x)), want, rtol=1e-5, atol=1e-6)
