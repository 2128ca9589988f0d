"""What commands are given: unknown options, values of another type, files of another kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
import typer
from typer.testing import CliRunner

import unity
import unity.demo
from unity.cli.app import app, main
from unity.errors import UnityError

DIGITS = str(Path(unity.demo.__file__).parent / "digits.onnx")
NUMBERS = ("--threads", "--seed", "--repeat", "--tolerance", "--precision")


def refused(*args: str) -> str:
    """What a command says that refuses; it ends with 1, or 2 for options that don't exist."""
    result = CliRunner().invoke(app, args)
    if isinstance(result.exception, SystemExit):
        assert result.exit_code == 2
        return result.output
    assert isinstance(result.exception, UnityError), result.exception
    return str(result.exception)


def test_the_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.output.strip() == f"unity {unity.__version__}"
    assert result.exit_code == 0


def commands() -> dict[str, Any]:
    group: Any = typer.main.get_command(app)
    return dict(group.commands)


@pytest.mark.parametrize("name", commands())
def test_options_that_do_not_exist_or_are_of_another_type(name: str) -> None:
    params = commands()[name].params
    needs = [DIGITS] if any(p.param_type_name == "argument" for p in params) else []
    assert "No such option" in refused(name, *needs, "--bogus")
    for option in params:
        if option.opts[0] in NUMBERS:
            assert "Invalid value" in refused(name, *needs, option.opts[0], "wrong")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("run", "model.py"), "model.py:1: NameError: name 'x' is not defined"),
        (("quantize", "model.py"), "a Python program, not an ONNX model"),
        (("compile", "libm.so"), "a shared library, compiled already"),
        (("inspect", "model.pt"), "a model of torch"),
        (("run", "nothing.onnx"), "there is no file"),
        (("compile", DIGITS, "-o", "out.xyz"), "can't write 'out.xyz'"),
        (("run", DIGITS, "-o", "out.txt"), "can't write 'out.txt'"),
        (("run", DIGITS, "-o", "no/out.npz"), "there is no folder no"),
        (("compile", DIGITS, "-o", "no/out.unity"), "there is no folder no"),
        (("compile", DIGITS, "-o", ""), "no name to write to"),
        (("run", DIGITS, "--dim", f"batch={10**14}"), "bytes to generate"),
        (("bench", DIGITS, "--vs", "nobody"), "no peer 'nobody'"),
        (("run", DIGITS, "--dim", "nonsense"), "nonsense"),
        (("run", DIGITS, "--input", "nonsense"), "nonsense"),
        (("compile", DIGITS, "--target", "gpu"), "gpu"),
        (("explain", DIGITS, "--resolve", "wrong"), "wrong"),
        (("inspect", DIGITS, "--after", "Wrong"), "Wrong"),
        (("bench", DIGITS, "--repeat", "0"), "Invalid value"),
    ],
)
def test_what_is_given_is_told_apart(
    args: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("model.py", "libm.so", "model.pt"):
        (tmp_path / name).write_text("x")
    assert message in refused(*args)
    assert not list(tmp_path.glob("out*"))


def test_whoever_compiles_can_do_without_winograd() -> None:
    having = {n for n, c in commands().items() if "winograd" in {p.name for p in c.params}}
    assert having == {"run", "compile", "bench", "inspect", "explain", "check", "bisect"}


def test_a_model_in_float16_is_checked_as_far_as_that_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unity.cli.check.difference", lambda got, want: (0.0, 5e-3))
    text = """<ir_version: 9, opset_import: ["" : 18]>
        g (float16[2, 64] x, float16[64, 9] w) => (float16[2, 9] y) { y = MatMul(x, w) }"""
    path = tmp_path / "half.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    assert CliRunner().invoke(app, ["check", str(path)]).exit_code == 0
    assert "differ by more than 0.001" in refused("check", str(path), "--tolerance", "1e-3")


def test_what_onnx_itself_does_not_run_is_interpreted(tmp_path: Path) -> None:
    text = """<ir_version: 9, opset_import: ["" : 13]>
        g (float[2, 3] x) => (float[2, 3] y)
        <float s = {0.5}, uint8 z = {3}> {
            q = QuantizeLinear(x, s, z)
            y = DequantizeLinear(q, s, z)
        }"""
    path = tmp_path / "q.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    result = CliRunner().invoke(app, ["check", str(path)], catch_exceptions=False)
    assert result.exit_code == 0
    assert "Unity's interpreter computes it instead" in result.output


def test_errors_of_the_system_have_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full() -> None:
        raise OSError(28, "No space left on device", "out.npz")

    monkeypatch.setattr("unity.cli.app.app", full)
    with pytest.raises(SystemExit):
        main()
    assert "No space left on device: 'out.npz'" in capsys.readouterr().err
