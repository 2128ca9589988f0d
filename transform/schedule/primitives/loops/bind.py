"""bind: iterations of a loop on the threads of an accelerator."""

from __future__ import annotations

from unity.ir.marks import THREADS
from unity.ir.prim_expr import PrimVar
from unity.ir.stmt import PrimFunc

from ....blocks.tree import Outcome, illegal
from .parallel import at_once


def bind(func: PrimFunc, var: PrimVar, thread: str) -> Outcome:
    """The loop's iterations run on the threads of one axis of the grid.

    Args:
        func: The prim func.
        var: A serial loop that drives spatial axes only.
        thread: ``blockIdx.x``, ``threadIdx.y`` ...

    Raises:
        UnityError: No such axis; iterations depend on one another, or may.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 64], c: f32[Buffer, 64]) -> None:
    ...     for i in range(64):
    ...         with T.block("copy"):
    ...             vi = T.axis.spatial(64, i)
    ...             c[vi] = a[vi]
    ... ''').prim_funcs()["main"])
    >>> sch.bind(sch.get_loops("copy")[0], "threadIdx.x")
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 64], c: f32[Buffer, 64]) -> None:
        for i in T.thread(64, "threadIdx.x"):
            with T.block("copy"):
                vi = T.axis.remap("S", i)
                c[vi] = a[vi]
    """
    if thread not in THREADS:
        raise illegal(
            "bind, argument 2 'thread'",
            f"there is no thread axis {thread!r}",
            f"one of {', '.join(THREADS)}",
        )
    return at_once(func, var, "bind", "thread", thread)
