"""FoldConstants: what is known when compiling is computed when compiling."""

from __future__ import annotations

from tests.transform.cases import apply, becomes, floats, keeps_meaning, stays
from unity.script import constants_of, parse
from unity.transform import Context
from unity.transform.graph import EliminateDeadCode, FoldConstants, Normalize


def test_calls_on_constants() -> None:
    becomes(
        FoldConstants(),
        """
@script.function
def main(x: f32[Tensor, 2]) -> f32[Tensor, 2]:
    with R.dataflow():
        a = R.negative(R.const([1.0, 2.0], "float32"))
        y = R.add(x, R.add(a, 1.0))
    return y
""",
        """
@script.function
def main(x: f32[Tensor, 2]) -> f32[Tensor, 2]:
    with R.dataflow():
        y = R.add(x, R.const([0.0, -1.0], "float32"))
    return y
""",
    )


def test_shapes_are_values_symbolic_or_not() -> None:
    becomes(
        [FoldConstants(), EliminateDeadCode()],
        """
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 4]) -> f32[Tensor, 4, n]:
    with R.dataflow():
        t = R.permute_dims(x)
        y = R.reshape(x, R.shape_of(t))
    return y
""",
        """
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 4]) -> f32[Tensor, 4, n]:
    with R.dataflow():
        y = R.reshape(x, (4, n))
    return y
""",
    )


def test_a_symbolic_shape_as_a_tensor_is_a_kernel() -> None:
    becomes(
        FoldConstants(),
        """
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 4]) -> i64[Tensor, 2]:
    with R.dataflow():
        y = R.shape_to_tensor(R.shape_of(x))
    return y
""",
        """
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 4]) -> i64[Tensor, 2]:
    with R.dataflow():
        y = R.dims((n, 4))
    return y
""",
    )


def test_a_branch_on_a_constant_is_taken() -> None:
    becomes(
        [FoldConstants(), Normalize()],
        """
@script.function
def main(x: f32[Tensor, 2]) -> f32[Tensor, 2]:
    a = R.exp(x)
    if R.const(True, "bool"):
        b = R.add(a, x)
    else:
        b = R.negative(a)
    return R.exp(b)
""",
        """
@script.function
def main(x: f32[Tensor, 2]) -> f32[Tensor, 2]:
    with R.dataflow():
        a = R.exp(x)
        b = R.add(a, x)
        y = R.exp(b)
    return y
""",
    )


def test_split_of_a_constant_gives_constants() -> None:
    module = apply(
        [FoldConstants(), EliminateDeadCode()],
        """
@script.function
def main(x: f32[Tensor, 2]) -> f32[Tensor, 2]:
    with R.dataflow():
        a, b = R.split(R.const([1.0, 2.0, 3.0, 4.0], "float32"), 2)
        y = R.add(R.add(x, a), b)
    return y
""",
    )
    (block,) = module.graph_functions()["main"].body.blocks
    assert len(block.bindings) == 2


GROWS = """
@script.function
def main(x: f32[Tensor, 64, 64]) -> f32[Tensor, 64, 64]:
    with R.dataflow():
        y = R.add(x, R.broadcast_to(R.const([1.0], "float32"), (64, 64)))
    return y
"""


def test_what_would_grow_beyond_the_limit_stays() -> None:
    module = parse(GROWS)
    assert FoldConstants(limit=1024)(module, Context()) is module
    assert FoldConstants(limit=64 * 64 * 4)(module, Context()) is not module


def test_large_results_no_larger_than_their_source_are_folded() -> None:
    (weight,) = floats(0, (64, 64))
    module = parse(
        """
@script.function
def main(x: f32[Tensor, 2, 64]) -> f32[Tensor, 2, 64]:
    with R.dataflow():
        y = R.matmul(x, R.permute_dims(R.const("w")))
    return y
""",
        {"w": weight},
    )
    got = keeps_meaning(FoldConstants(limit=0), module, floats(1, (2, 64)))
    (block,) = got.graph_functions()["main"].body.blocks
    assert len(block.bindings) == 1
    assert list(constants_of(got)) == ["w_permute_dims"]


def test_what_is_not_known_stays() -> None:
    stays(
        FoldConstants(),
        """
k = dim("k")
@script.function
def main(x: f32[Tensor, 2]) -> i64[Tensor, 1, k]:
    y = R.nonzero(x)
    z = R.match_cast(y, i64[Tensor, 1, k])
    return z
""",
    )


def test_what_weights_are_made_of_is_folded_though_it_grows() -> None:
    """A filter that a graph computes from the places of its taps, as resamplers are exported."""
    rows, columns = floats(0, (64, 1), (1, 64))
    text = """
@script.function
def main(x: f32[Tensor, 2, 64], y: f32[Tensor, 64, 64]) -> f32[Tensor, 2, 64]:
    with R.dataflow():
        outer = R.add(R.const("r"), R.const("c"))
        other = R.multiply(R.const("r"), R.const("c"))
        a = R.matmul(x, R.cos(outer))
        b = R.matmul(x, R.add(y, other))
        z = R.add(a, b)
    return z
"""
    module = parse(text, {"r": rows, "c": columns})
    got = keeps_meaning(FoldConstants(limit=0), module, floats(1, (2, 64), (64, 64)))
    (block,) = got.graph_functions()["main"].body.blocks
    assert len(block.bindings) == 5
    assert apply(FoldConstants(limit=0, weights=0), module) is module
