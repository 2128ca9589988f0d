"""The stubs of operators and scalar functions are not stale, and `help` tells what they tell."""

from __future__ import annotations

import ast
import inspect
import pydoc

import pytest

from unity.op.table import OPS
from unity.script import R, T
from unity.script.scalar_names import SCALAR_SIGNATURES
from unity.script.stubs import FOLDER, WORDS, stubs


def test_they_are_what_the_rows_say() -> None:
    """Else: ``python -m unity.script.stubs``."""
    for name, text in stubs().items():
        assert (FOLDER / name).read_text() == text, name
        ast.parse(text)


def test_every_operator_and_scalar_is_in_them() -> None:
    found = {
        f"{prefix}{node.name}"
        for name in stubs()
        for prefix, body in _bodies(ast.parse(stubs()[name]))
        for node in body
        if isinstance(node, ast.FunctionDef)
    }
    assert found == {*OPS} - WORDS | {*(path.removeprefix("T.") for path in SCALAR_SIGNATURES)}


def _bodies(tree: ast.Module) -> list[tuple[str, list[ast.stmt]]]:
    classes = [n for n in tree.body if isinstance(n, ast.ClassDef)]
    return [("", tree.body), *((f"{c.name}.", c.body) for c in classes)]


@pytest.mark.parametrize("path", SCALAR_SIGNATURES)
def test_help_tells_what_a_scalar_function_computes(path: str) -> None:
    marker = getattr(T, path.removeprefix("T."))
    told = pydoc.plain(pydoc.render_doc(marker))
    assert SCALAR_SIGNATURES[path].usage in told
    assert len(told.splitlines()) < 12, told
    assert path.removeprefix("T.") in dir(T)


def test_help_shows_what_words_take_and_nothing_of_ours() -> None:
    told = pydoc.plain(pydoc.render_doc(R.call_tir))
    assert "R.call_tir(callee, args, out, *, sym_args=(), inplace=())" in told
    assert "the compiler allocates what `out` says" in told
    assert "Signature" not in told
    assert str(inspect.signature(T.serial)) == "(begin, end=None, *, attrs=None)"
    assert {"axis", "grid", "exp", "min", "size"} <= set(dir(T))
    assert not {"Iterator", "SymDim", "word", "annotations"} & set(dir(T))
