"""LpPool: norms of windows."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import unity
from unity.errors import UnityError
from unity.frontend.onnx import from_onnx
from unity.ir.dtype import Array

from .programs import assert_close, check, model, run

f4 = np.float32

NORMS = (
    "kernel_shape=[2, 2], strides=[2, 2]",
    "kernel_shape=[3, 2], p=1, pads=[1, 0, 1, 1]",
    "kernel_shape=[2, 3], p=3, strides=[1, 2], dilations=[2, 1]",
)


def norms(attributes: str, image: str) -> onnx.ModelProto:
    return model(
        f"g (float[n, 2, {image}] x) => (float[n, c, r, s] y) {{ y = LpPool<{attributes}>(x) }}"
    )


def agree(of: onnx.ModelProto, x: Array, *, compiled: bool) -> None:
    """The result is onnxruntime's."""
    module = from_onnx(of)
    check(module)
    want = np.asarray(ort.InferenceSession(of.SerializeToString()).run(None, {"x": x})[0], f4)
    assert_close(run(module, x), want)
    if compiled:
        assert_close(np.asarray(unity.compile(of)(x)), want)


@pytest.mark.parametrize("size", ["h, w", "7, 9"])
@pytest.mark.parametrize("attributes", NORMS)
def test_norms_of_windows(attributes: str, size: str) -> None:
    x = np.random.default_rng(0).standard_normal((3, 2, 7, 9)).astype(np.float32)
    agree(norms(attributes, size), x, compiled=attributes == NORMS[2])


def test_windows_beyond_the_end_are_refused() -> None:
    with pytest.raises(UnityError, match="ceil_mode"):
        from_onnx(norms("kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1", "7, 9"))
