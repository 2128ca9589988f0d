"""Operators that become others: compiled as interpreted, at the edges and in narrow floats."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import unity
from unity import script
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.dtype import Array, dtype
from unity.ir.module import IRModule
from unity.ir.types import TensorType
from unity.op.argument import tensor
from unity.op.registry import OpDef, Param
from unity.op.sampling import sample
from unity.script import R, Tensor, dim, f32

NAN, INF = np.nan, np.inf
ROWS = np.array([[-1, -2, -3], [-0.5, -0.1, -4]], np.float32)
HALF = np.float16


@dataclass(frozen=True, slots=True)
class Case:
    """A call of tensors and what it gives; None: only that both ways give the same."""

    op: str
    args: list[Array]
    expected: object = None
    attrs: dict[str, Any] = field(default_factory=dict[str, Any])


def built(case: Case, *, sizes: bool = True) -> IRModule:
    b = unity.GraphBuilder()
    types = [TensorType(a.shape if sizes else a.ndim, dtype(a.dtype)) for a in case.args]
    params: list[Any] = [b.param(f"x{k}", t) for k, t in enumerate(types)]
    if case.op in TUPLES:
        params[1:2] = [(params[1],)]
    return b.finish(b.op(case.op, *params, **case.attrs))


TUPLES = ("index_tensor",)


def both(module: IRModule, args: list[Array]) -> tuple[list[Array], list[Array]]:
    ways = interpret(module, "main", args), unity.compile(module)(*args)
    one, two = ([np.asarray(v) for v in (w if isinstance(w, tuple) else (w,))] for w in ways)
    return one, two


def check(case: Case, module: IRModule) -> None:
    interpreted, compiled = both(module, case.args)
    for a, b in zip(interpreted, compiled, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        np.testing.assert_allclose(np.float64(b), np.float64(a), rtol=2e-3, atol=1e-6)
    if case.expected is not None:
        np.testing.assert_allclose(
            np.float64(compiled[0]), np.asarray(case.expected), rtol=2e-3, atol=1e-6
        )


def nll(targets: Array, expected: object, **attrs: object) -> Case:
    return Case("nn.nll_loss", [ROWS, targets], expected, {"reduction": "none", **attrs})


EDGES = {
    "a target below 0": nll(np.array([-1, 2]), [3, 4]),
    "a target above": nll(np.array([7, 2]), [3, 4]),
    "-100 is no uint8": nll(np.array([0, 156], np.uint8), [1, 4]),
    "300 is no int8": nll(np.array([0, 44], np.int8), [1, 4], ignore_index=300),
    "all infinite": Case(
        "logsumexp", [np.array([[-INF, -INF], [INF, 1], [NAN, 1]], np.float32)],
        [-INF, INF, NAN], {"axis": 1},
    ),
    "the sum of nothing": Case(
        "logsumexp", [np.zeros((2, 0), np.float32)], [-INF, -INF], {"axis": 1}
    ),
    "lengths below 0": Case(
        "reverse_sequence", [ROWS, np.array([-1, -3])], ROWS
    ),
    "a median with NaN": Case(
        "median", [np.array([[3, NAN, 1, NAN], [4, 1, 2, 3]], np.float32)], [NAN, 2], {"axis": 1}
    ),
    "the median of all with NaN": Case("median", [np.array([3, NAN, 1], np.float32)], NAN),
    "medians of no row": Case("median", [np.zeros((0, 3), np.float32)], [], {"axis": 1}),
    "no pixel": Case(
        "nn.pixel_shuffle", [np.zeros((1, 4, 0, 2), np.float32)], np.zeros((1, 1, 0, 4)),
        {"upscale_factor": 2},
    ),
    "no pixel to undo": Case(
        "nn.pixel_unshuffle", [np.zeros((1, 3, 0, 2), np.float32)], np.zeros((1, 12, 0, 1)),
        {"downscale_factor": 2},
    ),
    "rows that are none": Case(
        "multinomial_from_uniform",
        [np.array([[0.2, 0.8], [0.6, 0.4]], np.float32), np.full((3, 1), 0.5, np.float32),
         np.array([[7], [-2], [-9]])],
        [[0], [1], [1]],
    ),
    "std in float16": Case("std", [np.array([0, 600], HALF)], 300),
    "logsumexp in float16": Case("logsumexp", [np.zeros(70000, HALF)], 11.156),
    "nll_loss in float16": Case(
        "nn.nll_loss", [np.full((70000, 2), -1, HALF), np.zeros(70000, np.int64)], 1
    ),
    "cross entropy in float16": Case(
        "nn.cross_entropy_with_logits", [np.full((70000, 2), -1, HALF), np.ones((70000, 2), HALF)],
        2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", EDGES)
def test_compiled_and_interpreted_are_the_same(what: str) -> None:
    check(EDGES[what], built(EDGES[what]))


def test_the_first_nan_is_where_a_median_is() -> None:
    case = EDGES["a median with NaN"]
    for found in both(built(case), case.args):
        assert found[1].tolist() == [1, 2]


@pytest.mark.parametrize("what", ["all infinite", "a target below 0"])
def test_only_the_rank_need_be_known(what: str) -> None:
    check(EDGES[what], built(EDGES[what], sizes=False))


def test_what_is_missing_is_said() -> None:
    with pytest.raises(UnityError, match=r"median: an input of unknown sizes \(R\.match_cast"):
        unity.compile(built(EDGES["a median with NaN"], sizes=False))
    like = Case("collapse_sum_like", [ROWS, ROWS[:1]])
    with pytest.raises(UnityError, match=r"a shape of unknown sizes \(R\.match_cast"):
        unity.compile(built(like, sizes=False))


EMPTY = np.zeros((0, 3), np.float32)
REFUSED = {
    "index_tensor": (Case("index_tensor", [EMPTY, np.array([0])]), "axis 0 of .* is empty"),
    "median": (Case("median", [EMPTY], attrs={"axis": 0}), "it has no middle element"),
    "collapse_sum_like": (
        Case("collapse_sum_like", [np.ones(2, np.bool_), np.ones(1, np.bool_)]),
        "'x' must be numbers, got bool",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_result_is_refused_where_it_is_built(what: str) -> None:
    case, said = REFUSED[what]
    with pytest.raises(UnityError, match=said):
        built(case)


def test_nothing_is_picked_where_an_axis_is_empty_only_when_it_runs() -> None:
    n = dim("n")
    b = unity.GraphBuilder()
    x, i = b.param("x", f32[Tensor, n, 3]), b.param("i", script.i64[Tensor, 2])
    module = b.finish(b.op("index_tensor", x, (i,)))
    for found in both(module, [EMPTY, np.array([0, 1])]):
        assert found[0].tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("what", ["no pixel", "no pixel to undo"])
def test_constants_without_elements_are_folded(what: str) -> None:
    case = EDGES[what]
    b = unity.GraphBuilder()
    module = b.finish(b.op(case.op, *case.args, **case.attrs))
    assert np.asarray(unity.compile(module)()).shape == np.asarray(case.expected).shape


PARAMS = (Param("x"),)
SAME = OpDef(
    "acme.same",
    PARAMS,
    lambda call: tensor(call, 0),
    lambda args, attrs: args[0],
    "x.",
    expand=lambda e, args, attrs, result: args[0],
    samples=lambda seed: [sample(PARAMS, (np.ones((2, 3), np.float32),))],
)


def test_sizes_that_data_tells_keep_their_symbols() -> None:
    n = dim("n")

    @script.function
    def halves(x: f32[Tensor, n, 2]) -> tuple[Tensor, Tensor]:
        v = R.unique(x)
        more = R.zeros((v.shape[0] * 2,), dtype="float32")
        return v * 0.5, R.concat((v, more))

    x = np.array([[3, 1], [1, 2], [np.nan, -0.0], [0, np.nan]], np.float32)
    executable = unity.compile(halves)
    half, twice = executable(x)
    np.testing.assert_array_equal(half, np.unique(x) / 2)
    assert np.asarray(twice).shape == (15,)
    assert "halves: native" in str(executable.explain())


def test_an_expansion_that_is_its_operand_leaves_it_bound() -> None:
    n = dim("n")
    x = np.arange(4, dtype=np.float32)

    @script.function
    def product(x: f32[Tensor, n]) -> f32[Tensor, n]:
        y = R.exp(x)
        z = R.einsum((y,), "i->i")
        return y + z

    np.testing.assert_allclose(unity.compile(product)(x), 2 * np.exp(x), rtol=1e-5)
    with unity.register_op(SAME):

        @script.function
        def same(x: f32[Tensor, n]) -> f32[Tensor, n]:
            y = R.exp(x)
            z = R.acme.same(y)
            return y + z

        np.testing.assert_allclose(unity.compile(same)(x), 2 * np.exp(x), rtol=1e-5)
