"""Every module that any test builds prints to a text that parses back to it.

And Hypothesis judges values, not the clock: machines that run tests are slow at times.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from unity.errors import UnityError
from unity.ir.equality import first_difference
from unity.ir.graph import CallPython
from unity.ir.module import IRModule
from unity.ir.verify import verify
from unity.ir.visit import walk_bindings
from unity.script import constants_of, parse, print_module

settings.register_profile("unity", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unity")

_EACH_END = 3  # of a test that builds many: the first and the last ones
_LONGEST = 200_000  # characters; whole models have a test of their own


@pytest.fixture(autouse=True)
def modules_print_back(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    built: list[IRModule] = []
    freeze = IRModule.__post_init__

    def record(module: IRModule) -> None:
        freeze(module)
        built.append(module)

    with monkeypatch.context() as patch:
        patch.setattr(IRModule, "__post_init__", record)
        yield
    for module in {id(m): m for m in (*built[:_EACH_END], *built[-_EACH_END:])}.values():
        if _is_program(module):
            text = print_module(module)
            if len(text) <= _LONGEST:
                back = parse(text, constants_of(module))
                assert first_difference(module, back) is None, text


def _is_program(module: IRModule) -> bool:
    """Whether it is well formed (a test may build others on purpose) and all of it has a text."""
    try:
        verify(module)
    except UnityError:
        return False
    return not any(
        isinstance(binding.value, CallPython)
        for function in module.graph_functions().values()
        for binding in walk_bindings(function)
    )
