"""parallel: iterations of a loop on threads."""

from __future__ import annotations

from dataclasses import replace

from unity.ir.prim_expr import PrimVar
from unity.ir.stmt import ForKind, PrimFunc

from ....blocks.dependence import may_run_at_once
from ....blocks.tree import Outcome, illegal, loop_path, replaced


def parallel(func: PrimFunc, var: PrimVar) -> Outcome:
    """The loop's iterations may run on several threads, in any order.

    Args:
        func: The prim func.
        var: A serial loop that drives spatial axes only.

    Raises:
        UnityError: Iterations depend on one another, or may.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 4]) -> None:
    ...     for i, k in T.grid(4, 8):
    ...         with T.block("sum"):
    ...             vi, vk = T.axis.remap("SR", i, k)
    ...             with T.init():
    ...                 c[vi] = 0.0
    ...             c[vi] += a[vi, vk]
    ... ''').prim_funcs()["main"])
    >>> i, k = sch.get_loops("sum")
    >>> sch.parallel(i)
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 4]) -> None:
        for i in T.parallel(4):
            for k in range(8):
                with T.block("sum"):
                    vi, vk = T.axis.remap("SR", i, k)
                    with T.init():
                        c[vi] = 0.0
                    c[vi] += a[vi, vk]
    >>> sch.parallel(k)
    Traceback (most recent call last):
        ...
    unity.errors.UnityError: parallel, argument 1 'loop': it drives a reduce axis of block 'sum'
    """
    return at_once(func, var, "parallel", "parallel")


def at_once(
    func: PrimFunc, var: PrimVar, name: str, kind: ForKind, tag: str | None = None
) -> Outcome:
    """The loop with a kind that lets its iterations run at once; `name` is the primitive's."""
    path, loop = loop_path(func, var)
    where = f"{name}, argument 1 'loop'"
    if loop.kind != "serial":
        raise illegal(where, f"it is {loop.kind} already")
    why = may_run_at_once(loop, path, joined=kind == "vectorized")
    if why is not None:
        raise illegal(where, why)
    return Outcome(replaced(func, [(loop, replace(loop, kind=kind, thread=tag))]))
