"""What an operator means depends on the opset: each case against onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from unity.errors import UnsupportedError
from unity.frontend.onnx import from_onnx
from unity.interpreter import interpret
from unity.ir.dtype import Array

from .programs import assert_close, check, main_of, model

X = np.random.default_rng(0).standard_normal((2, 3, 4, 4)).astype(np.float32)
KERNEL = X[:, :, :3, :3]
IN, OUT = "float[2, 3, H, 4] x", "float[a, b, c, d] y"


def f32(values: object) -> Array:
    return np.asarray(values, np.float32)


def ints(values: object) -> Array:
    return np.asarray(values, np.int64)


def i8(values: object) -> Array:
    return np.asarray(values, np.int8)


def full(shape: int | tuple[int, ...], value: float) -> Array:
    return np.full(shape, value, np.float32)


CASES: list[tuple[int, str, dict[str, Array]]] = [
    (7, "y = Softmax(x)", {}),
    (11, "y = Softmax<axis=2>(x)", {}),
    (13, "y = Softmax(x)", {}),
    (13, "y = LogSoftmax<axis=1>(x)", {}),
    (7, "y = Clip<min=-0.5, max=0.25>(x)", {}),
    (7, "y = Clip<min=0.0>(x)", {}),
    (11, "y = Clip(x, lo, hi)", {"lo": f32(-1), "hi": f32(1)}),
    (13, "y = Clip(x, , hi)", {"hi": f32(0.5)}),
    (11, "h = Unsqueeze<axes=[0, 5]>(x) y = Squeeze<axes=[0, -1]>(h)", {}),
    (13, "h = Unsqueeze(x, a) y = Squeeze(h, a)", {"a": ints([0, -1])}),
    (9, "y = Slice<starts=[1, -3], ends=[100, -1], axes=[1, 3]>(x)", {}),
    (
        13,
        "y = Slice(x, s, e, a, p)",
        {
            "s": ints([-1, 1]),
            "e": ints([-(2**62), 2**62]),
            "a": ints([3, -3]),
            "p": ints([-2, 1]),
        },
    ),
    (11, "y = ReduceSum<axes=[1, -1], keepdims=0>(x)", {}),
    (13, "y = ReduceSum(x, a)", {"a": ints([1])}),
    (13, "y = ReduceMean<axes=[-1]>(x)", {}),
    (18, "y = ReduceMax<noop_with_empty_axes=1>(x)", {}),
    (18, "y = ReduceL2<keepdims=0>(x, a)", {"a": ints([0, 3])}),
    (18, "y = ReduceLogSumExp(x)", {}),
    (7, "y = Dropout<ratio=0.5>(x)", {}),
    (13, "y = Dropout(x)", {}),
    (9, "y = BatchNormalization<epsilon=0.01>(x, c, c, m, c)", {"c": full(3, 2), "m": full(3, 1)}),
    (15, "y = BatchNormalization(x, c, c, c, c)", {"c": full(3, 2)}),
    (17, "y = LayerNormalization<axis=-2>(x, w, w)", {"w": full((4, 4), 2)}),
    (10, "y = Pad<pads=[0, 0, 1, 2, 0, 0, -1, 0], value=3.0>(x)", {}),
    (13, 'y = Pad<mode="edge">(x, p)', {"p": ints([0, 1, 0, 2, 0, 0, 0, 1])}),
    (18, "y = Pad(x, p, v, a)", {"p": ints([1, 2]), "v": f32(7), "a": ints([-1])}),
    (11, "y, z = Split<axis=1, split=[1, 2]>(x)", {}),
    (13, "y, z = Split<axis=3>(x, s)", {"s": ints([3, 1])}),
    (18, "y, z = Split<axis=3, num_outputs=2>(x)", {}),
    (11, "y = Flatten<axis=2>(x)", {}),
    (11, "y = Flatten<axis=-1>(x)", {}),
    (13, "y = Pow(x, two)", {"two": ints(2)}),
    (13, "y = PRelu(x, s)", {"s": full((3, 1, 1), 0.1)}),
    (13, "y = HardSigmoid(x)", {}),
    (20, 'y = Gelu<approximate="tanh">(x)', {}),
    (13, "y = Transpose(x)", {}),
    (13, "y = ArgMax<axis=2, keepdims=0>(x)", {}),
    (13, "y = ArgMin<axis=-1, select_last_index=1>(x)", {}),
    (13, "y = GlobalAveragePool(x)", {}),
    (13, "y = MaxPool<kernel_shape=[3, 2], pads=[1, 0, 1, 1], ceil_mode=1>(x)", {}),
    (13, "y = AveragePool<kernel_shape=[2, 2], pads=[1, 1, 0, 0], count_include_pad=1>(x)", {}),
    (13, "y = Conv<pads=[1, 1, 1, 1], strides=[1, 2]>(x, w, b)", {"w": KERNEL, "b": f32([1, 2])}),
    (13, 'y = Conv<auto_pad="SAME_LOWER", group=3>(x, w)', {"w": full((6, 1, 2, 2), 0.5)}),
    (13, "y = Mod<fmod=1>(x, m)", {"m": f32(0.7)}),
    (13, "h = Cast<to=7>(x) y = Cast<to=1>(h)", {}),
    (16, "y = Where(c, x, z)", {"c": np.asarray([True, False, True, True]), "z": f32(9)}),
    (14, "y = Trilu<upper=0>(x, k)", {"k": ints(-1)}),
    (14, "y = CumSum<exclusive=1, reverse=1>(x, a)", {"a": ints(3)}),
    (13, "y = Gather<axis=3>(x, i)", {"i": ints([[0, -1], [2, 1]])}),
    (13, "y = Tile(x, r)", {"r": ints([1, 2, 1, 2])}),
    (13, "y = DepthToSpace<blocksize=1>(x)", {}),
    (13, "y = Mean(x, x, one)", {"one": f32(1)}),
    (13, "y = Shrink<lambd=0.5, bias=0.1>(x)", {}),
    (12, "y = Celu<alpha=2.0>(x)", {}),
    (13, "h = Shape<start=1>(x) y = Cast<to=1>(h)", {}),
    (13, "y = MatMul(x, w)", {"w": X[0, 0]}),
    (8, "y = Upsample<scales=[1.0, 1.0, 2.0, 3.0]>(x)", {}),
    (10, 'y = Resize<mode="linear">(x, s)', {"s": f32([1, 1, 1, 1.5])}),
    (13, 'y = Resize<mode="cubic">(x, , s)', {"s": f32([1, 1, 1, 2])}),
    (13, "y = Resize(x, , s)", {"s": f32([1, 1, 2, 2])}),
    (12, 'y = Einsum<equation="nchw,nkhw->nck">(x, x)', {}),
    (12, 'y = Einsum<equation="...w,wv">(x, w)', {"w": X[0, 0]}),
    (13, "y = DequantizeLinear(q, s, z)", {"q": i8([[3], [-9]]), "s": f32(2), "z": i8(1)}),
    (13, "h = QuantizeLinear(x, s) y = Cast<to=1>(h)", {"s": f32(0.1)}),
    (13, "y = ConvTranspose<strides=[2, 2], group=3>(x, w)", {"w": full((3, 2, 3, 3), 0.5)}),
    (13, "y = Hardmax<axis=1>(x)", {}),
]  # fmt: skip


@pytest.mark.parametrize(("opset", "body", "weights"), CASES, ids=[f"{o} {b}" for o, b, _ in CASES])
def test_a_node_means_what_its_opset_says(opset: int, body: str, weights: dict[str, Array]) -> None:
    opset = max(opset, 15) if "start=" in body else opset
    weights = {k: np.asarray(v) for k, v in weights.items()}
    proto = model(f"g ({IN}) => ({OUT}) {{ {body} }}", opset, weights)
    del proto.graph.output[0].type.tensor_type.shape.dim[:]
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    if "Arg" in body:
        proto.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
    module = from_onnx(proto)
    check(module)
    (expected,) = ort.InferenceSession(proto.SerializeToString()).run(None, {"x": X})
    got = interpret(module, "main", [X])
    assert isinstance(got, np.ndarray)
    assert_close(got, expected)
    assert len(main_of(module).params) == 1


def test_opsets_out_of_range_are_unsupported() -> None:
    for opset in (0, 99):
        proto = model("g (float[n] x) => (float[n] y) { y = Relu(x) }")
        proto.opset_import[0].version = opset
        with pytest.raises(UnsupportedError, match=f"opset {opset}; Unity reads 7 to"):
            from_onnx(proto)


def early(graph: str, opset: int, weights: dict[str, Array] | None = None) -> onnx.ModelProto:
    """A model of an early operator set, whose initializers are inputs, too."""
    found = model(graph, opset, weights)
    for tensor in found.graph.initializer:
        found.graph.input.append(
            onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        )
    return found


def test_early_opsets_are_converted() -> None:
    graph = """
        g (float[2, 3, 3] x) => (float[2, 3, 3] y) {
            a = Add<broadcast=1>(x, w)
            y = PRelu(a, s)
        }"""
    w, s = np.asarray([1, -2, 3], np.float32), np.asarray([0.1, 0.2, 0.3], np.float32)
    module = from_onnx(early(graph, 6, {"w": w, "s": s}))
    check(module)
    x = np.random.default_rng(0).standard_normal((2, 3, 3)).astype(np.float32)
    a = x + w
    found = interpret(module, "main", [x])
    assert isinstance(found, np.ndarray)
    assert_close(found, np.where(a < 0, a * s[:, None], a))


def test_large_weights_of_early_opsets_are_kept(tmp_path: Path) -> None:
    w = np.random.default_rng(1).standard_normal((64, 64)).astype(np.float32)
    of = early("g (float[2, 64] x) => (float[2, 64] y) { y = MatMul(x, w) }", 6, {"w": w})
    path = tmp_path / "early.onnx"
    onnx.save(of, path)
    x = np.ones((2, 64), np.float32)
    for source in (path, path.read_bytes(), of):
        found = interpret(from_onnx(source), "main", [x])
        assert isinstance(found, np.ndarray)
        assert_close(found, x @ w)


def test_what_can_t_be_converted_is_said() -> None:
    graph = "g (float[n] x) => (float[n] y) { y = Upsample<height_scale=2.0, width_scale=2.0>(x) }"
    with pytest.raises(UnsupportedError, match=r"opset 1.*can't"):
        from_onnx(model(graph, 1))
