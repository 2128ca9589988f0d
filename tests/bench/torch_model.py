"""An ONNX model as a torch module, for torch's two entries in the table.

Only what the benchmark models are made of. Shapes are known when it runs: sizes are numpy arrays,
data are tensors, so that tracing leaves nothing of the shape arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import torch
import torch.nn.functional as F  # noqa: N812
from onnx import helper, numpy_helper

from .work import Feeds

Value = Any  # a tensor or, for sizes, an array
Attrs = dict[str, Any]


def _tensor(x: Value) -> torch.Tensor:
    return torch.from_numpy(np.array(x)) if isinstance(x, np.ndarray | np.generic) else x


def _ints(x: Value) -> list[int]:
    return [int(v) for v in np.asarray(x).reshape(-1)]


def _conv(a: Attrs, x: Value, w: Value, bias: Value = None) -> Value:
    pads = a.get("pads", [0, 0, 0, 0])
    stride, dilation = a.get("strides", 1), a.get("dilations", 1)
    return F.conv2d(x, w, bias, stride, pads[:2], dilation, a.get("group", 1))


def _gemm(a: Attrs, x: Value, w: Value, bias: Value = None) -> Value:
    w = w.T if a.get("transB") else w
    return torch.mm(x, w) if bias is None else torch.addmm(bias, x, w)


def _slice(_: Attrs, x: Value, begin: Value, end: Value, axes: Value) -> Value:
    at: list[slice] = [slice(None)] * x.ndim
    for b, e, axis in zip(_ints(begin), _ints(end), _ints(axes), strict=True):
        at[axis] = slice(b, min(e, 2**31 - 1) if e > 0 else e)
    return x[tuple(at)]


def _reshape(_: Attrs, x: Value, shape: Value) -> Value:
    sizes = [x.shape[i] if v == 0 else v for i, v in enumerate(_ints(shape))]
    return x.reshape(sizes)


def _unsqueeze(_: Attrs, x: Value, axes: Value) -> Value:
    for axis in sorted(_ints(axes)):
        x = np.expand_dims(x, axis) if isinstance(x, np.ndarray) else x.unsqueeze(axis)
    return x


def _gather(a: Attrs, x: Value, index: Value) -> Value:
    if not isinstance(x, torch.Tensor):
        return np.asarray(np.take(x, index, a.get("axis", 0)))
    if isinstance(index, int):
        return x.select(a.get("axis", 0), index)
    return F.embedding(_tensor(index), x)


def _concat(a: Attrs, *parts: Value) -> Value:
    if all(isinstance(p, np.ndarray) for p in parts):
        return np.concatenate(parts, a["axis"])
    return torch.cat([_tensor(p) for p in parts], a["axis"])


def _rnn(kind: str) -> Callable[..., Value]:
    """A layer of LSTM or GRU; ONNX orders its gates otherwise than torch does."""
    order: tuple[int, ...] = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2)}[kind]
    run: Callable[..., Value] = torch.lstm if kind == "LSTM" else torch.gru

    def gates(x: Value) -> Value:
        parts = x.chunk(len(order), 0)
        return torch.cat([parts[i] for i in order], 0)

    def layer(a: Attrs, x: Value, w: Value, r: Value, b: Value, *_: Value) -> tuple[Value, ...]:
        hidden = a["hidden_size"]
        flat = [gates(w[0]), gates(r[0]), *(gates(part) for part in b[0].chunk(2))]
        zero = x.new_zeros(1, x.shape[1], hidden)
        start = (zero, zero) if kind == "LSTM" else zero
        y = run(x, start, flat, True, 1, 0.0, False, False, False)[0]
        return (y.unsqueeze(1),)

    return layer


OPS: dict[str, Callable[..., Value]] = {
    "Add": lambda a, x, y: x + y,
    "BatchNormalization": lambda a, x, g, b, m, v: F.batch_norm(x, m, v, g, b, eps=a["epsilon"]),
    "Cast": lambda a, x: _tensor(x).to(torch.float32),
    "Clip": lambda a, x, low, high: x.clamp(float(low), float(high)),
    "Concat": _concat,
    "Conv": _conv,
    "Div": lambda a, x, y: x / y,
    "Erf": lambda a, x: torch.erf(x),
    "Flatten": lambda a, x: x.flatten(1),
    "Gather": _gather,
    "Gelu": lambda a, x: F.gelu(x),
    "Gemm": _gemm,
    "GlobalAveragePool": lambda a, x: x.mean((2, 3), keepdim=True),
    "Greater": lambda a, x, y: x > y,
    "GRU": _rnn("GRU"),
    "Identity": lambda a, x: x,
    "LayerNormalization": lambda a, x, g, b: F.layer_norm(x, g.shape, g, b, a["epsilon"]),
    "LSTM": _rnn("LSTM"),
    "MatMul": lambda a, x, y: x @ y,
    "MaxPool": lambda a, x: F.max_pool2d(x, a["kernel_shape"], a["strides"], a["pads"][:2]),
    "Mul": lambda a, x, y: x * y,
    "Range": lambda a, x, y, z: np.arange(int(x), int(y), int(z)),
    "Relu": lambda a, x: F.relu(x),
    "Reshape": _reshape,
    "Shape": lambda a, x: np.array(x.shape, np.int64),
    "Slice": _slice,
    "Softmax": lambda a, x: x.softmax(a["axis"]),
    "Split": lambda a, x, sizes: x.split(_ints(sizes), a["axis"]),
    "Squeeze": lambda a, x, axes: x.squeeze(*_ints(axes)),
    "Sub": lambda a, x, y: x - y,
    "Tanh": lambda a, x: torch.tanh(x),
    "Transpose": lambda a, x: x.permute(a["perm"]),
    "Unsqueeze": _unsqueeze,
}
"""What a node computes of its attributes and inputs."""


class OnnxModule(torch.nn.Module):
    """Runs a model's nodes in order; inputs and outputs in the model's order."""

    def __init__(self, model: onnx.ModelProto) -> None:
        super().__init__()
        missing = {n.op_type for n in model.graph.node} - OPS.keys()
        if missing:
            raise NotImplementedError(f"no torch equivalent here of {sorted(missing)}")
        self.nodes = list(model.graph.node)
        self.names = [i.name for i in model.graph.input]
        self.results = [o.name for o in model.graph.output]
        self.fixed: dict[str, Value] = {}
        self.index: dict[str, str] = {}
        for at, initializer in enumerate(model.graph.initializer):
            array = numpy_helper.to_array(initializer)
            if array.dtype == np.int64 or array.ndim == 0:
                self.fixed[initializer.name] = array
            else:
                self.index[initializer.name] = f"weight{at}"
                self.register_buffer(f"weight{at}", torch.from_numpy(array.copy()))

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The outputs, in memory as ONNX has them: a view is no transposed copy."""
        env: dict[str, Value] = {k: getattr(self, v) for k, v in self.index.items()}
        env |= self.fixed
        env |= zip(self.names, inputs, strict=True)
        for node in self.nodes:
            attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            args = [env[name] if name else None for name in node.input]
            if any(isinstance(x, torch.Tensor) for x in args):
                args = [_float(x) for x in args]
            out = OPS[node.op_type](attrs, *args)
            outs = out if isinstance(out, tuple | list) else (out,)
            env |= zip(node.output, outs, strict=False)
        return tuple(_tensor(env[name]).contiguous() for name in self.results)


def _float(x: Value) -> Value:
    """A constant of rank 0 as a Python number, which stays one when it is traced."""
    return x.item() if isinstance(x, np.ndarray) and x.ndim == 0 else x


def traced(model: onnx.ModelProto, feeds: Feeds) -> tuple[torch.nn.Module, list[torch.Tensor]]:
    """The module with all shapes as they are for these inputs, and the inputs as it takes them."""
    from torch.fx.experimental.proxy_tensor import make_fx

    module = OnnxModule(model).eval()
    inputs = [torch.from_numpy(np.ascontiguousarray(feeds[name])) for name in module.names]
    with torch.no_grad():
        return make_fx(module)(*inputs), inputs


def arrays(outputs: Sequence[torch.Tensor]) -> list[Any]:
    """As numpy has them."""
    return [o.numpy() for o in outputs]
