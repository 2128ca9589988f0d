"""Operators of Relay whose shapes, bounds and counts only running tells, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import unity
from tests.frontend.relay.calls import Case, check_interpreted
from unity.errors import UnityError
from unity.frontend.relay import from_relay
from unity.interpreter import interpret
from unity.ir.dims import dim, dim_max
from unity.ir.graph import Function
from unity.ir.types import TensorType, TupleType

Tensor = npt.NDArray[Any]
X = np.arange(24, dtype=np.float32).reshape(4, 6)


def _i(*values: int, kind: type = np.int64) -> Tensor:
    return np.array(values, kind)


def _scalar(value: float, kind: type = np.int32) -> Tensor:
    return np.array(value, kind)


ONE = np.eye(3, 5, 1, dtype=np.float32)
CASES = [
    Case("dyn.reshape", [X, _i(8, -1)], X.reshape(8, 3)),
    Case("dyn.reshape", [X, _i(0, 3, 2, kind=np.int32)], X.reshape(4, 3, 2)),
    Case("dyn.tile", [X, _i(2, 1, 3)], np.tile(X, (2, 1, 3))),
    Case("dyn.broadcast_to", [X[:1], _i(3, 5, 6)], np.broadcast_to(X[:1], (3, 5, 6))),
    Case("dyn.zeros", [_i(2, 3)], np.zeros((2, 3), np.int8), dtype="int8"),
    Case("dyn.ones", [_i(2, 0)], np.ones((2, 0), np.float32), dtype="float32"),
    Case("dyn.full", [_scalar(4, np.float32), _i(2)], np.full(2, 4, np.int32), dtype="int32"),
    Case("dyn.one_hot", [_i(1, 2, 3, kind=np.int32), _scalar(1, np.float32),
         _scalar(0, np.float32), _scalar(5)], ONE, dtype="float32"),
    Case("dyn.strided_slice", [X, _i(1, -1), _i(99, 0), _i(2, -2)], X[1:99:2, -1:0:-2]),
    Case("dyn.strided_slice", [X, _i(1), _i(3), _i(1)], X[1:3]),
    Case("dyn.strided_slice", [X, _i(1, -3), _i(2, -1), _i(1, 1)], X[1:3, 3:], slice_mode="size"),
    Case("strided_slice", [X, _i(0, 1), _i(3, 4), _i(1, 2)], X[0:3, 1:4:2]),
    Case("dyn.topk", [X, _scalar(2)], [np.sort(X, 0)[:1:-1], _i(3, 2)[:, None].repeat(6, 1)],
         axis=0, dtype="int64"),
    Case("dyn.nn.pad", [X, np.array([[0, 1], [2, 0]]), _scalar(7, np.float32)],
         np.pad(X, ((0, 1), (2, 0)), constant_values=7)),
    Case("dyn.nn.pad", [X, np.array([[0, 1], [2, 0]]), _scalar(7, np.float32)],
         np.pad(X, ((0, 1), (2, 0)), mode="reflect"), pad_mode="reflect"),
    Case("nn.pad", [X, _scalar(7, np.float32)], np.pad(X, ((0, 1), (2, 0)), constant_values=7),
         pad_width=((0, 1), (2, 0))),
    Case("dyn.sparse_to_dense", [np.array([[0, 1], [1, 2]], np.int32), _i(5, 7), _i(0)[0],
         _i(2, 3)], np.array([[0, 5, 0], [0, 0, 7]])),
    Case("dyn.expand_dims", [X, _scalar(1)], X[:, None, None], num_newaxis=2),
    Case("dyn.expand_dims", [X, _scalar(-1)], X[..., None]),
    Case("dyn.squeeze", [X[:, None, :, None], _i(1, -1)], X),
    Case("arange", [_scalar(2), _scalar(11), _scalar(3)], _i(2, 5, 8, kind=np.int32),
         dtype="int32"),
    Case("arange", [_scalar(1, np.float32), _scalar(-1, np.float32), _scalar(-0.5, np.float32)],
         np.array([1, 0.5, 0, -0.5], np.float32), dtype="float32"),
    Case("trilu", [X, _scalar(1)], np.triu(X, 1), upper=True),
    Case("trilu", [X, _scalar(-1)], np.tril(X, -1), upper=False),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.operator}")
def test_operands_known_at_run_time(case: Case) -> None:
    check_interpreted([case])


def test_shapes_of_others() -> None:
    """A reshape to what another tensor's shape is, put together as exporters do."""
    module = from_relay("""#[version = "0.0.5"]
def @main(%x: Tensor[(?, ?), float32], %y: Tensor[(?, 4), float32]) {
  %0 = shape_of(%y, dtype="int64");
  %1 = strided_slice(%0, begin=[0], end=[1], strides=[1]);
  %2 = expand_dims(-1i64, axis=0);
  %3 = concatenate((%1, %2));
  (dyn.reshape(%x, %3), dyn.zeros(%0, dtype="float32"))
}
""")
    y = np.ones((3, 4), np.float32)
    wanted = X.reshape(3, 8), np.zeros((3, 4), np.float32)
    for got, want in zip(unity.compile(module)(X, y), wanted, strict=True):
        np.testing.assert_array_equal(got, want)
    with pytest.raises(UnityError):
        interpret(module, "main", [X, np.ones((5, 4), np.float32)])


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("dyn.reshape(%x, %s)", (5, 5)),
        ("dyn.reshape(%x, %s)", (-3, -1)),
        ('dyn.zeros(%s, dtype="float32")', (2, -1)),
        ("dyn.broadcast_to(%x, %s)", (3, 6)),
        ("dyn.squeeze(expand_dims(expand_dims(%x, axis=0), axis=0), %s)", (0, 2)),
        ("dyn.strided_slice(%x, %s, %s, %s)", (0, 0)),
    ],
)
def test_what_does_not_fit_is_told_when_it_runs(call: str, value: tuple[int, int]) -> None:
    params = "%x: Tensor[(4, 6), float32], %s: Tensor[(2), int64]"
    module = from_relay(f'#[version = "0.0.5"]\ndef @main({params}) {{ {call} }}\n')
    with pytest.raises(UnityError):
        interpret(module, "main", [X, np.array(value)])


