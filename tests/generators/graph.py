"""Random modules of graph functions, kernels called from them, and control flow.

Every module is well typed and runs: `arguments_for` makes inputs for its ``main``.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import numpy as np

from unity.ir.attrs import Attrs
from unity.ir.dims import evaluate
from unity.ir.dtype import FLOAT32, INT64, Array
from unity.ir.graph import Expr, Function, Tuple
from unity.ir.lattice import function_type
from unity.ir.module import IRModule
from unity.ir.prim_expr import SizeVar
from unity.ir.stmt import PrimFunc
from unity.ir.types import ObjectType, TensorType, Type
from unity.op.builder import GraphBuilder

from .control import grow
from .prim_func import Options, prim_func, random_array
from .state import DTYPES, SIZES, M, N, State


def module(rng: Random, size: int = 12, control_flow: bool = True) -> IRModule:
    """A random module with a function ``main``.

    Args:
        rng: The choices.
        size: How many bindings there are, about.
        control_flow: Whether if, while, scan, closures and calls of functions may occur.
    """
    options = Options(
        dtypes=(FLOAT32, INT64), symbols=(SizeVar("n"),), intrinsics=False, depth=2, stages=2
    )
    kernels = {f"kernel_{i}": prim_func(rng, options=options) for i in range(rng.randint(0, 2))}
    helpers: dict[str, Function] = {}
    if control_flow and rng.random() < 0.5:
        helpers["helper"] = _function(rng, kernels, {}, 3, False)
    main = _function(rng, kernels, helpers, size, control_flow)
    attrs = Attrs(made_by="tests") if rng.random() < 0.1 else Attrs()
    return IRModule({**kernels, **helpers, "main": main}, attrs)


def arguments_for(
    m: IRModule,
    rng: np.random.Generator,
    name: str = "main",
    sizes: Mapping[str, int] = SIZES,
) -> list[Array]:
    """Arrays for the parameters of a random function; `sizes` gives ``n`` and ``m``."""
    function = m.graph_functions()[name]
    arrays: list[Array] = []
    for param in function.params:
        kind = param.type
        assert isinstance(kind, TensorType)
        assert isinstance(kind.shape, tuple)
        assert kind.dtype is not None
        values = {N: sizes["n"], M: sizes["m"]}
        shape = tuple(evaluate(d, values) for d in kind.shape)
        arrays.append(random_array(rng, shape, kind.dtype))
    return arrays


def _function(
    rng: Random,
    kernels: Mapping[str, PrimFunc],
    helpers: Mapping[str, Function],
    size: int,
    control_flow: bool,
) -> Function:
    signatures: dict[str, Type] = {name: ObjectType() for name in kernels}
    signatures.update({name: function_type(f) for name, f in helpers.items()})
    builder = GraphBuilder(signatures, dataflow=rng.random() < 0.7)
    builder.reserve_symbols("n", "m")
    state = State(rng, builder, kernels, helpers)
    state.values.append(builder.param("x", TensorType((N, M), FLOAT32)))
    for i in range(rng.randint(0, 2)):
        shape = tuple(rng.choice((1, 2, 3, N, N, M)) for _ in range(rng.randint(0, 3)))
        state.values.append(builder.param(f"x{i}", TensorType(shape, rng.choice(DTYPES))))
    grow(state, size, control_flow)
    result: Expr = state.values[-1]
    if rng.random() < 0.8:  # as much as is at hand, so that little of it is dead
        count = min(len(state.values), rng.randint(0, 10))
        result = Tuple(tuple(state.values[-count:] if count else ()))
    return builder.finish(result)
