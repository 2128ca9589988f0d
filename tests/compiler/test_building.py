"""unity.GraphBuilder: programs built in Python compute what was said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

import unity
from unity import script, structural_equal, te
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.graph import Expr, Tuple, TupleGet, Var
from unity.ir.module import IRModule
from unity.script import Buffer, R, Tensor, dim, f32, parse, print_module

m = dim("m", min=1)
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


def test_a_function_calls_what_was_decorated_and_what_another_builder_made() -> None:
    @script.function
    def scaled(x: f32[Tensor, n, 4], by: f32[float, R.Prim]) -> f32[Tensor, n, 4]:
        return x * by

    @script.function
    def main(x: f32[Tensor, n, 4]) -> f32[Tensor, n, 4]:
        return scaled(x, 3.0) + 1.0

    other = unity.GraphBuilder("main")
    a = other.param("a", f32[Tensor, n, 4])
    shift = other.finish(other.emit_te(shifted, other.call(main, a), 2.0))

    b = unity.GraphBuilder()
    x = b.param("x", f32[Tensor, m, 4])
    positive = b.op("greater", b.op("sum", x), 0.0)
    y = b.if_(positive, lambda: b.call(shift, x), lambda: b.call(main, x))
    half = b.emit(0.5)
    twice = b.call(shift, b.call(scaled, b.call(scaled, y, half), 1))
    module = b.finish([twice, [y, x]])
    assert next(iter(module.graph_functions())) == "main"
    assert {"main_1", "scaled", "shifted"} < set(module.functions)
    for sign in (1, -1):
        x0 = np.full((2, 4), sign, np.float32)
        y0 = x0 * 3 + (3 if sign > 0 else 1)
        for found in (unity.compile(module)(x0), interpret(module, "main", [x0])):
            last, (first, given) = cast("Any", found)
            np.testing.assert_allclose(last, y0 * 0.5 * 3 + 3)
            np.testing.assert_allclose(first, y0)
            np.testing.assert_allclose(given, x0)
    assert structural_equal(parse(print_module(module)), module)


def test_calls_of_functions_are_checked() -> None:
    @script.function
    def scaled(x: f32[Tensor, n, 4], by: f32[float, R.Prim]) -> f32[Tensor, n, 4]:
        return x * by

    b = unity.GraphBuilder()
    x = b.param("x", f32[Tensor, m, 4])
    with pytest.raises(UnityError, match=r"call of scaled: .* takes 2 arguments, got 1"):
        b.call(scaled, x)
    with pytest.raises(UnityError, match="call of scaled: argument 0: expected"):
        b.call(scaled, b.op("sum", x), 1.0)
    with pytest.raises(UnityError, match="the module has 2 graph functions, and no 'main'"):
        b.call(IRModule({"f": scaled.func, "g": scaled.func}), x, 1.0)
    with pytest.raises(UnityError, match="a function can't be called 'not a name'") as caught:
        unity.GraphBuilder("not a name")
    assert "like not_a_name" in (caught.value.hint or "")


def test_a_kernel_called_as_the_function_is_does_not_take_its_place() -> None:
    b = unity.GraphBuilder("shifted")
    x = b.param("x", f32[Tensor, n, 4])
    module = b.finish(b.op("negative", b.emit_te(shifted, x, 1.0)))
    assert list(module.graph_functions()) == ["shifted"]
    x0 = np.ones((2, 4), np.float32)
    np.testing.assert_array_equal(np.asarray(unity.compile(module)["shifted"](x0)), -x0 - 1)


def test_loops_begin_with_numbers_and_scans_collect() -> None:
    b = unity.GraphBuilder()
    x = b.param("x", f32[Tensor, n, 4])
    last, total, sums, doubled = b.scan(
        [b.emit(np.zeros(4, np.float32)), 0.0],
        [x],
        lambda v, t, row: [
            row,
            b.op("add", t, b.op("sum", row)),
            b.op("add", v, row),
            b.op("multiply", row, t),
        ],
    )
    (count, _) = b.while_(
        [0, 1.0],
        lambda k, t: b.op("less", t, 100.0),
        lambda k, t: (b.op("add", k, 1), b.op("multiply", t, 3.0)),
    )
    module = b.finish([last, total, sums, doubled, count])
    x0 = np.random.default_rng(2).standard_normal((5, 4), np.float32)
    before = np.concatenate([np.zeros((1, 4), np.float32), x0[:-1]])
    totals = np.concatenate([[0], np.cumsum(x0.sum(1))[:-1]]).astype(np.float32)
    expected = (x0[-1], x0.sum(), before + x0, x0 * totals[:, None], 5)
    for found in (unity.compile(module)(x0), interpret(module, "main", [x0])):
        assert isinstance(found, tuple)
        for got, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-5, atol=1e-5)
    with pytest.raises(UnityError, match=r"scan: an input is float32\(\)"):
        b.scan([], [b.op("sum", x)], lambda e: [e])


def test_more_is_known_behind_a_match_cast() -> None:
    b = unity.GraphBuilder()
    x = b.param("x", f32[Tensor, n, 4])
    y = b.param("y", f32[Tensor, ...])
    with pytest.raises(UnityError, match="is no variable of 'main'"):
        b.match_cast(unity.GraphBuilder().param("z", f32[Tensor, n]), f32[Tensor, n])
    known = b.match_cast(y, f32[Tensor, n, 4])
    exe = unity.compile(b.finish(b.op("add", x, known)))
    x0 = np.ones((2, 4), np.float32)
    np.testing.assert_array_equal(np.asarray(exe(x0, x0)), x0 * 2)
    with pytest.raises(UnityError, match="match_cast"):
        exe(x0, np.ones((3, 4), np.float32))


def test_a_decorated_kernel_is_emitted_under_its_name() -> None:
    @script.prim_func
    def double(a: f32[Buffer, n], c: f32[Buffer, n]) -> None:
        for i in range(n):
            c[i] = a[i] * 2.0

    b = unity.GraphBuilder()
    x = b.param("x", f32[Tensor, m])
    y = b.emit_tir(double, [b.emit_tir(double, [x], f32[Tensor, m])], f32[Tensor, m])
    module = b.finish(y)
    assert list(module.prim_funcs()) == ["double"]
    np.testing.assert_array_equal(np.asarray(unity.compile(module)(np.ones(3, np.float32))), 4)


def test_what_is_no_expression_is_told_in_a_word() -> None:
    b = unity.GraphBuilder()
    x = b.param("x", f32[Tensor, n, 4])
    with pytest.raises(UnityError, match="'condition': expected an expression, got True"):
        b.if_(cast("Expr", True), lambda: x, lambda: x)
    with pytest.raises(UnityError, match="expected expressions, numbers or arrays, got a Var"):
        b.while_(cast("list[Expr]", x), lambda v: v, lambda v: v)
    with pytest.raises(UnityError, match="the function gave a Var"):
        b.emit_te(lambda _: x, x)
    unbound = b.op("zeros", (dim("nowhere"),), dtype="float32")
    with pytest.raises(UnityError, match="nowhere is bound nowhere") as caught:
        unity.compile(b.finish(unbound))
    assert "a parameter's shape" in (caught.value.hint or "")
