"""unroll: a loop to be written out."""

from __future__ import annotations

from dataclasses import replace

from unity.ir.prim_expr import PrimVar
from unity.ir.stmt import PrimFunc

from ....blocks.extents import number
from ....blocks.tree import Outcome, illegal, loop_path, replaced


def unroll(func: PrimFunc, var: PrimVar) -> Outcome:
    """The loop is written out when the prim func is lowered.

    Args:
        func: The prim func.
        var: A serial loop of a constant extent.

    Raises:
        UnityError: The extent is no constant, or the loop has a kind already.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 4], c: f32[Buffer, 4]) -> None:
    ...     for i in range(4):
    ...         with T.block("copy"):
    ...             vi = T.axis.spatial(4, i)
    ...             c[vi] = a[vi]
    ... ''').prim_funcs()["main"])
    >>> sch.unroll(sch.get_loops("copy")[0])
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 4], c: f32[Buffer, 4]) -> None:
        for i in T.unroll(4):
            with T.block("copy"):
                vi = T.axis.remap("S", i)
                c[vi] = a[vi]
    """
    _, loop = loop_path(func, var)
    where = "unroll, argument 1 'loop'"
    if loop.kind != "serial":
        raise illegal(where, f"it is {loop.kind} already")
    if number(loop.extent) is None:
        raise illegal(where, "its extent is no constant", "split it by a number first")
    return Outcome(replaced(func, [(loop, replace(loop, kind="unrolled"))]))
