"""Who looks for a pass by Relax's name is told ours."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest

from docs import generate
from unity import transform
from unity.errors import UnityError
from unity.transform import graph
from unity.transform.relax_names import RELAX, home_of


@pytest.mark.long("tvm is imported")
def test_every_pass_of_relax_has_a_row() -> None:
    theirs = pytest.importorskip("tvm.relax.transform")
    kinds = {"DataflowBlockPass", "FunctionPass", "FusionPattern", "PatternCheckContext"}
    names = {n for n in dir(theirs) if n[0].isupper()} - kinds
    assert names == set(RELAX)


@pytest.mark.parametrize("name", RELAX)
def test_a_row_names_passes_that_there_are(name: str) -> None:
    here = RELAX[name]
    assert here.passes or here.note
    for ours in here.passes:
        home = home_of(ours)
        assert home is not None, ours
        assert inspect.isclass(getattr(import_module(home), ours))
    assert f"| `{name}` |" in generate.passes()


def test_an_import_by_another_name_tells_ours() -> None:
    with pytest.raises(UnityError) as caught:
        exec("from unity.transform import DeadCodeElimination")
    assert "Relax's pass of this name is called EliminateDeadCode here" in str(caught.value)
    assert "from unity.transform.graph import EliminateDeadCode" in str(caught.value)
    with pytest.raises(UnityError, match="is called FoldConstants here"):
        exec("from unity.transform.graph import FoldConstant")
    with pytest.raises(UnityError, match="is called ConvertPrecision here"):
        getattr(transform, "ToMixedPrecision")  # noqa: B009
    with pytest.raises(UnityError, match="is no pass here"):
        getattr(graph, "Gradient")  # noqa: B009


def test_an_import_from_another_package_tells_which() -> None:
    with pytest.raises(UnityError) as caught:
        exec("from unity.transform import BindParams")
    assert caught.value.hint == "from unity.transform.graph import BindParams"


def test_other_names_are_unknown_as_usual() -> None:
    assert not hasattr(transform, "Nonsense")
    assert not hasattr(graph, "nonsense")
    with pytest.raises(ImportError, match="Nonsense"):
        exec("from unity.transform import Nonsense")
