"""Kernels of unknown sizes are searched as they are at some, and used for all once confirmed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from unity.codegen.assemble import assemble
from unity.codegen.lower import lower
from unity.ir.dtype import Array
from unity.ir.signature import size_params
from unity.ir.stmt import PrimFunc
from unity.transform import Context, pipeline
from unity.transform.schedule import default_schedule
from unity.tuning.cost import PriorModel
from unity.tuning.records import Records
from unity.tuning.session import Session
from unity.tuning.tasks import Task, at_sizes
from unity.tuning.tasks.task import KERNEL
from unity.tuning.timing import inputs_for, sizes_for
from unity.tuning.workers import Candidate, Measured
from unity.tuning.workers.runner import USUAL, Timing

from .kernels import MATMUL, ROWS, TARGET, tasks
from .test_tune import Told

POOLED = """
h = dim("h")
@script.function
def main(x: f32[Tensor, 1, 4, (h + 1) // 2, 9]):
    return R.nn.max_pool2d(x, pool_size=(3, 3), strides=(2, 2), padding=(1, 1, 1, 1))
"""
"""Its kernel is told ``h``, which no shape tells."""


def result_of(task: Task, *, fixed: bool) -> Array:
    """What the kernel gives, laid out by default."""
    module = task.module(default_schedule(task.func, TARGET).kernel())
    main = module.graph_functions()["main"]
    inputs = inputs_for(main, sizes_for(main, dict(task.sizes)))
    if fixed:
        module = at_sizes(module, dict(task.sizes))
        assert size_params(module.prim_funcs()[KERNEL]) == ()
    exe = assemble(lower(module, pipeline(), Context(TARGET), None))
    return np.asarray(exe(*inputs))


@pytest.mark.parametrize(("text", "sizes"), [(ROWS, {"n": 21}), (POOLED, {"h": 23})])
def test_a_kernel_computes_the_same_at_its_sizes(text: str, sizes: dict[str, int]) -> None:
    """Also where a size is a parameter of its own."""
    task, *_ = tasks(text, TARGET, **sizes)
    assert task.takes_sizes
    np.testing.assert_array_equal(result_of(task, fixed=True), result_of(task, fixed=False))


def test_what_is_fast_at_its_sizes_is_used_once_it_is_confirmed_for_all() -> None:
    (task,) = tasks(ROWS, n=32)
    (known,) = tasks(MATMUL)
    asked: list[bool] = []

    class Asked(Told):
        def measure(
            self,
            task: Task,
            candidates: Sequence[Candidate],
            timing: Timing = USUAL,
            usual: PrimFunc | None = None,
        ) -> Iterator[Measured]:
            asked.extend(c.at_sizes for c in candidates)
            return super().measure(task, candidates, timing, usual)

    for kernel, fixed in ((task, True), (known, False)):
        asked.clear()
        records = Records()
        session = Session([kernel], records, PriorModel())
        session.run(Asked(0.5), 3, None, lambda progress: None)
        assert asked == [fixed] * 3
        assert session.gained
        assert bool(records.bests()) is not fixed
        session.confirm(Asked(0.6))
        assert not any(asked[3:])
        assert session.used().bests()[0].ratio == 0.6


def test_what_is_not_confirmed_in_time_is_told_of() -> None:
    session = Session(tasks(ROWS, n=32), Records(), PriorModel())
    session.run(Told(0.5), 3, None, lambda progress: None)
    session.set_aside(session.searches)
    assert session.is_short
    assert not session.gained
    assert not session.used().bests()
