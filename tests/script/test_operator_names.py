"""What editors and help() are told of operators."""

from __future__ import annotations

import inspect
import pydoc

import pytest

from unity.errors import UnityError
from unity.op.effects import ASSERT, PRINT
from unity.op.meanings import meaning_of
from unity.op.table import OPS
from unity.script import R
from unity.script.marker import Marker


def test_names_are_listed() -> None:
    assert {"matmul", "nn", "call_tir", "Shape", "memory"} <= set(dir(R))
    assert "Mapping" not in dir(R)
    assert {"relu", "conv2d", "attention"} <= set(dir(R.nn))


@pytest.mark.parametrize("name", sorted(OPS))
def test_each_operator_tells_its_parameters_and_what_it_does(name: str) -> None:
    marker = R
    for part in name.split("."):
        marker = getattr(marker, part)
    assert isinstance(marker, Marker)
    row = OPS[name]
    if name in (PRINT, ASSERT):  # words that take any number of values
        assert "*values" in str(inspect.signature(marker))
        return
    assert [p.name for p in row.params] == [*inspect.signature(marker).parameters]
    told = pydoc.plain(pydoc.render_doc(marker))
    assert row.doc.split("\n", 1)[0].strip() in told
    for param in row.params:
        if param.kind == "attr" and (meaning := meaning_of(name, param.name)) is not None:
            assert f"{param.name}: {meaning.split()[0]}" in told


def test_names_are_still_the_parsers() -> None:
    assert R.nn.relu == R.nn.relu
    assert R.nn.relu != R.nn.gelu
    with pytest.raises(UnityError, match=r"R\.nn\.relu is read by the parser"):
        R.nn.relu(1)
