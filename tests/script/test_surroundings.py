# No `from __future__ import annotations` here: Python evaluates the annotations as well.
"""Where programs may be written, and what they see there: files, cells, functions, classes."""

import linecache
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from unity import script
from unity.errors import UnityError
from unity.ir.dims import dim as symbol
from unity.ir.dtype import FLOAT32
from unity.ir.graph import Call, Constant, Function, Op
from unity.ir.stmt import Seq, Store
from unity.ir.types import TensorType
from unity.script import Buffer, R, T, Tensor, dim, f32

n = dim("n")
WIDTH = 8
Row = f32[Tensor, n, WIDTH]


def cell(text: str, names: dict[str, object], file: str = "<ipython-input-7-abc>") -> None:
    """Run a text as a notebook runs a cell."""
    lines = text.splitlines(keepends=True)
    linecache.cache[file] = (len(text), None, lines, file)
    exec(compile(text, file, "exec"), names)


def params_of(f: script.ScriptFunction[..., object]) -> list[object]:
    return [p.type for p in f.func.params]


def test_annotations_that_python_evaluates_too() -> None:
    @script.function
    def main(x: f32[Tensor, n, WIDTH * 2], y: f32[Tensor, ()]) -> f32[Tensor, n, WIDTH * 2]:
        return R.add(x, y)

    assert params_of(main) == [
        TensorType((symbol("n"), 16), FLOAT32),
        TensorType((), FLOAT32),
    ]


def test_an_annotation_by_name() -> None:
    text = """
@script.function
def main(x: Row) -> Row:
    return R.nn.relu(x)

@script.prim_func
def kernel(a: Matrix) -> None:
    a[0, 0] = 1.0
"""
    names = {"Row": Row, "Matrix": f32[Buffer, n, 4]}
    module = script.parse(text, names=names)
    main = module["main"]
    assert isinstance(main, Function)
    assert main.params[0].type == TensorType((symbol("n"), 8), FLOAT32)


def test_names_of_an_enclosing_function_that_only_annotations_mention() -> None:
    rows = dim("rows")

    def inner() -> script.ScriptFunction[..., object]:
        columns = dim("columns")

        @script.function
        def main(x: f32[Tensor, rows, columns]) -> f32[Tensor, rows, columns]:
            return R.nn.relu(x)

        return main

    shape = (symbol("rows"), symbol("columns"))
    assert params_of(inner()) == [TensorType(shape, FLOAT32)]


def test_in_a_class() -> None:
    class Layers:
        size = 4

        @staticmethod
        @script.function
        def forward(x: f32[Tensor, size]) -> f32[Tensor, size]:
            return R.nn.relu(x)

    assert params_of(Layers.forward) == [TensorType((4,), FLOAT32)]


def test_in_a_notebook() -> None:
    names: dict[str, object] = {}
    cell("from unity import script\nfrom unity.script import R, Tensor, dim, f32\n", names)
    text = """n = dim("n")
@script.function
def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
    return R.nn.relu(x)
"""
    cell(text, names)
    first = names["main"]
    assert isinstance(first, script.ScriptFunction)
    cell(text.replace("relu", "silu"), names, "<ipython-input-8-abc>")
    second = names["main"]
    assert isinstance(second, script.ScriptFunction)
    (binding,) = second.func.body.blocks[0].bindings
    assert isinstance(binding.value, Call)
    assert isinstance(binding.value.callee, Op)
    assert binding.value.callee.name == "nn.silu"
    assert binding.span is not None
    assert (binding.span.file, binding.span.line) == ("<ipython-input-8-abc>", 4)


def test_columns_count_characters_not_bytes() -> None:
    module = script.parse(
        "@script.prim_func\n"
        "def f(c: f32[Buffer, 4]) -> None:\n"
        '    assert c[0] > 0.0, "größer"; c[0] = 1.0\n'
    )
    body = module.prim_funcs()["f"].body
    assert isinstance(body, Seq)
    store = body.stmts[1]
    assert isinstance(store, Store)
    assert store.span is not None
    assert store.span.column == 33


def test_values_captured_from_the_surroundings() -> None:
    sizes = (3, 4)
    config = {"rate": 0.5}
    weights = np.ones((3, 4), np.float32)

    @script.function
    def main(x: f32[Tensor, sizes[0], sizes[1]]) -> f32[Tensor, sizes[0], sizes[1]]:
        y = R.add(x, weights)
        return R.multiply(y, config["rate"])

    values = [b.value for b in main.func.body.blocks[0].bindings]
    constants = [a for v in values if isinstance(v, Call) for a in v.args[1:]]
    arrays = [c.data for c in constants if isinstance(c, Constant)]
    np.testing.assert_array_equal(arrays[0], weights)
    np.testing.assert_array_equal(arrays[1], np.float32(0.5))


def test_a_grid_over_a_captured_tuple() -> None:
    shape = (2, 3)

    @script.prim_func
    def fill(c: f32[Buffer, shape[0], shape[1]]) -> None:
        for i, j in T.grid(*shape):
            c[i, j] = 1.0

    text = script.print_module(fill.module())
    assert "for i, j in T.grid(2, 3):" in text


def test_an_error_shows_the_users_lines_alone() -> None:
    def mistaken() -> None:
        @script.function
        def wrong(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
            return R.no_such.operator(x)

    def annotated() -> object:
        return f32[Tensor, -4]

    for wrong in (mistaken, annotated):
        check_lines(wrong)


def check_lines(wrong: Callable[[], object]) -> None:
    with pytest.raises(UnityError) as caught:
        wrong()
    files = {Path(entry.path) for entry in caught.traceback}
    assert files == {Path(__file__)}
    assert caught.value.frames is not None, "what was cut is kept"
