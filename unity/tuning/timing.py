"""Timing of executables: inputs made up from types, runs of several taken in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from unity.errors import UnityError
from unity.ir.dims import Dim, Symbol, evaluate, symbols_of
from unity.ir.dtype import Array
from unity.ir.graph import Function
from unity.ir.representative import of_symbol
from unity.ir.types import ShapeType, TensorType, TupleType, Type
from unity.ir.visit import type_symbols

from .clock import Clock, Fastest

SECONDS = 0.25
"""How long each executable is run, about."""
_LEAST_RUNS = 5
_MOST_RUNS = 400
_FAIR_RUNS = 3
_BEHIND = 1.6
"""How many times the fastest a program may take to stay in the race after the first rounds."""
_AGREE = 0.02
"""How far the ratios of two races may be apart to be the same."""
_STEADY, _STILL, _PATIENCE = 0.99, 8, 4
"""Minima are steady that don't fall below this share in so many rounds; how much longer to wait."""
_BATCH, _SHORT, _PAUSE = 1e-3, 1e-2, 4e-3
"""Seconds: that a turn takes at least, below which a run is short, and between turns."""


def sizes_for(function: Function, given: Mapping[str, int]) -> dict[Symbol, int]:
    """A value for every symbol of a function's parameters: what is given, or a guess."""
    symbols = {s for p in function.params for s in type_symbols(p.type)}
    return {s: given.get(s.name, of_symbol(s)) for s in symbols}


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
    if isinstance(t, ShapeType) and isinstance(t.dims, tuple):
        return tuple(_number(d, sizes) for d in t.dims)
    if not isinstance(t, TensorType):
        raise UnityError(
            f"measuring takes tensors of known rank and dtype, not {t}",
            hint='resolve="static", or overrides',
        )
    return array_of(t, sizes, rng)


def array_of(t: TensorType, sizes: Mapping[Symbol, int], rng: np.random.Generator) -> Array:
    """An array of a type: floats at random, integers zero.

    Args:
        t: The type.
        sizes: A value for every symbol of it.
        rng: Makes the numbers.

    Raises:
        UnityError: The rank or the dtype are not known.
    """
    if not isinstance(t.shape, tuple) or t.dtype is None:
        raise UnityError(
            f"measuring takes tensors of known rank and dtype, not {t}",
            hint='resolve="static", or overrides',
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
    executables: Sequence[Callable[..., object]], args: Sequence[object], seconds: float = SECONDS
) -> list[float]:
    """The fastest run of each, all run in turns so that a noisy moment hits them alike.

    On a busy machine, where minima keep falling or runs wait for a cpu, it goes on for longer; runs
    that waited do not count where others did not (`Fastest`). Before its turn each gets a pause, in
    which another one's spinning workers give up their cores, and if it is short a run that isn't
    timed; what takes microseconds is run many times. What is far behind after some undisturbed
    turns takes no further part.

    Args:
        executables: What to run.
        args: What with.
        seconds: How long each is to be run, about.
    """
    with Clock() as clock:
        runs = [_Turns(exe, args, clock) for exe in executables]
        begin, spent = time.perf_counter(), 0.0
        still = rounds = 0
        while rounds < _LEAST_RUNS or (
            rounds < _MOST_RUNS
            and (spent < seconds or (still < _STILL and spent < _PATIENCE * seconds))
        ):
            least = min(r.best for r in runs)
            before = [r.best for r in runs]
            racing = [r for r in runs if r.undisturbed < _FAIR_RUNS or r.best < _BEHIND * least]
            for run in racing:
                run.turn()
            better = any(r.best < _STEADY * b for r, b in zip(runs, before, strict=True))
            known = all(r.undisturbed >= _LEAST_RUNS for r in racing)
            still = 0 if better or not known else still + 1
            rounds += 1
            spent = (time.perf_counter() - begin) / len(runs)
    return [run.best for run in runs]


def agreeing(
    executables: Sequence[Callable[..., object]],
    args: Sequence[object],
    seconds: float,
    races: int,
) -> list[float]:
    """The fastest run of each, in one of some races that agree on how they compare.

    A whole race may be run while some cpu is slow, or not there, for reasons that nobody tells. So
    it is repeated until two give the same ratio of the last to the first; where none do, the one in
    the middle counts.

    Args:
        executables: What to run, two or more.
        args: What with.
        seconds: How long each is to be run in a race, about.
        races: How many there are at most.
    """
    found: list[list[float]] = []
    while len(found) < races:
        found.append(interleaved(executables, args, seconds))
        found.sort(key=lambda times: times[-1] / times[0])
        for fewer, more in pairwise(found):
            if more[-1] / more[0] <= (1 + _AGREE) * fewer[-1] / fewer[0]:
                return fewer
    return found[len(found) // 2]


class _Turns:
    """Carries how an executable is run in its turn, and its fastest run."""

    def __init__(self, call: Callable[..., object], args: Sequence[object], clock: Clock) -> None:
        self._run = call
        self._clock = clock
        self._args = args
        call(*args)
        self._fastest = Fastest()
        self._batch = 1
        self.turn()
        self._batch = max(1, int(_BATCH / max(self.best, 1e-9)))
        self._fastest = Fastest()

    @property
    def best(self) -> float:
        """Seconds of the fastest run yet; infinite before the first."""
        return self._fastest.seconds

    @property
    def undisturbed(self) -> int:
        """Turns in which no thread waited for a cpu."""
        return self._fastest.undisturbed

    def turn(self) -> None:
        """Some runs; the average of a batch counts as one."""
        run, args = self._run, self._args
        time.sleep(_PAUSE)
        for _ in range(self._batch if self._batch > 1 or self.best < _SHORT else 0):
            run(*args)
        begin = self._clock.mark()
        for _ in range(self._batch):
            run(*args)
        self._fastest.add(self._clock.since(begin), self._batch)


def assignments(sizes: Mapping[str, int | Sequence[int]]) -> list[dict[str, int]]:
    """The assignments of symbols to measure at: the i-th values together, one value for all.

    Raises:
        UnityError: What is given are no sizes, or symbols are given different numbers of them.

    >>> assignments({"n": (16, 128), "batch": 1})
    [{'n': 16, 'batch': 1}, {'n': 128, 'batch': 1}]
    """
    for name, given in sizes.items():
        values = (given,) if isinstance(given, int) else given
        if not _are_sizes(values):
            raise UnityError(
                f"sizes: {name!r} is {given!r}, not a size or a sequence of sizes",
                hint='sizes are integers from 0 on: {"n": 128}, or {"n": (16, 128)}',
            )
    several = {len(v) for v in sizes.values() if not isinstance(v, int)}
    if len(several) > 1:
        raise UnityError(f"sizes has symbols of {sorted(several)} values: give each as many")
    count = several.pop() if several else 1
    return [{k: v if isinstance(v, int) else v[i] for k, v in sizes.items()} for i in range(count)]


def _are_sizes(values: object) -> bool:
    """Whether something is a sequence of sizes, at least one."""
    if not isinstance(values, Sequence) or isinstance(values, str | bytes) or not values:
        return False
    return all(type(v) is int and v >= 0 for v in values)
