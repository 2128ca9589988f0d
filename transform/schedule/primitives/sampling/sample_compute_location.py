"""sample_compute_location: where a block might be computed, drawn at random, as a decision."""

from __future__ import annotations

from unity.errors import UnityError
from unity.ir.prim_expr import PrimVar
from unity.ir.stmt import PrimFunc

from ....blocks.tree import block_path, loops_of, scope_path
from ..location.compute_at import compute_at
from ..location.neighbours import consumers


def compute_locations(func: PrimFunc, name: str) -> list[PrimVar]:
    """The loops that `compute_at` would take a block to, of which one is drawn, or none.

    Args:
        func: The prim func.
        name: The block.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 8, 8], c: f32[Buffer, 8, 8]) -> None:
    ...     t = T.alloc((8, 8), "float32")
    ...     for i, j in T.grid(8, 8):
    ...         with T.block("double"):
    ...             vi, vj = T.axis.remap("SS", i, j)
    ...             t[vi, vj] = a[vi, vj] * 2.0
    ...     for i, j in T.grid(8, 8):
    ...         with T.block("add"):
    ...             vi, vj = T.axis.remap("SS", i, j)
    ...             c[vi, vj] = t[vi, vj] + 1.0
    ... ''').prim_funcs()["main"])
    >>> loop = sch.sample_compute_location("double", decision=1)
    >>> loop == sch.get_loops("add")[1], sch.sample_compute_location("double", decision=-1)
    (True, None)
    """
    found: list[PrimVar] = []
    for reader in consumers(func, name)[:1]:
        path, _ = block_path(func, reader.name)
        for loop in loops_of(scope_path(path)):
            try:
                compute_at(func, name, loop.var)
            except UnityError:
                continue
            found.append(loop.var)
    return found
