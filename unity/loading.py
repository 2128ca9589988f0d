"""`unity.load`: a model or a compiled executable, by what the file is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from unity.runtime.artifact.container import is_container
from unity.runtime.artifact.read import load as load_executable

if TYPE_CHECKING:
    from onnx import ModelProto

    from unity.ir.module import IRModule


@overload
def load(model: ModelProto) -> IRModule: ...
@overload
def load(model: str | Path) -> Any: ...
def load(model: str | Path | ModelProto) -> object:
    """Load what is in a file.

    Args:
        model: The path of an ONNX file, of an executable that `Executable.save` wrote, or an ONNX
            model in memory.

    Returns:
        An `IRModule` of a model, an `Executable` of an executable. Which of them, only the file
        knows: `unity.compiler.load` and `unity.runtime.load` are typed and take one kind each.

    Raises:
        UnityError: The file is missing or damaged, the model is ill-formed, or the executable can't
            run here.
        UnsupportedError: The model uses what Unity does not implement; everything is listed.
    """
    if isinstance(model, str | Path) and is_container(Path(model)):
        return load_executable(model)
    from unity.compiler import load as load_model  # the compiler, which executables do without

    return load_model(model)
