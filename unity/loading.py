"""`unity.load`: a model, or a compiled executable where the path asks for one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from unity.arguments import public
from unity.errors import UnityError
from unity.runtime.artifact.naming import SUFFIX, is_executable
from unity.runtime.artifact.read import load as load_executable

if TYPE_CHECKING:
    from onnx import ModelProto

    from unity.ir.dtype import Array
    from unity.ir.module import IRModule


@overload
def load(model: ModelProto) -> IRModule: ...
@overload
def load(
    model: str | Path,
    *,
    params: str | Path | Mapping[str, Array] | None = None,
    examples: Mapping[str, object] | None = None,
    hosts: Iterable[Callable[..., object]] = (),
    key: bytes | None = None,
    threads: int | None = None,
) -> Any: ...
@public
def load(
    model: str | Path | ModelProto,
    *,
    params: str | Path | Mapping[str, Array] | None = None,
    examples: Mapping[str, object] | None = None,
    hosts: Iterable[Callable[..., object]] = (),
    key: bytes | None = None,
    threads: int | None = None,
) -> object:
    """Load a model, or from a file that is called ``.unity`` an executable.

    A model is data. An executable is a program: load none that you would not run (see
    `unity.runtime.load`). So what a file is called decides, never what is in it.

    Args:
        model: The path of an ONNX or a Relay file, or of an executable that `Executable.save`
            wrote, or an ONNX model in memory.
        params: Of a Relay model (``.relay``), values for its parameters: the path of a parameter
            dictionary, or arrays by name.
        examples: Of a Relay model, values of inputs of declared types (lists, trees), by name,
            which go as far as those that the program is for: `unity.frontend.relay.from_relay`.
        hosts: Of an executable, the Python functions that it may call.
        key: Of an executable, what it was saved with; one that was saved without it is refused.
        threads: Of an executable, how many threads it may use.

    Returns:
        An `IRModule` of a model, an `Executable` of an executable. `unity.compiler.load` and
        `unity.runtime.load` are typed and take one kind each.

    Raises:
        UnityError: The file is missing or damaged, the model is ill-formed, the executable can't
            run here, calls what is not known here or is not called ``.unity``.
        UnsupportedError: The model uses what Unity does not implement; everything is listed.
    """
    if isinstance(model, str | Path) and is_executable(Path(model)):
        if params is not None or examples is not None:
            raise UnityError("params and examples are for models, and this is an executable")
        return load_executable(model, hosts=hosts, key=key, threads=threads)
    if key is not None or threads is not None or hosts != ():
        raise UnityError(
            "hosts, key and threads are for executables, and this is a model",
            hint=f"files of executables are called {SUFFIX}",
        )
    from unity.compiler import load as load_model  # the compiler, which executables do without

    return load_model(model, params=params, examples=examples)
