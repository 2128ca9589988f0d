"""Patterns: what they find, what they leave, and the shapes of real models that they can say."""

from __future__ import annotations

import pytest

from unity.errors import UnityError
from unity.ir.dtype import FLOAT32, FLOAT64
from unity.ir.graph import Function, Var
from unity.script import parse
from unity.transform.pattern import (
    Pattern,
    any_,
    const,
    field,
    find,
    op,
    optional,
    scalar,
    through,
)

CONV = """
@script.function
def main(
    x: f32[Tensor, 1, 4, 8, 8], w: f32[Tensor, 4, 4, 1, 1], b: f32[Tensor, 1, 4, 1, 1]
) -> f32[Tensor, 1, 4, 8, 8]:
    with R.dataflow():
        c1 = R.nn.conv2d(x, w)
        a1 = R.add(c1, b)
        r1 = R.nn.relu(a1)
        c2 = R.nn.conv2d(r1, w)
        a2 = R.add(b, c2)
        s2 = R.add(a2, x)
        r2 = R.nn.relu(s2)
    return r2
"""


def main_of(text: str) -> Function:
    return parse(text).graph_functions()["main"]


def names(pattern: Pattern, text: str) -> list[str]:
    return [m.root.name for m in find(pattern, main_of(text))]


def conv_bias() -> Pattern:
    return op("nn.conv2d", any_("x"), any_("w")) + any_("b")


def test_the_largest_of_overlapping_matches_is_taken() -> None:
    full = optional(conv_bias(), lambda y: y + any_("residual"), lambda y: op("nn.relu", y))
    found = find(full, main_of(CONV))
    assert [m.root.name for m in found] == ["r1", "r2"]
    first, second = found
    assert first.get("residual") is None
    residual = second["residual"]
    assert isinstance(residual, Var)
    assert residual.name == "x"
    assert {v.name for v in second.inner} == {"c2", "a2", "s2"}


def test_either_order_of_a_commutative_operator() -> None:
    assert names(conv_bias(), CONV) == ["a1", "a2"]
    assert names(any_("b") + op("nn.conv2d", any_("x"), any_("w")), CONV) == ["a1", "a2"]


def test_a_value_used_elsewhere_ends_a_match_unless_it_may_escape() -> None:
    text = CONV.replace("s2 = R.add(a2, x)", "s2 = R.add(a2, c1)")
    assert names(conv_bias(), text) == ["a2"]
    escaping = op("nn.conv2d", any_("x"), any_("w")).escaping() + any_("b")
    assert names(escaping, text) == ["a2", "s2"]  # of a1 and s2, which share c1, the later


def test_types_attributes_constants_and_users() -> None:
    text = """
@script.function
def main(x: f32[Tensor, 4, 8], y: f64[Tensor, 4, 8]) -> f32[Tensor, 4, 8]:
    with R.dataflow():
        a = R.multiply(x, 0.5)
        b = R.nn.softmax(a, axis=-1)
        c = R.multiply(b, 0.25)
        d = R.exp(y)
    return c
"""
    assert names(any_().of(dtype=FLOAT32) * 0.5, text) == ["a"]
    assert names(any_().of(dtype=FLOAT64) * 0.5, text) == []
    assert names(any_() * const(), text) == ["a", "c"]
    assert names(any_() * scalar(0.25), text) == ["c"]
    assert names(op("nn.softmax", attrs={"axis": -1}), text) == ["b"]
    assert names(op("nn.softmax", attrs={"axis": lambda a: a == 0}), text) == []
    assert names(op(("exp", "nn.softmax")), text) == ["b", "d"]
    assert names(op("multiply").used_by("nn.softmax"), text) == ["a"]
    assert names(op("exp").of(shape=(4, None)), text) == ["d"]
    assert names(op("exp").of(rank=3), text) == []


def test_one_name_is_one_value() -> None:
    text = """
@script.function
def main(x: f32[Tensor, 4], y: f32[Tensor, 4]) -> f32[Tensor, 4]:
    with R.dataflow():
        a = R.multiply(x, x)
        b = R.multiply(x, y)
        c = R.add(a, b)
    return c
"""
    assert names(any_("v") * any_("v"), text) == ["a"]


