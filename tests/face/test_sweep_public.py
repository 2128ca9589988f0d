"""Every public function refuses unknown keywords and values of another type, by an error of ours.

Walks ``__all__`` of the public packages and the methods of their classes: each is marked `public`,
and each parameter refuses a value that is nothing to it, unless it is told below why not.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

import unity
import unity.runtime
from unity import script, te, transform
from unity.arguments import expectations
from unity.errors import UnityError
from unity.script import tvmscript
from unity.transform import schedule

WRONG = object()
PACKAGES: tuple[ModuleType, ...] = (
    *(unity, script, te, transform, schedule, tvmscript, unity.runtime),
)
OPEN = {
    "structural_equal": "any two things can be compared",
    "compile.model": "says itself what can be compiled",
    "compile.resolve": "says itself what it may be (`policy_of`)",
    "load.model": "says itself what can be loaded",
    "provide_loader": "a loader is a protocol, asked when an artifact needs it",
    "show.node": "shows every part of a program",
}
"""Parameters that take anything, and why."""
ELSEWHERE = {
    "Executable.run": "a call's speed matters: it looks at what it is given when that fails",
    "Executable.profile": "takes what the function takes",
    "Executable.benchmark": "takes what the function takes",
    "Executable.trace": "takes what the function takes",
    "Session.run": "a call's speed matters",
}


def functions() -> Iterator[tuple[str, Callable[..., object]]]:
    for package in PACKAGES:
        for name in package.__all__:
            found = getattr(package, name)
            if inspect.isfunction(found):
                yield f"{package.__name__}.{name}", found


FUNCTIONS = dict(functions())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function(name: str) -> None:
    function: Any = FUNCTIONS[name]
    kinds = expectations(function)
    assert kinds is not None, f"{name} is not marked `public`"
    short = function.__name__
    for parameter, kind in kinds.items():
        if short not in OPEN and f"{short}.{parameter}" not in OPEN:
            assert not kind.fits(WRONG), f"{name}: {parameter} takes anything"
    with pytest.raises(UnityError):
        function(bogus=1)
    needed = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    if short not in OPEN:
        with pytest.raises(UnityError):
            function(*[WRONG for _ in needed] or [WRONG])


CLASSES = (unity.Executable, unity.IRModule, unity.Session, unity.Target, schedule.Schedule)


def methods() -> Iterator[tuple[str, object]]:
    for kind in (*CLASSES, transform.Pipeline):
        for name, found in vars(kind).items():
            plain = inspect.isfunction(found) and not name.startswith("_")
            if plain and len(inspect.signature(found).parameters) > 1:
                yield f"{kind.__name__}.{name}", found


METHODS = dict(methods())


@pytest.mark.parametrize("name", METHODS)
def test_a_method(name: str) -> None:
    if name in ELSEWHERE:
        return
    kinds = expectations(METHODS[name])
    assert kinds is not None, f"{name} is not marked `public`"
    for parameter, kind in kinds.items():
        assert not kind.fits(WRONG), f"{name}: {parameter} takes anything"


@pytest.mark.parametrize(
    "kind", [unity.IRModule, unity.Target, schedule.Schedule, transform.Context]
)
def test_a_constructor(kind: Any) -> None:
    for args, named in (((), {"bogus": 1}), ((WRONG,), {}), ((WRONG,) * 4, {})):
        with pytest.raises(UnityError):
            kind(*args, **named)
