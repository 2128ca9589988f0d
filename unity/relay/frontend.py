"""Models of other frameworks, as scripts of Relay import them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from logging import getLogger
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from unity.compiler import load
from unity.errors import UnityError
from unity.ir.graph import Function
from unity.ir.module import IRModule
from unity.ir.types import TensorType
from unity.script import print_module

from .places import here
from .types import dtype_of

log = getLogger("unity")
_EXPORTS = {
    "from_pytorch": 'torch.onnx.export(model, args, "model.onnx")',
    "from_tflite": "tf2onnx: python -m tf2onnx.convert --tflite model.tflite --output model.onnx",
    "from_tensorflow": "tf2onnx: python -m tf2onnx.convert --saved-model DIR --output model.onnx",
    "from_keras": "tf2onnx.convert.from_keras(model, output_path='model.onnx')",
    "from_mxnet": "mxnet.onnx.export_model",
    "from_coreml": "coremltools and onnxmltools: onnxmltools.convert_coreml(model)",
    "from_paddle": "paddle2onnx --model_dir DIR --save_file model.onnx",
    "from_darknet": "an exporter of Darknet's weights to ONNX",
    "from_caffe": "an exporter of Caffe's models to ONNX",
    "from_oneflow": "oneflow_onnx: convert_to_onnx_and_check",
}


class ImportedModule(IRModule):
    """A module of ours as scripts have it: its functions can be replaced, ``mod["main"] = ...``."""

    __slots__ = ()

    def __setitem__(self, name: str, function: object) -> None:
        if not isinstance(function, Function):
            raise UnityError(
                f"an imported module holds functions of Unity, got {type(function).__name__}",
                here(),
                "what relay.build_module.bind_params_by_name gives, for one",
            )
        known = MappingProxyType({**self.functions, name: function})
        object.__setattr__(self, "functions", known)

    update_func = __setitem__

    def astext(self, show_meta_data: bool = True) -> str:
        """Unity's text of it, which `unity.script.parse` reads."""
        return print_module(self)


def from_onnx(
    model: Any,
    shape: Mapping[str, Sequence[int]] | None = None,
    dtype: str | Mapping[str, str] = "float32",
    opset: int | None = None,
    freeze_params: bool = True,
    convert_config: object = None,
    export_node_renamed_model_path: object = None,
) -> tuple[ImportedModule, dict[str, Any]]:
    """Import an ONNX model.

    Args:
        model: It, or the path of its file.
        shape: Shapes of inputs by name; sizes left out stay open.
        dtype: Checked where it is said of an input by name.
        opset: The model's own is taken.
        freeze_params: Weights are constants of the module in any case.
        convert_config: Nothing here.
        export_node_renamed_model_path: Nothing here.

    Returns:
        A module of ours, which `relay.build` takes, and no parameters.
    """
    if not freeze_params:
        log.warning("from_onnx: weights are constants of the module, and no parameters")
    changes = {
        name: {axis: int(size) for axis, size in enumerate(sizes) if _is_known(size)}
        for name, sizes in (shape or {}).items()
    }
    module = load(str(model) if isinstance(model, Path) else model, dynamic=changes or None)
    main = module["main"]
    assert isinstance(main, Function)
    if isinstance(dtype, Mapping):
        _check_dtypes(main, dtype)
    return ImportedModule(module.functions, module.attrs), {}


def _is_known(size: object) -> bool:
    return isinstance(size, int | np.integer) and bool(size >= 0)


def _check_dtypes(main: Function, wanted: Mapping[str, str]) -> None:
    own = main.attrs.get("input_names")
    called = own if isinstance(own, tuple) else tuple(p.name for p in main.params)
    for name, param in zip(called, main.params, strict=True):
        if name not in wanted or not isinstance(param.type, TensorType):
            continue
        if dtype_of(wanted[str(name)]) != param.type.dtype:
            raise UnityError(f"the input {name!r} is {param.type.dtype}, not {wanted[str(name)]}")


def __getattr__(name: str) -> Callable[..., Any]:
    if name not in _EXPORTS:
        raise AttributeError(f"relay.frontend has no {name!r}")
    raise UnityError(
        f"relay.frontend.{name} is not there: ONNX models are imported",
        hint=f"{_EXPORTS[name]}, then relay.frontend.from_onnx. Or on an installation of TVM: "
        'open("model.relay", "w").write(mod.astext(show_meta_data=True)), then '
        'relay.load("model.relay")',
    )
