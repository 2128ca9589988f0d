"""Det, BitCast, and Scan of batches, beside numpy."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest

import unity
from tests.conformance.suite import by_interpreter
from unity.errors import UnsupportedError
from unity.frontend.onnx import from_onnx


def parsed(text: str, opset: int = 22) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {opset}]> {text}')


@pytest.mark.parametrize("shape", [(1, 1), (4, 3, 3), (2, 2, 7, 7)])
@pytest.mark.parametrize("extent", ["n", "number"])
def test_determinants(shape: tuple[int, ...], extent: str) -> None:
    leading = "".join(f"b{k}, " for k in range(len(shape) - 2))
    axes = "n, n" if extent == "n" else f"{shape[-1]}, {shape[-1]}"
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x[..., 0, 0] = 0  # the first pivot is another row's
    model = parsed(f"g (float[{leading}{axes}] x) => (float y) {{ y = Det (x) }}")
    (got,) = by_interpreter(from_onnx(model), [x])
    np.testing.assert_allclose(np.asarray(got), np.linalg.det(x), rtol=1e-4, atol=1e-5)


def test_singular_matrices_have_no_determinant() -> None:
    model = parsed("g (float[3, 3] x) => (float y) { y = Det (x) }")
    x = np.array([[1, 2, 3], [2, 4, 6], [0, 0, 0]], np.float32)
    assert unity.compile(model)(x) == 0


@pytest.mark.parametrize(
    ("kind", "to"),
    [("float32", "int32"), ("int64", "float64"), ("float32", "uint32"), ("int16", "uint16")],
)
def test_bits(kind: str, to: str) -> None:
    x = np.random.default_rng(0).integers(0, 256, 64).astype(np.uint8).view(kind)
    codes = {k: int(onnx.helper.np_dtype_to_tensor_dtype(np.dtype(k))) for k in (kind, to)}
    texts = [onnx.TensorProto.DataType.Name(codes[k]).lower() for k in (kind, to)]
    node = f"{{ y = BitCast <to: int = {codes[to]}> (x) }}"
    model = parsed(f"g ({texts[0]}[n] x) => ({texts[1]}[n] y) {node}", 26)
    got = unity.compile(model)(x)
    assert got.dtype == np.dtype(to)
    assert got.tobytes() == x.tobytes()


def test_bits_of_half_precision_are_refused() -> None:
    model = parsed("g (float16[n] x) => (int16[n] y) { y = BitCast <to: int = 5> (x) }", 26)
    with pytest.raises(UnsupportedError, match="float16 as int16"):
        from_onnx(model)


def test_scans_of_batches() -> None:
    model = parsed(
        """
        g (float[2, 3] s, float[2, n, 3] x) => (float[2, 3] y, float[2, n, 3] z) {
          y, z = Scan <num_scan_inputs: int = 1, body: graph = b (float[3] a, float[3] e)
            => (float[3] c, float[3] d) { c = Add (a, e)  d = Neg (c) }> (, s, x)
        }""".replace("(, s, x)", '("", s, x)'),
        8,
    )
    rng = np.random.default_rng(0)
    s, x = (rng.standard_normal(k).astype(np.float32) for k in ((2, 3), (2, 4, 3)))
    y, z = by_interpreter(from_onnx(model), [s, x])
    sums = s[:, None] + np.cumsum(x, 1)
    np.testing.assert_allclose(np.asarray(y), sums[:, -1], rtol=1e-5)
    np.testing.assert_allclose(np.asarray(z), -sums, rtol=1e-5)
