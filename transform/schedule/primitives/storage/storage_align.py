"""storage_align: rows of a temporary apart by more than they hold, against conflicts of banks."""

from __future__ import annotations

from dataclasses import replace

from unity.arith import Analyzer
from unity.ir.prim_expr import Binary, PrimExpr, imm
from unity.ir.stmt import PrimFunc

from ....blocks.extents import number
from ....blocks.tree import Outcome, illegal, with_buffers
from .set_scope import laid_out


def storage_align(
    func: PrimFunc, name: str, index: int, axis: int, factor: int, offset: int
) -> Outcome:
    """The stride of an axis becomes a multiple of `factor`, plus `offset`.

    Args:
        func: The prim func.
        name: A block.
        index: Which of its writes: to a temporary.
        axis: The axis of the temporary whose stride is to change.
        factor: In elements.
        offset: In elements.

    Raises:
        UnityError: There is no such write or axis; the shape is not constant; the factor is not
            positive.

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
    ...         with T.block("flip"):
    ...             vi, vj = T.axis.remap("SS", i, j)
    ...             c[vi, vj] = t[vj, vi]
    ... ''').prim_funcs()["main"])
    >>> sch.storage_align("double", 0, 0, 32, 1)
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 8, 8], c: f32[Buffer, 8, 8]) -> None:
        t = T.alloc((8, 8), "float32", strides=(33, 1))
        for i, j in T.grid(8, 8):
            with T.block("double"):
                vi, vj = T.axis.remap("SS", i, j)
                t[vi, vj] = a[vi, vj] * 2.0
        for i, j in T.grid(8, 8):
            with T.block("flip"):
                vi, vj = T.axis.remap("SS", i, j)
                c[vi, vj] = t[vj, vi]
    """
    buffer = laid_out(func, name, index, "storage_align")
    if not 0 <= axis < len(buffer.shape):
        rank = len(buffer.shape)
        raise illegal("storage_align, argument 3 'axis'", f"{axis} is not below the rank {rank}")
    if factor < 1:
        raise illegal("storage_align, argument 4 'factor'", f"it must be positive, got {factor}")
    if offset < 0:
        raise illegal("storage_align, argument 5 'offset'", f"it must not be negative: {offset}")
    if not all(number(n) for n in buffer.shape):
        where = "storage_align, argument 2 'index'"
        raise illegal(where, f"the shape of {buffer.name!r} is not constant")
    strides: list[PrimExpr] = []
    step: PrimExpr = imm(1)
    for k, n in reversed(list(enumerate(buffer.shape))):
        if k == axis:
            up = Binary("floordiv", Binary("add", step, imm(factor - 1)), imm(factor))
            step = Binary("add", Binary("mul", up, imm(factor)), imm(offset))
            step = Analyzer().simplify(step)
        strides.insert(0, step)
        step = Analyzer().simplify(Binary("mul", step, n))
    new = replace(buffer, strides=tuple(strides), separators=())
    return Outcome(replace(func, body=with_buffers(func.body, {buffer: new})))
