"""What a kernel's sizes are at a call, and keys that forget the names of symbols."""

from __future__ import annotations

import pytest

from unity.errors import UnityError
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, dim, floordiv
from unity.ir.dtype import FLOAT32
from unity.ir.prim_expr import SizeVar
from unity.ir.stmt import PrimFunc
from unity.ir.types import TensorType
from unity.script import parse
from unity.transform.graph.symbols import Renaming, hidden_symbols, kernel_sizes

N, M, P = dim("n"), dim("m"), dim("p")


def kernel(shape: str, extra: str = "") -> PrimFunc:
    text = f"""
n = dim("n")
m = dim("m")
@script.prim_func(attrs={{"num_outputs": 1}})
def k(x: f32[Buffer, {shape}]{extra}) -> None:
    T.evaluate(0)
"""
    return parse(text).prim_funcs()["k"]


def tensor(*shape: Dim) -> TensorType:
    return TensorType(shape, FLOAT32)


@pytest.mark.parametrize(
    ("shape", "given", "sizes"),
    [
        ("n, 4", (P, 4), {"n": P}),
        ("n, m", (P + 1, 2 * P), {"n": P + 1, "m": 2 * P}),
        ("n + 1, 4", (P, 4), {"n": P - 1}),
        ("n + m, n", (8, P), {"n": P, "m": 8 - P}),
        ("2 * n + 1, 4", (P, 4), {"n": floordiv(P - 1, 2)}),
        ("n * m, n", (8 * P, 8), {"n": 8, "m": P}),
    ],
)
def test_sizes_from_shapes(shape: str, given: tuple[Dim, ...], sizes: dict[str, Dim]) -> None:
    found = kernel_sizes(kernel(shape), [tensor(*given)], ())
    assert {s.name: d for s, d in found.items()} == sizes


def test_explicit_sizes_come_first() -> None:
    func = kernel("n + m, 4", ", n: T.size, m: T.size")
    assert kernel_sizes(func, [tensor(10, 4)], (P, 10 - P)) == {
        SizeVar("n"): P,
        SizeVar("m"): 10 - P,
    }


@pytest.mark.parametrize("shape", ["n + m, 4", "n * m, 4", "n // 2, 4"])
def test_what_shapes_do_not_tell_is_an_error(shape: str) -> None:
    with pytest.raises(UnityError, match=r"sizes .* don't follow") as caught:
        kernel_sizes(kernel(shape), [tensor(8, 4)], ())
    assert caught.value.hint is not None
    assert "explicit size parameter" in caught.value.hint


def test_hidden_symbols() -> None:
    assert hidden_symbols([tensor(N + 1, M)], [tensor(N + 1, M)]) == (N,)
    assert hidden_symbols([tensor(N + 1, N)], [tensor(N + 1, N)]) == ()


def test_keys_agree_up_to_names_only() -> None:
    def key(*types: TensorType, **attrs: Dim) -> object:
        renaming = Renaming()
        return (*(renaming.type(t) for t in types), renaming.attrs(Attrs({**attrs})))

    assert key(tensor(N, M)) == key(tensor(M, P))
    assert key(tensor(N, M)) != key(tensor(N, N))
    assert key(tensor(N), tensor(N + 1)) == key(tensor(M), tensor(M + 1))
    assert key(tensor(N), tensor(N + 1)) != key(tensor(M), tensor(P + 1))
    assert key(tensor(N), begin=N - 1) == key(tensor(M), begin=M - 1)
    assert key(tensor(N)) != key(tensor(dim("k", min=1)))
