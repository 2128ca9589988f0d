"""Every operator refuses attributes of another type, words it lacks and axes that are none.

The calls are those of the rows' own samples, as they are printed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

import pytest

from tests.fuzz.test_compiled_ops import case, samples_of
from unity.errors import UnityError
from unity.ir.attrs import AttrValue
from unity.ir.dtype import dtype
from unity.ir.module import IRModule
from unity.op.attribute import DTYPE
from unity.op.registry import OpDef, Param, attr_value
from unity.op.table import OPS
from unity.script import constants_of, parse, print_module

from .mutations import LITERALS, Mutation, mutations, outcome, put

CALLED = [name for name, row in OPS.items() if row.samples and row.reference]
AXES = ("axis", "axes", "channel_axis")
NUMBERS = "int float bool none tuple"
"""What operands may be: numbers and arrays written out; None where one is optional."""


def written(row: OpDef) -> Iterator[IRModule]:
    """Calls of an operator's samples as functions."""
    for sample in samples_of(row.name, most=2):
        yield IRModule({"main": case(row, sample, lambda n: n).function})


def with_attributes(text: str, row: OpDef) -> Iterator[tuple[Mutation, Param]]:
    """The call with each attribute in turn set to each literal, also those left out."""
    for param in row.params:
        if param.kind != "attr":
            continue
        for literal, kind in LITERALS.items():
            tree = ast.parse(text)
            call = next(n for n in ast.walk(tree) if _calls(n, row))
            assert isinstance(call, ast.Call)
            at = [p.name for p in row.params].index(param.name)
            put(call, at if at < len(call.args) else param.name, literal)
            path, what = f"R.{row.name}", f"{param.name}={literal}"
            yield Mutation(path, what, ast.unparse(tree), param.name, kind), param


def _calls(node: ast.AST, row: OpDef) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == f"R.{row.name}"


def fits(param: Param, literal: str) -> bool:
    """Whether a literal is of an attribute's type."""
    value = eval(literal)
    try:
        found: AttrValue = dtype(value) if param.type is DTYPE and value else attr_value(value)
    except UnityError:
        return False
    return param.takes(found)


@pytest.mark.parametrize("name", CALLED)
@pytest.mark.rotated(1)
def test_an_operator(name: str) -> None:
    row = OPS[name]
    wrong: list[str] = []
    for before in written(row):
        text, read = print_module(before), partial(parse, constants=constants_of(before))
        own = {p.name for p in row.params if p.kind == "attr"}
        kinds = [p.kind for p in row.params]
        for m in mutations(text, lambda path: path == f"R.{name}"):
            if m.param in own or (isinstance(m.param, int) and kinds[m.param] == "attr"):
                continue
            said = outcome(m, before, read)
            if said or (said == "" and m.kind not in NUMBERS.split()):
                wrong.append(f"{m.what}: {said or 'is accepted'}")
        for m, param in with_attributes(text, row):
            said = outcome(m, before, read)
            literal = m.what.partition("=")[2]
            if said is not None and said.startswith(("raises", "refused")):
                wrong.append(f"{m.what}: {said}")
            if said is not None and not fits(param, literal):
                wrong.append(f"{m.what}: is accepted")
            if said is not None and param.name in AXES and literal in ("99", "-99"):
                wrong.append(f"{m.what}: is accepted")
    assert wrong == []
