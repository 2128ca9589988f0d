"""Every name of the language refuses unknown keywords and values that are nothing to it.

Walks the names of ``T`` and ``R`` that have a signature, and the scalar functions: what is added
later is swept as well.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest

from unity import script
from unity.arguments import REQUIRED, Signature
from unity.errors import UnityError
from unity.script import Buffer, Tensor, dim, f32, graph_names, prim_names, tvmscript
from unity.script.marker import Marker
from unity.script.scalar_names import SCALAR_SIGNATURES
from unity.script.tvmscript.signatures import FOREIGN

WRONG = object()
TYPE = "f32[Tensor, 4]"
GOOD = {
    **{"begin": "0", "end": "4", "axis": '"threadIdx.x"', "domain": "4", "value": "i"},
    **{"condition": "i < 2", "message": '"m"', "shape": "(4,)", "dtype": '"float32"'},
    **{"buffer": "x", "index": "i", "predicate": "i < 2", "name": '"exp"', "symbol": '"m.f"'},
    **{"element": "x[i]", "kinds": '"S"', "then": "x[i]", "orelse": "x[i]", "base": "i"},
    **{"stride": "1", "lanes": "4", "a": "x[i]", "b": "x[i]", "x": "x[i]", "y": "x[i]"},
    **{
        "z": "x[i]",
        "callee": "k",
        "args": "(x,)",
        "out": "f32[Tensor, 4]",
        "type": "f32[Tensor, 4]",
    },
    **{"function": "abs", "engine": '"e"', "subgraph": "main", "body": "inner", "init": "(x,)"},
}
"""What a required argument may be; a new name of the language adds to it."""
IN_A_PRIM_FUNC = (
    "for j in {}:\n            y[i] = x[i]",
    "with {}:\n            y[i] = x[i]",
    "vi = {}",
    "y[i] = {}",
    "{}",
)
KERNEL = """
@script.prim_func
def k(x: f32[Buffer, 4], y: f32[Buffer, 4]) -> None:
    for i in T.serial(4):
        {}
"""
IN_A_BLOCK = """
@script.prim_func
def k(x: f32[Buffer, 4], y: f32[Buffer, 4]) -> None:
    for i in T.serial(4):
        with T.block("b"):
            {}
            y[i] = x[i]
"""
FUNCTION = """
@script.prim_func
def k(x: f32[Buffer, 4], y: f32[Buffer, 4]) -> None:
    for i in T.serial(4):
        y[i] = x[i]

@script.function
def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    def inner(v):
        return (v,)
    {}
    return x
"""


def words() -> Iterator[Signature]:
    """The signatures of all names that the parser reads."""
    yield from SCALAR_SIGNATURES.values()
    for module in (prim_names, graph_names):
        for found in [*vars(module).values(), *vars(prim_names.axis).values()]:
            inner = found.__func__ if isinstance(found, staticmethod) else found
            if isinstance(inner, Marker) and inner.signature is not None:
                yield inner.signature


WORDS = {s.name: s for s in words()}


def places(path: str) -> list[str]:
    if path.startswith("R."):
        return [FUNCTION.format("y = {}"), FUNCTION.format("with {}:\n        y = x")]
    inside = [IN_A_BLOCK.format(p) for p in ("v = {}", "{}")]
    return [*(KERNEL.format(p) for p in IN_A_PRIM_FUNC), *inside]


def messages(path: str, call: str) -> list[str]:
    """What is said of a call wherever it may stand; it is refused everywhere."""
    found = []
    for place in places(path):
        with pytest.raises(UnityError) as caught:
            script.parse(place.format(call), names={"WRONG": WRONG})
        assert caught.value.span is not None
        found.append(caught.value.message)
    return found


def required(signature: Signature, but: str = "") -> list[str]:
    return [
        f"{p.name}={GOOD[p.name]}"
        for p in signature.params
        if p.default is REQUIRED and not p.rest and p.name != but
    ]


@pytest.mark.parametrize("path", WORDS)
def test_a_name_of_the_language(path: str) -> None:
    signature = WORDS[path]
    assert f"{path} has no parameter 'bogus'" in messages(path, f"{path}(bogus=1)")
    for param in signature.params:
        given = "WRONG" if param.rest else f"{param.name}=WRONG"
        said = messages(path, f"{path}({', '.join([given, *required(signature, param.name)])})")
        if not param.rest:
            assert f"{path} has no parameter {param.name!r}" not in said


def test_every_operator_is_bound_as_well() -> None:
    assert all("has no parameter 'bogus'" in m for m in messages("R.exp", "R.exp(x, bogus=1)")[:1])


ANNOTATIONS = {
    name: function
    for module in (prim_names, graph_names)
    for name in module.__all__
    if inspect.isfunction(function := getattr(module, name))
}


@pytest.mark.parametrize("name", ANNOTATIONS)
def test_a_part_of_an_annotation(name: str) -> None:
    function = ANNOTATIONS[name]
    params = inspect.signature(function).parameters.values()
    with pytest.raises(UnityError, match=r"has no parameter 'bogus'|needs"):
        function(bogus=1)
    given = [WRONG for p in params if p.default is p.empty]
    with pytest.raises(UnityError):
        function(*given)


def test_annotations() -> None:
    for item in ((WRONG,), (Tensor, WRONG), (Tensor, -1), (Tensor, True), (Buffer, WRONG)):
        with pytest.raises(UnityError):
            f32[item]
    for name in ("for", "a b", ""):
        with pytest.raises(UnityError):
            dim(name)


HEADS = {
    "T": "@T.prim_func\ndef f(x: T.Buffer((4,), 'float32')):\n    for i in range(4):\n        {}\n",
    "R": "@R.function\ndef f(x: R.Tensor((4,), 'float32')):\n    y = {}\n    return x\n",
    "T.match_buffer": "@T.prim_func\ndef f(a: T.handle):\n    x = {}\n",
    "T.func_attr": "@T.prim_func\ndef f(x: T.Buffer((4,), 'float32')):\n    {}\n",
    "R.func_attr": "@R.function\ndef f(x: R.Tensor((4,), 'float32')):\n    {}\n    return x\n",
}


@pytest.mark.parametrize("path", FOREIGN)
def test_a_name_of_tvmscript(path: str) -> None:
    text = HEADS.get(path, HEADS[path[0]])
    with pytest.raises(UnityError):
        tvmscript.parse(text.format(f"{path}(bogus=1)"))
