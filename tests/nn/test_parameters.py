"""Parameters: which input is which, numbers of any kind of array, and mistakes with both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest

import unity
from unity import nn, script
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.attrs import Attrs
from unity.ir.graph import Function
from unity.ir.module import IRModule
from unity.script import Tensor, f32

Floats = npt.NDArray[np.float32]
X = {"x": f32[Tensor, 3]}
ONES = np.ones(3, np.float32)


class Weighted(nn.Module):
    """Has a weight, to be under a dotted name."""

    def __init__(self) -> None:
        self.weight = nn.Parameter((3,))

    def forward(self, x: nn.Value) -> nn.Value:
        return x * self.weight


class Colliding(nn.Module):
    """Its parameters' identifiers are an input's, and each other's."""

    def __init__(self) -> None:
        self.x = nn.Parameter((3,))
        self.a = Weighted()
        self.a_weight = nn.Parameter((3,))

    def forward(self, x: nn.Value) -> nn.Value:
        return self.a(x) + self.a_weight * 10.0 + self.x * 100.0


STATE = {"x": ONES * 2, "a.weight": ONES * 3, "a_weight": ONES * 4}


def main_of(module: IRModule) -> Function:
    return module.graph_functions()["main"]


def given(module: IRModule) -> Floats:
    return np.asarray(interpret(module, "main", [ONES]), np.float32)


@pytest.mark.parametrize("form", [lambda m: m, lambda m: script.parse(str(m))])
def test_parameters_are_bound_by_their_own_names(form: Callable[[IRModule], IRModule]) -> None:
    model = Colliding()
    model.load(STATE)
    expected = given(model.export(X))
    np.testing.assert_array_equal(expected, ONES * (3 + 40 + 200))
    lifted = form(model.export(X, bind=False))
    assert [p.name for p in main_of(lifted).params] == ["x", "x_1", "a_weight", "a_weight_1"]
    assert main_of(lifted).attrs["parameters"] == (
        ("x_1", "x"), ("a_weight", "a.weight"), ("a_weight_1", "a_weight"),
    )  # fmt: skip
    bound = nn.bind(lifted, model.state())
    np.testing.assert_array_equal(given(bound), expected)
    assert "parameters" not in main_of(bound).attrs
    in_turn = lifted
    for name in ("a_weight", "x", "a.weight"):
        in_turn = nn.bind(in_turn, {name: STATE[name]})
    np.testing.assert_array_equal(given(in_turn), expected)
    exe = unity.compile(lifted)
    np.testing.assert_array_equal(exe(ONES, *STATE.values()), expected)


def test_inputs_are_bound_by_names_that_are_theirs() -> None:
    lifted = Weighted().export(X, bind=False)
    np.testing.assert_array_equal(
        interpret(nn.bind(lifted, {"x": ONES * 5}), "main", [ONES]), ONES * 5
    )
    with pytest.raises(UnityError, match=r"main has no input 'w.eight'\n.*x, weight"):
        nn.bind(lifted, {"w.eight": ONES})
    model = Colliding().export(X, bind=False)
    with pytest.raises(UnityError, match=r"'x_1' and 'x' are the same input of main"):
        nn.bind(model, {"x": ONES, "x_1": ONES})
    with pytest.raises(UnityError, match=r"no graph function 'f'\n.*main"):
        nn.bind(lifted, {}, function="f")


def with_attrs(module: IRModule, **attrs: Any) -> IRModule:
    return module.with_({"main": replace(main_of(module), attrs=Attrs(attrs))})


def test_attributes_that_speak_of_inputs_are_kept_true() -> None:
    lifted = Weighted().export(X, bind=False)
    imported = with_attrs(lifted, input_names=("in/x", "w:0"))
    bound = nn.bind(imported, {"in/x": ONES * 7})
    assert main_of(bound).attrs["input_names"] == ("w:0",)
    assert float(np.asarray(unity.compile(bound)(ONES))[0]) == 7
    with pytest.raises(UnityError, match="told by place in its attributes aliases"):
        nn.bind(with_attrs(lifted, aliases=((0, 0),)), {"x": ONES})
    with pytest.raises(UnityError, match="no input 'y', which its attribute 'parameters'"):
        nn.bind(with_attrs(lifted, parameters=(("y", "weight"),)), {"weight": ONES})
    with pytest.raises(UnityError, match="the attribute 'parameters' holds 3"):
        nn.bind(with_attrs(lifted, parameters=(3,)), {"weight": ONES})


def test_two_parameters_of_one_name_are_refused() -> None:
    model = Colliding()
    vars(model)["a.weight"] = nn.Parameter((3,))
    with pytest.raises(UnityError, match=r"two parameters of Colliding are called 'a\.weight'"):
        model.state()


def test_parameters_of_subclasses_of_sequential_are_known() -> None:
    class Scaled(nn.Sequential):
        def __init__(self) -> None:
            super().__init__(Weighted())
            self.scale = nn.Parameter((3,))

    assert [name for name, _ in Scaled().named_parameters()] == ["0.weight", "scale"]


class ByArray:
    """Gives its numbers by ``__array__`` alone."""

    def __array__(self, dtype: object = None, copy: object = None) -> Floats:
        return ONES * 6


def test_numbers_come_as_any_array() -> None:
    lifted = Weighted().export(X, bind=False)
    kinds: list[object] = [ByArray(), nn.Parameter((3,), data=ONES * 6), (ONES * 6).data.obj]
    for kind in kinds:
        np.testing.assert_array_equal(given(nn.bind(lifted, {"weight": kind})), ONES * 6)
        model = Weighted()
        model.load({"weight": kind})
        np.testing.assert_array_equal(model.state()["weight"], ONES * 6)


