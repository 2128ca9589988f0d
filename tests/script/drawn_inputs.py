"""What a graph function of TVM's sources is called with: values drawn for its parameters.

Comes in: a function and a seed. Goes out: arrays, numbers, shapes and tuples, and stand-ins where a
function is asked for. What the program leaves open is small: `SIZE`, `RANK`, and the dtype of its
first constant.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unity.ir.dims import Dim, Symbol, evaluate, symbols_of
from unity.ir.dtype import FLOAT32, DType, dtype
from unity.ir.graph import Function
from unity.ir.types import ObjectType, PrimType, ShapeType, TensorType, TupleType, Type
from unity.ir.visiting.visit_graph import walk_constants

from .stand_ins import RANK, SIZE, Array, Given, parameters

LARGEST = 6
"""What sizes that the program leaves open go up to; the first is `SIZE`, the next one more."""


class NotComparableError(Exception):
    """Why a source has no numbers to compare."""


def inputs_of(function: Function, seed: int) -> list[Given]:
    """Arrays, numbers, tuples and stand-ins for a function's parameters.

    Raises:
        NotComparableError: A parameter is of a type that says too little.
    """
    constant = next(walk_constants(function.body), None)
    usual = FLOAT32 if constant is None else dtype(constant.data.dtype)
    drawn = _Drawn(np.random.default_rng(seed), usual)
    given = parameters(function)
    return [given[p] if p in given else drawn.value(p.type) for p in function.params]


@dataclass(slots=True)
class _Drawn:
    rng: np.random.Generator
    usual: DType
    sizes: dict[Symbol, int] = field(default_factory=dict)

    def value(self, kind: Type) -> Given:
        match kind:
            case TensorType(shape, known):
                return self._array((known or self.usual).numpy, self._shape(shape))
            case ObjectType():
                return self._array(self.usual.numpy, self._shape(None))
            case ShapeType(shape):
                return self._shape(shape)
            case PrimType(known, None):
                return 2 if known.is_int else known.numpy.type(2).item()
            case PrimType(_, size):
                assert size is not None
                return self._size(size)
            case TupleType(fields):
                return tuple(map(self.value, fields))
            case _:
                raise NotComparableError(f"an input is {kind}")

    def _shape(self, shape: tuple[Dim, ...] | int | None) -> tuple[int, ...]:
        if isinstance(shape, tuple):
            return tuple(map(self._size, shape))
        return (SIZE,) * (RANK if shape is None else shape)

    def _size(self, dim: Dim) -> int:
        if isinstance(dim, int):
            return dim
        for symbol in sorted(symbols_of(dim), key=lambda s: s.name):
            self.sizes.setdefault(symbol, min(SIZE + len(self.sizes), LARGEST))
        found = evaluate(dim, self.sizes)
        if not isinstance(found, int) or found < 0:
            raise NotComparableError(f"the size {dim} is {found}")
        return found

    def _array(self, kind: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        if np.prod(shape, dtype=np.int64) > 1 << 26:
            raise NotComparableError(f"an input has the shape {shape}")
        if kind.kind in "biu":  # indices must be within what they count, whatever that is
            return np.asarray(self.rng.integers(0, 2, shape)).astype(kind)
        return np.asarray(self.rng.random(shape, np.float32) + np.float32(0.1)).astype(kind)
