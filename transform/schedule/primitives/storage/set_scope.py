"""set_scope: the kind of memory that a temporary lies in."""

from __future__ import annotations

from dataclasses import replace

from unity.ir.stmt import Buffer, PrimFunc

from ....blocks.dataflow import addressed_in, is_param
from ....blocks.tree import Outcome, block_path, illegal, with_buffers


def set_scope(func: PrimFunc, name: str, index: int, scope: str) -> Outcome:
    """A temporary that a block writes, in another scope.

    Args:
        func: The prim func.
        name: The block.
        index: Which of its writes.
        scope: ``global``, ``shared``, ``local`` ...

    Raises:
        UnityError: There is no such write, or it is to a parameter.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 8], c: f32[Buffer, 8]) -> None:
    ...     t = T.alloc((8,), "float32")
    ...     for i in range(8):
    ...         with T.block("double"):
    ...             vi = T.axis.spatial(8, i)
    ...             t[vi] = a[vi] * 2.0
    ...     for i in range(8):
    ...         with T.block("flip"):
    ...             vi = T.axis.spatial(8, i)
    ...             c[vi] = t[7 - vi]
    ... ''').prim_funcs()["main"])
    >>> sch.set_scope("double", 0, "local")
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 8], c: f32[Buffer, 8]) -> None:
        t = T.alloc((8,), "float32", scope="local")
        for i in range(8):
            with T.block("double"):
                vi = T.axis.remap("S", i)
                t[vi] = a[vi] * 2.0
        for i in range(8):
            with T.block("flip"):
                vi = T.axis.remap("S", i)
                c[vi] = t[7 - vi]
    """
    buffer = written(func, name, index, "set_scope")
    new = replace(buffer, scope=scope)
    return Outcome(replace(func, body=with_buffers(func.body, {buffer: new})))


def laid_out(func: PrimFunc, name: str, index: int, primitive: str) -> Buffer:
    """The same, of which nothing but loads and stores rely on the layout."""
    buffer = written(func, name, index, primitive)
    if buffer in addressed_in(func.body):
        why = f"a foreign function gets the address of {buffer.name!r}, and relies on its layout"
        raise illegal(f"{primitive}, argument 2 'index'", why)
    return buffer


def written(func: PrimFunc, name: str, index: int, primitive: str) -> Buffer:
    """The temporary that a block writes as its write of some number."""
    _, block = block_path(func, name)
    where = f"{primitive}, argument 2 'index'"
    if not 0 <= index < len(block.writes):
        raise illegal(where, f"{name!r} has {len(block.writes)} writes, got {index}")
    buffer = block.writes[index].buffer
    if is_param(func, buffer):
        raise illegal(where, f"{buffer.name!r} is a parameter, whose layout callers rely on")
    return buffer
