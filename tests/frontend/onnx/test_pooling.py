"""LpPool: norms of windows. Windows larger than an image of unknown size are refused."""

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


WINDOWS = """
g (float[1, 1, h, w] x) => (float[1, 1, a, b] y)
<float[1, 1, 3, 3] k = {1, 1, 1, 1, 1, 1, 1, 1, 1}> { y = OP }"""


@pytest.mark.parametrize(
    ("op", "least"),
    [
        ("MaxPool<kernel_shape=[3, 3]>(x)", (3, 3)),
        ("AveragePool<kernel_shape=[3, 3], dilations=[2, 1], pads=[0, 1, 1, 0]>(x)", (4, 2)),
        ("LpPool<kernel_shape=[3, 3], strides=[2, 2]>(x)", (3, 3)),
        ("MaxPool<kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1>(x)", (2, 2)),
        ('Conv<auto_pad="VALID">(x, k)', (3, 3)),
    ],
)
def test_a_window_must_fit_an_image_of_unknown_size(op: str, least: tuple[int, int]) -> None:
    of = model(WINDOWS.replace("OP", op), 19)
    agree(of, np.arange(np.prod(least), dtype=f4).reshape(1, 1, *least), compiled=False)
    module = from_onnx(of)
    for axis in (0, 1):
        less = tuple(n - (i == axis) for i, n in enumerate(least))
        with pytest.raises(
            UnityError, match=rf"its input must have at least \d+ along axis {2 + axis}; got "
        ):
            run(module, np.zeros((1, 1, *less), f4))
        fixed = of.SerializeToString()
        with pytest.raises(UnityError, match="the kernel reaches over"):
            from_onnx(fixed, dynamic={"x": {2: less[0], 3: less[1]}})


@pytest.mark.parametrize("window", [7, 9])
def test_wide_windows_of_images_of_unknown_size_in_blocks(window: int) -> None:
    """Steps of a window that lie in the image, of tiles of which one pixel is left."""
    pads = [window // 2] * 4
    attributes = f"kernel_shape=[{window}, {window}], pads={pads}"
    graph = f"""
    g (float[n, 3, h, w] x) => (float[n, c, r, s] y) {{
        z = Conv<pads=[1, 1, 1, 1]>(x, weight)
        y = MaxPool<{attributes}>(z)
    }}"""
    rng = np.random.default_rng(0)
    of = model(graph, weights={"weight": rng.standard_normal((16, 3, 3, 3)).astype(f4)})
    exe = unity.compile(of)
    session = ort.InferenceSession(of.SerializeToString())
    for shape in ((1, 3, 13, 40), (2, 3, 31, 17), (1, 3, 2, 3)):
        x = rng.standard_normal(shape).astype(f4)
        assert_close(np.asarray(exe(x)), np.asarray(session.run(None, {"x": x})[0]))
