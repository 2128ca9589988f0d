"""Einsum becomes one product, whichever way its axes lie; little is transposed for it."""

from __future__ import annotations

from random import Random

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper

from unity.frontend.onnx import from_onnx
from unity.interpreter import interpret
from unity.ir.graph import Call, Op
from unity.ir.module import IRModule
from unity.ir.visit import walk_bindings

from .programs import assert_close, imported, main_of, run


def einsum(equation: str, sizes: dict[str, int], known: bool = True) -> IRModule:
    terms, _, out = equation.partition("->")
    a, b = terms.split(",")

    def info(name: str, letters: str) -> onnx.ValueInfoProto:
        shape = [sizes[c] if known else f"size_{c}" for c in letters]
        return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)

    node = helper.make_node("Einsum", ["a", "b"], ["y"], equation=equation)
    graph = helper.make_graph([node], "g", [info("a", a), info("b", b)], [info("y", out)])
    return from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))


def arrays(equation: str, sizes: dict[str, int]) -> list[NDArray[np.float32]]:
    rng = np.random.default_rng(0)
    terms = equation.partition("->")[0].split(",")
    return [rng.standard_normal([sizes[c] for c in t]).astype(np.float32) for t in terms]


@pytest.mark.parametrize("seed", range(40))
def test_any_order_of_axes(seed: int) -> None:
    random = Random(seed)
    names = iter("abcdefghij")
    batch, rows, columns = ([next(names) for _ in range(random.randrange(3))] for _ in range(3))
    inner = [next(names) for _ in range(random.randint(1, 2))]
    a, b, out = batch + rows + inner, batch + inner + columns, batch + rows + columns
    for letters in (a, b, out):
        random.shuffle(letters)
    equation = f"{''.join(a)},{''.join(b)}->{''.join(out)}"
    sizes = {c: random.randint(1, 4) for c in "abcdefghij"}
    given = arrays(equation, sizes)
    expected = np.einsum(equation, *given)
    for known in (True, False):
        got = interpret(einsum(equation, sizes, known), "main", given)
        assert isinstance(got, np.ndarray)
        assert_close(got, expected)


@pytest.mark.parametrize(
    ("equation", "moved"),
    [
        ("bij,bjk->bik", 0),
        ("dea,bcde->bca", 0),  # the second operand is the left one
        ("acbe,aed->abcd", 1),  # an operand, not the larger result
        ("bik,bjk->bij", 1),  # read the other way round by the product
        ("abefc,abdef->abcd", 1),
    ],
)
def test_what_is_transposed(equation: str, moved: int) -> None:
    sizes = {"d": 64} if equation.startswith("acbe") else {}
    module = einsum(equation, {c: sizes.get(c, 8) for c in "abcdefijk"})
    calls = [b.value for b in walk_bindings(main_of(module))]
    names = [c.callee.name for c in calls if isinstance(c, Call) and isinstance(c.callee, Op)]
    assert names.count("permute_dims") == moved
    assert names.count("matmul") == 1


@pytest.mark.parametrize("equation", ["...ii->...i", "ii", "ii->", "iji,j->ij", "iij,jk->ik"])
def test_a_letter_twice_is_the_diagonal(equation: str) -> None:
    rng = np.random.default_rng(0)
    terms = equation.partition("->")[0].split(",")
    extents = {"i": 3, "j": 4, "k": 2}
    shapes = [([2] if "." in t else []) + [extents[c] for c in t.replace(".", "")] for t in terms]
    given = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    names = ["a", "b"][: len(given)]
    dims = [", ".join((["e"] if "." in t else []) + list(t.replace(".", ""))) for t in terms]
    inputs = ", ".join(f"float[{d}] {n}" for d, n in zip(dims, names, strict=True))
    result = "float" if equation in ("ii->",) else "float[r]"
    module = imported(
        f'g ({inputs}) => ({result} y) {{ y = Einsum<equation="{equation}">({", ".join(names)}) }}'
    )
    assert_close(run(module, *given), np.asarray(np.einsum(equation, *given)))
