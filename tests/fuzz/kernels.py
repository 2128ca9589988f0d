"""Random kernels, as written and under random steps of a schedule, against the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np

from tests.codegen.llvm.run_kernel import build, sizes_of
from tests.generators.prim_func import Options, arrays_for, prim_func
from tests.transform.schedule.programs import random_chain, random_kernel
from tests.transform.schedule.steps import (
    BLOCKS,
    KINDS,
    LOOPS,
    REDUCTIONS,
    SAMPLES,
    backwards,
    scheduled,
)
from tests.transform.tensor.kernels import after, assert_same
from unity.errors import UnityError
from unity.interpreter import run_prim_func
from unity.interpreter.storage import fresh
from unity.ir.dims import dim, evaluate
from unity.ir.equality import first_difference
from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc
from unity.ir.symbols.convert import to_dim
from unity.ir.well_formed.verify import verify
from unity.transform.schedule import IndexMap, Schedule, Trace
from unity.transform.tensor import lowering
from unity.tuning.cost.leaves import leaves

from .kernel_edits import size_of, smaller_kernels
from .shrink import parts_removed, tried
from .texts import heading, module_text

PLAIN = Options(intrinsics=False, depth=2)
MOST = 50_000
"""Statements that the interpreter is asked to run: some seconds."""
STEPS = (*LOOPS, *BLOCKS, *REDUCTIONS, *SAMPLES, *KINDS)


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A kernel, sizes to run it at, and steps: of an empty trace, nothing is done to it."""

    func: PrimFunc
    sizes: Mapping[str, int]
    trace: Trace = Trace()  # noqa: RUF009

    @property
    def module(self) -> IRModule:
        """The kernel as a module's only function."""
        return IRModule({"main": self.func})


def drawn(seed: int) -> Scheduled:
    """The random kernel of a seed."""
    random = Random(seed)
    func = prim_func(random, random, PLAIN)
    return Scheduled(func, {"n": random.randint(0, 5), "m": random.randint(0, 4)})


def drawn_with_steps(seed: int) -> Scheduled:
    """The random kernel of a seed, or one made by `te`, under random steps."""
    random = Random(seed)
    if random.random() < 0.5:
        program = drawn(random.randrange(2**32))
    else:
        program = _made_by_te(random)
        while not _has_extents(program) or work(program.func, program.sizes) > MOST:
            program = _made_by_te(random)
    sch, _ = scheduled(program.func, random, STEPS)
    return replace(program, trace=sch.trace)


def _made_by_te(random: Random) -> Scheduled:
    func = random.choice([random_kernel, random_chain])(random)
    return Scheduled(func, {"n": random.choice([0, 1, 2, 7]), "m": random.choice([0, 1, 4])})


def _has_extents(program: Scheduled) -> bool:
    """Whether no buffer's extent is below 0 at a program's sizes, as ``n - 1`` may be."""
    sizes = {dim(name): n for name, n in program.sizes.items()}
    extents = [to_dim(e) for b in program.func.buffers for e in b.shape]
    return all(e is not None and evaluate(e, sizes) >= 0 for e in extents)


def work(func: PrimFunc, sizes: Mapping[str, int]) -> float:
    """How many times statements run."""
    return sum(x.iterations for x in leaves(func, sizes))


def check_steps(program: Scheduled) -> None:
    """What steps make is well formed, computes the same, also backwards, and is made again."""
    sch = Schedule(program.func).replay(program.trace)
    verify(IRModule({"main": sch.func}))
    if work(sch.func, program.sizes) <= MOST:
        assert_same(program.func, sch.func, program.sizes)
        assert_same(program.func, backwards(sch.func), program.sizes)
    again = Schedule(program.func).replay(Trace.from_json(sch.trace.to_json()))
    for made in (again.func, as_python(program)):
        wrong = first_difference(made, sch.func)
        if wrong is not None:
            raise AssertionError(f"the trace makes something else: {wrong}")


def as_python(program: Scheduled) -> PrimFunc:
    """The kernel after the Python that the trace prints."""
    names: dict[str, Any] = {"Schedule": Schedule, "IndexMap": IndexMap}
    exec(program.trace.to_python(), names)
    sch = Schedule(program.func)
    names["steps"](sch)
    return sch.func


def check_machine_code(program: Scheduled) -> None:
    """The lowered and compiled kernel gives what the interpreter gives."""
    kernel = build({"main": after(program.func, *lowering())})["main"]
    sizes = dict(program.sizes)
    inputs = arrays_for(program.func, np.random.default_rng(0), sizes_of(sizes))
    (want,) = run_prim_func(program.func, inputs, sizes_of(sizes))
    out = fresh(want.shape, program.func.buffers[-1].dtype)  # the same where nothing is stored
    code = kernel([*(np.ascontiguousarray(x) for x in inputs), out], sizes)
    if code != 0:
        raise AssertionError(f"the kernel returns {code}")
    np.testing.assert_allclose(out.astype(np.float64), want.astype(np.float64), 1e-4, 1e-4)


def smaller(program: Scheduled) -> Iterator[Scheduled]:
    """Fewer steps, then a kernel that does less under the same steps."""
    for steps in parts_removed(program.trace.instructions):
        less = replace(program, trace=Trace(steps))
        if _is_sound(less):
            yield less
    for func in smaller_kernels(program.func):
        less = replace(program, func=func)
        if size_of(func) < size_of(program.func) and _is_sound(less):
            yield less
    for name, n in program.sizes.items():
        for k in dict.fromkeys((1, n // 2, n - 1)):
            if 0 < k < n:
                yield replace(program, sizes={**program.sizes, name: k})


def _is_sound(program: Scheduled) -> bool:
    """Whether the kernel is well formed and runs, and no step is refused."""

    def run() -> bool:
        verify(program.module)
        assert_same(program.func, program.func, program.sizes)
        Schedule(program.func).replay(program.trace)
        return True

    return tried(run, UnityError) or False


def script(kind: str, run: str) -> Callable[[Scheduled, str], str]:
    """Writes programs down: `run` is what fails, with ``func``, ``sizes`` and ``steps`` at hand."""

    def written(program: Scheduled, failure: str) -> str:
        return (
            f"{heading(kind, failure)}\n{_IMPORTS}\n\n{program.trace.to_python()}\n\n"
            f"module = {module_text(program.module)}\n"
            f'func, sizes = module.prim_funcs()["main"], {dict(program.sizes)}\n{run}'
        )

    return written


_IMPORTS = """
from tests.fuzz.kernels import Scheduled, check_machine_code, check_steps
from unity.script import parse
from unity.transform.schedule import IndexMap, Schedule
"""
RUN_STEPS = """sch = Schedule(func)
steps(sch)
print(sch.func)
check_steps(Scheduled(func, sizes, sch.trace))
"""
RUN_MACHINE_CODE = """check_machine_code(Scheduled(func, sizes))
"""
