"""How much memory a call takes besides inputs and weights: planned, so the same on every machine.

The plan is made for one described machine. What onnxruntime takes for a call of the same model was
measured by `tests.bench.memory` (the least of its modes; `tests/bench/results.json`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import onnx
import pytest

from tests.bench import cnn, recurrent, transformer
from unity.frontend.onnx import from_onnx
from unity.ir.visit import type_symbols
from unity.machine.target import Target
from unity.transform import Context, pipeline
from unity.transform.graph import peak_bytes
from unity.transform.tensor import UnrollRegisters

MACHINE = Target(
    "cpu",
    "x86_64-unknown-linux-gnu",
    "skylake-avx512",
    ("sse4.1", "sse4.2", "avx", "avx2", "f16c", "fma", "avx512f", "avx512vl", "avx512bw"),
    512,
    32,
    threads=1,
)
GROWTH = 1.02
MIB = 2**20


@dataclass(frozen=True, slots=True)
class Row:
    """A model, and what a call of it takes.

    Attributes:
        build: Makes the model; of many equal layers as few as the peak needs.
        planned: Bytes when this was written; lower it when the plan gets better.
        sizes: Values of the symbols.
        onnxruntime: MiB measured of the whole model; None where that has more layers' results.
    """

    build: Callable[[], onnx.ModelProto]
    planned: int
    onnxruntime: float | None
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])


def decoder() -> onnx.ModelProto:
    """Two layers of GPT-2, whose results are caches of all layers."""
    return transformer.gpt2(layers=2, vocab=1000)


ROWS = {
    "mlp": Row(cnn.mlp, 808, 0.3),
    "resnet18": Row(lambda: cnn.resnet(18), 4_018_080, 5.4),
    # 7_229_344 before parallel convolutions became one, whose results live as long as the last.
    "resnet50": Row(lambda: cnn.resnet(50), 8_032_160, 8.0),
    "mobilenetv2": Row(cnn.mobilenetv2, 6_025_120, 8.8),
    "bert_base": Row(lambda: transformer.bert(layers=2, vocab=1000), 2_756_096, 8.2),
    "gpt2 after 16": Row(decoder, 237_792, None, {"P": 16, "T": 1}),
    "gpt2 after 1000": Row(decoder, 12_340_960, None, {"P": 1000, "T": 1}),
    "lstm": Row(lambda: recurrent.recurrent("LSTM"), 270_464, 0.8),
    "gru": Row(lambda: recurrent.recurrent("GRU"), 201_856, 0.9),
}


@pytest.mark.rotated(5)
@pytest.mark.parametrize("name", ROWS)
def test_a_call_takes_no_more_memory_than_it_did(name: str) -> None:
    row = ROWS[name]
    steps = pipeline().until(UnrollRegisters)  # memory is planned; what follows is in kernels
    main = steps.run(from_onnx(row.build()), Context(MACHINE)).graph_functions()["main"]
    symbols = {s for p in main.params for s in type_symbols(p.type)}
    found = peak_bytes(main, {s: row.sizes[s.name] for s in symbols})
    assert found <= row.planned * GROWTH, f"{found} bytes, {row.planned} before"
    if row.onnxruntime is not None:
        assert found <= row.onnxruntime * MIB
