"""Compiling takes little more memory than the weights once, and keeps nothing else of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.frontend.onnx.programs import model

MIB = 2**20
SLACK = 24
"""MiB that the compiler itself may take for a program of a few kernels."""

CHILD = """
import gc, json, sys
from pathlib import Path
import unity

def mib(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))

small, large = sys.argv[1:]
unity.compile(small, cache=None)  # everything is imported now, and kernels were compiled
before = mib("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # starts the peak anew
exe = unity.compile(large)
peak, constants = mib("VmHWM") - before, sum(c.nbytes for c in exe.constants) / 2**20
gc.collect()
print(json.dumps([peak, mib("VmRSS") - before, constants]))
"""


def products(width: int) -> onnx.ModelProto:
    """Products by large matrices, one of them transposed, and a table of words."""
    rng = np.random.default_rng(0)
    text = """
        g (int64[n] i) => (float[n, m] y) {
            x = Gather(table, i)
            h = MatMul(x, w0)
            k = MatMul(h, w1)
            t = Transpose(w2)
            l = MatMul(k, t)
            y = Add(l, b)
        }"""
    names = ("table", "w0", "w1", "w2")
    weights = {n: rng.standard_normal((width, width), np.float32) for n in names}
    return model(text, weights={**weights, "b": np.ones(width, np.float32)})


def convolutions(width: int) -> onnx.ModelProto:
    """Convolutions of one pixel with batch norms, in blocks of channels."""
    rng = np.random.default_rng(0)
    lines = ["h0 = Identity(x)"]
    weights = {}
    for i in range(4):
        lines.append(f"c{i} = Conv(h{i}, w{i})")
        lines.append(f"n{i} = BatchNormalization(c{i}, scale, bias, bias, scale)")
        lines.append(f"h{i + 1} = Relu(n{i})")
        shape = (width, width, 1, 1)
        weights[f"w{i}"] = rng.standard_normal(shape, np.float32) / np.float32(width)
    body = "\n".join([*lines, "y = Identity(h4)"])
    text = f"g (float[1, {width}, 8, 8] x) => (float[1, {width}, 8, 8] y) {{ {body} }}"
    channel = {"scale": np.ones(width, np.float32), "bias": np.zeros(width, np.float32)}
    return model(text, weights={**weights, **channel})


@pytest.mark.long("starts a process that compiles large weights")
@pytest.mark.rotated(2)
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux")
@pytest.mark.parametrize(
    ("build", "times"),
    # What batch norms scaled is laid out after that: it is there twice for a moment.
    [(products, 1.1), (convolutions, 2.0)],
)
def test_compiling_holds_weights_once(
    build: Callable[[int], onnx.ModelProto], times: float, tmp_path: Path
) -> None:
    paths = [tmp_path / "small.onnx", tmp_path / "large.onnx"]
    for path, width in zip(paths, (64, 2048), strict=True):
        onnx.save(build(width), path)
    command = [sys.executable, "-c", CHILD, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    peak, kept, constants = json.loads(done.stdout)
    size = paths[1].stat().st_size / MIB
    assert abs(constants - size) < 1
    assert peak < times * size + SLACK
    assert kept < size + SLACK
