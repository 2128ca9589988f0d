"""Cases of a step: programs that it keeps, interpreted and compiled, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from tests.codegen.llvm.run_kernel import build
from tests.transform.schedule.hostile import Program, differ
from tests.transform.schedule.hostile.program import contents, filled, told_apart
from tests.transform.tensor.kernels import after
from unity.errors import UnityError
from unity.transform.schedule import Schedule
from unity.transform.tensor import lowering

Steps = Callable[[Schedule], object]


def assert_kept(cases: Mapping[str, tuple[Program, Steps]]) -> None:
    """Steps on programs change nothing that these compute; all kernels are built together."""
    made: dict[str, Schedule] = {}
    for name, (program, steps) in cases.items():
        made[name] = Schedule(program.func())
        before = made[name].func
        steps(made[name])
        assert differ(program, before, made[name].func) is None, f"{name}\n{made[name].func}"
    names = {name: f"k{k}" for k, name in enumerate(cases)}
    kernels = build({names[name]: after(s.func, *lowering()) for name, s in made.items()})
    for name, (program, _) in cases.items():
        func = program.func()
        for sizes in program.sizes:
            got = filled(func, sizes)
            assert kernels[names[name]](got, sizes) == 0
            assert told_apart(func, contents(func, func, sizes), got) is None, name


def assert_refused(program: Program, steps: Steps, message: str) -> None:
    """The last of some steps is refused, in these words."""
    with pytest.raises(UnityError) as found:
        steps(Schedule(program.func()))
    assert found.value.message == message
