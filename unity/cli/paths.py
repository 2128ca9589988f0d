"""Files that commands are given: what they are, told before anything is compiled."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unity.errors import UnityError
from unity.runtime.artifact.container import is_container

_OTHERS = {
    ".py": ("a Python program", "run it with python; a model of torch in it goes to ONNX first"),
    ".so": ("a shared library, compiled already", "a program in C loads it, by the header beside"),
    ".pt": ("a model of torch", "export it: torch.onnx.export(model, args, 'model.onnx')"),
    ".pth": ("weights of torch", "export the model: torch.onnx.export(model, args, 'model.onnx')"),
    ".safetensors": ("weights without a model", "export the model they are for to ONNX"),
    ".h": ("a header for C", "it belongs to the library beside it"),
    ".npz": ("arrays", "give them as --input"),
    ".npy": ("an array", "give it as --input NAME=FILE.npy"),
}
"""What files are that are no models, by suffix, and what to do."""


def model_path(path: Path) -> Path:
    """A path that may be a model's or an executable's.

    Raises:
        UnityError: There is no such file, or it is surely something else.
    """
    if not path.exists():
        raise UnityError(f"there is no file {path}")
    if path.is_dir():
        raise UnityError(f"{path} is a folder", hint="give the model's file, model.onnx")
    if is_container(path):
        return path  # an executable under another name: who reads it says so
    other = _OTHERS.get(path.suffix.lower())
    if other is not None:
        what, hint = other
        raise UnityError(f"{path} is {what}, not an ONNX model", hint=hint)
    return path


def output_path(output: str, suffixes: Sequence[str], *, folder: bool = False) -> Path:
    """Where a command writes to: a file with one of some suffixes, or a folder.

    A folder exists, ends in a slash or has no suffix.

    Raises:
        UnityError: The suffix says something else.
    """
    path = Path(output)
    is_folder = output.endswith("/") or path.is_dir() or not path.suffix
    if path.suffix in suffixes and not is_folder:
        return path
    if is_folder and folder:
        return path
    known = ", ".join(f"NAME{suffix}" for suffix in suffixes)
    raise UnityError(
        f"can't write {output!r}: the suffix says what is written",
        hint=f"{known}, or a folder: {output}/" if folder else known,
    )
