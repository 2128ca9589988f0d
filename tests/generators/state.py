"""A graph function while it grows at random, and ways to choose among its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

import numpy as np

from unity.ir.dims import Dim, dim
from unity.ir.dtype import BOOL, FLOAT32, INT64, DType
from unity.ir.graph import Constant, Function, Var
from unity.ir.stmt import PrimFunc
from unity.ir.types import TensorType
from unity.op.builder import GraphBuilder

from .prim_func import random_array

N, M = dim("n"), dim("m", min=1)
SIZES: Mapping[str, int] = {"n": 3, "m": 2}
"""What the symbols of random modules stand for when they are run."""
DTYPES: tuple[DType, ...] = (FLOAT32, FLOAT32, FLOAT32, INT64, BOOL)


@dataclass
class State:
    """A function while it grows: its builder, the values at hand, the module's functions."""

    rng: Random
    builder: GraphBuilder
    kernels: Mapping[str, PrimFunc]
    helpers: Mapping[str, Function]
    values: list[Var] = field(default_factory=list[Var])
    depth: int = 0

    def tensors(self, dtype: DType | None = None) -> list[Var]:
        """The tensors of known shape, of one dtype if given."""
        return [
            v
            for v in self.values
            if isinstance(v.type, TensorType)
            and isinstance(v.type.shape, tuple)
            and dtype in (None, v.type.dtype)
        ]

    def child(self) -> State:
        """A nested body, which sees the values so far."""
        inner = self.builder.child()
        return State(self.rng, inner, self.kernels, self.helpers, [*self.values], self.depth + 1)


Rule: TypeAlias = Callable[[State], Var | None]
"""Adds bindings; gives a new value, or None where nothing at hand fits."""


def pick(state: State, dtype: DType | None = None, ranks: range = range(9)) -> Var | None:
    found = [v for v in state.tensors(dtype) if len(shape_of(v)) in ranks]
    return state.rng.choice(found) if found else None


def shape_of(v: Var) -> tuple[Dim, ...]:
    assert isinstance(v.type, TensorType)
    assert isinstance(v.type.shape, tuple)
    return v.type.shape


def dtype_of(v: Var) -> DType:
    assert isinstance(v.type, TensorType)
    assert v.type.dtype is not None
    return v.type.dtype


def constant(state: State, shape: tuple[int, ...], dtype: DType) -> Constant:
    numbers = np.random.default_rng(state.rng.randrange(2**32))
    name = "weight" if state.rng.random() < 0.5 else None
    return Constant(random_array(numbers, shape, dtype), name)
