"""vectorize: iterations of a loop in the lanes of a vector."""

from __future__ import annotations

from unity.ir.prim_expr import PrimVar
from unity.ir.stmt import PrimFunc

from ....blocks.extents import number
from ....blocks.tree import Outcome, illegal, loop_path
from .parallel import at_once


def vectorize(func: PrimFunc, var: PrimVar) -> Outcome:
    """The loop's iterations become lanes.

    Args:
        func: The prim func.
        var: A serial loop of a constant extent that drives spatial axes only.

    Raises:
        UnityError: The extent is no constant; iterations depend on one another, or may.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 16], c: f32[Buffer, 16]) -> None:
    ...     for i in range(16):
    ...         with T.block("copy"):
    ...             vi = T.axis.spatial(16, i)
    ...             c[vi] = a[vi]
    ... ''').prim_funcs()["main"])
    >>> _, inner = sch.split(sch.get_loops("copy")[0], [None, 8])
    >>> sch.vectorize(inner)
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 16], c: f32[Buffer, 16]) -> None:
        for i_0 in range(2):
            for i_1 in T.vectorized(8):
                with T.block("copy"):
                    vi = T.axis.spatial(16, i_0 * 8 + i_1)
                    c[vi] = a[vi]
    """
    if number(loop_path(func, var)[1].extent) is None:
        raise illegal(
            "vectorize, argument 1 'loop'",
            "its extent is no constant",
            "split it by the number of lanes first",
        )
    return at_once(func, var, "vectorize", "vectorized")
