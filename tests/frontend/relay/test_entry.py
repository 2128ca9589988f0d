"""Relay files where models are taken: `unity.load`, `unity.compile`, the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import unity
from unity.cli.app import app
from unity.errors import UnityError
from unity.frontend.relay import from_relay, is_relay
from unity.interpreter import interpret
from unity.ir.graph import Function
from unity.ir.module import IRModule

DENSE = """#[version = "0.0.5"]
def @main(%x: Tensor[(?, 3), float32], %layer.weight: Tensor[(2, 3), float32]) {
  %0 = nn.dense(%x, %layer.weight, units=2);
  nn.relu(%0)
}
"""
WEIGHT = np.array([[1, 2, 3], [-1, 0, 1]], np.float32)
X = np.array([[1, 1, 1], [0, -2, 1]], np.float32)
Y = np.maximum(X @ WEIGHT.T, 0)


def _model(folder: Path) -> Path:
    path = folder / "dense.relay"
    path.write_text(DENSE)
    return path


def test_a_file_with_parameters_compiles_and_computes(tmp_path: Path) -> None:
    module = unity.load(_model(tmp_path), params={"layer.weight": WEIGHT})
    assert isinstance(module, IRModule)
    main = module["main"]
    assert isinstance(main, Function)
    assert [p.name for p in main.params] == ["x"]
    assert main.attrs["input_names"] == ("x",)
    np.testing.assert_allclose(unity.compile(module)(X), Y)


def test_parameters_without_a_value_are_inputs(tmp_path: Path) -> None:
    module = unity.load(_model(tmp_path))
    np.testing.assert_allclose(np.asarray(interpret(module, "main", [X, WEIGHT])), Y)


def test_dims_can_be_fixed_when_a_model_is_loaded() -> None:
    main = from_relay(DENSE, dynamic={"x": {0: 7}})["main"]
    assert isinstance(main, Function)
    assert "7" in str(main.result)


def test_a_wrong_parameter_is_told(tmp_path: Path) -> None:
    with pytest.raises(UnityError, match="declared with the extent 2 at axis 0, and it has 3"):
        unity.load(_model(tmp_path), params={"layer.weight": np.zeros((3, 3), np.float32)})
    with pytest.raises(UnityError, match="main has no parameter 'w'"):
        unity.load(_model(tmp_path), params={"w": WEIGHT})


def test_files_are_told_by_suffix_or_content(tmp_path: Path) -> None:
    for name, text, wanted in (
        ("a.relay", "", True),
        ("b.txt", DENSE, True),
        ("c.txt", "hello", False),
        ("d.json", '{"root": 1, "nodes": []}', True),
        ("e.onnx", DENSE, False),
    ):
        path = tmp_path / name
        path.write_text(text)
        assert is_relay(path) is wanted, name


def test_the_command_line_takes_such_files(tmp_path: Path) -> None:
    path = str(_model(tmp_path))
    for command in (["inspect", path], ["check", path, "--dim", "x_d0=2"]):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, result.output
