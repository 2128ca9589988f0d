"""Kernels of whole models after fusion, with few channels and words: random steps keep values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from random import Random

import onnx
import pytest

from tests.bench import cnn, recurrent, transformer
from tests.bench.graph import Graph
from tests.transform.schedule.hostile.every_step import next_steps, take
from tests.transform.schedule.hostile.program import alike
from tests.transform.schedule.steps import backwards
from unity.codegen.llvm import host_target
from unity.errors import UnityError
from unity.frontend.onnx import from_onnx
from unity.ir.equality import first_difference
from unity.ir.signature import size_params
from unity.ir.stmt import PrimFunc
from unity.transform import Context, pipeline
from unity.transform.schedule import Schedule, ScheduleDefault, Trace


def residual() -> onnx.ModelProto:
    g = Graph("residual")
    x = g.op("Relu", cnn.conv_bn(g, g.input("image", [1, 3, 10, 10]), 3, 8, 3, 2))
    y = g.op("Relu", cnn.conv_bn(g, x, 8, 8, 3))
    y = g.op("Relu", g.op("Add", cnn.conv_bn(g, y, 8, 8, 3, 1, 8), x))
    pooled = g.op("MaxPool", y, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    g.output(g.op("Softmax", g.op("Flatten", pooled, axis=1), axis=-1), "scores", [1, 72])
    return g.model()


MODELS: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "residual": residual,
    "bert": lambda: transformer.bert(1, 8, 2, 16, 20, 1, 5),
    "gpt2": lambda: transformer.gpt2(1, 8, 2, 16, 20, 16),
    "lstm": lambda: recurrent.recurrent("LSTM", 3, 4, 4, 1, 3),
}


@cache
def kernels(model: str) -> tuple[PrimFunc, ...]:
    """What the passes before schedules leave."""
    passes, module = pipeline("cpu").passes, from_onnx(MODELS[model]())
    for step in passes[: [type(p) for p in passes].index(ScheduleDefault)]:
        module = step(module, Context(host_target(threads=1)))
    return tuple(module.prim_funcs().values())


@pytest.mark.rotated(3)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("seed", range(4))
def test_random_steps(model: str, seed: int) -> None:
    random = Random(seed)
    for func in kernels(model):
        sch = Schedule(func)
        before = sch.func
        found = next_steps(sch)
        for _ in range(12):
            kind = random.choice(sorted({name for name, _ in found}))
            try:
                take(sch, random.choice([s for s in found if s[0] == kind]))
            except UnityError:
                continue
            if len(sch.trace) > 400:
                break
            found = next_steps(sch)
        sizes = {s.name: max(s.facts.min, random.choice([1, 2, 5])) for s in size_params(before)}
        for after in (sch.func, backwards(sch.func)):
            assert alike(before, after, sizes) is None, f"{sizes}\n{sch.func}"
        again = Schedule(func).replay(Trace.from_json(sch.trace.to_json()))
        assert first_difference(again.func, sch.func) is None
