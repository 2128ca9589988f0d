"""TreeEnsemble*: all modes, joins and post transforms, against onnxruntime and ONNX's reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.frontend.onnx.ml.both import Array, agree, compiled, ours, theirs
from tests.frontend.onnx.ml.forests import MODES, Trees, model_of, rows_of
from unity.errors import UnityError, UnsupportedError
from unity.frontend.onnx import from_onnx
from unity.ir.graph import Function
from unity.ir.visit import walk_constants

Outputs: TypeAlias = list[tuple[str, int, Sequence[int | str]]]
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def regressor(
    trees: Trees, targets: int = 1, kind: int = TensorProto.FLOAT, **more: Any
) -> onnx.ModelProto:
    attributes = trees.attributes("target", kind == TensorProto.DOUBLE)
    outputs: Outputs = [("y", TensorProto.FLOAT, ["n", targets])]
    return model_of(
        "TreeEnsembleRegressor", {**attributes, "n_targets": targets, **more}, trees.columns,
        outputs, kind,
    )  # fmt: skip


@pytest.mark.parametrize("mode", [*MODES, "all"])
@pytest.mark.parametrize("missing", [False, True])
def test_every_mode_with_nan_and_infinities(mode: str, missing: bool) -> None:
    r = np.random.default_rng(3)
    modes = MODES if mode == "all" else (mode,)
    trees = Trees(r, count=12, modes=modes, missing=missing).grown()
    agree(regressor(trees), rows_of(r, 70, 4), run=compiled if mode == "all" else ours)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 0.0])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("missing", [False, True])
def test_thresholds_that_are_no_usual_numbers(value: float, mode: str, missing: bool) -> None:
    r = np.random.default_rng(4)
    trees = Trees(r, count=2, depth=2, deep=1.0, modes=(mode,), missing=missing).grown()
    for row in trees.rows:
        row["values"] = value
    x = rows_of(r, 40, 4)
    x[0] = -0.0
    agree(regressor(trees), x)


@pytest.mark.parametrize("how", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize(("targets", "own"), [(1, False), (3, False), (3, True)])
@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.DOUBLE])
def test_joins(how: str, targets: int, own: bool, kind: int) -> None:
    r = np.random.default_rng(5)
    trees = Trees(r, count=8, outputs=range(targets), own=own).grown()
    base = np.linspace(-1, 1, targets)
    more: dict[str, Any] = {"base_values": base.tolist()}
    if kind == TensorProto.DOUBLE:
        more = {"base_values_as_tensor": helper.make_tensor("b", kind, base.shape, base)}
    model = regressor(trees, targets, kind, aggregate_function=how, **more)
    agree(model, rows_of(r, 30, 4).astype(helper.tensor_dtype_to_np_dtype(kind)))


@pytest.mark.parametrize("kind", [TensorProto.INT64, TensorProto.INT32])
def test_rows_of_integers(kind: int) -> None:
    r = np.random.default_rng(6)
    trees = Trees(r, modes=MODES, missing=True).grown()
    x = r.integers(-3, 4, (20, 4)).astype(helper.tensor_dtype_to_np_dtype(kind))
    (mine,), (other,) = (f(regressor(trees, kind=kind), x) for f in (ours, by_reference))
    np.testing.assert_allclose(mine, other, 1e-5, 1e-6)


def by_reference(model: onnx.ModelProto, x: Array) -> list[Array]:
    """What trees give, one row and one tree after another."""
    a = {x.name: helper.get_attribute_value(x) for x in model.graph.node[0].attribute}
    nodes = {
        key: i for i, key in enumerate(zip(a["nodes_treeids"], a["nodes_nodeids"], strict=True))
    }
    gifts = dict(zip(zip(a["target_treeids"], a["target_nodeids"], strict=True),
                     a["target_weights"], strict=True))  # fmt: skip
    asked = {"LEQ": np.less_equal, "LT": np.less, "GTE": np.greater_equal, "GT": np.greater,
             "EQ": np.equal, "NEQ": np.not_equal}  # fmt: skip
    found = np.zeros((len(x), 1), np.float32)
    for row, values in enumerate(x.astype(np.float32)):
        for tree in sorted(set(a["nodes_treeids"])):
            at = nodes[tree, 0]
            while (mode := a["nodes_modes"][at].decode()) != "LEAF":
                yes = asked[mode[7:]](values[a["nodes_featureids"][at]], a["nodes_values"][at])
                to = "nodes_truenodeids" if yes else "nodes_falsenodeids"
                at = nodes[tree, a[to][at]]
            found[row] += np.float32(gifts[tree, a["nodes_nodeids"][at]])
    return [found]


def classifier(trees: Trees, classes: int, **more: Any) -> onnx.ModelProto:
    labels = [7, 3, 11, 0, 5][:classes]
    outputs: Outputs = [
        ("label", TensorProto.INT64, ["n"]),
        ("y", TensorProto.FLOAT, ["n", classes]),
    ]
    attributes = {**trees.attributes("class", False), "classlabels_int64s": labels, **more}
    return model_of("TreeEnsembleClassifier", attributes, trees.columns, outputs)


@pytest.mark.parametrize("how", TRANSFORMS)
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("base", [False, True])
def test_classes(how: str, own: bool, base: bool) -> None:
    r = np.random.default_rng(7)
    trees = Trees(r, count=9, outputs=range(3), own=own, positive=how == "PROBIT").grown()
    more = {"base_values": [0.5, -0.25, 0.125]} if base else {}
    agree(classifier(trees, 3, post_transform=how, **more), rows_of(r, 30, 4))


@pytest.mark.parametrize("how", ["NONE", "LOGISTIC"])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("base", [False, True])
def test_two_classes_of_one_score(how: str, positive: bool, base: bool) -> None:
    r = np.random.default_rng(8)
    trees = Trees(r, count=3, positive=positive).grown()
    model = classifier(trees, 2, post_transform=how, **({"base_values": [0.25]} if base else {}))
    agree(model, rows_of(r, 30, 4))


def test_the_greater_of_two_scores_is_the_label() -> None:
    """As ONNX says; onnxruntime gives 1 or 0 there, whatever the labels are."""
    r = np.random.default_rng(9)
    model = classifier(Trees(r, outputs=(0, 1), positive=True).grown(), 2)
    x = rows_of(r, 30, 4)
    label, scores = ours(model, x)
    np.testing.assert_allclose(scores, theirs(model, x)[1], 1e-5)
    np.testing.assert_array_equal(label, np.where(scores[:, 1] > scores[:, 0], 3, 7))


@pytest.mark.parametrize("how", range(4))
@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.DOUBLE])
def test_version_5(how: int, kind: int) -> None:
    """Trees of two levels, one of them a leaf alone, members and all joins."""
    dtype = helper.tensor_dtype_to_np_dtype(kind)

    def tensor(name: str, values: list[float], of: int = kind) -> onnx.TensorProto:
        return helper.make_tensor(name, of, [len(values)], values)

    nan = float("nan")
    attributes = {
        "tree_roots": [0, 2], "n_targets": 2, "aggregate_function": how,
        "nodes_featureids": [0, 1, 2], "nodes_truenodeids": [1, 0, 3],
        "nodes_falsenodeids": [2, 1, 3], "nodes_trueleafs": [0, 1, 1],
        "nodes_falseleafs": [1, 1, 1], "leaf_targetids": [0, 1, 0, 1],
        "nodes_splits": tensor("s", [0.5, 0.0, 0.0]),
        "nodes_modes": tensor("m", [1, 6, 0], TensorProto.UINT8),
        "leaf_weights": tensor("w", [5.0, -2.0, 3.5, 0.75]),
        "membership_values": tensor("v", [1.0, 3.0, 2.0, nan]),
    }  # fmt: skip
    model = model_of("TreeEnsemble", attributes, 3, [("y", kind, ["n", 2])], kind, 5)
    x = rows_of(np.random.default_rng(0), 40, 3).astype(dtype)
    (mine,) = ours(model, x)
    assert mine.dtype == dtype
    (other,) = theirs(model, x)
    np.testing.assert_allclose(mine, other, 1e-6)


@pytest.mark.parametrize(("deep", "depth", "linked"), [(1.0, 5, False), (0.55, 14, True)])
def test_deep_trees_are_linked(deep: float, depth: int, linked: bool) -> None:
    r = np.random.default_rng(11)
    trees = Trees(r, count=30, depth=depth, deep=deep, missing=True).grown()
    model = regressor(trees)
    assert ("linked_tree_ensemble" in str(from_onnx(model))) is linked
    agree(model, rows_of(r, 50, 4), run=compiled)


def test_a_chain_of_a_thousand_nodes_stays_small() -> None:
    """Complete trees would take 2 ** 1000 nodes."""
    count = 1000
    modes = {"treeids": 0, "modes": "BRANCH_GT", "featureids": 0}
    inner = [
        {**modes, "nodeids": k, "values": k / 2, "truenodeids": k + 2, "falsenodeids": k + 1}
        for k in range(0, 2 * count, 2)
    ]
    leaf = {"treeids": 0, "modes": "LEAF", "values": 0.0}
    trees = Trees(np.random.default_rng(0), columns=1)
    leaves = [*range(1, 2 * count, 2), 2 * count]
    trees.rows = [*inner, *({**leaf, "nodeids": i} for i in leaves)]
    trees.gifts = [(0, i, 0, float(i)) for i in leaves]
    model = regressor(trees)
    x = np.array([[-1.0], [0.5], [998.5], [2000.0], [np.nan]], np.float32)
    agree(model, x)
    main = from_onnx(model).functions["main"]
    assert isinstance(main, Function)
    tables = [c.data.nbytes for c in walk_constants(main)]
    assert sum(tables) < 64 * 3 * count


def broken(**changes: Any) -> onnx.ModelProto:
    trees = Trees(np.random.default_rng(1), depth=2, deep=1.0, count=2).grown()
    return regressor(trees, **{**trees.attributes("target", False), **changes})


def test_broken_tables_are_refused() -> None:
    whole = Trees(np.random.default_rng(1), depth=2, deep=1.0, count=2).grown()
    a: Any = whole.attributes("target", False)
    for changes, message in (
        ({"nodes_values": a["nodes_values"][:-1]}, "nodes_values has 13 elements where there are"),
        ({"nodes_truenodeids": [99, *a["nodes_truenodeids"][1:]]}, "tree 0 has no node 99"),
        ({"nodes_truenodeids": [0, *a["nodes_truenodeids"][1:]]}, "a node is below itself"),
        ({"nodes_featureids": [9, *a["nodes_featureids"][1:]]}, "looks at column 9 of rows"),
        ({"nodes_featureids": [-1, *a["nodes_featureids"][1:]]}, "before the first"),
        ({"nodes_modes": ["BRANCH_NO", *a["nodes_modes"][1:]]}, "nodes_modes: 'BRANCH_NO'"),
        ({"target_ids": [4, *a["target_ids"][1:]]}, "a target that is none of 1"),
        ({"target_nodeids": [0, *a["target_nodeids"][1:]]}, "no leaf has weights"),
        ({"nodes_nodeids": [1, *a["nodes_nodeids"][1:]]}, "have one number"),
        ({"aggregate_function": "MODE"}, "aggregate_function 'MODE'"),
        ({"post_transform": "TANH"}, "post_transform 'TANH'"),
        ({"base_values": [1.0, 2.0]}, "2 elements for 1 targets"),
    ):  # fmt: skip
        with pytest.raises(UnityError, match=message):
            from_onnx(broken(**changes))
    with pytest.raises(UnsupportedError) as error:
        from_onnx(broken(post_transform="LOGISTIC"))
    assert "LOGISTIC of one target, which onnxruntime leaves out" in str(error.value)
