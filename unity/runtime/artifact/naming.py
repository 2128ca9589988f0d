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


_OTHERS = {
    ".py": (
        "a Python program",
        "run it with python; unity.compile(f) takes the decorated functions in it, and "
        "torch.onnx.export(model, args, 'model.onnx') makes a model of one of torch",
    ),
    ".so": ("a shared library, compiled already", "a program in C loads it, by the header beside"),
    ".pt": ("a model of torch", "export it: torch.onnx.export(model, args, 'model.onnx')"),
    ".pth": ("weights of torch", "export the model: torch.onnx.export(model, args, 'model.onnx')"),
    ".safetensors": ("weights without a model", "export the model they are for to ONNX"),
    ".h": ("a header for C", "it belongs to the library beside it"),
    ".npz": ("arrays", "inputs are given as --input FILE.npz, or to exe.run"),
    ".npy": ("an array", "an input is given as --input NAME=FILE.npy, or to exe.run"),
}
"""What files are that are no models, by suffix, and what to do."""


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


def require_suffix(path: Path) -> None:
    """Refuse to write a program under another name than `is_executable` knows it by.

    Raises:
        UnityError: The path has another suffix, or none.
    """
    require_program_name(path)
    if path.suffix.lower() != SUFFIX:
        raise UnityError(
            f"an executable is called NAME{SUFFIX}, or nothing would load it; got {str(path)!r}",
            hint=f"call it {path.name}{SUFFIX}",
        )


def require_model_name(path: Path) -> None:
    """Refuse a path that surely holds something else than a model.

    Raises:
        UnityError: Its suffix says so.
    """
    other = _OTHERS.get(path.suffix.lower())
    if other is not None:
        what, hint = other
        raise UnityError(f"{path} is {what}, not an ONNX model", hint=hint)


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
