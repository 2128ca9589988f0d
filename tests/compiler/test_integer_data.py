"""Integer data of extreme values: what is computed wraps as numpy's does, in one build."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import unity
from unity.ir.dtype import Array, dtype
from unity.ir.graph import Constant, Function, Tuple
from unity.ir.module import IRModule
from unity.ir.types import TensorType
from unity.op.builder import GraphBuilder

KINDS = ("int64", "int32", "int8", "uint8", "uint64")


def comparisons(kind: str) -> Function:
    """Comparisons whose terms must not change sides, quotients of sums that wrap."""
    g = GraphBuilder()
    a, b = (g.param(name, TensorType((49,), dtype(kind))) for name in "ab")
    one, two, three = (Constant(np.array(n, kind)) for n in (1, 2, 3))
    most = Constant(np.array(np.iinfo(kind).max, kind))
    op = g.op
    wide = op("add", op("maximum", a, one), op("maximum", b, one))
    return g.finish(
        Tuple(
            (
                op("less_equal", a, most),
                op("greater", a, op("subtract", most, b)),
                op("greater", a, op("negative", b)),
                op("less", op("add", a, one), b),
                op("less", op("subtract", a, b), one),
                op("less", op("multiply", a, two), op("multiply", b, two)),
                op("equal", op("multiply", a, two), op("multiply", b, two)),
                op("minimum", op("add", a, one), a),
                op("floor_divide", op("multiply", a, three), three),
                op("floor_divide", wide, three),
                op("floor_mod", wide, three),
            )
        )
    )


def expected(a: Any, b: Any) -> tuple[Array, ...]:
    kind = a.dtype.type
    one, two, three = kind(1), kind(2), kind(3)
    most = kind(np.iinfo(a.dtype).max)
    wide = np.maximum(a, one) + np.maximum(b, one)
    return (
        a <= most,
        a > most - b,
        a > np.negative(b),
        a + one < b,
        a - b < one,
        a * two < b * two,
        a * two == b * two,
        np.minimum(a + one, a),
        (a * three) // three,
        wide // three,
        wide % three,
    )


@pytest.mark.filterwarnings("ignore:overflow")
def test_integers_wrap_as_numpys_do() -> None:
    module = IRModule({kind: comparisons(kind) for kind in KINDS})
    executable = unity.compile(module)
    for kind in KINDS:
        top, low = np.iinfo(kind).max, np.iinfo(kind).min
        ends = np.array([low, low + 1, low // 2, 0, 5, top // 2 + 1, top], kind)
        a, b = (m.reshape(-1) for m in np.meshgrid(ends, ends))
        got = executable[kind](a, b)
        assert isinstance(got, tuple)
        for i, (mine, wanted) in enumerate(zip(got, expected(a, b), strict=True)):
            np.testing.assert_array_equal(np.asarray(mine), wanted, err_msg=f"{kind}, result {i}")
