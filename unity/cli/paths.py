"""Files that commands are given: what they are, told before anything is compiled."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unity.errors import UnityError
from unity.runtime.artifact.container import is_container
from unity.runtime.artifact.naming import require_model_name


def model_path(path: Path) -> Path:
    """A path that may be a model's, a Python program's (``model.py:NAME``) or an executable's.

    Raises:
        UnityError: There is no such file, or it is surely something else.
    """
    return path if program_in(path) is not None else file_path(path)


def file_path(path: Path) -> Path:
    """A path that may be a model's file or an executable's.

    Raises:
        UnityError: There is no such file, or it is surely something else.
    """
    if not path.exists():
        raise UnityError(f"there is no file {path}")
    if path.is_dir():
        raise UnityError(f"{path} is a folder", hint="give the model's file, model.onnx")
    if is_container(path):
        return path  # an executable under another name: who reads it says so
    require_model_name(path)
    return path


def program_path(path: Path) -> Path:
    """A path of a Python program.

    Raises:
        UnityError: There is no such file, or it is surely something else.
    """
    if not path.is_file():
        raise UnityError(f"there is no file {path}")
    if path.suffix != ".py":
        raise UnityError(f"{path} is no Python program", hint="give a file NAME.py")
    return path


def program_in(path: Path) -> tuple[Path, str | None] | None:
    """The Python file that a path names, and the model in it that was asked for; None if none.

    >>> program_in(Path("model.onnx"))

    Raises:
        UnityError: It names one that is not there.
    """
    text, _, name = str(path).partition(".py:")
    file = Path(f"{text}.py") if name else path
    if file.suffix != ".py":
        return None
    if not file.is_file():
        raise UnityError(f"there is no file {file}")
    return file, name or None


def output_path(output: str, suffixes: Sequence[str], *, folder: bool = False) -> Path:
    """Where a command writes to: a file with one of some suffixes, or a folder.

    A folder exists, ends in a slash or has no suffix.

    Raises:
        UnityError: It is empty, or the suffix says something else.
    """
    if not output:
        raise UnityError("there is no name to write to", hint=f"NAME{suffixes[0]}")
    path = Path(output)
    is_folder = output.endswith("/") or path.is_dir() or not path.suffix
    if path.suffix in suffixes and not is_folder:
        if not path.parent.is_dir():
            raise UnityError(f"can't write {output!r}: there is no folder {path.parent}")
        return path
    if is_folder and folder:
        return path
    known = ", ".join(f"NAME{suffix}" for suffix in suffixes)
    raise UnityError(
        f"can't write {output!r}: the suffix says what is written",
        hint=f"{known}, or a folder: {output}/" if folder else known,
    )
