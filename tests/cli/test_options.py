"""What commands are given: unknown options, values of another type, files of another kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import unity
import unity.demo
from unity.cli.app import app
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
        (("run", "model.py"), "a Python program, not an ONNX model"),
        (("compile", "libm.so"), "a shared library, compiled already"),
        (("inspect", "model.pt"), "a model of torch"),
        (("run", "nothing.onnx"), "there is no file"),
        (("compile", DIGITS, "-o", "out.xyz"), "can't write 'out.xyz'"),
        (("run", DIGITS, "-o", "out.txt"), "can't write 'out.txt'"),
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
