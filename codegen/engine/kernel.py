"""Functions of a module that engines compute, as kernels."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from unity.errors import UnityError
from unity.ir.graph import Function
from unity.ir.module import IRModule
from unity.ir.types import TensorType, TupleType, Type
from unity.machine.target import Target
from unity.runtime.engines.engine import Compiled
from unity.runtime.engines.engine_kernel import EngineCode
from unity.runtime.implementation import ImplementationError
from unity.transform.graph.resolve import ENGINES, engine_of


def engine_code(name: str, function: Function, target: Target) -> EngineCode:
    """A function that its engine compiles once for each number of threads that is met.

    Args:
        name: The function's.
        function: What the engine compiles.
        target: The machine.
    """
    engine = str(function.attrs["engine"])
    plain = replace(function, attrs=function.attrs.without("engine"))  # as its engine is to see it
    module = IRModule({"main": plain})

    @cache
    def make(threads: int) -> Compiled:
        try:
            return engine_of(engine).compile(module, target, threads)
        except UnityError as error:
            raise ImplementationError(
                f"engine:{engine}", error.message, error.hint, name
            ) from error
        except Exception as error:
            raise ImplementationError(
                f"engine:{engine}",
                f"the engine {engine} can't compile {name}: {type(error).__name__}: {error}",
                hint="compile without it: resolve={'*': 'tir'}",
                part=name,
            ) from error

    inputs = [t for p in function.params for t in _tensors(p.type)]
    types = [*inputs, *_tensors(function.result)]
    defined = type(ENGINES[engine]).__module__ if engine in ENGINES else ""
    return EngineCode(
        name,
        engine,
        len(inputs),
        tuple(map(_dtype, types)),
        tuple(map(_rank, types)),
        make,
        defined,
    )


def _tensors(t: Type) -> list[TensorType]:
    fields = t.fields if isinstance(t, TupleType) else (t,)
    return [f for f in fields if isinstance(f, TensorType)]


def _rank(t: TensorType) -> int:
    assert isinstance(t.shape, tuple)
    return len(t.shape)


def _dtype(t: TensorType) -> str:
    assert t.dtype is not None
    return t.dtype.name
