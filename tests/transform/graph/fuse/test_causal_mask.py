"""Causal masks in the forms that exporters write them: told, and told apart from others."""

from __future__ import annotations

import numpy as np
import pytest

from unity.interpreter import interpret
from unity.ir.dtype import Array
from unity.ir.graph import Call, Op
from unity.ir.module import IRModule
from unity.ir.visit import walk_bindings
from unity.script import parse
from unity.transform import Context
from unity.transform.graph import FuseAttention

PROGRAM = """
s = dim("s")
p = dim("p")

@script.function
def main(
    q: f32[Tensor, 1, 2, QUERIES, 4],
    k: f32[Tensor, 1, 2, KEYS, 4],
    v: f32[Tensor, 1, 2, KEYS, 4],
    pad: f32[Tensor, 1, 1, 1, KEYS],
) -> f32[Tensor, 1, 2, QUERIES, 4]:
    with R.dataflow():
        row = R.reshape(R.arange(0, QUERIES, dtype="int64"), (QUERIES, 1))
        key = R.expand_dims(R.arange(0, KEYS, dtype="int64"), axis=(0,))
        zero = R.const(0.0, "float32")
        hidden = R.const(float("-inf"), "float32")
        scores = R.divide(R.matmul(q, R.permute_dims(k, axes=(0, 1, 3, 2))), 2.0)
MASK
        y = R.matmul(R.nn.softmax(masked, axis=-1), v)
    return y
"""


def program(mask: str, queries: str, keys: str) -> IRModule:
    lines = "\n".join(f"        {line}" for line in mask.split("; "))
    return parse(PROGRAM.replace("MASK", lines).replace("QUERIES", queries).replace("KEYS", keys))


def fused(module: IRModule) -> tuple[IRModule, Call]:
    done = FuseAttention()(module, Context())
    values = [b.value for b in walk_bindings(done.graph_functions()["main"])]
    (call,) = (x for x in values if isinstance(x, Call) and x.callee == Op("nn.attention"))
    return done, call


def added(condition: str, then: str = "hidden", other: str = "zero") -> str:
    return f"masked = R.add(scores, R.where({condition}, {then}, {other}))"


LAST = "last = R.add(row, R.dims(p, dtype='int64'))"
LOWEST = f"low = R.const({float(np.finfo(np.float32).min)}, 'float32')"
TOLD: dict[str, tuple[str, str, str, str]] = {
    "later keys": (added("R.less(row, key)"), "s", "s", "TopLeft"),
    "keys seen": (added("R.less_equal(key, row)", "zero", "hidden"), "s", "s", "TopLeft"),
    "greater": (added("R.greater(key, row)"), "s", "p", "TopLeft"),
    "by one": (added("R.less(key, R.add(row, R.const(1)))", "zero", "hidden"), "5", "7", "TopLeft"),
    "not": (added("R.logical_not(R.greater_equal(row, key))"), "s", "s", "TopLeft"),
    "four axes": (added("R.expand_dims(R.less(row, key), axis=(0, 1))"), "6", "6", "TopLeft"),
    "of a cache": (f"{LAST}; {added('R.less(last, key)')}", "s", "s + p", "BottomRight"),
    "of lengths": (added("R.less(R.add(row, R.const(3)), key)"), "4", "7", "BottomRight"),
    "lowest": (f"{LOWEST}; {added('R.less(row, key)', 'low')}", "s", "s", "TopLeft"),
    "chosen": (
        "masked = R.where(R.less_equal(key, row), scores, hidden)",
        "s",
        "s",
        "TopLeft",
    ),
    "with another": (
        "both = R.add(pad, R.where(R.less(row, key), hidden, zero)); masked = R.add(scores, both)",
        "s",
        "s",
        "TopLeft",
    ),
}


@pytest.mark.parametrize("case", TOLD)
def test_told(case: str) -> None:
    mask, queries, keys, word = TOLD[case]
    before = program(mask, queries, keys)
    after, call = fused(before)
    assert call.attrs["causal_mask"] == word
    assert len(call.args) == (4 if "pad" in mask else 3)
    rng = np.random.default_rng(0)
    sizes = {"s": 6, "p": 3 if keys != "p" else 8, "s + p": 9}
    rows, count = (sizes.get(n) or int(n) for n in (queries, keys))
    shapes = ((rows, 4), (count, 4), (count, 4))
    inputs: list[Array] = [rng.standard_normal((1, 2, *s), np.float32) for s in shapes]
    inputs.append(rng.standard_normal((1, 1, 1, count), np.float32))
    want, got = (np.asarray(interpret(m, "main", inputs)) for m in (before, after))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


OTHERS: dict[str, tuple[str, str, str]] = {
    "another offset": (added("R.less(R.add(row, R.const(1)), key)"), "s", "s"),
    "earlier keys": (added("R.less(key, row)"), "s", "s"),
    "not far": (f"low = R.const(-1e9, 'float32'); {added('R.less(row, key)', 'low')}", "s", "s"),
    "something else": (added("R.less(row, key)", "hidden", "R.const(1.0, 'float32')"), "s", "s"),
    "rows that see nothing": (added("R.less(row, R.add(key, R.const(2)))"), "6", "4"),
    "by keys": (added("R.less(R.const(3), key)"), "4", "7"),
    "in steps": (
        "twice = R.reshape(R.arange(0, 12, 2, dtype='int64'), (6, 1)); "
        + added("R.less(twice, key)"),
        "6",
        "6",
    ),
}


def test_a_finite_mask_beside_another_stays() -> None:
    """A row all of whose keys the other one hides as much sees the later ones again."""
    both = "both = R.add(pad, R.where(R.less(row, key), low, zero)); masked = R.add(scores, both)"
    before = program(f"{LOWEST}; {both}", "s", "s")
    after, call = fused(before)
    assert call.attrs["causal_mask"] is None
    rng = np.random.default_rng(0)
    inputs: list[Array] = [rng.standard_normal((1, 2, 5, 4), np.float32) for _ in range(3)]
    pad = np.zeros((1, 1, 1, 5), np.float32)
    pad[..., :2] = np.finfo(np.float32).min
    want, got = (np.asarray(interpret(m, "main", [*inputs, pad])) for m in (before, after))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", OTHERS)
def test_other_masks_stay(case: str) -> None:
    _, call = fused(program(*OTHERS[case]))
    assert call.attrs["causal_mask"] is None
    assert len(call.args) == 4


@pytest.mark.parametrize(
    ("offset", "queries", "keys", "word"),
    [(0, 5, 5, "TopLeft"), (2, 5, 7, "BottomRight"), (1, 5, 7, None), (2, 1, 3, None)],
)
def test_constants(offset: int, queries: int, keys: int, word: str | None) -> None:
    """Matrices, and one row for all queries, which looks like the last of them."""
    data = np.where(np.tri(queries, keys, offset), 0, -np.inf).astype(np.float32)
    text = f"masked = R.add(scores, R.const({data.tolist()}, 'float32'))".replace("-inf", "INF")
    text = text.replace("INF", 'float("-inf")')
    _, call = fused(program(text, "5" if word is None else str(queries), str(keys)))
    assert call.attrs["causal_mask"] == word
