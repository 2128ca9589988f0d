"""Random calls to test an op with: arrays of a dtype, small shapes, complete attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from unity.arguments import REQUIRED
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim
from unity.ir.dtype import Array, dtype
from unity.ir.types import ShapeType, TensorType, TupleType, Type

from .registry import Param, RefArg, Sample, attr_value

SizeOf: TypeAlias = Callable[[int], Dim]
"""A number of a sample's shapes as a dim of the types."""


@dataclass(frozen=True, slots=True)
class Sampler:
    """A source of random arrays and choices."""

    rng: np.random.Generator

    @staticmethod
    def seeded(seed: int) -> Sampler:
        """The sampler of a seed."""
        return Sampler(np.random.default_rng(seed))

    def array(
        self, shape: Sequence[int], of: str = "float32", low: float = -3, high: float = 3
    ) -> Array:
        """An array of values between `low` and `high` (integers: inclusive)."""
        kind = dtype(of)
        if kind.is_float:
            return np.asarray(self.rng.uniform(low, high, tuple(shape))).astype(kind.numpy)
        if kind.kind == "bool":
            return np.asarray(self.rng.integers(0, 2, tuple(shape))).astype(kind.numpy)
        least = max(int(low), 0) if kind.kind == "uint" else int(low)
        return np.asarray(self.rng.integers(least, int(high) + 1, tuple(shape))).astype(kind.numpy)

    def shape(self, rank: int, low: int = 1, high: int = 5) -> tuple[int, ...]:
        """A random shape."""
        return tuple(int(n) for n in self.rng.integers(low, high + 1, rank))


def sample(params: Sequence[Param], args: Sequence[RefArg], **attrs: object) -> Sample:
    """A call: the attributes not given take their defaults."""
    full: dict[str, object] = {
        p.name: p.default for p in params if p.kind == "attr" and p.default is not REQUIRED
    }
    return Sample(tuple(args), Attrs({k: attr_value(v) for k, v in {**full, **attrs}.items()}))


def same(n: int) -> int:
    """The size itself, for types without symbols."""
    return n


def type_of(arg: RefArg, size: SizeOf = same) -> Type:
    """The type of a sample's argument."""
    if isinstance(arg, np.ndarray):
        return TensorType(tuple(size(n) for n in arg.shape), dtype(arg.dtype))
    arrays = [a for a in arg if isinstance(a, np.ndarray)]
    if arrays:
        return TupleType(tuple(type_of(a, size) for a in arrays))
    return ShapeType(tuple(size(int(n)) for n in arg if isinstance(n, int)))
