"""What scripts reach as ``tvm.cpu()``, ``tvm.nd.array``, ``tvm.transform.PassContext`` ...

``from unity.relay import tvm`` in place of ``import tvm``.
"""

from __future__ import annotations

from types import SimpleNamespace

from unity import relay
from unity.errors import UnityError as TVMError

from . import frontend, graph_executor, module, nd, transform, vm
from .building import load_module
from .comparing import assert_structural_equal, structural_equal
from .expr import Op
from .graph_executor import load_param_dict
from .module import IRModule, load_json
from .nd import cpu, device
from .saving import save_json, save_param_dict
from .target import Target
from .tuners import auto_scheduler, autotvm, meta_schedule
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
    "transform",
]
context = device
contrib = SimpleNamespace(graph_executor=graph_executor, graph_runtime=graph_executor)
error = SimpleNamespace(TVMError=TVMError)
ir = SimpleNamespace(
    IRModule=IRModule,
    Op=Op,
    TensorType=TensorType,
    TupleType=TupleType,
    FuncType=FuncType,
    assert_structural_equal=assert_structural_equal,
    load_json=load_json,
    save_json=save_json,
    structural_equal=structural_equal,
    transform=transform,
)
parser = SimpleNamespace(fromtext=module.parse, parse=module.parse)
runtime = SimpleNamespace(
    load_module=load_module,
    load_param_dict=load_param_dict,
    save_param_dict=save_param_dict,
    vm=vm,
)
target = SimpleNamespace(Target=Target, create=Target)
