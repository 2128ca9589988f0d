"""What unknown sizes are taken for where costs are estimated."""

from __future__ import annotations

import pytest

from unity.errors import UnityError
from unity.ir.dims import Dim, as_dim, ceildiv, dim, dim_max, dim_min
from unity.ir.prim_expr import PrimVar, SizeVar
from unity.ir.symbols.convert import symbol_of, to_prim_expr
from unity.ir.symbols.representative import IMAGE, LENGTH, representative, representative_extent
from unity.script import parse, print_module

N = dim("n")


@pytest.mark.parametrize(
    ("size", "guess"),
    [
        (3, 3),
        (N, LENGTH),
        (dim_min(1000000000, N), LENGTH),
        (dim_max(0, N), LENGTH),
        (as_dim(2 * N + 1), 2 * LENGTH + 1),
        (as_dim(N - 1000), 0),
        (ceildiv(N, 16), LENGTH // 16),
        (dim("short", max=9), 9),
        (dim("capped", max=1 << 40), LENGTH),
        (dim("long", min=500), 500),
        (dim("whole", min=1, multiple_of=48), 96),
        (dim("said", max=512, typical=40), 40),
        (as_dim(dim("said", max=512, typical=40) * 2), 80),
    ],
)
def test_expressions_are_computed_from_what_symbols_are_taken_for(size: Dim, guess: int) -> None:
    assert representative(size) == guess
    assert representative_extent(to_prim_expr(size)) == guess


def test_places_say_what_nothing_else_does() -> None:
    assert representative(ceildiv(N, 32), IMAGE) == 7
    assert representative(dim("short", max=9), IMAGE) == 9
    assert representative_extent(PrimVar("i")) is None


def test_what_is_typical_goes_with_the_symbol() -> None:
    n = dim("n", max=512, typical=40)
    size = to_prim_expr(n)
    assert isinstance(size, SizeVar)
    assert symbol_of(size) is n != dim("n", max=512)
    text = """from unity import script
from unity.script import R, Tensor, dim, f32

n = dim("n", max=512, typical=40)


@script.function
def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
    y = R.exp(x)
    return y
"""
    assert 'n = dim("n", max=512, typical=40)' in print_module(parse(text))


@pytest.mark.parametrize(("facts", "typical"), [({"max": 9}, 10), ({"multiple_of": 8}, 12)])
def test_it_must_be_a_value_of_the_symbol(facts: dict[str, int], typical: int) -> None:
    with pytest.raises(UnityError, match=f"typical={typical} is no value"):
        dim("n", **facts, typical=typical)
