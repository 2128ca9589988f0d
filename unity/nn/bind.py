"""Parameters of a program given their numbers: `BindParams` of arrays of any kind, copied."""

from __future__ import annotations

from collections.abc import Mapping

from unity.arguments import public
from unity.ir.dtype import Array
from unity.ir.module import IRModule
from unity.transform import Context
from unity.transform.graph.signature.bind_params import BindParams

from .parameter import array_of


@public
def bind(module: IRModule, state: Mapping[str, object], function: str = "main") -> IRModule:
    """A program with some inputs of a function as constants, by the pass `BindParams`.

    Args:
        module: The program.
        state: Arrays (numpy's, torch's, all with DLPack or ``__array__``) by the names that
            `BindParams` takes: that of a parameter, as `Module.state` gives it and
            ``Module.export(bind=False)`` recorded it; that which an imported model had for the
            input; or the input's own. They are copied.
        function: Which function; none calls it.

    Raises:
        UnityError: It has no such function or input, an array doesn't fit its type, or two are for
            one input.
    """
    arrays: dict[str, Array] = {name: array_of(given, name) for name, given in state.items()}
    return BindParams(function, arrays)(module, Context())
