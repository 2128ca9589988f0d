"""What files of executables are called: a file that is named as a model is never run as a program.

Executables hold machine code, models are data, and people judge files by their names. So a program
is loaded only where one was asked for, by the suffix `SUFFIX` or by `unity.runtime.load`, and never
under a suffix that models have.
"""

from __future__ import annotations

import os
from os import PathLike, fspath
from pathlib import Path

from unity.errors import UnityError

from .container import is_container

SUFFIX = ".unity"
"""What executables are called."""
MODEL_SUFFIXES = frozenset(
    {
        ".ckpt", ".gguf", ".h5", ".json", ".keras", ".mlmodel", ".npy", ".npz", ".onnx", ".ort",
        ".pb", ".pickle", ".pkl", ".pt", ".pt2", ".pth", ".safetensors", ".tflite", ".torchscript",
    }
)  # fmt: skip
"""What models and their weights are called."""


def path_of(path: str | PathLike[str]) -> Path:
    """A path that was given.

    Raises:
        UnityError: It is something else, or no file can have it.
    """
    if not isinstance(path, str | PathLike):
        raise UnityError(f"a path is a str or a Path, got {type(path).__name__}")
    found = Path(fspath(path))
    try:
        named = bool(found.name) and b"\0" not in os.fsencode(found)
    except UnicodeEncodeError:
        named = False
    if not named:
        raise UnityError(f"{str(found)!r} names no file")
    return found


def require_program_name(path: Path) -> None:
    """Refuse to write or read a program under a model's name.

    Raises:
        UnityError: The path has the suffix of a model.
    """
    if path.suffix.lower() in MODEL_SUFFIXES:
        raise UnityError(
            f"{path} has the name of a model, and an executable is a program",
            hint=f"call it {path.with_suffix(SUFFIX).name}",
        )


def is_executable(path: Path) -> bool:
    """Whether a path asks for an executable, which its suffix says.

    Raises:
        UnityError: The file holds an executable, or says so, and is called something else.
    """
    if path.suffix.lower() == SUFFIX:
        return True
    if is_container(path):
        raise UnityError(
            f"{path} is no model: it holds an executable, machine code, or other tensors",
            hint=f"if you trust whom it comes from, call it {path.with_suffix(SUFFIX).name}; "
            "unity.runtime.load takes any name that no model has",
        )
    return False
