"""`unity migrate`: a Relay model becomes a program with its weights, and a report of all of it."""

from __future__ import annotations

import runpy
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from typer.testing import CliRunner

import unity
from tests.frontend.relay.saved import Graph, metadata, parameters
from unity.cli.app import app
from unity.errors import UnityError, UnsupportedError
from unity.frontend.relay import from_relay
from unity.frontend.relay.migration import migrate
from unity.frontend.relay.wishes import wishes
from unity.interpreter import interpret
from unity.ir.equality import first_difference
from unity.script import ScriptFunction, constants_of, print_module
from unity.transform.graph.resolve import ENGINES

NET = """#[version = "0.0.5"]
def @main(%x: Tensor[(?, 20), float32], %fc.weight: Tensor[(4, 20), float32]) {
  %0 = nn.dense(%x, %fc.weight, units=4);
  %1 = fn (%a: Tensor[(?, 4), float32], Compiler="openvino", Primitive=1, hash="1f") {
    nn.relu(%a)
  };
  %2 = nn.dropout(%x, rate=0.25f);
  (%1(%0), argwhere(%x), @grown(%2.0))
}
def @grown(%i: Tensor[(?, 20), float32]) -> Tensor[(?, 20), float32] {
  if (less(sum(%i), 10f)) { @grown(add(%i, 1f)) } else { %i }
}
"""
WEIGHT = np.random.default_rng(0).standard_normal((4, 20), np.float32)
X = np.random.default_rng(1).standard_normal((3, 20), np.float32)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "net.relay").write_text(NET)
    (tmp_path / "net.params").write_bytes(parameters({"fc.weight": WEIGHT}))
    return str(tmp_path / "net.relay"), str(tmp_path / "net.params")


def test_the_command_writes_a_program_that_runs(files: tuple[str, str], tmp_path: Path) -> None:
    model, params = files
    result = CliRunner().invoke(
        app, ["migrate", model, "--params", params, "-o", str(tmp_path / "kept.py")]
    )
    assert result.exit_code == 0, result.output
    assert (tmp_path / "kept.md").read_text() in result.output
    main = runpy.run_path(str(tmp_path / "kept.py"))["main"]
    assert isinstance(main, ScriptFunction)
    module = from_relay(model, params)
    assert first_difference(module, main.module()) is None
    got = interpret(main.module(), "main", [X])
    assert isinstance(got, tuple)
    np.testing.assert_allclose(np.asarray(got[0]), np.maximum(X @ WEIGHT.T, 0), rtol=1e-5)
    np.testing.assert_array_equal(np.asarray(got[1]), np.argwhere(X))


def test_the_report_leaves_nothing_out(files: tuple[str, str]) -> None:
    lines = migrate(*files).report.splitlines()
    for line in (
        "7 calls of operators in 2 functions; 1 parameter with values.",
        "| `nn.dense` | 1 | `permute_dims`, `matmul` |",
        "| `nn.dropout` | 1 | `ones_like` |",
        "- `nn.dropout`: `rate=0.25`, 1 times: the operands say it, or it changes nothing here",
        "- of functions: `Primitive=1`, 1 times: fused by TVM; fused anew here",
        "- of functions: `hash=1f`, 1 times: a key of TVM's caches",
        "- `x`: `f32[Tensor, x_d0, 20]`",
        "- `x_d0`: a size of the input `x` that the model leaves open (`?`)",
        "- `nonzero`: a size of `argwhere_1`, known when the program runs",
    ):
        assert line in lines, line
    assert any(line.startswith("- `openvino`, put in place: `main/relu`") for line in lines)


def test_what_readers_leave_out_is_reported() -> None:
    text = """#[version = "0.0.5"]
def @main(%x {virtual_device=meta[VirtualDevice][0]}: Tensor[(2), float32],
          virtual_device=meta[VirtualDevice][0]) {
  let %y {scope="local"}: Tensor[(2), float32] = exp(%x);
  @f(%y, note="kept", attrs_type_key="relay.attrs.TIRCallAttrs")
}
def @f(%x: Tensor[(2), float32], Compiler="dnnl") { %x }
def @unused(%x: Tensor[(2), float32]) { negative(%x) }
"""
    lines = migrate(text).report.splitlines()
    for line in (
        "- of variables: `virtual_device=VirtualDevice(...)`, 1 times: there is one device",
        "- of functions: `virtual_device=VirtualDevice(...)`, 1 times: there is one device",
        "- of variables: `scope=local`, 1 times: no meaning here",
        "- of calls of functions: `note=kept`, 1 times: no meaning here",
        "- of functions: `Compiler=dnnl`, 1 times: no meaning here",
        "- functions that main does not call are left out: unused",
    ):
        assert line in lines, line


