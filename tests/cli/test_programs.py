"""Python programs as models: `unity run model.py`, wherever a command takes a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from unity.cli.app import app
from unity.errors import UnityError

HEAD = """\
import numpy as np
from unity import script
from unity.script import R, Tensor, dim, f32

n = dim("n")
"""
FORWARD = """
@script.function
def half(x: f32[Tensor, n, 4]) -> f32[Tensor, n, 4]:
    return x * 0.5


@script.function
def forward(x: f32[Tensor, n, 4]) -> f32[Tensor, n]:
    return R.exp(R.sum(half(x), axis=1))


if __name__ == "__main__":
    raise SystemExit("it was run as a program")
"""
OTHER = """
@script.function
def other(x: f32[Tensor, n]) -> f32[Tensor, n]:
    return x + 1.0
"""


def unity(*args: object) -> None:
    app([str(a) for a in args], standalone_mode=False)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A file whose name no other test's has: modules stay imported."""
    path = tmp_path / f"program_{abs(hash(str(tmp_path)))}.py"
    path.write_text(HEAD + FORWARD)
    return path


def test_the_function_that_no_other_calls_is_run(program: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((3, 4), np.float32))
    unity("run", program, "-i", f"x={tmp_path}/x.npy", "-o", tmp_path / "out.npz")
    (found,) = np.load(tmp_path / "out.npz").values()
    np.testing.assert_allclose(found, np.full(3, np.exp(2.0)), rtol=1e-6)


def test_every_command_takes_it(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("explain", "inspect", "check"):
        unity(command, program)
    unity("bench", program, "--repeat", 1)
    unity("inspect", program, "--report")
    unity("compile", program, "-o", tmp_path / "forward.unity")
    unity("run", tmp_path / "forward.unity")
    said = capsys.readouterr().out
    for wanted in ("half", "exp", "min ms", "equal", "wrote"):
        assert wanted in said


@pytest.mark.long("the interpreter runs after each pass, and tuning has children of its own")
@pytest.mark.rotated(2)
@pytest.mark.parametrize("command", ["bisect", "tune"])
def test_slow_commands_take_it(
    command: str, program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    extra = ("--db", tmp_path / "tuned.jsonl", "--trials", 1) if command == "tune" else ()
    unity(command, program, *extra)
    wanted = {"bisect": "every pass keeps the numbers", "tune": "uses what is in"}
    assert wanted[command] in capsys.readouterr().out


def test_one_of_several_is_named(program: Path) -> None:
    program.write_text(HEAD + FORWARD + OTHER)
    with pytest.raises(UnityError, match="defines 2 models: forward, other") as caught:
        unity("explain", program)
    assert caught.value.hint == f"say which: {program}:forward"


def test_a_part_may_be_asked_for(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unity("inspect", f"{program}:half")
    assert "exp" not in capsys.readouterr().out


WRONG = {
    "no model": ("x = 1\n", "", "defines no model"),
    "another name": (HEAD + OTHER, ":othr", "has no model 'othr'"),
    "Python's error": ("x = 1\ny = x + 'a'\n", "", r"\.py:2: TypeError: unsupported operand"),
    "no Python": ("x = (\n", "", "SyntaxError"),
    "an error of ours": (
        HEAD + OTHER.replace("x + 1.0", "R.exq(x)"), "", "there is no operator 'exq'"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_told(case: str, program: Path) -> None:
    text, name, says = WRONG[case]
    program.write_text(text)
    with pytest.raises(UnityError, match=says):
        unity("explain", f"{program}{name}")


def test_files_that_are_not_there_or_not_for_it(tmp_path: Path, program: Path) -> None:
    with pytest.raises(UnityError, match=r"there is no file .*none\.py"):
        unity("run", tmp_path / "none.py:main")
    with pytest.raises(UnityError, match="are for Relay models"):
        unity("run", program, "--params", program)
    with pytest.raises(UnityError, match="peers run ONNX models alone"):
        unity("bench", program, "--vs", "onnxruntime")
    with pytest.raises(UnityError, match="a Python program, not an ONNX model"):
        unity("quantize", program, "-o", tmp_path / "q.onnx")
    taken = tmp_path / "json.py"
    taken.write_text(HEAD + OTHER)
    with pytest.raises(UnityError, match="the name of a module that is in use, 'json'"):
        unity("run", taken)
