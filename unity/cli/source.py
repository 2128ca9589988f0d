"""What a command is given: a model, to be compiled, or an artifact, to be loaded.

The compiler is imported for models alone: an artifact is to run at once.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from unity.errors import UnityError
from unity.runtime.artifact.container import is_container
from unity.runtime.artifact.read import load as load_executable
from unity.runtime.executable import Executable

from .feeds import Inputs, feeds_for, inputs_of

if TYPE_CHECKING:
    from unity.ir.dtype import Array
    from unity.transform import Precision


@dataclass(frozen=True, slots=True)
class Ready:
    """An executable, what it takes, inputs for it, and how it came to be."""

    executable: Executable
    inputs: Inputs
    feeds: dict[str, Array]
    report: str


def is_artifact(path: Path) -> bool:
    """Whether a file is a compiled executable."""
    return is_container(path)


def only_models(path: Path, command: str) -> None:
    """Refuse an artifact.

    Raises:
        UnityError: It is one.
    """
    if is_artifact(path):
        raise UnityError(
            f"`unity {command}` takes a model; {path} is compiled and holds no source of it"
        )


def compiled(
    path: Path,
    threads: int | None,
    console: Console,
    precision: Precision = "f32",
    target: str = "cpu",
) -> tuple[Executable, str]:
    """The executable of a model or an artifact, and how long that took, in words."""
    start = time.perf_counter()
    if is_artifact(path):
        _only_f32(path, precision)
        executable = load_executable(path, threads=threads)
        return executable, f"loaded in {time.perf_counter() - start:.2f} s"
    from unity.compiler import compile as unity_compile
    from unity.compiler import load

    with console.status(f"importing {path.name}"):
        module = load(path)
    imported = time.perf_counter()
    with console.status(f"compiling {path.name}"):
        executable = unity_compile(module, target, threads=threads, precision=precision)
    took = time.perf_counter() - imported
    return executable, f"imported in {imported - start:.2f} s, compiled in {took:.2f} s"


def ready(
    path: Path,
    files: list[str],
    dims: list[str],
    threads: int | None,
    seed: int,
    console: Console,
    precision: Precision = "f32",
) -> Ready:
    """A model compiled or an artifact loaded, with inputs for it.

    The inputs of a model are looked at before it is compiled, which may take a while.
    """
    if is_artifact(path):
        executable, report = compiled(path, threads, console, precision)
        inputs = inputs_of(executable)
        return Ready(executable, inputs, feeds_for(inputs, files, dims, seed), report)
    from .model_inputs import model_inputs

    inputs = model_inputs(path)
    feeds = feeds_for(inputs, files, dims, seed)
    executable, report = compiled(path, threads, console, precision)
    return Ready(executable, inputs, feeds, report)


def _only_f32(path: Path, precision: Precision) -> None:
    if precision != "f32":
        raise UnityError(f"{path} is compiled: its precision was chosen then")
