"""Operators and converters of other packages: taken with all rows, used like ours, or refused."""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import onnx.helper
import pytest
from numpy.typing import NDArray

import unity
from tests.op.acme.swish import PARAMS, SWISH, swish_of
from unity import nn, script
from unity.errors import InternalError, UnityError
from unity.frontend.onnx.node import Node
from unity.frontend.onnx.table import REGISTERED
from unity.interpreter import interpret
from unity.ir.dtype import FLOAT32, Array
from unity.ir.graph import Expr
from unity.ir.types import TensorType, Type
from unity.op.argument import float_tensor
from unity.op.attribute import INT, NUMBER
from unity.op.movement.view import OPS as VIEWS
from unity.op.registry import OpCall, OpDef, Param, attr
from unity.op.sampling import sample
from unity.op.table import OPS
from unity.script import R, Tensor, dim, f32, parse, print_module

X = np.linspace(-4, 4, 24, dtype=np.float32).reshape(6, 4)


@pytest.fixture(scope="module")
def swish() -> Iterator[None]:
    """For as long as its programs are looked at: they are read back when each test has ended."""
    with unity.register_op(SWISH):
        yield
    OPS.pop("acme.swish", None)  # the guide's


def expected(x: Array, beta: float) -> NDArray[np.float32]:
    wide = x.astype(np.float64)
    return np.asarray(wide / (1 + np.exp(-beta * wide)), np.float32)


@pytest.mark.usefixtures("swish")
def test_it_is_written_printed_read_back_interpreted_and_compiled() -> None:
    n = dim("n")

    @script.function
    def main(x: f32[Tensor, n, 4]) -> f32[Tensor, n, 4]:
        return R.nn.relu(R.acme.swish(x, beta=2.0) + 1.0)

    text = print_module(main.module())
    assert "R.acme.swish(x, beta=2.0)" in text
    assert unity.structural_equal(parse(text), main.module())
    wanted = np.maximum(expected(X, 2.0) + 1, 0)
    np.testing.assert_allclose(np.asarray(interpret(main.module(), "main", [X])), wanted, rtol=1e-5)
    exe = unity.compile(main)
    np.testing.assert_allclose(exe(X), wanted, rtol=1e-5)
    assert len(exe.kernels) == 1  # fused by its pattern


@pytest.mark.usefixtures("swish")
def test_it_is_among_the_names_and_tells_what_it_takes() -> None:
    import inspect

    assert "acme" in dir(R)
    assert dir(R.acme) == ["swish"]
    assert list(inspect.signature(R.acme.swish).parameters) == ["x", "beta"]
    assert "exp(-beta" in (R.acme.swish.__doc__ or "")


@pytest.mark.usefixtures("swish")
def test_a_model_of_modules_calls_it() -> None:
    class Model(nn.Module):
        def forward(self, x: nn.Value) -> nn.Value:
            return nn.ops.acme.swish(x, beta=0.5)

    exe = unity.compile(Model().export({"x": f32[Tensor, 6, 4]}))
    np.testing.assert_allclose(exe(X), expected(X, 0.5), rtol=1e-5)


def test_after_its_end_it_is_unknown() -> None:
    with unity.register_op(replace(SWISH, name="acme.gone")) as registration:
        assert registration.active
        assert "gone" in dir(R.acme)
    assert not registration.active
    registration.remove()
    assert "gone" not in dir(R.acme)
    with pytest.raises(UnityError, match=r"there is no operator 'acme\.gone'"):

        @script.function
        def main(x: f32[Tensor, 6, 4]) -> f32[Tensor, 6, 4]:
            return R.acme.gone(x)


def model(beta: float) -> onnx.ModelProto:
    node = onnx.helper.make_node("Swish", ["x"], ["y"], domain="com.acme", beta=beta)
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 4])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 4])
    graph = onnx.helper.make_graph([node], "acme", [x], [y])
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.acme", 1)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.usefixtures("swish")
def test_a_converter_reads_nodes_of_its_domain() -> None:
    with pytest.raises(UnityError, match="does not implement"):
        unity.compile(model(2.0))
    with unity.register_converter("com.acme::Swish", swish_of):
        exe = unity.compile(model(2.0))
        np.testing.assert_allclose(exe(X), expected(X, 2.0), rtol=1e-5)
    with pytest.raises(UnityError, match="does not implement"):
        unity.compile(model(2.0))


@pytest.mark.usefixtures("swish")
def test_an_attribute_that_a_converter_never_reads_is_a_gap() -> None:
    def careless(node: Node) -> Expr:
        return node.op("acme.swish", node.tensor(0))

    with (
        unity.register_converter("com.acme::Swish", careless),
        pytest.raises(UnityError, match="the attribute beta"),
    ):
        unity.compile(model(2.0))


