"""Some of Relay's operators compiled: the kernels of translated calls give what numpy says."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from tests.frontend.relay.calls import Case, Known, check_results, module_of
from tests.frontend.relay.numpy_layers import convolution
from unity.frontend.relay import from_relay


def test_a_quantized_layer_and_a_channels_last_one() -> None:
    draw = np.random.default_rng(5)
    x = draw.integers(0, 256, (1, 4, 4, 3)).astype(np.uint8)
    w = draw.integers(-128, 128, (3, 3, 3, 2)).astype(np.int8)
    first, filters = x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1)
    exact = convolution(
        first.astype(np.int32) - 9, filters.astype(np.int32), (1, 1), (1, 1, 1, 1), (1, 1)
    )
    zero, scale = (Known(np.array(v)) for v in (np.int32(0), np.float32(0.5)))
    wide = np.array([[-5, -3, 3, 5]], np.int32)
    cases = [
        Case("qnn.conv2d", [x, w, Known(np.array(9, np.int32)), zero, scale, scale],
             exact.transpose(0, 2, 3, 1).astype(np.int32), padding=(1, 1), channels=2,
             kernel_size=(3, 3), data_layout="NHWC", kernel_layout="HWIO", out_dtype="int32"),
        Case("qnn.requantize", [wide, scale, zero, Known(np.array(1, np.float32)), zero],
             np.array([[-2, -1, 2, 3]], np.int8), out_dtype="int8"),
        Case("round", [np.array([-0.5, 0.49999997, 2.5], np.float32)],
             np.array([-1, 0, 3], np.float32)),
    ]  # fmt: skip
    module, inputs = module_of(cases)
    check_results(cases, tuple(unity.compile(module)(*inputs)))


ATTENTION = """#[version = "0.0.5"]
def @main(%q: Tensor[(BATCH, 4, 10, 16), float32], %k: Tensor[(BATCH, 4, 10, 16), float32],
          %v: Tensor[(BATCH, 4, 10, 16), float32]) {
  %0 = reshape(%q, newshape=[-1, 10, 16]);
  %1 = reshape(%k, newshape=[-1, 10, 16]);
  %2 = nn.batch_matmul(%0, %1, transpose_b=True);
  %3 = reshape(%2, newshape=[-1, 4, 10, 10]) * 0.25f;
  %4 = reshape(nn.softmax(%3), newshape=[-1, 10, 10]);
  %5 = transpose(reshape(%v, newshape=[-1, 10, 16]), axes=[0, 2, 1]);
  %6 = nn.batch_matmul(%4, %5, transpose_b=True);
  reshape(%6, newshape=[-1, 4, 10, 16])
}
"""


@pytest.mark.parametrize("batch", ["2", "?"])
def test_attention_as_importers_of_tvm_write_it(batch: str) -> None:
    """Products of three axes, weights turned: one kernel."""
    open_sizes = {name: {0: "b"} for name in "qkv"} if batch == "?" else None
    exe = unity.compile(from_relay(ATTENTION.replace("BATCH", batch), dynamic=open_sizes))
    assert exe.kernels == ("attention",)
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, 4, 10, 16), np.float32) for _ in range(3))
    scores = np.exp(q @ k.swapaxes(-1, -2) / 4)
    wanted = scores / scores.sum(-1, keepdims=True) @ v
    np.testing.assert_allclose(exe(q, k, v), wanted, rtol=1e-4, atol=1e-5)
