"""Random chains of stages over rows: maps, reductions and numbers a row, in any order."""

from __future__ import annotations

from random import Random

from unity import te
from unity.ir.dims import Dim, dim
from unity.ir.prim_expr import PrimExpr, PrimVar
from unity.ir.stmt import PrimFunc

ROWS: tuple[Dim, ...] = (1, 2, 3, 5, dim("n"))
LENGTHS: tuple[Dim, ...] = (1, 3, 8, 17, 40, 150, dim("m"))
SIZES = {"n": (0, 1, 4), "m": (0, 1, 7, 16, 33, 70, 130)}


def random_rows(random: Random) -> PrimFunc:
    """A kernel of several stages over the same rows, most of which hang together."""
    dtype = random.choice(["float32", "float32", "float64", "int32"])
    rows = [random.choice(ROWS) for _ in range(random.choice([0, 1, 1, 2]))]
    inner = [2] * random.choice([0, 0, 0, 1]) + [random.choice(LENGTHS)]
    shape = [*rows, *inner]
    x = te.placeholder(shape, dtype, "x")
    w = te.placeholder(inner[-1:], dtype, "w")
    per_element: list[te.Tensor] = [x]
    per_row: list[te.Tensor] = []
    made: list[te.Tensor] = []
    read: set[te.Tensor] = set()

    def some(tensors: list[te.Tensor]) -> te.Tensor:
        chosen = random.choice(tensors[-2:] if random.randrange(4) else tensors)
        read.add(chosen)
        return chosen

    def operand(at: tuple[PrimExpr, ...]) -> PrimExpr:
        kind = random.randrange(4)
        if kind == 0 and per_row:
            return some(per_row)[at[: len(rows)]]
        if kind == 1:
            return w[at[-1:]]
        return some(per_element)[at]

    def value(at: tuple[PrimExpr, ...]) -> PrimExpr:
        a, b = operand(at), operand(at)
        join = random.randrange(4)
        if join == 3:
            return te.select(at[-1] < 2, a, b + a)
        return (a + b, a - b, te.max_(a, b))[join]

    for number in range(random.randrange(2, 6)):
        kind = random.choice(["map", "reduce", "reduce", "scalar"])
        if kind == "scalar" and per_row:
            a, b = some(per_row), some(per_row)
            new = te.compute(rows, lambda *i, a=a, b=b: a[i] - b[i], f"s{number}")
            per_row.append(new)
        elif kind == "map":
            new = te.compute(shape, lambda *i: value(i), f"e{number}")
            per_element.append(new)
        else:
            axes = [te.reduce_axis(e, f"k{number}_{i}") for i, e in enumerate(inner)]
            op = random.choice(["sum", "max", "min"])

            def body(*i: PrimVar, axes: list[te.ReduceAxis] = axes, op: str = op) -> te.Reduce:
                whole = value((*i, *(a.var for a in axes)))
                return te.reduce(op, (whole,), axes, None)

            new = te.compute(rows, body, f"r{number}")
            per_row.append(new)
        made.append(new)
    outputs = [t for t in made if t not in read or random.randrange(5) == 0]
    return te.create_prim_func([x, w, *outputs])
