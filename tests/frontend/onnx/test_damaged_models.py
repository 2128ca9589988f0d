"""Random damage to models: each is imported or refused by an error of ours, at once.

The slow run takes new seeds.
"""

from __future__ import annotations

from random import Random

import onnx
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from onnx import parser

from tests.rotation import examples
from unity.errors import InternalError, UnityError
from unity.frontend.onnx import from_onnx
from unity.frontend.onnx.table import CONVERTERS

from .mutations import damaged, models

MODELS = models()


@settings(max_examples=examples(75))
@given(seed=st.integers(0, 1 << 32))
def test_damage_is_told_and_ends(seed: int) -> None:
    rng = Random(seed)
    model = damaged(MODELS[rng.choice(list(MODELS))], rng, rng.choice([1, 1, 2, 3]))
    try:
        from_onnx(model)
    except InternalError:
        raise
    except UnityError:
        event("refused")


@pytest.mark.parametrize("name", models())
def test_what_is_damaged_is_right_before(name: str) -> None:
    assert from_onnx(models()[name])["main"]


def of(graph: str) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]> {graph}')


def test_a_condition_that_is_made_of_itself() -> None:
    loop = of(
        "g (float[3] x, int64 n, bool c) => (float[3] y) { y = Loop (n, c, x) <body = b (int64 i, "
        "bool on, float[3] s) => (bool more, float[3] t) { more = Identity(more) t = Exp(s) }> }"
    )
    with pytest.raises(UnityError, match="cycle"):
        from_onnx(loop)


def test_an_empty_dim_beside_a_free_one() -> None:
    model = of(
        "g (float[n, 0, 6] x) => (float[a, b] y) <int64[2] s = {-1, 0}> { y = Reshape(x, s) }"
    )
    with pytest.raises(UnityError, match=r"node 'y' \(Reshape\).*-1 beside 0"):
        from_onnx(model)


def test_a_node_whose_outputs_are_all_left_out() -> None:
    model = of("g (float[3] x) => (float[3] y) { y = Exp(x) z = Exp(x) }")
    model.graph.node[1].output[0] = ""
    with pytest.raises(UnityError, match=r"\(Exp\): names none of its outputs"):
        from_onnx(model)


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (KeyError("k"), InternalError, r"(?s)a bug of Unity.*node 'y' \(Exp\): KeyError: 'k'"),
        (TypeError("t"), InternalError, "TypeError: t"),
        (RecursionError(), UnityError, "nested too deep"),
        (ValueError("3 and 4"), UnityError, "its inputs don't fit: 3 and 4"),
        (onnx.checker.ValidationError("bad"), UnityError, "form is wrong: ValidationError: bad"),
    ],
)
def test_what_nobody_foresaw_names_the_node(
    error: Exception, kind: type, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def converter(node: object) -> None:
        raise error

    monkeypatch.setitem(CONVERTERS, "Exp", converter)
    model = of("g (float[3] x) => (float[3] y) { y = Exp(x) }")
    with pytest.raises(UnityError, match=message) as caught:
        from_onnx(model)
    assert type(caught.value) is kind
