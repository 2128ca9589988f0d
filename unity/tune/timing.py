"""Timing of executables: inputs made up from types, runs of several taken in turns."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np

from unity.errors import UnityError
from unity.ir.dims import Dim, Symbol, evaluate, symbols_of
from unity.ir.dtype import Array
from unity.ir.graph import Function
from unity.ir.types import TensorType, TupleType, Type
from unity.ir.visit import type_symbols
from unity.runtime.executable import Executable
from unity.transform.graph.resolve.cost import size_of

SECONDS = 0.25
"""How long each executable is run, about."""
_LEAST_RUNS = 5
_MOST_RUNS = 1000


def sizes_for(function: Function, given: Mapping[str, int]) -> dict[Symbol, int]:
    """A value for every symbol of a function's parameters: what is given, or a guess."""
    symbols = {s for p in function.params for s in type_symbols(p.type)}
    return {s: given.get(s.name, size_of(s)) for s in symbols}


def check_sizes(function: Function, given: Mapping[str, int]) -> None:
    """Refuse values of symbols that a function has not.

    Raises:
        UnityError: It has no symbol of some name.
    """
    names = {s.name for s in sizes_for(function, {})}
    unknown = sorted(set(given) - names)
    if unknown:
        there = ", ".join(sorted(names)) or "(none)"
        raise UnityError(f"sizes: no symbol {', '.join(unknown)}", hint=f"the symbols are {there}")


def inputs_for(function: Function, sizes: Mapping[Symbol, int]) -> list[object]:
    """Arrays for a function's parameters: floats at random, integers zero, so that no index fails.

    Args:
        function: The function.
        sizes: A value for every symbol of its parameters.
    """
    rng = np.random.default_rng(0)
    return [_value(p.type, sizes, rng) for p in function.params]


def _value(t: Type, sizes: Mapping[Symbol, int], rng: np.random.Generator) -> object:
    if isinstance(t, TupleType):
        return tuple(_value(f, sizes, rng) for f in t.fields)
    if not isinstance(t, TensorType) or not isinstance(t.shape, tuple) or t.dtype is None:
        raise UnityError(
            f"measuring takes tensors of known rank and dtype, not {t}",
            hint='resolve="static", or overrides; a program with caches is not measured',
        )
    shape = [_number(d, sizes) for d in t.shape]
    made: Array = np.zeros(shape, t.dtype.numpy)
    if t.dtype.is_float:
        made = rng.standard_normal(shape).astype(t.dtype.numpy)
    return made


def _number(d: Dim, sizes: Mapping[Symbol, int]) -> int:
    if isinstance(d, int):
        return d
    return evaluate(d, {s: sizes[s] for s in symbols_of(d)})


def interleaved(
    executables: Sequence[Executable], args: Sequence[object], seconds: float = SECONDS
) -> list[float]:
    """The fastest run of each, all run in turns so that a noisy moment hits them alike.

    Args:
        executables: What to run.
        args: What with.
        seconds: How long each is to be run, about.
    """
    best = [float("inf")] * len(executables)
    for exe in executables:
        exe(*args)
    end = time.perf_counter() + seconds * len(executables)
    rounds = 0
    while rounds < _LEAST_RUNS or (rounds < _MOST_RUNS and time.perf_counter() < end):
        for i, exe in enumerate(executables):
            begin = time.perf_counter()
            exe(*args)
            best[i] = min(best[i], time.perf_counter() - begin)
        rounds += 1
    return best


def assignments(sizes: Mapping[str, int | Sequence[int]]) -> list[dict[str, int]]:
    """The assignments of symbols to measure at: the i-th values together, one value for all.

    Raises:
        UnityError: Symbols are given different numbers of values.

    >>> assignments({"n": (16, 128), "batch": 1})
    [{'n': 16, 'batch': 1}, {'n': 128, 'batch': 1}]
    """
    several = {len(v) for v in sizes.values() if not isinstance(v, int)}
    if len(several) > 1:
        raise UnityError(f"sizes has symbols of {sorted(several)} values: give each as many")
    count = several.pop() if several else 1
    return [{k: v if isinstance(v, int) else v[i] for k, v in sizes.items()} for i in range(count)]
