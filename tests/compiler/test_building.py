"""unity.GraphBuilder: programs built in Python compute what was said."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import unity
from unity import te
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.graph import Tuple, TupleGet, Var
from unity.script import Tensor, dim, f32

n = dim("n", min=1)


def shifted(a: te.Tensor, by: float) -> te.Tensor:
    return te.compute(a.shape, lambda i, j: a[i, j] + by, "shifted")


def both(a: te.Tensor) -> tuple[te.Tensor, te.Tensor]:
    j = te.reduce_axis((0, a.shape[1]), "j")
    total = te.compute((a.shape[0],), lambda i: te.sum(a[i, j], [j]), "total")
    return total, te.compute(a.shape, lambda i, k: a[i, k] - total[i], "centred")


def test_operators_kernels_and_several_results() -> None:
    b = unity.GraphBuilder("forward")
    x = b.param("x", f32[Tensor, n, 4])
    y = b.emit_te(shifted, b.op("nn.relu", x), 0.5)
    pair = b.emit_te(both, y, name="rows")
    again = b.emit_te(shifted, y, -1.0)
    module = b.finish([y, pair, again])
    assert set(module.prim_funcs()) == {"shifted", "rows", "shifted_2"}
    x0 = np.random.default_rng(0).standard_normal((3, 4), np.float32)
    y0 = np.maximum(x0, 0) + np.float32(0.5)
    sums = y0.sum(1)
    exe = unity.compile(module)
    found = exe["forward"](x0)
    np.testing.assert_allclose(found[0], y0, rtol=1e-6)
    np.testing.assert_allclose(found[1][0], sums, rtol=1e-5)
    np.testing.assert_allclose(found[1][1], y0 - sums[:, None], rtol=1e-5)
    np.testing.assert_allclose(found[2], y0 - 1, rtol=1e-5, atol=1e-6)


def test_variables_are_of_this_builder_and_of_this_body() -> None:
    one, other = unity.GraphBuilder("one"), unity.GraphBuilder("other")
    x, y = one.param("x", f32[Tensor, n, 4]), other.param("y", f32[Tensor, n, 4])
    kept: list[Var] = []

    def branch() -> Var:
        kept.append(one.op("exp", x))
        return kept[0]

    positive = one.op("greater", one.op("max", x), 0.0)
    z = one.if_(positive, branch, lambda: one.op("nn.relu", x))
    calls: list[Callable[[], object]] = [
        lambda: one.op("add", x, y),
        lambda: one.op("concat", (x, y)),
        lambda: one.op("exp", kept[0]),
        lambda: one.emit(y),
        lambda: one.emit(TupleGet(Tuple((x, y)), 0)),
        lambda: one.emit_te(shifted, y, 1.0),
        lambda: one.if_(positive, lambda: y, lambda: x),
        lambda: one.while_([y], lambda v: positive, lambda v: v),
        lambda: one.while_([x], lambda v: positive, lambda v: y),
        lambda: one.finish([z, kept[0]]),
    ]
    for call in calls:
        with pytest.raises(UnityError, match="is no variable of 'one', or is bound in another"):
            call()
    unity.compile(one.finish([z, x]))


def test_branches_and_loops() -> None:
    b = unity.GraphBuilder()
    x = b.param("x", f32[Tensor, n, 4])
    big = b.op("greater", b.op("max", x), 1.0)
    y = b.if_(big, lambda: b.emit_te(shifted, x, -1.0), lambda: b.op("negative", x))

    def smaller(v: Var) -> Var:
        return b.op("multiply", v, 0.5)

    (z,) = b.while_([y], lambda v: b.op("greater", b.op("max", v), 0.25), smaller)
    with b.dataflow():
        w = b.op("nn.relu", z)
    module = b.finish(w)
    for scale in (0.1, 3.0):
        x0 = np.random.default_rng(1).standard_normal((3, 4), np.float32) * np.float32(scale)
        v = x0 - 1 if x0.max() > 1 else -x0
        while v.max() > 0.25:
            v = v * np.float32(0.5)
        for found in (interpret(module, "main", [x0]), unity.compile(module)(x0)):
            np.testing.assert_allclose(np.asarray(found), np.maximum(v, 0), rtol=1e-5, atol=1e-6)


def test_mistakes_are_told_by_the_call_that_makes_them() -> None:
    b = unity.GraphBuilder()
    x = b.param("x", f32[Tensor, n, 4])
    anything = b.param("y", f32[Tensor, ...])
    with pytest.raises(UnityError, match=r"there is no operator .nn\.rleu."):
        b.op("nn.rleu", x)
    with pytest.raises(UnityError, match="expected a type, got 3"):
        b.param("z", 3)
    with pytest.raises(UnityError, match="the function gave 7"):
        b.emit_te(lambda a: 7, x)
    with pytest.raises(UnityError, match="the shape of y is not known"):
        b.emit_te(lambda a: a, anything)
    with pytest.raises(UnityError, match="a result is 3"):
        b.finish([x, 3])
    with pytest.raises(UnityError, match="the inner dims"):
        b.op("matmul", x, x)
