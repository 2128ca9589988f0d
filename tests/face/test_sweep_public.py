"""Every public function refuses unknown keywords and values of another type, by an error of ours.

Walks ``__all__`` of the public packages and the methods of their classes: each is marked `public`,
and each parameter refuses a value that is nothing to it, unless it is told below why not.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import unity
import unity.runtime
from unity import script, te, transform
from unity.arguments import expectations
from unity.errors import UnityError
from unity.script import tvmscript
from unity.transform import instruments, pipeline, schedule

WRONG = object()
PIPELINES = (pipeline("cpu"), pipeline("cpu", precision="bf16"))
PACKAGES: tuple[ModuleType, ...] = (
    *(unity, script, te, transform, schedule, tvmscript, unity.runtime, instruments),
)
OPEN = {
    "structural_equal": "any two things can be compared",
    "compile.model": "says itself what can be compiled",
    "tune.model": "as `compile.model`",
    "compile.resolve": "says itself what it may be (`policy_of`)",
    "load.model": "says itself what can be loaded",
    "provide_loader": "a loader is a protocol, asked when an artifact needs it",
    "show.node": "shows every part of a program",
    "GraphBuilder.param.type": "says itself what is a type",
    "GraphBuilder.op.args": "the operator says what it takes",
    "GraphBuilder.op.attrs": "likewise",
    "GraphBuilder.emit_te.args": "takes what its function takes",
    "GraphBuilder.match_cast.type": "as `GraphBuilder.param.type`",
    "GraphBuilder.emit_tir.out": "as `GraphBuilder.param.type`",
    "GraphBuilder.finish.result": "says itself what is an expression",
    "Executable.profile": "takes what the function takes",
    "Executable.benchmark": "takes what the function takes",
    "Executable.trace": "takes what the function takes",
    "IndexMap.from_json.data": "any JSON, read by a `match`",
    "Backend.__init__.resolve": "as `compile.resolve`",
    "quantize.model": "says itself what can be quantized: types of onnx, which is imported late",
    "quantize.calibration_data": "samples of several forms, each looked at when it is used",
    "from_sklearn.model": "what skl2onnx converts, whose types are not there without it",
}
"""Parameters that take anything, and why."""


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


DATA = (
    *(te.Combiner, te.Compute, te.Extern, te.Placeholder, te.Reduce, te.ReduceAxis, te.Tensor),
    *(script.Buffer, script.Tensor, schedule.BlockRef, schedule.LoopRef, schedule.Instruction),
    schedule.AppliedRule,
    *(transform.Instrument, transform.Pass, schedule.ScheduleByRule, schedule.ScheduleDefault),
    *(unity.UnityError, unity.InternalError, unity.UnsupportedError),
)
"""Classes without an interface of their own: nodes, markers, errors, what users subclass."""


def classes() -> Iterator[type]:
    for package in PACKAGES:
        for name in package.__all__:
            found = getattr(package, name)
            if inspect.isclass(found) and found not in DATA:
                yield found


def methods() -> Iterator[tuple[str, tuple[type, Callable[..., object]]]]:
    for kind in dict.fromkeys(classes()):
        homes = [c for c in kind.__mro__ if c.__module__.startswith("unity")]
        for name, entry in (pair for c in reversed(homes) for pair in vars(c).items()):
            found = getattr(entry, "__func__", getattr(entry, "fset", entry))
            if inspect.isfunction(found) and (name == "__init__" or not name.startswith("_")):
                yield f"{kind.__name__}.{name}", (kind, found)


METHODS = dict(methods())


@pytest.mark.parametrize("name", METHODS)
def test_a_method(name: str) -> None:
    kind, method = METHODS[name]
    kinds = expectations(method)
    assert kinds is not None, f"{name} is not marked `public`"
    for parameter, expected in kinds.items():
        if name not in OPEN and f"{name}.{parameter}" not in OPEN:
            assert not expected.fits(WRONG), f"{name}: {parameter} takes anything"
    this: list[object] = (
        [object.__new__(kind)] if "self" in inspect.signature(method).parameters else []
    )
    extra = any(p.kind is p.VAR_KEYWORD for p in inspect.signature(method).parameters.values())
    if not extra:
        with pytest.raises(UnityError, match="bogus"):
            method(*this, bogus=1)


PASSES = {step.name: type(step) for given in PIPELINES for step in given.passes}


@pytest.mark.parametrize("name", PASSES)
def test_a_pass(name: str) -> None:
    made: Any = PASSES[name]
    kinds = expectations(made.__init__)
    assert kinds is not None
    for parameter, kind in kinds.items():
        assert not kind.fits(WRONG), f"{name}: {parameter} takes anything"
        with pytest.raises(UnityError, match=f"{name}.*'{parameter}': expected"):
            made(**{parameter: WRONG})
    with pytest.raises(UnityError, match=f"{name} has no parameter 'bogus'"):
        made(bogus=1)
    with pytest.raises(UnityError, match=f"{name} takes"):
        made(*[WRONG] * (len(kinds) + 1))


def test_methods_that_take_what_a_program_takes() -> None:
    exe: Any = unity.compile(script.parse(PROGRAM), threads=1)
    for call in (exe, exe.profile, exe.benchmark, exe["main"]):
        for args, named in (((), {"bogus": 1}), ((WRONG,), {}), ((), {})):
            with pytest.raises(UnityError):
                call(*args, **named)
    x = {"x": np.ones(2, np.float32)}
    refused: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        *(((WRONG,), {}), (({"x": WRONG},), {}), ((x, WRONG), {}), ((x,), {"threads": WRONG})),
        *(((), {}), ((x,), {"bogus": 1}), ((x, None, 1), {}), (({1: 2},), {}), (({},), {})),
    ]
    for args, named in refused:
        with pytest.raises(UnityError):
            exe.run(*args, **named)
    with pytest.raises(UnityError, match="threads, argument 1 'count': expected an integer"):
        exe.threads = WRONG
    indexed: tuple[Any, ...] = (exe, te.placeholder((2,), "float32", "x"))
    for given in indexed:
        with pytest.raises(UnityError):
            given[WRONG]
    assert exe.run(x)["output0"].tolist() == [2.0, 2.0]


def test_names_that_are_not_there() -> None:
    module = script.parse(PROGRAM)
    assert module.get("other") is None
    with pytest.raises(UnityError, match="no 'other'"):
        module["other"]
    with pytest.raises(UnityError, match=r"(?s)no call site 'mian/add'.*main/add"):
        unity.compile(module, threads=1).explain()["mian/add"]


PROGRAM = """
@script.function
def main(x: f32[Tensor, 2]) -> f32[Tensor, 2]:
    return R.add(x, x)
"""
