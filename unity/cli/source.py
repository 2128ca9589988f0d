"""What a command is given: a model, to be compiled, or an artifact, to be loaded.

The compiler is imported for models alone: an artifact is to run at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from unity.errors import UnityError
from unity.runtime.artifact.naming import is_executable
from unity.runtime.artifact.read import load as load_executable
from unity.runtime.executable import Executable

from .feeds import Inputs, chosen_sizes, feeds_for, inputs_of, sizes_hint
from .options import Options

if TYPE_CHECKING:
    from .feeds import Feed


@dataclass(frozen=True, slots=True)
class Ready:
    """An executable, what it takes, inputs for it, and how it came to be.

    `chosen` are the sizes that nothing the user gave says, by symbol.
    """

    executable: Executable
    inputs: Inputs
    feeds: dict[str, Feed]
    report: str
    chosen: Mapping[str, int]

    def run(self) -> dict[str, object]:
        """The results for these inputs.

        Raises:
            UnityError: They are refused; where they were generated, the hint tells of their sizes.
        """
        try:
            return {**self.executable.run(self.feeds)}
        except UnityError as error:
            if error.hint is None:
                error.hint = sizes_hint(error.message, self.chosen)
            raise


def only_models(path: Path, command: str) -> None:
    """Refuse an artifact.

    Raises:
        UnityError: It is one, or is one under another name.
    """
    if is_executable(path):
        raise UnityError(
            f"`unity {command}` takes a model; {path} is compiled and holds no source of it"
        )


def compiled(
    path: Path, console: Console, options: Options, hosts: Sequence[str] = ()
) -> tuple[Executable, str]:
    """The executable of a model or an artifact, and how long that took, in words."""
    start = time.perf_counter()
    if is_executable(path):
        _require_left_open(path, options)
        functions = [_function(h) for h in hosts]
        executable = load_executable(path, hosts=functions, threads=options.threads)
        return executable, f"loaded in {time.perf_counter() - start:.2f} s"
    from unity.compiler import compile as unity_compile

    from .model import read_model

    with console.status(f"importing {path.name}"):
        module = read_model(path, options)
    imported = time.perf_counter()
    with console.status(f"compiling {path.name}"):
        executable = unity_compile(module, **options.compiling)
    took = time.perf_counter() - imported
    return executable, f"imported in {imported - start:.2f} s, compiled in {took:.2f} s"


def ready(
    path: Path,
    files: list[str],
    dims: list[str],
    seed: int,
    console: Console,
    options: Options,
    hosts: Sequence[str] = (),
) -> Ready:
    """A model compiled or an artifact loaded, with inputs for it.

    The inputs of a model are looked at before it is compiled, which may take a while.
    """
    if is_executable(path):
        executable, report = compiled(path, console, options, hosts)
        inputs = inputs_of(executable)
        feeds = feeds_for(inputs, files, dims, seed)
        chosen = {} if files else chosen_sizes(inputs, feeds, dims)
        return Ready(executable, inputs, feeds, report, chosen)
    from .model_inputs import model_inputs

    inputs = model_inputs(path, options)
    feeds = feeds_for(inputs, files, dims, seed)
    executable, report = compiled(path, console, options)
    chosen = {} if files else chosen_sizes(inputs, feeds, dims)
    return Ready(executable, inputs, feeds, report, chosen)


def _require_left_open(path: Path, options: Options) -> None:
    """Refuse options that were chosen when an artifact was compiled."""
    if options.params is not None:
        raise UnityError(f"{path} is compiled: its parameters were given then")
    if options.examples is not None:
        raise UnityError(f"{path} is compiled: the form of its inputs was chosen then")
    if options.precision != "f32":
        raise UnityError(f"{path} is compiled: its precision was chosen then")
    if options.db is not None:
        raise UnityError(f"{path} is compiled: its kernels were laid out then")
    if not options.winograd:
        raise UnityError(
            f"{path} is compiled: whether convolutions take Winograd's tiles was chosen then"
        )


def _function(name: str) -> Callable[..., object]:
    """The function that a user named, ``module.function``; its module is imported.

    Raises:
        UnityError: There is none.
    """
    module, _, function = name.rpartition(".")
    try:
        found: object = vars(import_module(module))[function]
    except (ImportError, KeyError, ValueError) as error:
        raise UnityError(
            f"--host {name}: there is no such function ({type(error).__name__}: {error})",
            hint="give module.function, of a module that can be imported from here",
        ) from error
    if not callable(found):
        raise UnityError(f"--host {name} is no function")
    return found
