"""Whole networks as Relay's text and back: the same program, and the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest

import unity
from tests.bench import cnn, transformer
from tests.frontend.relay.emitter import HEADER, Emitted, emitted
from tests.frontend.relay.operators.boxes import located, suppressed
from unity.errors import UnsupportedError
from unity.frontend.relay import from_relay
from unity.interpreter import interpret
from unity.ir.attrs import NO_ATTRS
from unity.ir.equality import first_difference
from unity.ir.graph import Function, While
from unity.ir.module import IRModule
from unity.ir.types import TensorType
from unity.ir.visiting.visit_graph import walk_bindings
from unity.ir.well_formed.verify import verify
from unity.transform.graph.simplify.dce import EliminateDeadCode
from unity.transform.graph.simplify.normalize import Normalize
from unity.transform.passes import Context

Tensor = npt.NDArray[Any]


def _read(found: Emitted) -> IRModule:
    module = from_relay(found.text, constants=found.constants)
    verify(module)
    return module


def _plain(module: IRModule) -> IRModule:
    """Normalized and without what nothing reads, or what functions say of their sources."""
    normal = EliminateDeadCode()(Normalize()(module, Context()), Context())
    functions = dict(normal.functions)
    for name, function in functions.items():
        if isinstance(function, Function):
            functions[name] = replace(function, attrs=NO_ATTRS)
    return IRModule(functions)


def _same(a: IRModule, b: IRModule) -> None:
    assert first_difference(_plain(a), _plain(b)) is None


def _inputs(module: IRModule) -> list[Tensor]:
    main = module["main"]
    assert isinstance(main, Function)
    draw = np.random.default_rng(0)
    found: list[Tensor] = []
    for param in main.params:
        kind = param.type
        assert isinstance(kind, TensorType)
        assert isinstance(kind.shape, tuple)
        assert kind.dtype is not None
        shape = [int(d) for d in kind.shape if isinstance(d, int)]
        values = draw.normal(size=shape) if kind.dtype.is_float else draw.integers(0, 2, shape)
        found.append(np.asarray(values).astype(kind.dtype.numpy))
    return found


def _close(a: object, b: object, tolerance: float = 1e-4) -> None:
    left, right = (x if isinstance(x, tuple | list) else (x,) for x in (a, b))
    for x, y in zip(left, right, strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("build", [partial(cnn.resnet, 18, 1, 32), partial(cnn.mobilenetv2, 1, 32)])
def test_a_network_comes_back_as_it_was(build: Callable[[], onnx.ModelProto]) -> None:
    """What ONNX gives, written and read, is the same program: so are its kernels and its speed."""
    module = unity.load(build())
    _same(module, _read(emitted(module)))


def test_a_transformer_comes_back_as_it_was() -> None:
    small = transformer.bert(layers=1, width=32, heads=2, ffn=64, vocab=50, length=6)
    module = unity.load(small)
    first = _read(emitted(module))
    _same(first, _read(emitted(first)))
    inputs = _inputs(module)
    _close(interpret(first, "main", inputs), interpret(module, "main", inputs))
    # Relay's products have three axes; the kernels are the same as of ONNX's four, attention too.
    kernels = unity.compile(module).kernels
    assert "attention" in kernels
    assert unity.compile(first).kernels == kernels


def test_channels_last() -> None:
    module = unity.load(cnn.mobilenetv2(1, 16, 2))
    text = emitted(module, channels_last=True)
    assert text.text.count('data_layout="NHWC"') > 5
    last = _read(text)
    _same(last, _read(emitted(last)))
    (image,) = _inputs(module)
    turned = np.ascontiguousarray(image.transpose(0, 2, 3, 1))
    _close(interpret(last, "main", [turned]), interpret(module, "main", [image]))


LSTM = """def @main(%xs: Tensor[(5, 1, 3), float32], %w: Tensor[(16, 3), float32],
          %u: Tensor[(16, 4), float32], %b: Tensor[(16), float32]) {
  let %start = zeros(shape=[1, 4], dtype="float32");
  let %step = fn (%i: int64, %h: Tensor[(1, 4), float32], %c: Tensor[(1, 4), float32])
      -> (Tensor[(1, 4), float32], Tensor[(1, 4), float32]) {
    if (less(%i, 5i64)) {
      let %x = take(%xs, %i, axis=0, mode="fast");
      let %sums = nn.dense(%x, %w) + nn.dense(%h, %u);
      let %gates = split(nn.bias_add(%sums, %b, axis=1), indices_or_sections=4, axis=1);
      let %next = sigmoid(%gates.1) * %c + sigmoid(%gates.0) * tanh(%gates.2);
      %step(%i + 1i64, sigmoid(%gates.3) * tanh(%next), %next)
    } else { (%h, %c) }
  };
  %step(0i64, %start, %start)
}"""


def _lstm(xs: Tensor, w: Tensor, u: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    h, c = np.zeros((1, 4)), np.zeros((1, 4))
    for x in xs:
        i, f, g, o = np.split(x @ w.T + h @ u.T + b, 4, 1)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
    return h, c


def test_an_lstm_that_calls_itself() -> None:
    module = from_relay(HEADER + LSTM)
    again = _read(emitted(module))
    assert list(again.graph_functions()) == ["main", "step"]
    step = again["step"]
    assert isinstance(step, Function)
    assert any(isinstance(b.value, While) for b in walk_bindings(step.body))
    _same(module, again)
    inputs = _inputs(module)
    wanted = _lstm(*inputs)
    _close(interpret(again, "main", inputs), wanted)
    _close(unity.compile(module)(*inputs), wanted)


QUANTIZED = """def @main(%x: Tensor[(1, 3, 6, 6), float32]) {
  %0 = qnn.quantize(%x, 0.02f, 120, out_dtype="uint8", axis=1);
  %1 = qnn.conv2d(%0, meta[relay.Constant][0], 120, 0, 0.02f, meta[relay.Constant][1],
      padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3], out_dtype="int32");
  %2 = nn.bias_add(%1, meta[relay.Constant][2]);
  %3 = qnn.requantize(%2, meta[relay.Constant][3], 0, 0.05f, 0, axis=1, out_dtype="int8");
  %4 = clip(%3, a_min=0f, a_max=127f);
  %5 = nn.max_pool2d(%4, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0]);
  %6 = qnn.add(%5, %5, 0.05f, 0, 0.05f, 0, 0.08f, -3);
  %7 = nn.batch_flatten(%6);
  %8 = qnn.dense(%7, meta[relay.Constant][4], -3, 0, 0.08f, 0.01f, units=5, out_dtype="int32");
  qnn.dequantize(%8, 0.0008f, 0)
}"""


def quantized_constants() -> list[Tensor]:
    """Weights, scales and biases of that network."""
    draw = np.random.default_rng(3)
    scales = np.array([0.01, 0.02, 0.015, 0.005], np.float32)
    return [
        draw.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8),
        scales,
        draw.integers(-500, 500, 4).astype(np.int32),
        np.float32(0.02) * scales,
        draw.integers(-127, 128, (5, 36)).astype(np.int8),
    ]


def _quantized(x: Tensor, constants: list[Tensor]) -> Tensor:
    """In floats that hold the integers exactly, where they matter."""
    w, scales, bias, _, dense = constants
    q = np.clip(np.rint(x / np.float32(0.02)) + 120, 0, 255) - 120
    wide = np.pad(q, ((0, 0), (0, 0), (1, 1), (1, 1)))
    sums = np.zeros((1, 4, 6, 6))
    for i, j in np.ndindex(3, 3):
        sums += np.einsum("nchw,oc->nohw", wide[:, :, i : i + 6, j : j + 6], w[:, :, i, j])
    sums += bias[:, None, None]
    down = sums * (0.02 * scales.astype(np.float64) / 0.05)[:, None, None]
    y = np.clip(np.sign(down) * np.floor(np.abs(down) + 0.5), 0, 127)
    y = y.reshape(1, 4, 3, 2, 3, 2).max((3, 5))
    twice = 2 * np.floor(y * (0.05 / 0.08) + 0.5) - 3
    return np.asarray((np.clip(twice, -128, 127) + 3).reshape(1, -1) @ dense.T * 0.0008)


def test_a_quantized_network() -> None:
    constants = quantized_constants()
    module = from_relay(HEADER + QUANTIZED, constants=constants)
    again = _read(emitted(module))
    _same(module, again)
    inputs = _inputs(module)
    found = interpret(again, "main", inputs)
    _close(found, _quantized(inputs[0], constants), 1e-5)
    _close(unity.compile(module)(*inputs), found, 1e-7)


SSD = """def @main(%image: Tensor[(1, 3, 8, 8), float32]) {
  %0 = nn.relu(nn.conv2d(%image, meta[relay.Constant][0], strides=[2, 2], padding=[1, 1, 1, 1],
      channels=8, kernel_size=[3, 3]));
  %1 = nn.relu(nn.conv2d(%0, meta[relay.Constant][1], strides=[2, 2], padding=[1, 1, 1, 1],
      channels=8, kernel_size=[3, 3]));
  %2 = nn.conv2d(%0, meta[relay.Constant][2], channels=6, kernel_size=[1, 1]);
  %3 = nn.conv2d(%1, meta[relay.Constant][2], channels=6, kernel_size=[1, 1]);
  %4 = nn.conv2d(%0, meta[relay.Constant][3], channels=8, kernel_size=[1, 1]);
  %5 = nn.conv2d(%1, meta[relay.Constant][3], channels=8, kernel_size=[1, 1]);
  %6 = concatenate((reshape(transpose(%2, axes=[0, 2, 3, 1]), newshape=[1, -1, 3]),
      reshape(transpose(%3, axes=[0, 2, 3, 1]), newshape=[1, -1, 3])), axis=1);
  %7 = nn.softmax(transpose(%6, axes=[0, 2, 1]), axis=1);
  %8 = concatenate((nn.batch_flatten(transpose(%4, axes=[0, 2, 3, 1])),
      nn.batch_flatten(transpose(%5, axes=[0, 2, 3, 1]))), axis=1);
  %9 = concatenate((vision.multibox_prior(%0, sizes=[0.2f, 0.3f], ratios=[1f]),
      vision.multibox_prior(%1, sizes=[0.5f, 0.6f], ratios=[1f])), axis=1);
  (%7, %8, %9)
}"""
DETECTED = SSD.replace(
    "(%7, %8, %9)",
    """%10 = vision.multibox_transform_loc(%7, %8, %9, threshold=0.2f);
  vision.non_max_suppression(%10.0, %10.1, meta[relay.Constant][4], -1, 0.45f,
      force_suppress=True, return_indices=False)""",
)


def test_a_detector() -> None:
    draw = np.random.default_rng(4)
    shapes = ((8, 3, 3, 3), (8, 8, 3, 3), (6, 8, 1, 1), (8, 8, 1, 1))
    constants: list[Tensor] = [draw.normal(size=s, scale=0.4).astype(np.float32) for s in shapes]
    constants.append(np.zeros((1, 40), np.int32))
    head = from_relay(HEADER + SSD, constants=constants)
    _same(head, _read(emitted(head)))
    inputs = _inputs(head)
    given = interpret(head, "main", inputs)
    assert isinstance(given, tuple)
    scores, offsets, anchors = (np.asarray(v, np.float32) for v in given)
    rows, counts = located(scores, offsets, anchors, 0.2, True)
    wanted, _ = suppressed(rows, counts, -1, 0.45, True, -1, 0)
    assert 1 < (wanted[..., 0] >= 0).sum() < counts[0]
    module = from_relay(HEADER + DETECTED, constants=constants)
    _close(interpret(module, "main", inputs), wanted)
    _close(unity.compile(module)(*inputs), wanted)
    # Suppression is one operator of ours, which Relay's text has no word for.
    with pytest.raises(UnsupportedError, match="the operator"):
        emitted(module)
