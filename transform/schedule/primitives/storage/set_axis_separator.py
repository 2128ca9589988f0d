"""set_axis_separator: the axes of a temporary in groups, each flattened to an index of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unity.ir.stmt import PrimFunc

from ....blocks.tree import Outcome, illegal, with_buffers
from .set_scope import laid_out


def set_axis_separator(func: PrimFunc, name: str, index: int, separators: Sequence[int]) -> Outcome:
    """Memory that is addressed by several indices gets one for each group of axes.

    What it means is up to lowering: `FlattenBuffers(groups=True)` leaves as many indices as there
    are groups; for a cpu, whose memory is flat, all groups are one.

    Args:
        func: The prim func.
        name: A block.
        index: Which of its writes: to a temporary.
        separators: The axes that begin a group, the first axis left out, ascending; none joins all.

    Raises:
        UnityError: There is no such write; an axis is out of range, or they don't ascend.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 4, 8]) -> None:
    ...     t = T.alloc((4, 8), "float32")
    ...     for i, j in T.grid(4, 8):
    ...         with T.block("double"):
    ...             vi, vj = T.axis.remap("SS", i, j)
    ...             t[vi, vj] = a[vi, vj] * 2.0
    ...     for i, j in T.grid(4, 8):
    ...         with T.block("add"):
    ...             vi, vj = T.axis.remap("SS", i, j)
    ...             c[vi, vj] = t[vi, vj] + 1.0
    ... ''').prim_funcs()["main"])
    >>> sch.set_axis_separator("double", 0, [1])
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 4, 8]) -> None:
        t = T.alloc((4, 8), "float32", separators=(1,))
        for i, j in T.grid(4, 8):
            with T.block("double"):
                vi, vj = T.axis.remap("SS", i, j)
                t[vi, vj] = a[vi, vj] * 2.0
        for i, j in T.grid(4, 8):
            with T.block("add"):
                vi, vj = T.axis.remap("SS", i, j)
                c[vi, vj] = t[vi, vj] + 1.0
    """
    buffer = laid_out(func, name, index, "set_axis_separator")
    where = "set_axis_separator, argument 3 'separators'"
    rank = len(buffer.shape)
    if any(not 0 < s < rank for s in separators):
        raise illegal(where, f"they lie between 1 and {rank - 1}, got {list(separators)}")
    if sorted(set(separators)) != list(separators):
        raise illegal(where, f"they must ascend, got {list(separators)}")
    if buffer.strides is not None and separators:
        raise illegal("set_axis_separator, argument 2 'index'", f"{buffer.name!r} has strides")
    new = replace(buffer, separators=tuple(separators))
    return Outcome(replace(func, body=with_buffers(func.body, {buffer: new})))
