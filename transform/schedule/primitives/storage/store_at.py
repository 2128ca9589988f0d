"""store_at: each iteration of a loop has a temporary of its own."""

from __future__ import annotations

from dataclasses import replace

from unity.ir.prim_expr import PrimVar
from unity.ir.stmt import Allocate, Block, PrimFunc

from ....blocks.private import is_private
from ....blocks.tree import Outcome, buffers_in, illegal, loop_path, replaced
from ....blocks.trust import is_trusted
from .set_scope import written


def store_at(func: PrimFunc, name: str, index: int, var: PrimVar) -> Outcome:
    """What a block writes is kept for one iteration of a loop, by each thread for itself.

    Values that several iterations need alike (a panel that pieces of rows share) are made by each
    of them; in a place that all have in common, threads would write them over one another. After
    Halide's ``store_at``.

    Args:
        func: The prim func.
        name: A block.
        index: Which of its writes: to a temporary.
        var: A loop around everything that uses the temporary.

    Raises:
        UnityError: It is used outside the loop, or an iteration needs what another one makes.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 8], c: f32[Buffer, 4, 8]) -> None:
    ...     t = T.alloc((8,), "float32")
    ...     for i in range(4):
    ...         for j in range(8):
    ...             with T.block("double"):
    ...                 vj = T.axis.spatial(8, j)
    ...                 t[vj] = a[vj] * 2.0
    ...         for j in range(8):
    ...             with T.block("copy"):
    ...                 vi, vj = T.axis.remap("SS", i, j)
    ...                 c[vi, vj] = t[vj]
    ... ''').prim_funcs()["main"])
    >>> rows = sch.get_loops("copy")[0]
    >>> sch.store_at("double", 0, rows)
    >>> sch.parallel(rows)
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 8], c: f32[Buffer, 4, 8]) -> None:
        for i in T.parallel(4):
            t = T.alloc((8,), "float32")
            for j in range(8):
                with T.block("double"):
                    vj = T.axis.remap("S", j)
                    t[vj] = a[vj] * 2.0
            for j in range(8):
                with T.block("copy"):
                    vi, vj = T.axis.remap("SS", i, j)
                    c[vi, vj] = t[vj]
    """
    buffer = written(func, name, index, "store_at")
    path, loop = loop_path(func, var)
    where = "store_at, argument 3 'loop'"
    at = next(
        (k for k, s in enumerate(path) if isinstance(s, Allocate) and s.buffer is buffer), None
    )
    if at is None or any(isinstance(s, Block) for s in path[at:]):
        raise illegal(where, f"{buffer.name!r} is not allocated around it, or around its block")
    allocation = path[at]
    assert isinstance(allocation, Allocate)
    uses = [sum(b is buffer for b in buffers_in(s)) for s in (allocation.body, loop)]
    if uses[0] != uses[1]:
        raise illegal(where, f"{buffer.name!r} is used outside of it")
    if not is_trusted() and not is_private(path, buffer):
        why = f"an iteration is not known to make all that it reads of {buffer.name!r}"
        raise illegal(where, why)
    inner = replace(loop, body=Allocate(buffer, loop.body))
    body = replaced(replace(func, body=allocation.body), [(loop, inner)]).body
    return Outcome(replaced(func, [(allocation, body)]))
