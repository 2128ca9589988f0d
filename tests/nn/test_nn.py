"""unity.nn: modules become programs that compute what numpy does."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest

import unity
from unity import nn
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.module import IRModule
from unity.script import Tensor, dim, f32, i64

RNG = np.random.default_rng(0)
Floats = npt.NDArray[np.float32]
n = dim("n", min=1)


class Classifier(nn.Module):
    def __init__(self) -> None:
        self.layers = [nn.Linear(8, 16), nn.Linear(16, 16)]
        self.norm = nn.LayerNorm(16)
        self.scores = nn.Linear(16, 3, bias=False)

    def forward(self, x: nn.Value) -> nn.Value:
        for layer in self.layers:
            x = layer(x) * 0.5
            assert isinstance(x, nn.Value)
        return self.scores(self.norm(x))


def classified(x: Floats, state: dict[str, Floats]) -> Floats:
    for k in range(2):
        x = (x @ state[f"layers.{k}.weight"].T + state[f"layers.{k}.bias"]) * np.float32(0.5)
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + np.float32(1e-5))
    x = x * state["norm.weight"] + state["norm.bias"]
    return np.asarray(x @ state["scores.weight"].T, np.float32)


def test_parameters_have_names_and_are_bound() -> None:
    model = Classifier()
    model.initialize(seed=1, scale=0.5)
    names = [name for name, _ in model.named_parameters()]
    assert names[:3] == ["layers.0.weight", "layers.0.bias", "layers.1.weight"]
    x = RNG.standard_normal((5, 8), np.float32)
    exe = unity.compile(model.export({"x": f32[Tensor, n, 8]}))
    state = {k: np.asarray(v, np.float32) for k, v in model.state().items()}
    np.testing.assert_allclose(exe(x), classified(x, state), rtol=1e-4, atol=1e-5)
    lifted = model.export({"x": f32[Tensor, n, 8]}, bind=False)
    assert len(lifted.graph_functions()["main"].params) == 1 + len(names)
    again = unity.compile(nn.bind(lifted, state))
    np.testing.assert_array_equal(again(x), exe(x))


def test_states_are_loaded_by_name() -> None:
    model = nn.Linear(3, 2)
    with pytest.raises(UnityError, match=r"missing: bias; not in the model: scale"):
        model.load({"weight": np.ones((2, 3), np.float32), "scale": np.ones(1, np.float32)})
    with pytest.raises(UnityError, match=r"weight: expected float32\(2, 3\), got float32"):
        model.load({"weight": np.ones((3, 2), np.float32)}, strict=False)
    with pytest.raises(UnityError, match="weight has no numbers"):
        model.export({"x": f32[Tensor, n, 3]})
    lifted = model.export({"x": f32[Tensor, n, 3]}, bind=False)
    with pytest.raises(UnityError, match="main has no input 'scale'"):
        nn.bind(lifted, {"scale": np.ones(1, np.float32)})
    with pytest.raises(UnityError, match=r"bias: expected float32\(2,\), got float64"):
        nn.bind(lifted, {"bias": np.ones(2)})


def test_mistakes_are_told_where_they_are_made() -> None:
    class Empty(nn.Module):
        pass

    class Wrong(nn.Module):
        def forward(self, x: nn.Value) -> object:
            return {"y": x}

    class Branching(nn.Module):
        def forward(self, x: nn.Value) -> object:
            return x if x else -x

    inputs = {"x": f32[Tensor, n, 3]}
    with pytest.raises(UnityError, match="Empty has no forward"):
        Empty().export(inputs)
    with pytest.raises(UnityError, match="forward returned dict"):
        Wrong().export(inputs)
    with pytest.raises(UnityError, match="it is not true or false"):
        Branching().export(inputs)
    with pytest.raises(UnityError, match="there are no numbers outside of an export"):
        nn.ops.matmul(np.ones((2, 2), np.float32), np.ones((2, 2), np.float32))


@pytest.mark.parametrize(
    ("made", "said", "hint"),
    [
        (float, r"float: Value\(x: .* it is no number", r"astype\('float32'\)"),
        (int, "int: .* it is no number", r"astype\('int64'\)"),
        (complex, "complex: .* it is no number", "no complex numbers"),
        (round, "round: .* it is no number", "ops.round"),
        (range, "an index: .* it is no number", "x.shape tells sizes"),
        (bool, "it is not true or false", "ops.where"),
        (len, "len: .* has no known number of parts", r"x.shape\[0\] is the symbol"),
        (list, "has no known number of parts", r"x.shape\[0\] is the symbol"),
        (np.asarray, "it has no numbers", "ops.mean"),
    ],
)
def test_python_asks_a_value_for_what_it_is_not(
    made: Callable[[Any], object], said: str, hint: str
) -> None:
    class Asking(nn.Module):
        def forward(self, x: nn.Value) -> object:
            return made(x)

    with pytest.raises(UnityError, match=said) as caught:
        Asking().export({"x": f32[Tensor, n, 3]})
    assert re.search(hint, caught.value.hint or "")


@pytest.mark.parametrize(
    ("made", "hint"),
    [
        (lambda x: x.T, r"ops.permute_dims(x)"),
        (lambda x: x.view(2, -1), r"ops.reshape(x, (2, -1))"),
        (lambda x: x.relu_(), r"x = ops.nn.relu(x): values don't change"),
        (lambda x: x.contiguous(), "leave it out"),
        (lambda x: x.nosuch, "ops are all operators"),
    ],
)
def test_methods_of_torch_are_told_as_operators(made: Callable[[Any], object], hint: str) -> None:
    class Asking(nn.Module):
        def forward(self, x: nn.Value) -> object:
            assert not hasattr(x, "__torch_function__")
            return made(x)

    with pytest.raises(AttributeError, match=re.escape(hint)):
        Asking().export({"x": f32[Tensor, n, 3]})


def test_len_and_parts_along_a_known_axis() -> None:
    class Summed(nn.Module):
        def forward(self, x: nn.Value) -> nn.Value:
            total = x[0] * float(len(x))
            for part in x:
                total = total + part
            return total

    exe = unity.compile(Summed().export({"x": f32[Tensor, 3, n]}))
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.testing.assert_array_equal(exe(x), x[0] * 3 + x.sum(0))


def test_layers_refuse_what_does_not_fit() -> None:
    with pytest.raises(UnityError, match="inputs"):
        nn.Linear(*cast("Any", ("a", 3)))
    with pytest.raises(UnityError, match="6 and 4 channels are not in 4 groups"):
        nn.Conv(6, 4, (3, 3), groups=4)
    with pytest.raises(UnityError, match="one to three numbers"):
        nn.Conv(6, 4, ())
    with pytest.raises(UnityError, match="6 heads can't share 4"):
        nn.Attention(24, 6, 4)
    with pytest.raises(UnityError, match="25 features are not in 6 heads"):
        nn.Attention(25, 6)

    class Half(nn.Module):
        def __init__(self) -> None:
            self.attention = nn.Attention(8, 2)

        def forward(self, x: nn.Value) -> nn.Value:
            return self.attention(x, x)

    with pytest.raises(UnityError, match="need cosines and sines"):
        Half().export({"x": f32[Tensor, 1, n, 8]}, bind=False)


class Indexed(nn.Module):
    def __init__(self, which: int) -> None:
        self.which = which

    def forward(self, x: nn.Value) -> object:
        return INDICES[self.which](x)


INDICES: list[Callable[[Any], Any]] = [
    lambda x: x[1],
    lambda x: x[:, 1:3],
    lambda x: x[..., -1],
    lambda x: x[:, None, 2, ::2],
    lambda x: x[-2:, ..., :-1],
    lambda x: x[:, : x.shape[1] - 1],
    lambda x: (
        (1 - x) / 2 + x * x - x.permute(2, 1, 0).permute(2, 1, 0) @ np.eye(6, dtype=np.float32)
    ),
    lambda x: x.reshape(x.shape[0], -1).astype("float64"),
]


@pytest.mark.parametrize("which", range(len(INDICES)))
def test_values_index_and_calculate_as_numpy_does(which: int) -> None:
    x = RNG.standard_normal((3, 4, 6), np.float32)
    module = Indexed(which).export({"x": f32[Tensor, 3, 4, 6]})
    found = interpret(module, "main", [x])
    alike: dict[int, Callable[[Any], Any]] = {
        6: lambda v: (1 - v) / 2 + v * v - v,
        7: lambda v: v.reshape(3, -1).astype(np.float64),
    }
    same = alike.get(which, INDICES[which])
    np.testing.assert_allclose(np.asarray(found), same(x), rtol=1e-5, atol=1e-5)


def test_results_are_tuples_and_parameters_may_be_shared() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            self.table = nn.Embedding(10, 4)
            self.out = self.table

        def forward(self, tokens: nn.Value) -> object:
            x = self.table(tokens)
            scores = x @ nn.ops.permute_dims(self.out.weight, (1, 0))
            return scores, nn.ops.split(x, 2, axis=-1)

    model = Tied()
    assert [name for name, _ in model.named_parameters()] == ["table.weight"]
    model.initialize(scale=1.0)
    exe = unity.compile(model.export({"tokens": i64[Tensor, n]}))
    tokens = np.asarray([3, 9, 0])
    rows = np.asarray(model.state()["table.weight"], np.float32)[tokens]
    scores, (first, second) = exe(tokens)
    table = np.asarray(model.state()["table.weight"], np.float32)
    np.testing.assert_allclose(scores, rows @ table.T, rtol=1e-5)
    np.testing.assert_array_equal(np.concatenate([first, second], 1), rows)


class Applied(nn.Module):
    """What a function makes of an input, and of a parameter with the same numbers."""

    def __init__(self, function: Callable[[Any], Any], like: Floats) -> None:
        self.function = function
        self.p = nn.Parameter(like.shape, data=like)

    def forward(self, x: nn.Value) -> object:
        return self.function(x), self.function(self.p)


def both(module: IRModule, x: Floats) -> tuple[Any, Any]:
    return cast("tuple[Any, Any]", interpret(module, "main", [x]))


ALIKE: list[Callable[[Any], Any]] = [
    *(lambda x: x == 0.5, lambda x: x != 0.5, lambda x: x < 0, lambda x: x <= 0.5),
    *(lambda x: x > 0, lambda x: x >= 0.5, lambda x: np.float32(0.5) > x, lambda x: x == x),
    *(lambda x: x**2, lambda x: 2.0**x, lambda x: x // 2, lambda x: 3 // x),
    *(lambda x: x % 2, lambda x: 3 % x, lambda x: abs(x), lambda x: -x, lambda x: x * 2),
    *(
        lambda x: x[0],
        lambda x: x[:],
        lambda x: x[:, np.int64(1)],
        lambda x: 2 - x,
        lambda x: 2 / x,
    ),
    lambda x: np.arange(6, dtype=np.float32).reshape(2, 3) @ x,
    *(lambda x: (x > 0) & (x < 1), lambda x: (x > 0) | (x < -1), lambda x: (x > 0) ^ (x < 1)),
    *(lambda x: ~(x > 0), lambda x: +x, lambda x: (x > 0) & True),
    lambda x: np.ones(4, np.float32) * x,
    lambda x: np.ones(4, np.float32) == x,
    lambda x: np.float32(3) - x,
    lambda x: np.exp(x) + np.abs(x) + np.maximum(x, np.float32(0)),
    lambda x: [row * 2 for row in x][1],
]


@pytest.mark.parametrize("which", range(len(ALIKE)))
def test_operators_of_values_and_parameters_are_numpys(which: int) -> None:
    x = RNG.standard_normal((3, 4), np.float32)
    x[0, :2] = 0.5, np.nan
    module = Applied(ALIKE[which], x).export({"x": f32[Tensor, 3, 4]})
    with np.errstate(all="ignore"):
        expected = ALIKE[which](x)
        for found in both(module, x):
            assert np.asarray(found).dtype == expected.dtype
            np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5)


def test_bits_of_integers_are_calculated_with() -> None:
    def function(v: Any) -> Any:
        return (v.astype("int32") & 6) | ~v.astype("int32") ^ 1

    x = np.asarray([0, 3, 7, 12], np.float32)
    found, _ = both(Applied(function, x).export({"x": f32[Tensor, 4]}), x)
    np.testing.assert_array_equal(np.asarray(found), function(x))


def test_comparisons_choose_elements() -> None:
    x = np.asarray([0, 2, -0.0, 3], np.float32)
    model = Applied(lambda v: nn.ops.where(v == 0.0, 1.0, v), x)
    found, _ = both(model.export({"x": f32[Tensor, 4]}), x)
    np.testing.assert_array_equal(np.asarray(found), [1, 2, 1, 3])


def test_values_are_found_by_identity() -> None:
    def function(x: Any) -> Any:
        y = -x
        names = {x: "x", y: "y"}
        assert (names[x], names[y], len({x, y, x})) == ("x", "y", 2)
        cache = nn.KVCache(x, y, 0)
        assert cache == cache
        assert cache != nn.KVCache(x, y, 0)
        return y

    Applied(function, np.ones(3, np.float32)).export({"x": f32[Tensor, 3]})


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda x: 1 if x == x else 2, r"not true or false .*\n.*ops.where.*GraphBuilder.if_"),
        (lambda x: x in [2.0], "not true or false"),
        (lambda x: x == None, r"compared with None\n.*x is None"),  # noqa: E711
        (lambda x: x != "a", "compared with 'a'"),
        (lambda x: x[x], r"an index holds .*\n.*ops.take takes rows"),
        (lambda x: x.__setitem__(0, 1.0), r"no part of it can be assigned\n.*slice_scatter"),
        (lambda x: np.mean(x), r"it has no numbers .*\n.*ops.mean, not np.mean"),
        (lambda x: x & 1, "bitwise_and: operands must be of int dtype, got float32"),
        (lambda x: np.fmod(x, x), "np.fmod does not calculate with"),
        (lambda x: np.concatenate([x, x]), r"it has no numbers .*\n.*ops.mean"),
        (lambda x: np.ones(3) * x, "operands must have one dtype, got float64, float32"),
    ],
)
def test_what_can_not_be_done_with_values_is_told(
    function: Callable[[Any], Any], said: str
) -> None:
    with pytest.raises(UnityError, match=said):
        Applied(function, np.ones(3, np.float32)).export({"x": f32[Tensor, 3]})


class Told(nn.Module):
    """Whatever it is told, with a parameter."""

    def __init__(self, made: Callable[[Any], Any]) -> None:
        self.made = made
        self.w = nn.Parameter((3, 3), data=np.eye(3, dtype=np.float32))

    def forward(self, x: nn.Value) -> object:
        return self.made(x)


def test_arrays_of_torch_are_operands() -> None:
    torch = pytest.importorskip("torch")
    ones = torch.arange(3, dtype=torch.float32)
    exe = unity.compile(Told(lambda x: x * ones + ones).export({"x": f32[Tensor, n, 3]}))
    ones += 1  # a copy was made
    x = RNG.standard_normal((2, 3), np.float32)
    np.testing.assert_allclose(exe(x), x * [0, 1, 2] + [0, 1, 2], rtol=1e-6)
    with pytest.raises(UnityError, match="operands must have one dtype, got float32, float64"):
        Told(lambda x: x + ones.double()).export({"x": f32[Tensor, n, 3]})


def test_a_module_is_no_part_of_itself() -> None:
    inner, outer = Told(lambda x: x), Told(lambda x: x)
    outer.__dict__["children"] = [inner]
    assert [name for name, _ in outer.named_parameters()] == ["w", "children.0.w"]
    inner.__dict__["parent"] = outer
    with pytest.raises(UnityError, match=r"'children\.0\.parent' is a Told that"):
        list(outer.named_parameters())
    shared = nn.Sequential(inner.made, nn.Linear(2, 2))
    shared.parts.append(shared.parts[1])  # twice, not within itself
    assert [name for name, _ in shared.named_parameters()] == ["1.weight", "1.bias"]


def test_values_stay_in_their_export() -> None:
    kept: list[nn.Value] = []

    def keeping(x: nn.Value) -> nn.Value:
        kept.append(nn.ops.exp(x))
        return x

    Told(keeping).export({"x": f32[Tensor, n, 3]})
    with pytest.raises(UnityError, match=r"Value\(exp: .*\) is a value of another export"):
        Told(lambda x: x + kept[0]).export({"x": f32[Tensor, n, 3]})
    with pytest.raises(UnityError, match="is a value of another export"):
        Told(lambda x: kept[0]).export({"x": f32[Tensor, n, 3]})


def test_names_of_functions_and_calls_with_arrays() -> None:
    with pytest.raises(UnityError, match="a function can't be called 'my model'"):
        Told(lambda x: x).export({"x": f32[Tensor, n, 3]}, name="my model")
    for model in (Told(lambda x: x + 1), nn.Linear(3, 3)):
        with pytest.raises(UnityError, match="is called with arrays") as caught:
            model(np.ones((2, 3), np.float32))
        assert "model.export" in (caught.value.hint or "")
