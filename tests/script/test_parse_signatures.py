"""Annotations, captured values and purity of graph functions."""

from __future__ import annotations

import numpy as np
import pytest

from tests.script.expected import N, f32_
from unity import script
from unity.errors import UnityError
from unity.ir.dims import dim as symbol
from unity.ir.dims import dim_max, floordiv
from unity.ir.graph import (
    Call,
    Constant,
    Function,
)
from unity.ir.types import (
    ObjectType,
    ShapeType,
    TensorType,
    TupleType,
)
from unity.script import R, Tensor, dim, f32

n = dim("n")
m = dim("m")


def test_dims_in_annotations_are_our_own() -> None:
    @script.function
    def main(x: f32[Tensor, n, m]) -> f32[Tensor, (n + 1) // 2, max(n, m)]:
        return R.full(((n + 1) // 2, max(n, m)), 0.0, "float32")

    half, most = floordiv(N + 1, 2), dim_max(N, symbol("m"))
    assert main.func.result == f32_(half, most)


def test_captured_arrays_are_constants() -> None:
    weight = np.arange(4, dtype=np.float32)

    @script.function
    def main(x: f32[Tensor, n, 4]) -> f32[Tensor, n, 4]:
        y = R.add(x, weight)
        return y * weight

    bindings = main.func.body.blocks[0].bindings
    first, second = (b.value for b in bindings)
    assert isinstance(first, Call)
    assert isinstance(second, Call)
    assert first.args[1] is second.args[1]
    assert isinstance(first.args[1], Constant)
    assert first.args[1].data is weight


def test_annotations_may_be_strings_or_annotated() -> None:
    text = """
n = dim("n")
@script.function
def main(x: "f32[Tensor, n]", s: Annotated[Tensor, R.Shape(n)]) -> tuple[f32[Tensor, n], R.Object]:
    return x, s
"""
    main = script.parse(text)["main"]
    assert isinstance(main, Function)
    assert [p.type for p in main.params] == [f32_(N), ShapeType((N,))]
    assert main.result == TupleType((f32_(N), ObjectType()))


@pytest.mark.parametrize("written", ["Tensor", "R.any_dtype[Tensor]", "R.any_dtype[Tensor, ...]"])
def test_a_tensor_of_which_nothing_is_known(written: str) -> None:
    main = script.parse(f"@script.function\ndef main(x: {written}):\n    return x\n")["main"]
    assert isinstance(main, Function)
    assert main.params[0].type == main.result == TensorType(None, None)


def test_a_dim_that_is_no_integer_is_refused_where_it_is_written() -> None:
    text = 'n = dim("n")\n@script.function\ndef main(x: f32[Tensor, min(n, 4.5)]):\n    return x\n'
    with pytest.raises(UnityError, match=r":3:25: a dim must be an integer .*got 4\.5"):
        script.parse(text)


def test_purity_is_found_out() -> None:
    @script.function
    def impure(x: f32[Tensor, n]) -> f32[Tensor, n]:
        print(n)
        return x

    @script.function
    def caller(x: f32[Tensor, n]) -> f32[Tensor, n]:
        return impure(x)

    assert not impure.func.pure
    assert not caller.func.pure