def test_fields_of_tuples() -> None:
    text = """
@script.function
def main(x: f32[Tensor, 4, 8]) -> f32[Tensor, 4, 4]:
    with R.dataflow():
        parts = R.split(x, 2, axis=1)
        a = parts[0]
        b = parts[1]
        c = R.multiply(a, R.sigmoid(b))
    return c
"""
    whole = op("split", any_("x"), name="parts").escaping()
    gated = field(whole, 0) * op("sigmoid", field(whole, 1))
    (match,) = find(gated, main_of(text))
    assert match.root.name == "c"
    with pytest.raises(UnityError, match=r"(?s)captured no 'y'.*captured parts, x"):
        match["y"]


ATTENTION = """
n = dim("n")
@script.function
def main(
    q: f32[Tensor, 1, n, 2, 8], k: f32[Tensor, 1, n, 2, 8], v: f32[Tensor, 1, n, 2, 8],
    m: f32[Tensor, 1, 1, 1, n]
) -> f32[Tensor, 1, n, 16]:
    with R.dataflow():
        qt = R.permute_dims(q, (0, 2, 1, 3))
        kt = R.permute_dims(k, (0, 2, 3, 1))
        vt = R.permute_dims(v, (0, 2, 1, 3))
        s = R.divide(R.matmul(qt, kt), 2.828427)
        p = R.nn.softmax(R.add(s, m), axis=-1)
        o = R.matmul(p, vt)
        t = R.permute_dims(o, (0, 2, 1, 3))
        y = R.reshape(t, (1, n, 16))
    return y
"""


def test_attention_with_and_without_a_mask() -> None:
    def views(name: str) -> Pattern:
        return through(("permute_dims", "reshape"), any_(name))

    scores = (views("q") @ views("k")) / const("scale")
    masked = optional(scores, lambda s: s + any_("mask"))
    attention = op("nn.softmax", masked) @ views("v")
    (match,) = find(attention, main_of(ATTENTION))
    assert {n: e.name for n, e in match.captures.items() if isinstance(e, Var)} == {
        "q": "qt", "k": "kt", "v": "vt", "mask": "m",
    }  # fmt: skip
    without = ATTENTION.replace("R.add(s, m)", "s")
    (match,) = find(attention, main_of(without))
    assert match.get("mask") is None


def test_gelu_and_layer_norm_from_primitives() -> None:
    text = """
@script.function
def main(x: f32[Tensor, 4, 8], g: f32[Tensor, 8], b: f32[Tensor, 8]) -> f32[Tensor, 4, 8]:
    with R.dataflow():
        mu = R.mean(x, axis=-1, keepdims=True)
        d = R.subtract(x, mu)
        var = R.mean(R.multiply(d, d), axis=-1, keepdims=True)
        n = R.divide(d, R.sqrt(R.add(var, 1e-5)))
        y = R.add(R.multiply(n, g), b)
        e = R.erf(R.divide(y, 1.4142135))
        z = R.multiply(R.multiply(y, 0.5), R.add(e, 1.0))
    return z
"""
    x = any_("x")
    centred = x - op("mean", x)
    squares = op("multiply", centred.named("d"), centred.named("d"))
    norm = centred.named("d") / op("sqrt", op("mean", squares) + const("epsilon"))
    assert names(norm * any_("gamma") + any_("beta"), text) == ["y"]
    v = any_("v")
    assert names((v * 0.5) * (op("erf", v / 1.4142135) + 1.0), text) == ["z"]


def test_a_quantized_product() -> None:
    text = """
@script.function
def main(x: u8[Tensor, 4, 8], w: i8[Tensor, 8, 2]) -> f32[Tensor, 4, 2]:
    with R.dataflow():
        a = R.multiply(R.subtract(R.astype(x, "float32"), 3.0), 0.1)
        b = R.multiply(R.astype(w, "float32"), 0.2)
        y = R.matmul(a, b)
    return y
"""

    def dequantized(name: str) -> Pattern:
        wide = op("astype", any_(name))
        return optional(wide, lambda q: q - const(f"{name}_zero")) * const(f"{name}_scale")

    (match,) = find(dequantized("x") @ dequantized("w"), main_of(text))
    assert match.get("x_zero") is not None
    assert match.get("w_zero") is None