def test_what_a_converter_raises_is_its_own_mistake() -> None:
    def broken(node: Node) -> Expr:
        raise ZeroDivisionError("by nothing")

    with (
        unity.register_converter("com.acme::Swish", broken),
        pytest.raises(UnityError, match="the converter registered for it raised Zero") as caught,
    ):
        unity.compile(model(2.0))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert "'y' (Swish)" in caught.value.message
    assert "a bug of Unity" not in caught.value.message


GIVEN: dict[str, Any] = {
    "nothing": None,
    "a number": 3,
    "an array": np.zeros((2, 3), np.float32),
    "text": "y",
    "an empty list": [],
    "a list of nothing": [None],
}


@pytest.mark.parametrize("what", GIVEN)
def test_what_a_converter_gives_is_a_value(what: str) -> None:
    def wrong(node: Node) -> Any:
        node.float_of("beta", 1.0)
        return GIVEN[what]

    with (
        unity.register_converter("com.acme::Swish", wrong),
        pytest.raises(UnityError) as caught,
    ):
        unity.compile(model(2.0))
    assert "the converter registered for 'com.acme::Swish' must give the value" in str(caught.value)
    assert f"it gave {GIVEN[what]!r}" in caught.value.message
    assert not isinstance(caught.value, InternalError)


CONVERTERS = {
    "Relu": "'Relu' is Unity's own",
    "ai.onnx::Relu": "'ai.onnx::Relu' is Unity's own",
    "::Swish": "names no operator of ONNX",
    "com.acme": "names no operator of ONNX",
}


@pytest.mark.parametrize("name", CONVERTERS)
def test_converters_that_are_refused(name: str) -> None:
    with pytest.raises(UnityError) as caught:
        unity.register_converter(name, swish_of)
    assert CONVERTERS[name] in caught.value.message


def test_a_converter_is_registered_once() -> None:
    with (
        unity.register_converter("com.acme::Swish", swish_of),
        pytest.raises(UnityError, match="registered already"),
    ):
        unity.register_converter("com.acme::Swish", swish_of)


def wrong_reference(op: OpDef) -> OpDef:
    def reference(args: object, attrs: object) -> Array:
        assert isinstance(args, tuple)
        return np.asarray(args[0] * 2)

    return replace(op, reference=reference)


def broken_row(row: str) -> dict[str, Any]:
    return {row: raises}


OTHER = replace(SWISH, name="acme.other")
BOGUS: Any = "bogus"
NOTHING: Any = None


def gives(value: Any, count: int) -> Any:
    """A rule that takes so many arguments and gives this."""
    rules: list[Any] = [lambda: value, lambda a: value, lambda a, b: value, lambda a, b, c: value]
    return rules[count] if count < 4 else lambda a, b, c, d: value


def raises(*args: Any) -> Any:
    raise ValueError("boom")


