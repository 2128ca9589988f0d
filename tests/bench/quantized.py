"""``python -m tests.bench.quantized``: quantized networks, against the peers on the same files.

Networks are quantized by onnxruntime's own quantizer from seeded inputs: images statically, as
pairs of QuantizeLinear and DequantizeLinear (activations uint8, weights int8 by channels), BERT
statically and dynamically (DynamicQuantizeLinear, MatMulInteger), and one with its weights alone in
8 bits.
All take turns in one process. Printed are the ratio of the best peer's least time to ours (above 1:
ours is faster), the least milliseconds of each, seconds to compile the network and its float32
form, and the largest difference from what onnxruntime gives without its optimizations (which may
quantize more, and saturate without instructions for bytes), of the largest of these.
``--ours`` takes `unity.quantize` for those that are quantized statically. ``--worst 1.0`` ends with
an error below that ratio. ``--decode 64`` measures a step of GPT-2 after so many tokens instead:
float32 against weights of 8 and 4 bits, and how far logits are from float32's.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx

import unity

from .models import MODELS
from .peers import PEERS, relative_error
from .timing import Run, interleaved
from .work import Feeds

Way = Literal["static", "dynamic", "weights"]


@dataclass(frozen=True, slots=True)
class Quantized:
    """A network of `MODELS` and how it is quantized."""

    model: str
    way: Way
    length: int = 1


NETWORKS: Mapping[str, Quantized] = {
    "resnet18": Quantized("resnet18", "static"),
    "resnet50": Quantized("resnet50", "static"),
    "mobilenetv2": Quantized("mobilenetv2", "static"),
    "bert_base": Quantized("bert_base", "static", 128),
    "bert_2_layers": Quantized("bert_2_layers", "dynamic", 128),
    "bert_2_layers_step": Quantized("bert_2_layers", "weights", 1),
}
"""All that there are."""
OTHERS = ("onnxruntime", "openvino")
"""Those of `PEERS` that run quantized networks."""


class _Samples:
    """Inputs to calibrate by, as onnxruntime asks for them."""

    def __init__(self, feeds: Feeds) -> None:
        self.feeds = self._made(feeds)

    def _made(self, feeds: Feeds) -> Iterator[Feeds]:
        for seed in range(2):
            rng = np.random.default_rng(seed)
            yield {
                k: rng.standard_normal(v.shape, np.float32) if v.dtype == np.float32 else v
                for k, v in feeds.items()
            }

    def get_next(self) -> Feeds | None:
        """The next ones, or None."""
        return next(self.feeds, None)


def quantize(way: Way, plain: Path, feeds: Feeds, *, ours: bool = False) -> Path:
    """The file of a quantized network, beside that of the plain one."""
    if ours and way == "static":
        samples, path = _Samples(feeds).feeds, plain.with_suffix(".ours.onnx")
        unity.quantize(plain, samples).save(path)
        return path
    tools: Any = import_module("onnxruntime.quantization")
    prepare: Any = import_module("onnxruntime.quantization.shape_inference").quant_pre_process
    ready, made = plain.with_suffix(".ready.onnx"), plain.with_suffix(f".{way}.onnx")
    prepare(str(plain), str(ready), skip_symbolic_shape=True)
    if way == "static":
        tools.quantize_static(
            str(ready),
            str(made),
            _Samples(feeds),
            quant_format=tools.QuantFormat.QDQ,
            activation_type=tools.QuantType.QUInt8,
            weight_type=tools.QuantType.QInt8,
            per_channel=True,
        )
    elif way == "dynamic":
        tools.quantize_dynamic(str(ready), str(made), weight_type=tools.QuantType.QInt8)
    else:
        onnx.save_model(_weights_in_8_bits(onnx.load(ready)), str(made))
    return made


def _weights_in_8_bits(model: onnx.ModelProto) -> onnx.ModelProto:
    """Each matrix that a product takes as int8 with a scale for each column."""
    graph = model.graph
    matrices = {n.input[1] for n in graph.node if n.op_type == "MatMul"}
    kept = [t for t in graph.initializer if t.name not in matrices]
    added: list[onnx.NodeProto] = []
    for tensor in graph.initializer:
        if tensor.name not in matrices:
            continue
        data = onnx.numpy_helper.to_array(tensor)
        scale = np.maximum(np.abs(data).max(axis=0) / 127, 1e-12).astype(np.float32)
        narrow = np.rint(data / scale).astype(np.int8)
        name = tensor.name
        kept += [
            onnx.numpy_helper.from_array(narrow, f"{name}_8"),
            onnx.numpy_helper.from_array(scale, f"{name}_scale"),
        ]
        inputs = [f"{name}_8", f"{name}_scale"]
        added.append(onnx.helper.make_node("DequantizeLinear", inputs, [name], axis=1))
    del graph.initializer[:]
    graph.initializer.extend(kept)
    nodes = [*added, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    return model


def _plainly(path: Path, feeds: Feeds) -> list[Any]:
    """What onnxruntime gives, node by node."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))


