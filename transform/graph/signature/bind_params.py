"""BindParams: inputs of a function become constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from unity.errors import UnityError
from unity.ir.dtype import Array, dtype
from unity.ir.graph import Constant, Expr, Function, Var
from unity.ir.lattice import unify
from unity.ir.module import IRModule
from unity.ir.types import TensorType
from unity.ir.visit import type_symbols
from unity.ir.visiting.visit_graph import substitute_symbols, substitute_vars
from unity.op.builder import identifier

from ...passes import Context, Pass
from ..simplify.inline_functions import holds
from .callers import function_to_change
from .parameters import PARAMETERS, inputs_by_name, with_params


@dataclass(frozen=True, slots=True, eq=False)
class BindParams(Pass):
    """Makes some inputs of a function constants; sizes that they tell become known with them.

    Attributes:
        function: Which function; none calls it.
        params: Arrays by names: that of a parameter, which ``nn.Module.export(bind=False)``
            recorded; that which an imported model had for the input; or the input's own (dots
            count as ``_`` in a function without a record).

    Raises:
        UnityError: There is no such function or input, an array doesn't fit its type, or two are
            for one input.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... n = dim("n")
    ... @script.function
    ... def main(x: f32[Tensor, 2, n], w: f32[Tensor, n]) -> f32[Tensor, 2, n]:
    ...     y = R.add(x, w)
    ...     return y
    ... ''')
    >>> step = BindParams("main", {"w": np.array([1, 2, 3], np.float32)})
    >>> print(print_module(step(before, Context())), end="")
    @script.function
    def main(x: f32[Tensor, 2, 3]) -> f32[Tensor, 2, 3]:
        y = R.add(x, R.const([1.0, 2.0, 3.0], "float32"))
        return y
    """

    function: str
    params: Mapping[str, Array]

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """One function; the others stay."""
        found = function_to_change(module, self.function, self.name)
        if not self.params:
            return module
        inputs = inputs_by_name(found, self.function)
        values: dict[Var, Constant] = {}
        types: list[TensorType] = []
        for name, array in self.params.items():
            param = inputs.get(name)
            if param is None and PARAMETERS not in found.attrs:
                param = inputs.get(identifier(name))
            if param is None:
                raise UnityError(
                    f"{self.function} has no input {name!r}", hint=f"it has {', '.join(inputs)}"
                )
            if param in values:
                raise UnityError(
                    f"{name!r} and {values[param].name!r} are the same input of {self.function}",
                    hint="give it one array",
                )
            data = np.asarray(array)
            types.append(_type_of(name, param, data))
            values[param] = Constant(data, name)
        sizes = unify([p.type for p in values], types)
        rest = tuple(p for p in found.params if p not in values)
        changed = substitute_vars(with_params(found, rest), dict[Var, Expr](values))
        assert isinstance(changed, Function)
        return module.with_({self.function: substitute_symbols(changed, sizes)})


def _type_of(name: str, param: Var, data: Array) -> TensorType:
    """The type of an array, which is one of the parameter's."""
    shape = tuple(int(n) for n in data.shape)
    error = UnityError(
        f"{name}: expected {param.type}, got {data.dtype} of shape {data.shape}",
        hint="reshape or convert the array before",
    )
    try:
        kind = TensorType(shape, dtype(data.dtype))
        sizes = unify([param.type], [kind])
    except UnityError:
        raise error from None
    known = type_symbols(param.type) <= sizes.keys()
    if not known or not all(holds(s, n) for s, n in sizes.items()):
        raise error
    return kind
