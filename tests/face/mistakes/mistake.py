"""What a row of the catalogue of mistakes is, and how it is run."""

from __future__ import annotations

import os
import runpy
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import numpy as np

import unity.demo
from unity.cli.app import app
from unity.errors import UnityError

DIGITS = Path(unity.demo.__file__).parent / "digits.onnx"
PRELUDE = """\
import numpy as np
import unity
from unity import script
from unity.script import Buffer, R, T, Tensor, dim, f32, i32, i64

n, m = dim("n"), dim("m")
"""
"""What every program of the catalogue begins with."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake, what is said of it, and what to do.

    Attributes:
        title: What was done, in a few words.
        wrong: The program, behind `PRELUDE`; a command line if it begins with ``unity ``.
        says: The message without the place; where it ends in dots, what it begins with.
        cause: Why it is refused.
        right: The program as it should be.
        hint: What the error says to do, likewise; None where it has no hint.
    """

    title: str
    wrong: str
    says: str
    cause: str
    right: str
    hint: str | None = None

    @property
    def is_command(self) -> bool:
        """Whether a command line is mistaken."""
        return self.wrong.startswith("unity ")


def run(text: str, folder: Path) -> None:
    """Run a program, or command lines, as a user does: from a file, in a folder of its own.

    Raises:
        UnityError: What the user is told.
    """
    before = Path.cwd()
    os.chdir(folder)
    try:
        if text.startswith("unity "):
            shutil.copy(DIGITS, folder)
            np.save("digit.npy", np.zeros((1, 1, 8, 8), np.float32))
            for line in text.splitlines():
                app(shlex.split(line)[1:], standalone_mode=False)
            return
        program = folder / f"program_{abs(hash(text))}.py"  # Python remembers lines by the name
        program.write_text(f"{PRELUDE}\n{dedent(text)}")
        runpy.run_path(str(program), run_name="__main__")
    finally:
        os.chdir(before)


def error_of(text: str, folder: Path) -> UnityError:
    """What is said of a program that is wrong."""
    try:
        run(text, folder)
    except UnityError as error:
        return error
    raise AssertionError(f"nothing is wrong with\n{text}")