@pytest.mark.torch
def test_numbers_of_torch_are_taken_as_they_are() -> None:
    import torch

    theirs = torch.nn.Linear(3, 2)
    ours = nn.Linear(3, 2)
    ours.load(theirs.state_dict())
    bound = nn.bind(
        ours.export({"x": f32[Tensor, 1, 3]}, bind=False), dict(theirs.named_parameters())
    )
    expected = theirs(torch.ones(1, 3)).detach().numpy()
    with torch.no_grad():
        theirs.weight.zero_()
    for module in (bound, ours.export({"x": f32[Tensor, 1, 3]})):
        found = interpret(module, "main", [np.ones((1, 3), np.float32)])
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5)
    with pytest.raises(UnityError, match=r"weight: expected float32\(2, 3\), got float64 of shape"):
        ours.load({"weight": torch.ones((2, 3), dtype=torch.float64)}, strict=False)
    halves = nn.Parameter((2,), "bfloat16", torch.ones(2, dtype=torch.bfloat16))
    assert halves.data is not None
    with pytest.raises(UnityError, match="weight: can't take the torch tensor"):
        ours.load({"weight": torch.ones((2, 3), device="meta")}, strict=False)


def test_numbers_are_copied_and_loaded_all_or_none() -> None:
    model, array = Weighted(), ONES.copy()
    model.load({"weight": array})
    bound = nn.bind(model.export(X, bind=False), {"weight": array})
    array[:] = 9
    np.testing.assert_array_equal(model.state()["weight"], ONES)
    np.testing.assert_array_equal(given(bound), ONES)
    both = Colliding()
    with pytest.raises(UnityError, match=r"a_weight: expected float32\(3,\), got 3 \(int\)"):
        both.load({**STATE, "a_weight": 3})
    assert both.state() == {}
    with pytest.raises(UnityError, match=r"weight: Parameter\(.*\) has no numbers"):
        model.load({"weight": nn.Parameter((3,))})
    with pytest.raises(
        UnityError, match=r"weight: expected .*, got \[1, 1, 1\] \(list\)\n.*dlpack"
    ):
        nn.bind(model.export(X, bind=False), {"weight": [1, 1, 1]})


class Taking(nn.Module):
    """Takes inputs in several ways."""

    def forward(self, x: nn.Value, y: nn.Value | None = None) -> nn.Value:
        return x if y is None else x + y

    def more(self, x: nn.Value, **others: nn.Value) -> nn.Value:
        return x + others["z"]

    def placed(self, x: nn.Value, /) -> nn.Value:
        return x


T = f32[Tensor, 3]


@pytest.mark.parametrize(
    ("inputs", "method", "said"),
    [
        ({}, "forward", r"Taking.forward needs 'x'\n.*Taking.forward\(x, y=None\)"),
        ({"x": T, "z": T}, "forward", r"Taking.forward has no parameter 'z'\n.*\(x, y=None\)"),
        ({"z": T}, "more", "Taking.more needs 'x'"),
        ({"x": T}, "placed", r"Taking.placed takes 'x' by position only\n.*leave / out"),
        ({"x": T}, "forwrd", r"Taking has no method 'forwrd'\n.*did you mean 'forward'"),
        ({"x": T}, "zz", r"Taking has no method 'zz'\n.*it has forward, more, placed"),
        ({"x": 3}, "forward", r"input 'x': expected a type, got 3\n.*f32\[Tensor"),
    ],
)
def test_inputs_that_a_method_does_not_take(inputs: Any, method: str, said: str) -> None:
    with pytest.raises(UnityError, match=said):
        Taking().export(inputs, method=method)


def test_inputs_that_a_method_takes() -> None:
    for inputs, method in (({"y": T, "x": T}, "forward"), ({"x": T, "z": T}, "more")):
        module = Taking().export(inputs, method=method)
        assert [p.name for p in main_of(module).params] == list(inputs)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: nn.Linear(-1, 3), "Linear: inputs must be at least 1, got -1"),
        (lambda: nn.Linear(3, 0), "Linear: outputs must be at least 1, got 0"),
        (lambda: nn.Conv(3, 3, (3, 0)), "Conv: kernel must be at least 1, got 0"),
        (lambda: nn.Conv(3, 3, (3, 3), groups=0), "Conv: groups must be at least 1, got 0"),
        (lambda: nn.BatchNorm(-2), "BatchNorm: channels must"),
        (lambda: nn.LayerNorm(-2), "LayerNorm: features must"),
        (lambda: nn.RMSNorm(0), "RMSNorm: features must"),
        (lambda: nn.GroupNorm(0, 4), "GroupNorm: groups must"),
        (lambda: nn.GroupNorm(3, 4), "4 channels are not in 3 groups"),
        (lambda: nn.Embedding(-1, 4), "Embedding: count must"),
        (lambda: nn.Attention(8, 0), "Attention: heads must"),
        (lambda: nn.Attention(8, 2, 0), "Attention: kv_heads must"),
        (lambda: nn.Parameter((2, -1)), r"shape \(2, -1\)\n.*no size is negative"),
        (lambda: nn.Sequential(cast("Any", 3)), "part 0: expected a module or a function, got 3"),
        (lambda: nn.Sequential(cast("Any", [len])), r"part 0: .*\n.*Sequential\(\*parts\)"),
    ],
)
def test_layers_of_impossible_sizes(make: Callable[[], object], said: str) -> None:
    with pytest.raises(UnityError, match=said):
        make()
