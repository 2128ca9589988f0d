"""``compile(..., check=True)``: the executable against the interpreter, on generated inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.dims import Symbol, evaluate
from unity.ir.dtype import FLOAT32, RTOL, Array
from unity.ir.graph import Function
from unity.ir.module import IRModule
from unity.ir.types import ShapeType, TensorType, TupleType, Type
from unity.ir.visit import type_symbols
from unity.ir.visiting.visit_graph import walk_bindings
from unity.runtime.executable import Executable
from unity.runtime.host_forms import HostCall
from unity.transform import Context, Pipeline, Precision
from unity.transform.graph.resolve import oracles
from unity.transform.instruments.numeric import NumericCheck, difference
from unity.transform.pipeline import NARROW

SIZE = 3
ATOL = 1e-5
NARROW_FLOATS = frozenset(d.name for d in NARROW.values())


def check_executable(
    executable: Executable,
    module: IRModule,
    pipeline: Pipeline,
    ctx: Context,
    precision: Precision = "f32",
    seed: int = 0,
) -> None:
    """Compare every function of the module that takes tensors.

    Args:
        executable: What was compiled.
        module: What it was compiled from.
        pipeline: The passes it went through; to find the culprit if results differ.
        ctx: What the passes were given.
        precision: What was asked for; tells how much may differ.
        seed: Of the inputs.

    Raises:
        UnityError: A result differs; names the function, the place and the first pass after which
            it did, or the code generator.
    """
    for name, function in module.graph_functions().items():
        rtol = max(RTOL[NARROW.get(precision, FLOAT32).name], _rtol(function))
        if name not in executable.functions:
            continue
        inputs = sample_inputs(function, seed)
        if inputs is None:
            continue
        expected = _interpret(module, name, inputs)
        given = [np.array(x) if isinstance(x, np.ndarray) else x for x in inputs]  # may be aliased
        wrong = difference(expected, _plain(executable[name])(*given), rtol, ATOL)
        if wrong is not None:
            watch = NumericCheck(_interpret, {name: inputs}, rtol, ATOL)
            pipeline.run(module, Context(ctx.target, (*ctx.instruments, watch)))
            raise UnityError(f"code generation changed what {name!r} computes: {wrong}")


def watched(module: IRModule, rtol: float, seed: int = 0) -> NumericCheck:
    """An instrument that compares, after every pass, what the functions of a module compute.

    Args:
        module: What the pipeline is given.
        rtol: Allowed difference, relative to the largest number of a result; of functions that
            compute in a narrower type, what that can tell.
        seed: Of the inputs.
    """
    found = {n: sample_inputs(f, seed) for n, f in module.graph_functions().items()}
    inputs = {name: args for name, args in found.items() if args is not None}
    narrow = [_rtol(f) for f in module.graph_functions().values()]
    return NumericCheck(_interpret, dict(inputs), max([rtol, *narrow]), ATOL)


def _rtol(function: Function) -> float:
    """What the narrowest floats that a function computes in can tell; 0 for wide ones."""
    types = [v.type for v in (*function.params, *(b.var for b in walk_bindings(function)))]
    names = {t.dtype.name for t in types if isinstance(t, TensorType) and t.dtype is not None}
    return max((RTOL[name] for name in names & NARROW_FLOATS), default=0.0)


def _interpret(module: IRModule, name: str, args: object) -> object:
    assert isinstance(args, list | tuple)
    return interpret(module, name, args, oracles())


def sample_inputs(function: Function, seed: int) -> list[object] | None:
    """Arguments for a function; None if it takes more than shapes and tensors of known shape."""
    rng = np.random.default_rng(seed)
    sizes: dict[Symbol, int] = {}
    for param in function.params:
        for symbol in type_symbols(param.type):
            facts = symbol.facts
            least = max(SIZE, facts.min)
            size = -(-least // facts.multiple_of) * facts.multiple_of
            sizes[symbol] = size if facts.max is None else min(size, facts.max)
    inputs: list[object] = [_sample(q.type, sizes, rng) for q in function.params]
    return None if any(i is None for i in inputs) else inputs


def _sample(
    of: Type, sizes: Mapping[Symbol, int], rng: np.random.Generator
) -> Array | tuple[object, ...] | None:
    if isinstance(of, TupleType):
        fields = tuple(_sample(f, sizes, rng) for f in of.fields)
        return None if any(f is None for f in fields) else fields
    if isinstance(of, ShapeType) and isinstance(of.dims, tuple):
        return tuple(evaluate(d, sizes) for d in of.dims)
    if not isinstance(of, TensorType) or not isinstance(of.shape, tuple) or of.dtype is None:
        return None
    shape = tuple(evaluate(d, sizes) for d in of.shape)
    if of.dtype.is_float:
        return rng.standard_normal(shape).astype(of.dtype.numpy)
    # Small numbers: valid as indices into nearly every table, and as masks.
    return rng.integers(0, 2, shape).astype(of.dtype.numpy)


def _plain(call: Callable[..., object]) -> Callable[..., object]:
    """A function that takes and gives tensors, as the interpreter does."""
    return call.plain if isinstance(call, HostCall) else call
