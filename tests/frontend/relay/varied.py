"""Which attributes of Relay's operators the tests' cases give values: found without running them.

The test functions beside this file are called with `check_interpreted` taking the cases and doing
nothing, so that all of them are seen at once (those given to `module_of` are mostly refused ones,
and left aside); `python -m tests.frontend.relay.varied` prints what no case gives another value
than the default.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.frontend.relay.calls import Case
from unity.frontend.relay.operators.table import CONVERTERS
from unity.frontend.relay.schema import complete, signature


def varied() -> dict[str, set[str]]:
    """Of each operator that some case compares: the attributes that are not their defaults."""
    found: dict[str, set[str]] = defaultdict(set)
    for case in _cases():
        given = complete(case.operator, case.attributes, len(case.operands))
        known = signature(case.operator)
        assert known is not None
        fields = known.fields or {}
        changed = {n for n, v in given.items() if n not in fields or v != fields[n].default}
        found[case.operator] |= changed
    return found


def missing() -> dict[str, set[str]]:
    """Of each translated operator, the attributes that no case varies; itself if none calls it."""
    seen, found = varied(), dict[str, set[str]]()
    for name in CONVERTERS:
        known = signature(name)
        assert known is not None
        lacking = {*(known.fields or {})} - seen.get(name, set())
        if lacking or name not in seen:
            found[name] = lacking if name in seen else {*lacking, name}
    return found


def _cases() -> list[Case]:
    taken: list[Case] = []
    modules = [import_module(name) for name in _names()]
    with pytest.MonkeyPatch.context() as patch:
        for module in modules:
            patch.setattr(module, "check_interpreted", taken.extend, raising=False)
            patch.setattr(module, "module_of", _stop, raising=False)
        for module in modules:
            functions = [f for n, f in vars(module).items() if n.startswith("test_")]
            for function in functions if hasattr(module, "Case") else ():
                for arguments in _arguments(function):
                    with suppress(Exception, pytest.fail.Exception):
                        function(**arguments)
    return taken


def _stop(_: Sequence[Case]) -> None:
    raise _LeftAsideError


class _LeftAsideError(Exception):
    """Cases that are not to be counted."""


def _names() -> Iterator[str]:
    """The modules of tests in this folder."""
    here = Path(__file__).parent
    for path in sorted(here.rglob("test_*.py")):
        parts = path.relative_to(here).with_suffix("").parts
        yield ".".join((__name__.rpartition(".")[0] or "tests.frontend.relay", *parts))


def _arguments(function: Any) -> Iterator[Mapping[str, object]]:
    """What a test is called with, by its marks."""
    marks = [m for m in getattr(function, "pytestmark", []) if m.name == "parametrize"]
    names = [m.args[0] if isinstance(m.args[0], str) else list(m.args[0]) for m in marks]
    for values in product(*(m.args[1] for m in marks)):
        given: dict[str, object] = {}
        for name, value in zip(names, values, strict=True):
            given |= _named(name, value)
        if given.keys() == inspect.signature(function).parameters.keys():
            yield given


def _named(name: str | Sequence[str], value: Any) -> dict[str, object]:
    keys = [k.strip() for k in name.split(",")] if isinstance(name, str) else list(name)
    return dict(zip(keys, [value] if len(keys) == 1 else value, strict=True))


if __name__ == "__main__":
    for operator, attributes in missing().items():
        print(f"{operator}: {', '.join(sorted(attributes))}")