def row(name: str, threads: int, seconds: float, *, ours: bool = False) -> tuple[str, float]:
    """A line of the table, and its ratio."""
    network = NETWORKS[name]
    work = MODELS[network.model]
    feeds = work.feeds(network.length)
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / f"{name}.onnx"
        onnx.save_model(work.build(), str(plain))
        path = quantize(network.way, plain, feeds, ours=ours)
        spent: list[float] = []
        executables: list[Any] = []
        for source in (path, plain):
            begin = time.process_time()
            executables.append(unity.compile(unity.load(source), threads=threads, cache=None))
            spent.append(time.process_time() - begin)
        runs: dict[str, Run] = {
            "unity": partial(executables[0].run, feeds),
            "unity_f32": partial(executables[1].run, feeds),
        }
        for peer in (p for p in OTHERS if PEERS[p].installed):
            runs[peer] = partial(PEERS[peer].load(path, threads, feeds), feeds)
        outputs = zip(runs["unity"]().values(), _plainly(path, feeds), strict=True)
        error = max(relative_error(got, expected) for got, expected in outputs)
        least = {k: t.min for k, t in interleaved(runs, seconds).items()}
    ratio = min(v for k, v in least.items() if k in OTHERS) / least["unity"]
    shown = "  ".join(f"{k} {v * 1e3:.2f}" for k, v in least.items())
    compiled = f"compile {spent[0]:.1f} s, f32 {spent[1]:.1f} s"
    return f"{name:20} {ratio:.3f}  {shown}  {compiled}  error {error:.1e}", ratio


def decode(past: int, threads: int, seconds: float) -> None:
    """Print how a step of GPT-2 fares with random weights of few bits, the hardest to round."""
    work = MODELS["gpt2_decode"]
    model, feeds = work.build(), work.feeds(past)
    kinds: tuple[Literal["int8", "int4"] | None, ...] = (None, "int8", "int4")
    executables = {
        str(kind): unity.compile(model, weights=kind, threads=threads, cache=None) for kind in kinds
    }
    plain = executables["None"].run(feeds)["logits"]
    runs: dict[str, Run] = {k: partial(e.run, feeds) for k, e in executables.items()}
    times = interleaved(runs, seconds)
    for kind, executable in executables.items():
        logits = executable.run(feeds)["logits"]
        error = np.linalg.norm(logits - plain) / np.linalg.norm(plain)
        least, middle = (
            getattr(times["None"], name) / getattr(times[kind], name) for name in ("min", "median")
        )
        shown = (
            f"{times[kind].min * 1e3:.2f} ms, float32 takes {least:.2f} ({middle:.2f}) times that"
        )
        print(f"{kind:6} {shown}, norm of the error {error:.1e}", flush=True)


def main() -> None:
    """Print a line for each network."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--worst", type=float, default=0.0)
    parser.add_argument("--ours", action="store_true")
    parser.add_argument("--decode", type=int, metavar="PAST")
    options = parser.parse_args()
    if options.decode is not None:
        decode(options.decode, options.threads, options.seconds)
        return
    ratios: list[float] = []
    for name in options.networks:
        line, ratio = row(name, options.threads, options.seconds, ours=options.ours)
        print(line, flush=True)
        ratios.append(ratio)
    if min(ratios) < options.worst:
        sys.exit(f"the slowest ratio is {min(ratios):.3f}")


if __name__ == "__main__":
    main()
