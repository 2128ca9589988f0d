"""Random prim funcs: a few computations, each in a loop nest of a random form.

What a prim func computes and the form of its loops are drawn apart: `prim_func` with the same
`meaning` and another `form` gives another program of the same meaning, with the additions of a
reduction in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from unity.ir.attrs import Attrs
from unity.ir.dtype import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    UINT8,
    Array,
    DType,
)
from unity.ir.prim_expr import Binary, Imm, Load, PrimExpr, PrimVar, SizeVar, imm
from unity.ir.stmt import Allocate, Buffer, PrimFunc, Seq, Stmt

from .loops import Computation, nest
from .prim_expr import Leaves, expression, in_bounds, literal

DTYPES: tuple[DType, ...] = (FLOAT32, FLOAT64, INT32, INT64, UINT8, BOOL)
_REDUCERS = ("add", "max", "min")


@dataclass(frozen=True)
class Options:
    """What may occur.

    Attributes:
        dtypes: Of buffers.
        symbols: Sizes that shapes may have.
        intrinsics: Whether functions such as tanh may occur.
        depth: How deep expressions nest.
        stages: The most computations there are.
    """

    dtypes: tuple[DType, ...] = DTYPES
    symbols: tuple[SizeVar, ...] = (SizeVar("n"), SizeVar("m"))
    intrinsics: bool = True
    depth: int = 3
    stages: int = 3


DEFAULT = Options()


def prim_func(meaning: Random, form: Random | None = None, options: Options = DEFAULT) -> PrimFunc:
    """A random prim func with one output."""
    form = form or meaning
    inputs = [_buffer(meaning, f"x{i}", options) for i in range(meaning.randint(1, 3))]
    known, temporaries, computations = [*inputs], [], []
    for i in range(meaning.randint(1, options.stages)):
        computation = _computation(meaning, known, f"t{i}", options)
        computations.append(computation)
        known.append(computation.output)
        temporaries.append(computation.output)
    output = temporaries.pop()
    stmts = tuple(nest(c, form) for c in computations)
    body: Stmt = stmts[0] if len(stmts) == 1 else Seq(stmts)
    for buffer in reversed(temporaries):
        body = Allocate(buffer, body)
    return PrimFunc((*inputs, output), body, Attrs(num_outputs=1))


def _extent(rng: Random, options: Options) -> PrimExpr:
    if options.symbols and rng.random() < 0.3:
        return rng.choice(options.symbols)
    return imm(rng.randint(1, 6))


def _buffer(rng: Random, name: str, options: Options) -> Buffer:
    shape = tuple(_extent(rng, options) for _ in range(rng.randint(0, 3)))
    return Buffer(name, shape, rng.choice(options.dtypes))


def _computation(rng: Random, known: Sequence[Buffer], name: str, options: Options) -> Computation:
    extents = [n for b in known for n in b.shape]
    shape = tuple(
        rng.choice(extents) if extents and rng.random() < 0.7 else imm(rng.randint(1, 6))
        for _ in range(rng.randint(0, 3))
    )
    spatial = tuple((PrimVar(f"i{k}"), n) for k, n in enumerate(shape))
    reduces: tuple[tuple[PrimVar, PrimExpr], ...] = ()
    if extents and rng.random() < 0.4:
        count = rng.randint(1, 2)
        reduces = tuple((PrimVar(f"k{k}"), rng.choice(extents)) for k in range(count))
    output = Buffer(name, shape, rng.choice(options.dtypes))
    leaves = _loads(rng, known, [*spatial, *reduces])
    value = expression(rng, leaves, output.dtype, options.depth, options.intrinsics)
    if not reduces:
        return Computation(name, output, spatial, (), value, None)
    init = literal(rng, output.dtype)
    here = Load(output, tuple(v for v, _ in spatial))
    op = rng.choice(("and", "or", "xor") if output.dtype == BOOL else _REDUCERS)
    combined = Binary("add", here, value)
    for each in ("add", "max", "min", "and", "or", "xor"):
        if op == each:
            combined = Binary(each, here, value)
    return Computation(name, output, spatial, reduces, combined, init)


def _loads(
    rng: Random, known: Sequence[Buffer], variables: Sequence[tuple[PrimVar, PrimExpr]]
) -> Leaves:
    leaves = Leaves()
    leaves.add(*(v for v, _ in variables))
    leaves.add(*(n for _, n in variables if isinstance(n, SizeVar)))
    for buffer in known:
        indices = [in_bounds(rng, variables, n) for n in buffer.shape]
        found = tuple(i for i in indices if i is not None)
        if len(found) == len(indices):
            leaves.add(Load(buffer, found))
    return leaves


def arrays_for(func: PrimFunc, rng: np.random.Generator, sizes: dict[SizeVar, int]) -> list[Array]:
    """Inputs for a random prim func: shapes by these sizes, small values of every kind."""
    outputs = func.attrs["num_outputs"]
    assert isinstance(outputs, int)
    return [random_array(rng, _shape(b, sizes), b.dtype) for b in func.buffers[:-outputs]]


def _shape(buffer: Buffer, sizes: dict[SizeVar, int]) -> tuple[int, ...]:
    return tuple(
        int(n.value) if isinstance(n, Imm) else sizes[n]
        for n in buffer.shape
        if isinstance(n, Imm | SizeVar)
    )


def random_array(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Small values: halves for floats, so that sums are exact."""
    if dtype == BOOL:
        return np.asarray(rng.integers(0, 2, shape)).astype(np.bool_)
    low = 0 if dtype.kind == "uint" else -8
    numbers = np.asarray(rng.integers(low, 9, shape))
    return np.asarray(numbers / 2 if dtype.is_float else numbers).astype(dtype.numpy)
