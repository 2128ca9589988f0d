"""The runtimes that Unity is compared with: how each loads a model and runs it.

Unity compiled for fixed sizes is one more (`STATIC`), which `pair` loads as it does Unity itself.

A peer whose package is missing is left out of the table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from .work import Feeds

RunWith = Callable[[Feeds], list[Any]]
"""Runs the model on inputs; outputs in the model's order."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A contestant.

    Attributes:
        package: What must be installed.
        load: Gets a model ready for some inputs, on so many threads.
        precision: What Unity computes in against it.
        any_length: Whether what was loaded runs at other lengths as well.
    """

    package: str
    load: Callable[[Path, int, Feeds], RunWith]
    precision: str = "f32"
    any_length: bool = True

    @property
    def installed(self) -> bool:
        """Whether its package is there."""
        return find_spec(self.package) is not None


def onnxruntime(path: Path, threads: int, feeds: Feeds) -> RunWith:
    """ONNX Runtime's CPU provider."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return partial(session.run, None)


def openvino(path: Path, threads: int, feeds: Feeds, hints: Mapping[str, str] = {}) -> RunWith:
    """OpenVINO's CPU plugin."""
    ov: Any = import_module("openvino")

    config = {"INFERENCE_NUM_THREADS": str(threads), "PERFORMANCE_HINT": "LATENCY", **hints}
    compiled = ov.Core().compile_model(str(path), "CPU", config)
    request = compiled.create_infer_request()
    outputs = compiled.outputs

    def run(feeds: Feeds) -> list[Any]:
        result = request.infer(feeds, share_inputs=True)
        return [result[o] for o in outputs]

    return run


def torch_eager(path: Path, threads: int, feeds: Feeds) -> RunWith:
    """Torch, operator by operator."""
    import torch

    from .torch_model import arrays, traced

    torch.set_num_threads(threads)
    module, inputs = traced(onnx.load(path), feeds)

    def run(_: Feeds) -> list[Any]:
        with torch.inference_mode():
            return arrays(module(*inputs))

    return run


def torch_compile(path: Path, threads: int, feeds: Feeds) -> RunWith:
    """torch.compile with frozen weights."""
    import torch

    from .torch_model import arrays, traced

    torch.set_num_threads(threads)
    module, inputs = traced(onnx.load(path), feeds)
    with torch.no_grad():
        compiled = torch.compile(module, options={"freezing": True})

    def run(_: Feeds) -> list[Any]:
        with torch.no_grad():
            return arrays(compiled(*inputs))

    return run


def tvm(path: Path, threads: int, feeds: Feeds) -> RunWith:
    """TVM without tuning."""
    os.environ["TVM_NUM_THREADS"] = str(threads)
    compiler: Any = import_module("tvm")
    relax: Any = import_module("tvm.relax")
    from_onnx: Any = import_module("tvm.relax.frontend.onnx").from_onnx
    shapes = {name: list(x.shape) for name, x in feeds.items()}
    module = from_onnx(onnx.load(path), shapes, keep_params_in_input=False)
    target = compiler.target.Target("llvm")
    with target:
        built = relax.build(relax.get_pipeline("zero")(module), target)
    machine = relax.VirtualMachine(built, compiler.cpu())
    inputs = [compiler.runtime.tensor(x) for x in feeds.values()]

    def run(_: Feeds) -> list[Any]:
        result = machine["main"](*inputs)
        some = result if hasattr(result, "__len__") and not hasattr(result, "numpy") else [result]
        return [x.numpy() for x in some]

    return run


PEERS: Mapping[str, Peer] = {
    "onnxruntime": Peer("onnxruntime", onnxruntime),
    "openvino": Peer("openvino", partial(openvino, hints={"INFERENCE_PRECISION_HINT": "f32"})),
    "openvino_bf16": Peer("openvino", openvino, precision="bf16"),
    "torch": Peer("torch", torch_eager, any_length=False),
    "torch_compile": Peer("torch", torch_compile, any_length=False),
    "tvm": Peer("tvm", tvm, any_length=False),
}
STATIC = "unity_static"
"""Unity itself, compiled for just the sizes it is called with."""


def relative_error(got: object, want: object) -> float:
    """The largest difference relative to the largest finite value; none where both are NaN."""
    a, b = np.asarray(got, np.float64), np.asarray(want, np.float64)
    if a.shape != b.shape:
        return float("inf")
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    apart = np.abs(np.where(same, 0, a) - np.where(same, 0, b)).max(initial=0)
    return float(apart / max(np.abs(b[np.isfinite(b)]).max(initial=0), 1e-30))
