"""The module of what a command is given: a model's file, or a Python program that defines one."""

from __future__ import annotations

from pathlib import Path

from unity.compiler import load
from unity.errors import UnityError
from unity.ir.module import IRModule

from .examples import read_examples
from .options import Options
from .paths import program_in
from .program import module_of

_READ: dict[Path, IRModule] = {}
"""What was read in this process: a program is to run once."""


def read_model(path: Path, options: Options | None = None) -> IRModule:
    """The module of a model.

    Args:
        path: A model's file, or ``model.py``, ``model.py:NAME``.
        options: Files that belong to it.

    Raises:
        UnityError: It can't be read; a program's other files are not for it.
    """
    given = options or Options()
    if program_in(path) is None:
        return load(path, params=given.params, examples=read_examples(given.examples))
    if given.params is not None or given.examples is not None:
        raise UnityError(
            f"--params and --examples are for Relay models; {path} is a program",
            hint="it holds its own constants, R.const(array)",
        )
    if path not in _READ:
        _READ[path] = module_of(path)
    return _READ[path]
