"""DFT, STFT and Mel filters, beside numpy and onnxruntime."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

import unity
from unity.errors import UnityError
from unity.frontend.onnx import from_onnx
from unity.interpreter import interpret
from unity.ir.dtype import Array

from .programs import check, imported, model, run


def parts(x: Array) -> Array:
    """The real and the imaginary parts as a last axis."""
    return np.stack([x.real, x.imag], axis=-1).astype(np.float32)


def close(got: object, want: object) -> None:
    """Equal up to what a transform of a few hundred floats loses."""
    a, b = np.asarray(got, np.float64), np.asarray(want, np.float64)
    assert a.shape == b.shape
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("length", [1, 2, 31, 32, 97, 100, 256])
@pytest.mark.parametrize("inverse", [0, 1])
def test_known_lengths(length: int, inverse: int) -> None:
    """Below 32, primes, and lengths that are parted."""
    module = imported(
        f"""g (float[n, {length}, 3, 2] x) => (float[n, {length}, 3, 2] y)
        <int64 axis = {{1}}> {{ y = DFT<inverse={inverse}>(x, "", axis) }}""",
        20,
    )
    rng = np.random.default_rng(length)
    x = rng.standard_normal((2, length, 3)) + 1j * rng.standard_normal((2, length, 3))
    want = parts((np.fft.ifft if inverse else np.fft.fft)(x, axis=1))
    close(run(module, parts(x)), want)


@pytest.mark.parametrize("axis", [0, 1, -2, -3])
def test_a_half_and_back_along_an_axis_known_at_run_time(axis: int) -> None:
    of = model(
        """g (float[a, b, 1] x, int64 n, int64 axis) => (float[c, d, 1] y, float[e, f, 2] half) {
        half = DFT<onesided=1>(x, n, axis)
        y = DFT<onesided=1, inverse=1>(half, n, axis)
    }""",
        20,
    )
    module = from_onnx(of)
    check(module)
    x = np.random.default_rng(0).standard_normal((6, 5, 1)).astype(np.float32)
    along = axis % 3
    for n in (x.shape[along], x.shape[along] + 3, 4):
        found = interpret(module, "main", [x, np.asarray(n), np.asarray(axis)])
        assert isinstance(found, tuple)
        half = np.fft.rfft(x[..., 0], n, axis=along)
        back = np.fft.irfft(half, n, axis=along)
        close(found[1], parts(half))
        close(found[0], back[..., None])


def test_a_complex_signal_has_no_half() -> None:
    with pytest.raises(UnityError, match="a onesided inverse is of complex numbers"):
        imported(
            "g (float[4, 5, 1] x) => (float[4, 8, 1] y) { y = DFT<onesided=1, inverse=1>(x) }", 20
        )
    with pytest.raises(UnityError, match="onesided needs a signal of real numbers"):
        imported("g (float[4, 8, 2] x) => (float[4, 5, 2] y) { y = DFT<onesided=1>(x) }", 20)


def test_the_axis_of_the_parts_is_refused() -> None:
    with pytest.raises(UnityError, match="axis 2 is that of real and imaginary parts"):
        imported("g (float[4, 8, 2] x) => (float[4, 8, 2] y) { y = DFT<axis=2>(x) }", 17)


@pytest.mark.parametrize("onesided", [0, 1])
def test_frames_of_unknown_signals_compiled(onesided: int) -> None:
    of = model(
        f"""g (float[b, n, 1] x, float[16] w) => (float[b, f, k, 2] y)
        <int64 step = {{5}}> {{ y = STFT<onesided={onesided}>(x, step, w) }}"""
    )
    session, executable = ort.InferenceSession(of.SerializeToString()), unity.compile(of)
    rng = np.random.default_rng(onesided)
    w = rng.uniform(0, 1, 16).astype(np.float32)
    for n in (16, 20, 43):
        x = rng.standard_normal((2, n, 1)).astype(np.float32)
        (want,) = session.run(None, {"x": x, "w": w})
        close(np.asarray(executable(x, w)), want)


@pytest.mark.parametrize(("filters", "length", "rate"), [(8, 16, 8192), (40, 400, 16000)])
def test_filters(filters: int, length: int, rate: int) -> None:
    of = model("""
        g (int64 filters, int64 length, int64 rate, float low, float high) => (float[a, b] y)
        { y = MelWeightMatrix(filters, length, rate, low, high) }""")
    module = from_onnx(of)
    check(module)
    numbers = [np.asarray(v) for v in (filters, length, rate)]
    numbers += [np.asarray(v, np.float32) for v in (20.0, rate / 2)]
    names = ("filters", "length", "rate", "low", "high")
    feeds: dict[str, Array] = dict(zip(names, numbers, strict=True))
    (want,) = ort.InferenceSession(of.SerializeToString()).run(None, feeds)
    close(interpret(module, "main", numbers), want)
