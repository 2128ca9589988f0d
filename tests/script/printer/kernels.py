"""The kernels that the compute rows of operators give for their samples."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from unity.ir.dtype import dtype
from unity.ir.stmt import PrimFunc
from unity.ir.types import ShapeType, TensorType, TupleType, Type
from unity.op.registry import ComputeArg, OpCall, RefArg
from unity.op.table import OPS
from unity.te import Tensor, create_prim_func, placeholder


def kernels_of(name: str, count: int) -> Iterator[PrimFunc]:
    """A kernel for each of an operator's first samples."""
    row = OPS[name]
    assert row.compute is not None
    assert row.samples is not None
    for sample in islice(row.samples(0), count):
        inputs: list[ComputeArg] = []
        types: list[Type] = []
        for i, arg in enumerate(sample.args):
            kind, made = _input(arg, f"x{i}")
            types.append(kind)
            inputs += [] if made is None else [made]
        result = row.infer(OpCall(row, tuple(types), sample.attrs))
        outputs = row.compute(inputs, sample.attrs, result)
        flat = [t for group in (*inputs, outputs) for t in _tensors(group)]
        yield create_prim_func(flat)


def _tensors(group: ComputeArg) -> tuple[Tensor, ...]:
    return group if isinstance(group, tuple) else (group,)


def _input(arg: RefArg, name: str) -> tuple[Type, ComputeArg | None]:
    if isinstance(arg, np.ndarray):
        shape = tuple(int(n) for n in arg.shape)
        return TensorType(shape, dtype(arg.dtype)), placeholder(shape, dtype(arg.dtype), name)
    arrays = [a for a in arg if isinstance(a, np.ndarray)]
    if len(arrays) != len(arg) or not arg:
        return ShapeType(tuple(a for a in arg if isinstance(a, int))), None
    pairs = [_input(a, f"{name}_{i}") for i, a in enumerate(arrays)]
    tensors = tuple(t for _, t in pairs if isinstance(t, Tensor))
    return TupleType(tuple(kind for kind, _ in pairs)), tensors
