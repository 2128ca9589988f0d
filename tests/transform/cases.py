"""What tests of passes share: before and after as text, and the same numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity.interpreter import interpret
from unity.ir.dtype import Array
from unity.ir.equality import first_difference
from unity.ir.module import IRModule
from unity.ir.well_formed.verify import verify
from unity.op.check import check_types
from unity.script import parse, print_module
from unity.transform import Context, Pass, Pipeline
from unity.transform.instruments import NumericCheck, Verify


def apply(steps: Pass | Sequence[Pass], module: IRModule | str) -> IRModule:
    """The module after passes, each one verified."""
    given = parse(module) if isinstance(module, str) else module
    passes = (steps,) if isinstance(steps, Pass) else tuple(steps)
    result = Pipeline(passes).run(given, Context(instruments=(Verify(),)))
    verify(result)
    check_types(result)
    return result


def becomes(steps: Pass | Sequence[Pass], before: str, after: str) -> None:
    """Check that passes turn one program into another."""
    got, expected = apply(steps, before), parse(after)
    difference = first_difference(got, expected)
    assert difference is None, f"{difference}\n\n{print_module(got)}"


def stays(step: Pass, program: str) -> None:
    """Check that a pass leaves a program alone: the same object comes back."""
    module = parse(program)
    got = step(module, Context())
    assert got is module, print_module(got)


def keeps_meaning(
    steps: Pass | Sequence[Pass], module: IRModule | str, args: Sequence[Array]
) -> IRModule:
    """Check that ``main`` gives the same numbers before and after each pass."""
    given = parse(module) if isinstance(module, str) else module
    passes = (steps,) if isinstance(steps, Pass) else tuple(steps)
    check = NumericCheck(interpret, {"main": args})
    result = Pipeline(passes).run(given, Context(instruments=(Verify(), check)))
    check_types(result)
    return result


def floats(seed: int, *shapes: tuple[int, ...]) -> list[Array]:
    """Random float32 arrays."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
