"""Ensembles of trees: which stages the rule takes, and that it adds in the order of the trees."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from tests.transform.tensor.kernels import CPU
from unity.errors import UnityError
from unity.ir.attrs import Attrs
from unity.ir.dtype import Array
from unity.ir.module import IRModule
from unity.op.ml.tree import complete_records, linked_records
from unity.op.table import OPS
from unity.script import parse
from unity.transform.rules.default import default_rules

COLUMNS = 5


def ensemble(name: str, groups: int = 1, trees: int = 23, outputs: int = 1) -> tuple[Array, ...]:
    """What an operator takes besides rows; its last argument is the values."""
    r = np.random.default_rng(0)
    size = (groups, trees, 16) if name == "tree_ensemble" else (groups * trees * 9,)
    features = r.integers(0, COLUMNS, size)
    thresholds = r.standard_normal(size).astype(np.float32)
    values = r.standard_normal((*size, outputs)).astype(np.float32)
    if name == "tree_ensemble":
        return complete_records(features, thresholds), values
    count = size[0]
    left, rows = r.integers(0, count - 1, count), np.arange(count)
    roots = r.integers(0, count, (groups, trees)).astype(np.int32)
    return linked_records(features, thresholds, left, rows), roots, values


def module_of(name: str, args: tuple[Array, ...], rows: str = "n") -> IRModule:
    shapes = [
        f"a{i}: {'f32' if a.dtype == np.float32 else 'i32'}[Tensor, {', '.join(map(str, a.shape))}]"
        for i, a in enumerate(args)
    ]
    depth = "" if name == "tree_ensemble" else ", depth=7"
    groups = args[1].shape[0] if depth else args[0].shape[0]
    return parse(f"""
n = dim("n")

@script.function
def main(x: f32[Tensor, {rows}, {COLUMNS}], {", ".join(shapes)}) -> f32[
    Tensor, {rows}, {groups}, {args[-1].shape[-1]}
]:
    return R.{name}(x, {", ".join(f"a{i}" for i in range(len(args)))}{depth}, checked=True)
""")


def reference(name: str, x: Array, args: tuple[Array, ...]) -> Array:
    op = OPS[name]
    attrs = Attrs(join="sum", checked=True)
    assert op.reference is not None
    found = op.reference([x, *args], attrs if name == "tree_ensemble" else attrs.with_(depth=7))
    assert isinstance(found, np.ndarray)
    return found


@pytest.mark.rotated(1 / 4)
@pytest.mark.parametrize("name", ["tree_ensemble", "linked_tree_ensemble"])
@pytest.mark.parametrize(("groups", "outputs"), [(1, 1), (3, 1), (1, 3), (2, 17)])
def test_sums_are_in_the_order_of_the_trees(name: str, groups: int, outputs: int) -> None:
    args = ensemble(name, groups, outputs=outputs)
    found = unity.compile(module_of(name, args), threads=2, cache=None)
    (kernel,) = found.kernels
    assert [r.rule for r in found.rules(kernel)] == ["trees"]
    for rows in (0, 1, 130):
        x = np.random.default_rng(rows).standard_normal((rows, COLUMNS)).astype(np.float32)
        x[::3, 1] = np.nan
        np.testing.assert_array_equal(found(x, *args), reference(name, x, args))


@pytest.mark.parametrize("decisions", [{"trees": 1}, {"trees": 23, "rows": 1}, {"rows": 512}])
def test_other_decisions_give_the_same_numbers(decisions: dict[str, int]) -> None:
    args = ensemble("tree_ensemble")
    module = module_of("tree_ensemble", args, "50")
    x = np.random.default_rng(1).standard_normal((50, COLUMNS)).astype(np.float32)
    found = unity.compile(module, decisions={"trees": decisions}, cache=None)
    np.testing.assert_array_equal(found(x, *args), reference("tree_ensemble", x, args))
    with pytest.raises(UnityError, match="there are 23 trees"):
        unity.compile(module, decisions={"trees": {"trees": 24}}, cache=None)


def test_a_row_goes_down_some_trees_at_once() -> None:
    args = ensemble("tree_ensemble", trees=100)
    found = unity.compile(module_of("tree_ensemble", args), cache=None)
    (applied,) = default_rules(found.kernel("tree_ensemble"), CPU)
    assert applied.blocks == ("descend", "trees")
    assert applied.decisions["trees"] == 10
    steps = found.ir("tree_ensemble").count("bits")
    assert steps == 10  # one for each tree of a block: 100 trees leave no others


@pytest.mark.parametrize("rows", ["n", "130"])
def test_no_row_beyond_the_last_goes_down(rows: str) -> None:
    """Blocks of 128 rows: the last one has two."""
    args = ensemble("tree_ensemble", trees=20)
    module = module_of("tree_ensemble", args, rows)
    x = np.random.default_rng(2).standard_normal((130, COLUMNS)).astype(np.float32)
    checked = unity.compile(module, cache=None, check_bounds=True)
    np.testing.assert_array_equal(checked(x, *args), reference("tree_ensemble", x, args))


PLACES_OF_ROWS = """
@script.prim_func
def main(
    x: f32[Buffer, 4, 8], next: i64[Buffer, 3, 8], y: f32[Buffer, 4], z: i64[Buffer, 4, 3]
) -> None:
    for i, t, l in T.grid(4, 3, 2):
        with T.block("go"):
            vi, vt, vl = T.axis.remap("SSR", i, t, l)
            with T.init():
                z[vi, vt] = 0
            z[vi, vt] = next[vt, z[vi, vt]]
    for i, t in T.grid(4, 3):
        with T.block("sum"):
            vi, vt = T.axis.remap("SR", i, t)
            with T.init():
                y[vi] = 0.0
            y[vi] += x[vi, z[vi, vt]]
"""


def test_places_that_are_a_result_are_left_to_other_rules() -> None:
    rules = default_rules(parse(PLACES_OF_ROWS).prim_funcs()["main"], CPU)
    assert "trees" not in [r.rule for r in rules]
