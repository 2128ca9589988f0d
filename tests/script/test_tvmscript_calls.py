"""Calls of TVM's that are several of ours, or of functions outside the module."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

import unity
from unity import script
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.equality import first_difference
from unity.ir.module import ExternFunc
from unity.ir.well_formed.verify import verify
from unity.script import tvmscript

RNG = np.random.default_rng(0)
Floats = npt.NDArray[np.float32]


def run(params: str, result: str, *args: npt.NDArray[np.float32 | np.integer]) -> Floats:
    text = f"@R.function\ndef main({params}):\n    return {result}\n"
    return np.asarray(interpret(tvmscript.parse(text), "main", list(args)))


def likelihoods(
    p: Floats, t: npt.NDArray[np.int64], w: Floats, reduction: str, ignored: int
) -> npt.NDArray[np.float64]:
    """As TOPI's nll_loss: what is ignored is 0, and weighs nothing in the mean."""
    weight = np.where(t == ignored, 0.0, w[t % len(w)])
    losses = -np.take_along_axis(p, np.expand_dims(t % len(w), 1), 1).squeeze(1) * weight
    of = {"none": losses, "sum": losses.sum(), "mean": losses.sum() / weight.sum()}
    return np.asarray(of[reduction])


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("weighted", [True, False])
def test_nll_loss(reduction: str, weighted: bool) -> None:
    p, w = RNG.standard_normal((3, 5, 4), np.float32), RNG.random(5, np.float32)
    t = RNG.integers(0, 5, (3, 4))
    t[0, 1] = -100
    params = 'p: R.Tensor((3, 5, 4), "float32"), t: R.Tensor((3, 4), "int64")'
    operands = "p, t"
    args: list[npt.NDArray[np.float32 | np.integer]] = [p, t]
    if weighted:
        params, operands, args = params + ', w: R.Tensor((5,), "float32")', "p, t, w", [p, t, w]
    found = run(params, f'R.nn.nll_loss({operands}, reduction="{reduction}")', *args)
    expected = likelihoods(p, t, w if weighted else np.ones_like(w), reduction, -100)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_nll_loss_of_one_sample() -> None:
    p = RNG.standard_normal(5, np.float32)
    params = 'p: R.Tensor((5,), "float32"), t: R.Tensor((), "int64")'
    found = run(params, 'R.nn.nll_loss(p, t, reduction="sum")', p, np.asarray(3))
    np.testing.assert_allclose(found, -p[3], rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("R.nn.relu6(x * R.const(9.0))", lambda x, y: np.clip(x * 9, 0, 6)),
        ("R.ewise_fma(x, y, x)", lambda x, y: x * y + x),
        ("R.nn.batch_flatten(x)", lambda x, y: x.reshape(2, 12)),
        ("R.size(x)", lambda x, y: 24),
        ("R.std(x, axis=[1])", lambda x, y: x.std(1)),
        ("R.nn.cross_entropy_with_logits(x, y)", lambda x, y: -(x * y).sum() / 2),
        ('R.wrap_param(x, dtype="float64")', lambda x, y: x.astype(np.float64)),
    ],
)
def test_operators_that_are_several_of_ours(
    call: str, expected: Callable[[Floats, Floats], npt.ArrayLike]
) -> None:
    x, y = RNG.standard_normal((2, 2, 3, 4), np.float32)
    params = ", ".join(f'{n}: R.Tensor((2, 3, 4), "float32")' for n in "xy")
    np.testing.assert_allclose(
        run(params, call, x, y), np.asarray(expected(x, y)), rtol=2e-5, atol=1e-6
    )


def test_outer_products() -> None:
    x, y = RNG.random(3, np.float32), RNG.random(4, np.float32)
    params = 'x: R.Tensor((3,), "float32"), y: R.Tensor((4,), "float32")'
    np.testing.assert_allclose(run(params, "R.outer(x, y)", x, y), np.outer(x, y))


def test_operands_that_are_used_twice_have_a_name() -> None:
    params = 'x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")'
    x, y = RNG.random((2, 2, 3), np.float32)
    found = run(params, "R.nn.cross_entropy_with_logits(R.exp(x), y)", x, y)
    np.testing.assert_allclose(found, -(np.exp(x) * y).sum() / 2, rtol=1e-5)


PACKED = """
@R.function(pure=False)
def main(x: R.Tensor((2, "n"), "float32")):
    n = T.int64()
    y = R.call_pure_packed("my.scale", x, 2, ty_args=R.Tensor((2, n), "float32"))
    z = R.call_packed("my.scale", y, R.prim_value(3), sinfo_args=(R.Tensor((2, n), "float32"),))
    return z
"""


def test_functions_that_are_looked_up_by_name_are_external() -> None:
    module = tvmscript.parse(PACKED)
    verify(module)
    externs = [d for d in module.values() if isinstance(d, ExternFunc)]
    assert [(d.symbol, d.type.pure) for d in externs] == [("my.scale", True), ("my.scale", False)]
    printed = script.print_module(module)
    kind = "R.Func([R.Object, R.Object], f32[Tensor, R.rank(2)]"
    assert f'script.extern("my.scale", {kind}))' in printed
    assert "R.match_cast(" in printed  # the caller's sizes are asserted
    assert first_difference(script.parse(printed), module) is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("R.call_packed(x)", "takes a function's name"),
        ('R.call_packed("f", x, fast=True)', "has no parameter 'fast'"),
        ('R.call_packed("runtime.disco.allreduce", x)', "it runs on one machine"),
        ('R.ccl.allreduce(x, "sum", True)', r"Unity has no R\.ccl\.allreduce: it runs on one mach"),
        ("R.dist.annotate_sharding(x, m, p)", r"Unity has no R\.dist\.annotate_sharding"),
        ("R.hint_on_device(x, d)", r"Unity has no R\.hint_on_device: it compiles for cpus"),
    ],
)
def test_calls_by_name_that_are_refused(call: str, message: str) -> None:
    with pytest.raises(UnityError, match=message) as caught:
        run('x: R.Tensor((2,), "float32")', call)
    assert caught.value.span is not None


@pytest.mark.parametrize("kind", ['R.Tensor((), "bool")', 'R.Tensor(dtype="bool")'])
def test_places_of_a_scalar_are_of_one_axis(kind: str) -> None:
    """As TVM has it, also where the rank is known only when the program runs."""
    text = f"@R.function\ndef main(x: {kind}):\n    gv = R.nonzero(x)\n    return gv\n"
    module = tvmscript.parse(text)
    exe = unity.compile(module)
    for value, count in ((True, 1), (False, 0)):
        given = np.asarray(value)
        expected = np.zeros((1, count), np.int64)
        np.testing.assert_array_equal(np.asarray(interpret(module, "main", [given])), expected)
        np.testing.assert_array_equal(exe(given), expected)
