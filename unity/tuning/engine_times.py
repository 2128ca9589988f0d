"""What a segment takes by an engine, by itself: compiled and called as the engine's kernel is."""

from __future__ import annotations

import time
from collections.abc import Mapping
from logging import getLogger

import numpy as np

from unity.errors import UnityError
from unity.ir.dims import Symbol
from unity.ir.dtype import Array
from unity.ir.graph import Function
from unity.transform.graph.resolve import Compiled, engine_of
from unity.transform.graph.symbols import tensor_fields

from .clock import Clock, Fastest
from .database import Database, key_of
from .measured_program import MeasuredProgram
from .segments import Segment
from .timing import array_of, inputs_for, sizes_for
from .versions import versions

log = getLogger("unity")
_SECONDS = 0.06
_LEAST_RUNS = 5
_PAUSE = 2e-3


def engine_seconds(
    name: str, segment: Segment, program: MeasuredProgram, database: Database
) -> float | None:
    """The fastest run of a segment by an engine; None where it can't have it.

    Args:
        name: The engine.
        segment: Some consecutive bindings.
        program: What the segment is of: the machine, the sizes to measure at.
        database: What was measured before; added to.
    """
    module = segment.module()
    if module is None or segment.function is None:
        return None
    total = 0.0
    compiled: Compiled | None = None
    for given in program.sizes:
        sizes = sorted(given.items())
        package = versions(name) if name in ("onnxruntime", "openvino") else versions()
        key = key_of(module, f"segment {name}", program.target, sizes, package)
        known = database.get(key)
        if known is None:
            try:
                if compiled is None:
                    threads = program.target.threads
                    compiled = engine_of(name).compile(module, program.target, threads)
                known = _timed(compiled, segment.function, given)
            except Exception as error:  # whatever an engine raises: it can't have this segment
                last = segment.members[-1].name
                log.info("%s can't have the segment up to %s: %s", name, last, error)
                return None
            database.put(key, known, f"{name}: {segment.members[-1].name}")
        total += known
    return total


def _timed(compiled: Compiled, function: Function, given: Mapping[str, int]) -> float:
    sizes = sizes_for(function, given)
    inputs = [a for a in inputs_for(function, sizes) if isinstance(a, np.ndarray)]
    outputs = _outputs(function, sizes)
    compiled(inputs, outputs)
    best = Fastest()
    end = time.perf_counter() + _SECONDS
    runs = 0
    with Clock() as clock:
        while runs < _LEAST_RUNS or time.perf_counter() < end:
            time.sleep(_PAUSE)
            compiled(inputs, outputs)
            begin = clock.mark()
            compiled(inputs, outputs)
            best.add(clock.since(begin))
            runs += 1
    return best.seconds


def _outputs(function: Function, sizes: Mapping[Symbol, int]) -> list[Array]:
    fields = tensor_fields(function.result)
    if fields is None:
        raise UnityError(f"an engine gives tensors, not {function.result}")
    rng = np.random.default_rng(0)
    return [array_of(t, sizes, rng) for t in fields]
