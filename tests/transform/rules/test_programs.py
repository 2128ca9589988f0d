"""Default schedules are programs that run: no fewer than `programs.json` says, and as compiled.

A sample here, all of it as slow tests and by ``python -m tests.transform.rules.programs``.
"""

from __future__ import annotations

from functools import cache

import pytest

from tests.codegen.llvm.levels import LEVELS

from .programs import OPERATORS, SMALL, WHOLE, Row, Walk, committed, kernels_of

floor = cache(committed)


def hold(name: str, found: Row) -> None:
    """No more kernels without a program than were committed."""
    assert found.none <= floor()[name].none, found.without


@pytest.mark.long("prints and runs the program of each kernel of a model")
@pytest.mark.rotated(20)
@pytest.mark.parametrize("walk", SMALL.values(), ids=list(SMALL))
def test_kernels_of_models(walk: Walk) -> None:
    hold(walk.name, Row.of(walk.kernels(), LEVELS[walk.machine]))


@pytest.mark.slow
@pytest.mark.parametrize("walk", WHOLE.values(), ids=list(WHOLE))
def test_kernels_of_whole_models(walk: Walk) -> None:
    hold(walk.name, Row.of(walk.kernels(), LEVELS[walk.machine]))


@pytest.mark.rotated(8)
@pytest.mark.parametrize("operator", OPERATORS)
def test_kernels_of_operators(operator: str) -> None:
    some = dict(list(kernels_of(operator).items())[::5])
    hold(operator, Row.of(some, LEVELS["avx2"]))


@pytest.mark.slow
@pytest.mark.parametrize("operator", OPERATORS)
def test_all_kernels_of_operators(operator: str) -> None:
    hold(operator, Row.of(kernels_of(operator), LEVELS["avx2"]))


def test_nearly_all_kernels_have_a_program() -> None:
    """Of models and of operators at least 98 in 100 have one; the file says which have not."""
    rows = floor()
    for names in ({*SMALL, *WHOLE}, set(OPERATORS)):
        assert names <= set(rows)
        found = [rows[name] for name in names]
        kernels, none = sum(r.kernels for r in found), sum(r.none for r in found)
        assert none <= 0.02 * kernels, [r.without for r in found if r.none]
