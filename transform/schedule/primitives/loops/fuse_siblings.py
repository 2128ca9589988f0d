"""fuse_siblings: loops that stand one behind another become one."""

from __future__ import annotations

from collections.abc import Sequence

from unity.ir.prim_expr import PrimVar
from unity.ir.stmt import PrimFunc

from ....blocks.dataflow import checked
from ....blocks.tree import Outcome
from .siblings import siblings_at

WHERE = "fuse_siblings, argument 1 'loops'"


def fuse_siblings(func: PrimFunc, loops: Sequence[PrimVar]) -> Outcome:
    """One loop over what several did one after another: stages in one pass.

    What a later loop takes in an iteration must be there by then. So no iteration of it may touch
    what an earlier loop stores to in an iteration further on, or the other way round.

    Args:
        func: The prim func.
        loops: Two or more of one extent, in the order in which they stand. What stands between
            them comes behind the one loop, or before it if a later one needs it; temporaries around
            some of them are then around all.

    Returns:
        The loop, which is the first one.

    Raises:
        UnityError: They are no such loops; iterations of one need several of another; what stands
            between needs an earlier one, and a later one that.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 4, 8]) -> None:
    ...     t = T.alloc((4,), "float32")
    ...     for i, k in T.grid(4, 8):
    ...         with T.block("sum"):
    ...             vi, vk = T.axis.remap("SR", i, k)
    ...             with T.init():
    ...                 t[vi] = 0.0
    ...             t[vi] += a[vi, vk]
    ...     for i, j in T.grid(4, 8):
    ...         with T.block("share"):
    ...             vi, vj = T.axis.remap("SS", i, j)
    ...             c[vi, vj] = a[vi, vj] / t[vi]
    ... ''').prim_funcs()["main"])
    >>> row = sch.fuse_siblings(sch.get_loops("sum")[0], sch.get_loops("share")[0])
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 4, 8]) -> None:
        t = T.alloc((4,), "float32")
        for i in range(4):
            for k in range(8):
                with T.block("sum"):
                    vi, vk = T.axis.remap("SR", i, k)
                    with T.init():
                        t[vi] = 0.0
                    t[vi] += a[vi, vk]
            for j in range(8):
                with T.block("share"):
                    vi, vj = T.axis.remap("SS", i, j)
                    c[vi, vj] = a[vi, vj] / t[vi]
    """
    found = siblings_at(WHERE, func, loops)
    return Outcome(checked(found.fused(), WHERE), (found.loops[0].var,))