def test_what_json_holds_beside_a_program_is_reported(tmp_path: Path) -> None:
    graph = Graph()
    device = graph.add(
        "VirtualDevice",
        device_type_int=2,
        virtual_device_id=0,
        target=0,
        memory_scope=graph.text("runtime.String", ""),
    )
    anywhere = graph.add(
        "VirtualDevice",
        device_type_int=-1,
        virtual_device_id=-1,
        target=0,
        memory_scope=graph.text("runtime.String", ""),
    )
    x = graph.var("x", (2, 3))
    held = graph.add("DictAttrs", __dict__=graph.named(hint=graph.text("runtime.String", "h")))
    relu = graph.call("nn.relu", x, attrs=held)
    fields = graph.nodes[relu]["attrs"]
    assert isinstance(fields, dict)
    fields["virtual_device_"] = str(device)
    fields["odd"] = str(graph.text("runtime.String", "thing"))
    soft = graph.add("relay.attrs.SoftmaxAttrs", axis=-1, beyond=0)
    body = graph.call("nn.softmax", relu, attrs=soft)
    other = graph.nodes[body]["attrs"]
    assert isinstance(other, dict)
    other["virtual_device_"] = str(anywhere)
    root = graph.module((x,), body)
    (tmp_path / "net.json").write_text(graph.saved(root))
    lines = migrate(tmp_path / "net.json").report.splitlines()
    for line in (
        "- of calls of `nn.relu`: `hint=h`, 1 times: no meaning here",
        "- of calls of `nn.softmax`: `beyond=0`, 1 times: no meaning here",
        "- of objects of `relay.Call`: `odd=thing`, 1 times: no meaning here",
        "- of objects of `relay.Call`: `virtual_device=VirtualDevice(...)`, 1 times: "
        "there is one device",
    ):
        assert line in lines, line


def test_partitions_are_wishes_where_an_engine_has_the_name(files: tuple[str, str]) -> None:
    module = from_relay(*files)
    assert wishes(module) == {"main/relu": "engine:openvino"}
    other = from_relay(NET.replace("openvino", "dnnl"), {"fc.weight": WEIGHT})
    assert "dnnl" not in ENGINES
    assert wishes(other) == {}
    assert wishes(from_relay(NET.replace('Compiler="openvino", ', ""))) == {}


def test_narrow_floats_are_kept_to_the_bit(tmp_path: Path) -> None:
    text = """#[version = "0.0.5"]
def @main(%x: Tensor[(20), bfloat16], %w: Tensor[(20), bfloat16]) { add(%x, %w) }
"""
    weight = WEIGHT[0].astype(ml_dtypes.bfloat16)
    migrate(text, {"w": weight}).write(tmp_path / "sum.py")
    main = runpy.run_path(str(tmp_path / "sum.py"))["main"]
    (found,) = constants_of(main.module()).values()
    assert found.tobytes() == weight.tobytes()


def test_what_is_refused_is_told() -> None:
    refused = "def @main(%x: Tensor[(4), float32]) { memory.kill(%x) }"
    with pytest.raises(UnsupportedError, match=r"memory\.kill \(made by TVM's lowering"):
        migrate(f'#[version = "0.0.5"]\n{refused}\n')
    with pytest.raises(UnityError, match="no function @main"):
        migrate('#[version = "0.0.5"]\ndef @f(%x: Tensor[(4), float32]) { %x }\n')


def test_functions_that_call_each_other_are_written_as_a_text(tmp_path: Path) -> None:
    circle = """#[version = "0.0.5"]
def @main(%x: Tensor[(4), float32]) { @even(%x * meta[relay.Constant][0]) }
def @even(%x: Tensor[(4), float32]) -> Tensor[(4), float32] {
  if (less(sum(%x), 1f)) { @odd(add(%x, 1f)) } else { %x }
}
def @odd(%x: Tensor[(4), float32]) -> Tensor[(4), float32] {
  @even(add(%x, meta[relay.Constant][0]))
}
"""
    large = np.linspace(1, 2, 4, dtype=np.float32)
    found = migrate(circle + metadata([large]))
    found.write(tmp_path / "circle.py")
    main = runpy.run_path(str(tmp_path / "circle.py"))["main"]
    assert isinstance(main, unity.IRModule)
    assert first_difference(found.module, main) is None
    x = np.array([-3, -1, 0, 1], np.float32)
    value = x * large
    while value.sum() < 1:
        value = value + 1 + large
    np.testing.assert_allclose(unity.compile(main)(x), value, rtol=1e-6)
    assert "## Symbols" not in found.report  # no heading without a line


def test_parameters_are_given_to_the_commands(files: tuple[str, str], tmp_path: Path) -> None:
    model, params = str(tmp_path / "small.relay"), files[1]
    kinds = "%x: Tensor[(3, 20), float32], %fc.weight: Tensor[(4, 20), float32]"
    Path(model).write_text(
        f'#[version = "0.0.5"]\ndef @main({kinds}) {{ nn.dense(%x, %fc.weight) }}\n'
    )
    for command, more in (
        ("run", ()),
        ("check", ()),
        ("bench", ("--repeat", "1")),
        ("compile", ()),
    ):
        result = CliRunner().invoke(app, [command, model, "--params", params, *more])
        assert result.exit_code == 0, result.output
    result = CliRunner().invoke(app, ["bench", model, "--vs", "onnxruntime"])
    assert "peers run ONNX models alone" in str(result.exception)


def test_weights_may_be_named_in_a_text() -> None:
    module = from_relay(NET, {"fc.weight": WEIGHT})
    assert 'R.const(weights["fc.weight"])' in print_module(module, "weights")
    assert 'R.const("fc.weight")' in print_module(module)
    assert isinstance(module, unity.IRModule)
