"""Users' programs pass the type checkers in their strict modes, and their mistakes do not."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from unity import script
from unity.errors import UnityError
from unity.ir.equality import first_difference
from unity.ir.well_formed.verify import verify

from .every_operator import WRONG as WRONG_CALLS
from .every_operator import every_operator

PROGRAM = Path(__file__).with_name("typed_program.py")
ROOT = Path(__file__).parents[2]
WRONG = """
from __future__ import annotations
from unity import script
from unity.script import Buffer, R, Tensor, f32

@script.prim_func
def kernel(a: f32[Buffer, 4]) -> None:
    a[0] = "text"

@script.function
def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    return 1
"""
OPTIONS = {"mypy": ["--strict", "--follow-imports=silent"], "pyright": []}


@pytest.mark.long("a type checker reads all of Unity, with nothing remembered")
@pytest.mark.rotated(2)
@pytest.mark.parametrize("tool", OPTIONS)
def test_a_tutorial_is_well_typed_and_mistakes_are_found(tool: str, tmp_path: Path) -> None:
    """Checked in a folder of its own, as a user's programs are."""
    (tmp_path / "right.py").write_text(PROGRAM.read_text())
    (tmp_path / "wrong.py").write_text(WRONG)
    (tmp_path / "every_operator.py").write_text(every_operator())
    (tmp_path / "wrong_calls.py").write_text(WRONG_CALLS)
    config = '{"typeCheckingMode": "strict", "extraPaths": ["' + str(ROOT) + '"]}'
    (tmp_path / "pyrightconfig.json").write_text(config)
    done = subprocess.run(
        [sys.executable, "-m", tool, *OPTIONS[tool], *(f.name for f in tmp_path.glob("*.py"))],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    assert "right.py:" not in said, said
    assert "wrong.py:8:" in said, said
    assert "wrong.py:12:" in said, said
    assert "every_operator.py:" not in said, said
    for line, text in enumerate(WRONG_CALLS.splitlines(), 1):
        assert (f"wrong_calls.py:{line}:" in said) == ("# wrong" in text), (text, said)


def test_the_program_of_every_operator_is_one() -> None:
    functions = script.parse(every_operator())
    assert len(functions) > 150


def test_it_means_what_it_says() -> None:
    spec = importlib.util.spec_from_file_location("typed_program", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    module = script.module(
        program.main, program.smooth, program.several, program.counted, program.numbers
    )
    verify(module)
    text = script.print_module(module)
    again = script.parse(text, script.constants_of(module))
    assert first_difference(module, again) is None


def test_scalars_in_words_of_type_checkers() -> None:
    text = 'n = dim("n")\n@script.function\ndef main(x: f32[Tensor, n], k: {}):\n    return x\n'
    for mine, plain in (
        ("i64[int, R.Prim]", 'R.Prim("int64")'),
        ("i64[int, R.Prim, n]", 'R.Prim("int64", n)'),
        ("f32[float, R.Prim]", 'R.Prim("float32")'),
        ("boolean[bool, R.Prim]", 'R.Prim("bool")'),
    ):
        both = [script.parse(text.format(k)) for k in (mine, plain)]
        assert first_difference(*both) is None


@pytest.mark.parametrize(
    "wrong", ["i64[float, R.Prim]", "i64[int, n]", "f32[int, R.Prim]", "i64[int, R.Prim, n, n]"]
)
def test_scalars_of_another_class_are_refused(wrong: str) -> None:
    text = (
        f'n = dim("n")\n@script.function\ndef main(k: {wrong}, x: f32[Tensor, n]):\n    return x\n'
    )
    with pytest.raises(UnityError, match=r"to type checkers, a scalar of .* is of the class") as e:
        script.parse(text)
    assert e.value.span is not None
    assert "R.Prim" in (e.value.hint or "")