REFUSED = {
    "a built-in name": (replace(OTHER, name="nn.relu"), "'nn.relu' is an operator of Unity's own"),
    "a word": (replace(OTHER, name="const"), "R.const is a word of the language"),
    "no name": (replace(OTHER, name="acme.a-b"), "'acme.a-b' can't name an operator"),
    "a family": (replace(OTHER, name="nn"), "'nn' is below or above the operator 'nn."),
    "below an operator": (replace(OTHER, name="add.fast"), "below or above the operator 'add'"),
    "no compute": (replace(OTHER, compute=None), "'acme.other' lacks compute"),
    "nothing": (
        replace(OTHER, compute=None, reference=None, samples=None, doc=" "),
        "lacks reference, compute, samples, doc",
    ),
    "no samples": (replace(OTHER, samples=lambda _: []), "has no samples"),
    "an effect": (replace(OTHER, pure=False), "is not pure"),
    "two of a name": (
        replace(OTHER, params=(*PARAMS, attr("beta", NUMBER, 1.0))),
        "two parameters 'beta'",
    ),
    "an attribute without a type": (
        replace(OTHER, params=(Param("x"), Param("beta", "attr", 1.0))),
        "'beta' needs a type",
    ),
    "a name of ONNX": (replace(OTHER, onnx="Swish"), "names ONNX's 'Swish'"),
    "numbers that differ": (
        wrong_reference(OTHER),
        "acme.other, sample 0 (float32(3, 4), beta=1.0): the compute gives",
    ),
    "types that differ": (
        replace(OTHER, infer=lambda call: TensorType((9,), FLOAT32)),
        "the type rule says float32(9,), the reference gives float32(3, 4)",
    ),
    "a keyword": (replace(OTHER, name="acme.class"), "'acme.class' can't name an operator"),
    "None": (replace(OTHER, name="acme.None"), "'acme.None' can't name an operator"),
    "a parameter's keyword": (
        replace(OTHER, params=(*PARAMS, attr("in", NUMBER, 1.0))),
        "'in' can't name a parameter",
    ),
    "a pattern that is none": (
        replace(OTHER, pattern=BOGUS),
        "'pattern' must be one of 'elementwise', 'broadcast', 'injective', 'reduction', "
        "'out_fusable', 'opaque', got 'bogus'",
    ),
    "a pattern that lies": (
        replace(VIEWS[0], name="acme.view", pattern="elementwise", onnx=None),
        "acme.view, sample 0: the pattern 'elementwise' is for results of the same shape",
    ),
    "no type rule": (
        replace(OTHER, infer=NOTHING),
        "the operator 'acme.other': 'infer' must be a function, got None",
    ),
    "no parameters": (replace(OTHER, params=NOTHING), "'params' must be Params, got None"),
    "a name that is a number": (replace(OTHER, name=gives(3, 1)(0)), "'name' must be text, got 3"),
    "an expansion that is a number": (
        replace(OTHER, expand=BOGUS),
        "'expand' must be a function or None, got 'bogus'",
    ),
    "samples that are a number": (
        replace(OTHER, samples=gives(3, 1)),
        "the operator 'acme.other': its 'samples' must give a list of Sample, got 3",
    ),
    "samples of numbers": (replace(OTHER, samples=gives([3], 1)), "a list of Sample, got [3]"),
    "samples without a seed": (
        replace(OTHER, samples=gives([], 0)),
        "'samples' can't be called as it is: it is given a seed, and takes ()",
    ),
    "a compute of one argument": (
        replace(OTHER, compute=gives(None, 1)),
        "the operator 'acme.other': 'compute' can't be called as it is: it is given arguments, "
        "attributes, the result's type, and takes (a)",
    ),
    "a type rule that gives none": (replace(OTHER, infer=gives(3, 1)), "must give a type, got 3"),
    "a compute that gives none": (
        replace(OTHER, compute=gives(None, 3)),
        "its 'compute' must give a tensor or a tuple of them, got None",
    ),
    "an expansion that gives none": (
        replace(OTHER, compute=None, expand=gives(None, 4)),
        "its 'expand' must give an expression, got None",
    ),
    "a reference that gives none": (
        replace(OTHER, reference=gives(None, 2)),
        "the reference must give an array or a tuple of arrays, got None",
    ),
    **{
        f"{row} that raises": (
            replace(OTHER, **broken_row(row)),
            f"the operator 'acme.other': its {row!r} raised ValueError: boom",
        )
        for row in ("infer", "reference", "compute", "samples")
    },
}


@pytest.mark.parametrize("what", REFUSED)
def test_rows_that_are_refused(what: str) -> None:
    op, said = REFUSED[what]
    with pytest.raises(UnityError) as caught:
        unity.register_op(op)
    assert said in caught.value.message
    assert op.name not in OPS or OPS[op.name] is not op


def test_a_row_that_breaks_later_is_named_where_it_is_called() -> None:
    def infer(call: OpCall) -> Type:
        return [float_tensor(call, 0)][call.integer("axis")]

    params = (Param("x"), attr("axis", INT, 0))
    op = replace(OTHER, params=params, infer=infer, pattern="opaque")
    with unity.register_op(op, check=False):
        with pytest.raises(UnityError, match=r"'acme\.other': its 'infer' raised IndexError"):

            @script.function
            def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
                return R.acme.other(x, axis=5)

        assert OPS["acme.other"].infer.__name__ == "infer"
    assert "acme.other" not in OPS


def test_an_error_of_a_rule_says_which_sample_it_was() -> None:
    op = replace(OTHER, samples=lambda seed: [sample(PARAMS, (np.arange(3, dtype=np.int32),))])
    with pytest.raises(UnityError, match=r"acme\.other, sample 0 .*must be of a float dtype"):
        unity.register_op(op)


@pytest.mark.usefixtures("swish")
def test_the_guide_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    guide = Path(__file__).parents[2] / "docs" / "guide" / "operators.md"
    blocks = re.findall(r"^```python\n(.*?)^```", guide.read_text(), re.DOTALL | re.MULTILINE)
    OPS.pop("acme.swish")
    module = ModuleType("guide_operators")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    lines = [str(line) for line in "\n".join(blocks).splitlines(keepends=True)]
    linecache.cache["guide.py"] = (0, None, lines, "guide.py")
    exec(compile("\n".join(blocks), "guide.py", "exec"), vars(module))
    assert "0.88" in capsys.readouterr().out  # 1 / (1 + exp(-2))
    REGISTERED.pop(("com.acme", "Swish"))