def test_slices_by_operands_are_not_those_of_attributes() -> None:
    """Attributes beside operands, as old printers wrote them, say less than these."""
    params = "%x: Tensor[(4, 6), float32], %b: Tensor[(1), int64], %e: Tensor[(1), int64]"
    text = f"""#[version = "0.0.5"]
def @main({params}) {{ strided_slice(%x, %b, %e, meta[relay.Constant][0], begin=[0], end=[0]) }}
"""
    module = from_relay(text, constants=[np.array([1])])
    got = interpret(module, "main", [X, np.array([1]), np.array([3])])
    np.testing.assert_array_equal(np.asarray(got), X[1:3])


SIZES = """#[version = "0.0.5"]
def @main(%x: Tensor[(?, 4, 6), float32], %y: Tensor[(?, 3, 8), float32]) {
  let %s = shape_of(%x, dtype="int64");
  let %n = take(%s, 0i64, axis=0);
  let %m = strided_slice(%s, begin=[1], end=[3]);
  let %k = stack((%n, cast(take(%m, 0i64), dtype="int64") * 2i64, -1i64), axis=0);
  let %whole = concatenate((expand_dims(%n, axis=0), %m), axis=0);
  (dyn.reshape(%x, shape_of(%y, dtype="int64")), dyn.reshape(%x, %k),
   dyn.broadcast_to(1f, %whole), dyn.zeros(maximum(%whole, 5i64), dtype="int8"),
   dyn.reshape(%x, prod(%whole)))
}
"""


def test_sizes_are_followed_through_integer_operators() -> None:
    """What `shape_of` gives keeps its dims, known and unknown, and needs no new symbols."""
    module = from_relay(SIZES)
    main = module["main"]
    assert isinstance(main, Function)
    assert isinstance(main.result, TupleType)
    n, of_y = dim("x_d0"), dim("y_d0")
    kinds = [f.shape for f in main.result.fields if isinstance(f, TensorType)]
    assert kinds == [
        (of_y, 3, 8), (n, 8, 3), (n, 4, 6), (dim_max(n, 5), 5, 6), (24 * n,)
    ]  # fmt: skip
    x = np.arange(72, dtype=np.float32).reshape(3, 4, 6)
    found = interpret(module, "main", [x, np.zeros((3, 3, 8), np.float32)])
    assert isinstance(found, tuple)
    wanted = [x.reshape(3, 3, 8), x.reshape(3, 8, 3), np.ones((3, 4, 6)), np.zeros((5, 5, 6)),
              x.reshape(-1)]  # fmt: skip
    for got, right in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(got), right)
    with pytest.raises(UnityError, match="x"):
        interpret(module, "main", [x, np.zeros((2, 3, 8), np.float32)])
