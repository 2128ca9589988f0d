"""A public operator is complete: meaning, words, names elsewhere, and a place in every sweep.

What a user sees is what `dir(R)` names and no pass or importer keeps to itself
(`unity.op.naming.OURS`). That computes mean what references do is `test_registry`, that stubs are
those of the rows `tests/script/test_stubs.py`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.op.test_registry import NO_KERNEL
from tests.script import relax_defaults
from tests.transform.rules import programs
from unity.op.effects import EFFECTS
from unity.op.meanings import MEANINGS, docstring_of, meaning_of
from unity.op.naming import OURS, names_of
from unity.op.scalar import MOVES
from unity.op.table import OPS
from unity.script import R

PUBLIC = sorted(OPS.keys() - OURS)
TELLS = re.compile(r"``\(|dtype|float|int64|bool|shape|axis|axes|dims|rank|number|broadcast")
"""What says something of shapes or dtypes."""
COMPARED = json.loads(relax_defaults.RESULTS.read_text())
SCHEDULED = json.loads(programs.RESULTS.read_text())


def test_there_are_as_many_as_the_readme_says() -> None:
    text = (Path(__file__).parents[2] / "README.md").read_text()
    assert f"| operators | {len(PUBLIC)}, and {len(OURS)} of the compiler's own" in text
    assert len(PUBLIC) >= 210


def seen(name: str) -> bool:
    """Whether completion finds it: each part is told by `dir` of the one before."""
    place: object = R
    for part in name.split("."):
        if part not in dir(place):
            return False
        place = getattr(place, part)
    return callable(place)


def test_each_meaning_is_of_an_attribute() -> None:
    used: set[str] = set()
    for name, row in OPS.items():
        for param in row.params:
            own = f"{name}.{param.name}"
            used.add(own if own in MEANINGS else param.name)
    assert set(MEANINGS) <= used
    assert all(text and not text.endswith(".") for text in MEANINGS.values())


@pytest.mark.whole
@pytest.mark.parametrize("name", PUBLIC)
def test_an_operator_is_complete(name: str) -> None:
    row, names = OPS[name], names_of(name)
    assert seen(name)
    assert any((names.onnx, names.relax, names.torch)) or name in EFFECTS
    assert TELLS.search(row.doc), "its docstring says nothing of shapes or dtypes"
    assert len(row.doc.split()) >= 8
    for param in row.params:
        if param.kind == "attr":
            assert meaning_of(name, param.name), "say in unity/op/meanings.py what it means"
            assert f"\n    {param.name}: " in docstring_of(row)
    if names.relax is not None and name not in ("print", "assert_op"):
        assert name in COMPARED, "run `python -m tests.script.relax_defaults`"
    if name in EFFECTS or name in MOVES:
        return
    assert row.reference is not None
    assert row.samples is not None
    assert any((row.compute, row.expand)) or name in NO_KERNEL
    if row.compute is not None:
        assert name in SCHEDULED, "run `python -m tests.transform.rules.programs`"
