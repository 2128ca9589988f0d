"""Whose mistake it is when a pass fails: ours say so and name the pass, users' are passed on."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import unity
from unity.errors import InternalError, UnityError
from unity.ir.graph import Body, Function
from unity.ir.module import IRModule
from unity.script import parse
from unity.transform import Context, Pass, Pipeline, map_functions
from unity.transform.blame import fault
from unity.transform.graph import (
    EliminateDeadCode,
    FoldConstants,
    Legalization,
    LegalizeOps,
    Normalize,
)
from unity.transform.graph.simplify import dce
from unity.transform.instruments import Verify

MODULE = parse("""
@script.function
def main(x: f32[Tensor, 3]) -> f32[Tensor, 3]:
    y = R.exp(x)
    return R.tanh(y)
""")
SHORT = Pipeline((Normalize(), FoldConstants(), EliminateDeadCode()))


def unbound(module: IRModule) -> IRModule:
    """Drops every binding but keeps their uses: the result does not verify."""
    return map_functions(module, lambda f: Function(f.params, Body((), f.body.result), f.result))


@dataclass(frozen=True, slots=True)
class Refuses(Pass):
    """A user's pass that does not like the program."""

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        return IRModule({"main": module["other"]})


@dataclass(frozen=True, slots=True)
class Unbind(Pass):
    """A user's pass with a mistake."""

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        return unbound(module)


@pytest.mark.parametrize("lookup", [{}.__getitem__, MODULE.__getitem__, [].__getitem__])
def test_what_breaks_in_a_pass_of_ours_is_a_bug_of_ours(
    monkeypatch: pytest.MonkeyPatch, lookup: object
) -> None:
    monkeypatch.setattr(dce, "reachable", lookup)
    with pytest.raises(InternalError, match=r"a bug of Unity.*the pass EliminateDeadCode failed"):
        SHORT.run(MODULE, Context())


def test_the_pass_that_broke_the_module_is_named_not_the_one_that_stumbles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Normalize, "__call__", lambda _, module, ctx: unbound(module))
    with pytest.raises(InternalError, match=r"(?s)Normalize gave an ill-formed module.*not in sc"):
        unity.compile(MODULE, cache=None)
    with pytest.raises(InternalError, match="after Normalize: main"):
        SHORT.run(MODULE, Context(instruments=(Verify(),)))


def test_mistakes_of_users_passes_stay_theirs() -> None:
    with pytest.raises(UnityError, match="the module has no 'other'") as caught:
        (SHORT + Pipeline((Refuses(),))).run(MODULE, Context())
    assert not isinstance(caught.value, InternalError)
    assert caught.value.__notes__ == ["in the pass Refuses"]
    with pytest.raises(KeyError, match="tanh") as broken:  # what the next one stumbles over
        unity.compile(MODULE, pipeline=unity.pipeline().insert_after(Normalize, Unbind()))
    assert not isinstance(broken.value, InternalError)
    assert "the pass Unbind gave an ill-formed module" in broken.value.__notes__[-1]


def test_what_users_rules_do_wrong_is_no_bug_of_ours() -> None:
    theirs = LegalizeOps((Legalization("exp", lambda args, attrs, result: None),))
    assert not isinstance(fault(theirs, "wrong"), InternalError)
    assert isinstance(fault(LegalizeOps(), "wrong"), InternalError)
