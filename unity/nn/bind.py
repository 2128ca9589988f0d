"""Parameters of a program given their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from unity.arguments import public
from unity.errors import UnityError
from unity.ir.dtype import Array
from unity.ir.graph import Constant, Expr, Function, Var
from unity.ir.module import IRModule
from unity.ir.types import TensorType, Type
from unity.ir.visit_graph import substitute_vars
from unity.op.builder import identifier


@public
def bind(module: IRModule, state: Mapping[str, Array], function: str = "main") -> IRModule:
    """A program with some inputs of a function as constants.

    Args:
        module: The program.
        state: Arrays by the inputs' names; dots count as ``_``, so what `Module.state` gives fits
            what ``Module.export(bind=False)`` made.
        function: Which function.

    Raises:
        UnityError: It has no such function or input, or an array doesn't fit its type.
    """
    found = module.graph_functions().get(function)
    if found is None:
        raise UnityError(f"the module has no graph function {function!r}")
    params = {p.name: p for p in found.params}
    values: dict[Var, Expr] = {}
    for name, array in state.items():
        param = params.get(identifier(name))
        if param is None:
            raise UnityError(
                f"{function} has no input {name!r}", hint=f"it has {', '.join(params)}"
            )
        data = np.asarray(array)
        if not _fits(param.type, data):
            raise UnityError(
                f"{name}: expected {param.type}, got {data.dtype} of shape {data.shape}"
            )
        values[param] = Constant(data, name)
    rest = tuple(p for p in found.params if p not in values)
    changed = substitute_vars(replace(found, params=rest), values)
    assert isinstance(changed, Function)
    return module.with_({function: changed})


def _fits(kind: Type, data: Array) -> bool:
    """Whether an array is of a type."""
    if not isinstance(kind, TensorType) or kind.dtype is None:
        return False
    return kind.shape == data.shape and data.dtype == kind.dtype.numpy
