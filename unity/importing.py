"""Models from files: `load`, which imports the frontend that a file needs when it is called."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from unity.arguments import public
from unity.collection import no_cycle_collection
from unity.errors import UnityError
from unity.ir.dims import Dynamic
from unity.ir.dtype import Array
from unity.runtime.artifact.container import is_container, not_ours
from unity.runtime.artifact.naming import is_executable, require_model_name

if TYPE_CHECKING:
    from onnx import ModelProto

    from unity.ir.module import IRModule
    from unity.script import ScriptFunction, ScriptPrimFunc

Model: TypeAlias = (
    "IRModule | ScriptFunction[..., object] | ScriptPrimFunc[...] | str | Path | ModelProto"
)
"""A module, a decorated function or kernel, the path of a model, or an ONNX model in memory."""


@public
@no_cycle_collection()
def load(
    model: str | Path | ModelProto,
    *,
    dynamic: Dynamic | None = None,
    params: str | Path | Mapping[str, Array] | None = None,
    examples: Mapping[str, object] | None = None,
) -> IRModule:
    """Import a model.

    Args:
        model: The path of an ONNX file, or an ONNX model in memory. Large weights stay in the file,
            which must not be written to while the module is in use; executables do without it. Or
            the path of a Relay model: ``.relay`` text, JSON of ``tvm.ir.save_json``, an archive.
        params: Of a Relay model, values for its parameters: the path of a parameter dictionary, or
            arrays by name.
        examples: Of a Relay model, values of inputs of declared types (lists, trees), by name,
            which go as far as those that the program is for: `unity.frontend.relay.from_relay`.
        dynamic: Dims of inputs to be changed before its nodes are converted, as in `compile`.

    Raises:
        UnityError: The file is missing or damaged, or the model is ill-formed.
        UnsupportedError: It uses what Unity does not implement; everything is listed.
    """
    from unity.frontend.onnx import from_onnx
    from unity.frontend.relay import is_relay

    _require_model(model)
    if isinstance(model, str | Path) and is_relay(Path(model)):
        from unity.frontend.relay import from_relay

        return from_relay(Path(model), params, dynamic=dynamic, examples=examples)
    if params is not None or examples is not None:
        raise UnityError(
            "params and examples are for Relay models; an ONNX model holds its own",
            hint="a file of Relay is called .relay",
        )
    if isinstance(model, str | Path) and is_executable(Path(model)) and Path(model).is_file():
        if not is_container(Path(model)):
            raise not_ours(Path(model), Path(model).stat().st_size)
        raise UnityError(
            f"{model} is an executable, compiled already", hint="unity.load(path) loads it"
        )
    if isinstance(model, str | Path) and Path(model).is_file():
        require_model_name(Path(model))
    return from_onnx(model, dynamic=dynamic)


def _require_model(model: object) -> None:
    """Refuse what is neither a path nor an ONNX model.

    Raises:
        UnityError: It is something else; the hint says what to do with a model of torch.
    """
    if isinstance(model, str | Path) or hasattr(model, "SerializeToString"):
        return
    home = type(model).__module__.partition(".")[0]
    if home == "torch":
        raise UnityError(
            f"a model of torch ({type(model).__name__}) can't be read directly yet",
            hint='export it to ONNX: torch.onnx.export(model, args, "model.onnx", dynamo=True), '
            'then unity.compile("model.onnx")',
        )
    raise UnityError(
        f"can't compile {type(model).__name__}",
        hint="give a module, a decorated function, a path or an ONNX model",
    )
