"""compact_buffer: a temporary as large as what an iteration uses of it."""

from __future__ import annotations

from unity.ir.stmt import PrimFunc

from ....blocks.compaction import compacted
from ....blocks.dataflow import checked
from ....blocks.tree import Outcome
from .set_scope import laid_out


def compact_buffer(func: PrimFunc, name: str, index: int) -> Outcome:
    """A temporary that a block writes gets the extent of what the loops around it leave open.

    What `CompactBuffers` does when a schedule is done, as a step: what comes behind it finds the
    temporary as it will be. Dimensions go in which an iteration stays at one place. It stays as it
    is where iterations need what others made, or what one uses is not known to be less.

    Args:
        func: The prim func.
        name: A block.
        index: Which of its writes: to a temporary.

    Raises:
        UnityError: There is no such write.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 4, 8]) -> None:
    ...     for i in range(4):
    ...         t = T.alloc((4, 8), "float32")
    ...         for j in range(8):
    ...             with T.block("double"):
    ...                 vi, vj = T.axis.remap("SS", i, j)
    ...                 t[vi, vj] = a[vi, vj] * 2.0
    ...         for j in range(8):
    ...             with T.block("flip"):
    ...                 vi, vj = T.axis.remap("SS", i, j)
    ...                 c[vi, vj] = t[vi, 7 - vj]
    ... ''').prim_funcs()["main"])
    >>> sch.compact_buffer("double", 0)
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 4, 8]) -> None:
        for i in range(4):
            t = T.alloc((8,), "float32")
            for j in range(8):
                with T.block("double"):
                    vi, vj = T.axis.remap("SS", i, j)
                    t[vj] = a[vi, vj] * 2.0
            for j in range(8):
                with T.block("flip"):
                    vi, vj = T.axis.remap("SS", i, j)
                    c[vi, vj] = t[7 - vj]
    """
    buffer = laid_out(func, name, index, "compact_buffer")
    done = compacted(func, buffer, without_still=True)
    return Outcome(checked(done, "compact_buffer, argument 2 'index'"))
