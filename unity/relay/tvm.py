"""What scripts reach as ``tvm.cpu()``, ``tvm.nd.array``, ``tvm.transform.PassContext`` ...

``from unity.relay import tvm`` in place of ``import tvm``; ``unity.relay.tvm`` in place of ``tvm``
in imports from it. What is not there is refused, with what to do instead.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unity import relay
from unity.errors import UnityError
from unity.errors import UnityError as TVMError

from . import frontend, graph_executor, module, nd, transform, vm
from .building import load_module
from .comparing import assert_structural_equal, structural_equal
from .declared import container
from .declared.adt import GlobalTypeVar, TypeData, type_var
from .expr import GlobalVar, Op
from .graph_executor import load_param_dict
from .logs.tuners import auto_scheduler, autotvm, meta_schedule
from .module import IRModule, load_json
from .nd import NDArray, cpu, device
from .places import here
from .saving import save_json, save_param_dict
from .target import Target
from .types import FuncType, TensorType, TupleType

__all__ = [
    "IRModule",
    "TVMError",
    "auto_scheduler",
    "autotvm",
    "context",
    "contrib",
    "cpu",
    "device",
    "error",
    "frontend",
    "ir",
    "meta_schedule",
    "nd",
    "parser",
    "relay",
    "runtime",
    "target",
    "testing",
    "transform",
]
__path__: list[str] = []  # `from unity.relay.tvm.contrib import graph_executor`: imports.py


class Namespace:
    """Names of a module of TVM's, and those that it has and we do not.

    Args:
        name: What it is called there.
        refused: What to do instead, by name.
        names: What it has.
    """

    def __init__(self, name: str, refused: Mapping[str, str] | None = None, **names: Any) -> None:
        self._name, self._refused, self._names = name, dict(refused or {}), names

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._names:
            return self._names[name]
        if name in self._refused:
            raise UnityError(f"{self._name}.{name} is not there", here(), self._refused[name])
        raise AttributeError(f"{self._name} is not known to have {name!r}")

    def __dir__(self) -> list[str]:
        return sorted(self._names)


class TempDirectory:
    """A folder that goes with the program."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.temp_dir = self._folder.name

    path = property(lambda self: self.temp_dir)

    def relpath(self, name: str) -> str:
        """The path of a file in it."""
        return str(Path(self.temp_dir) / name)

    def listdir(self) -> list[str]:
        """The files in it."""
        return sorted(p.name for p in Path(self.temp_dir).iterdir())

    def remove(self) -> None:
        """Remove it."""
        self._folder.cleanup()


def assert_allclose(
    actual: npt.ArrayLike, desired: npt.ArrayLike, rtol: float = 1e-7, atol: float = 1e-7
) -> None:
    """As `numpy.testing.assert_allclose`, with TVM's bounds."""
    np.testing.assert_allclose(np.asarray(actual), np.asarray(desired), rtol=rtol, atol=atol)


def enabled(target: str) -> bool:
    """Whether there is code for a kind of target."""
    return target.split()[:1] == ["llvm"]


_WATCH = "unity.compile(model, instruments=[...], check=True, trace=...) watches passes"
_PROFILE = "print(lib.executable.profile(...)) tells what each kernel takes"
_WRITTEN = "kernels are written with unity.te or @unity.script.prim_func, and called by R.call_tir"
_ONE_DEVICE = "programs run on the CPU: tvm.cpu()"
_LOCAL = "there is no remote runner: save lib.executable, and load it on the other machine"
context = device
contrib = Namespace(
    "tvm.contrib",
    {
        "debugger": _PROFILE,
        "download": "fetch files yourself, and give their paths",
        "cc": "lib.executable.export_library(path) makes a library for C",
        "ndk": "lib.executable.export_library(path) makes a library for C",
    },
    graph_executor=graph_executor,
    graph_runtime=graph_executor,
    utils=Namespace("tvm.contrib.utils", tempdir=TempDirectory),
    util=Namespace("tvm.contrib.util", tempdir=TempDirectory),
)
error = Namespace("tvm.error", TVMError=TVMError, OpNotImplemented=TVMError)
ir = Namespace(
    "tvm.ir",
    {
        "instrument": _WATCH,
        "register_op_attr": "an operator's implementations are chosen by resolve=; "
        "unity.rewrite_rule changes calls",
        "register_intrin_lowering": _WRITTEN,
    },
    IRModule=IRModule,
    Op=Op,
    GlobalVar=GlobalVar,
    GlobalTypeVar=GlobalTypeVar,
    TypeData=TypeData,
    TypeVar=type_var,
    TensorType=TensorType,
    TupleType=TupleType,
    FuncType=FuncType,
    assert_structural_equal=assert_structural_equal,
    load_json=load_json,
    save_json=save_json,
    structural_equal=structural_equal,
    transform=transform,
)
parser = Namespace("tvm.parser", fromtext=module.parse, parse=module.parse)
runtime = Namespace(
    "tvm.runtime",
    {"profiling": _PROFILE},
    NDArray=NDArray,
    container=container,
    enabled=enabled,
    load_module=load_module,
    load_param_dict=load_param_dict,
    ndarray=nd,
    save_param_dict=save_param_dict,
    vm=vm,
)
target = Namespace(
    "tvm.target",
    dict.fromkeys(("cuda", "rocm", "mali", "intel_graphics", "opengl", "vta"), _ONE_DEVICE),
    Target=Target,
    create=Target,
)
testing = Namespace(
    "tvm.testing",
    assert_allclose=assert_allclose,
    device_enabled=enabled,
    enabled_targets=lambda: [("llvm", cpu())],
    utils=Namespace("tvm.testing.utils", assert_allclose=assert_allclose),
)
_REFUSED = {
    **dict.fromkeys(("cuda", "gpu", "rocm", "opencl", "vulkan", "metal", "mali"), _ONE_DEVICE),
    **dict.fromkeys(("te", "tir", "topi", "script", "lower", "build", "compute"), _WRITTEN),
    **dict.fromkeys(("register_func", "get_global_func"), "call Python: hosts of unity.compile"),
    "instrument": _WATCH,
    "micro": "lib.executable.export_library(path) makes a library for C",
    "rpc": _LOCAL,
    "relax": "unity.script is the language; unity.load reads models",
    "driver": "the command is `unity`: run, check, bench, compile, migrate",
}


def __getattr__(name: str) -> Any:
    if name in _REFUSED:
        raise UnityError(f"tvm.{name} is not there", here(), _REFUSED[name])
    raise AttributeError(f"tvm is not known to have {name!r}")
