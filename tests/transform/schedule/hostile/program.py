"""A program to schedule, and what it is run at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import indent

import numpy as np

from tests.transform.tensor.kernels import shape_of
from unity.interpreter.kernel import Kernel
from unity.ir.dtype import Array
from unity.ir.prim_expr import SizeVar
from unity.ir.stmt import PrimFunc
from unity.script import parse

HEAD = """
n = dim("n")
m = dim("m")
few = dim("few", max=8)

@script.prim_func
def main({params}) -> None:
{body}
"""


@dataclass(frozen=True, slots=True)
class Program:
    """A prim func as text; all its buffers may be read and written, and are compared."""

    params: str
    body: str
    sizes: Sequence[Mapping[str, int]] = ({},)

    def func(self) -> PrimFunc:
        body = indent(self.body.strip("\n"), "    ")
        return parse(HEAD.format(params=self.params, body=body)).prim_funcs()["main"]


def contents(func: PrimFunc, like: PrimFunc, sizes: Mapping[str, int]) -> list[Array]:
    """What all buffers hold after a run; before, they held what they hold each time."""
    arrays = filled(like, sizes)
    Kernel(func)(arrays, {SizeVar(name): value for name, value in sizes.items()})
    return arrays


def filled(func: PrimFunc, sizes: Mapping[str, int]) -> list[Array]:
    """Arrays for all buffers, the same each time."""
    rng = np.random.default_rng(0)
    arrays: list[Array] = []
    for buffer, shape in zip(func.buffers, shape_of(func, sizes), strict=True):
        numbers = np.asarray(rng.integers(-8, 9, shape)) / 2
        if not buffer.dtype.is_float:
            numbers = np.asarray(rng.integers(1, 4, shape))
        arrays.append(np.ascontiguousarray(numbers.astype(buffer.dtype.numpy)))
    return arrays


def differ(program: Program, before: PrimFunc, after: PrimFunc) -> str | None:
    """Where two prim funcs compute something else; sums may be in another order."""
    for sizes in program.sizes:
        found = alike(before, after, sizes)
        if found is not None:
            return found
    return None


def alike(before: PrimFunc, after: PrimFunc, sizes: Mapping[str, int]) -> str | None:
    """The same at some sizes."""
    return told_apart(before, contents(before, before, sizes), contents(after, before, sizes))


def told_apart(func: PrimFunc, wanted: Sequence[Array], got: Sequence[Array]) -> str | None:
    """The first buffer that holds something else."""
    for buffer, a, b in zip(func.buffers, wanted, got, strict=True):
        if not np.allclose(a.astype(float), b.astype(float), 1e-4, 1e-5, equal_nan=True):
            return f"{buffer.name}: {a} became {b}"
    return None
