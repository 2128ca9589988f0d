"""set_dtype: a temporary of floats that holds them as wider ones."""

from __future__ import annotations

from dataclasses import replace

from unity.ir.dtype import FLOAT32, DType
from unity.ir.prim_expr import Binary, Cast, Imm, Load, PrimExpr, imm
from unity.ir.stmt import Buffer, PrimFunc, Stmt, Store
from unity.ir.visit import prim_loads, rewrite_stmt

from ....blocks.combine import EXTREMES
from ....blocks.tree import Outcome, illegal, with_buffers
from .set_scope import laid_out


def set_dtype(func: PrimFunc, name: str, index: int, dtype: DType) -> Outcome:
    """A temporary that a block writes holds wider floats, of which each is one of its own.

    The least and the greatest of narrow floats are found among wide ones then, which machines
    compare in registers. TVM's ``unsafe_set_dtype`` takes any type, and may change results.

    Args:
        func: The prim func.
        name: The block.
        index: Which of its writes: to a temporary.
        dtype: A float of at least 32 bits, more than the temporary's have.

    Raises:
        UnityError: It is no temporary of floats, or these are as wide; a foreign function gets its
            address; sums are kept in it, which are rounded with each step.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: bf16[Buffer, 8, 4], c: bf16[Buffer, 8]) -> None:
    ...     t = T.alloc((8,), "bfloat16")
    ...     for i, k in T.grid(8, 4):
    ...         with T.block("most"):
    ...             vi, vk = T.axis.remap("SR", i, k)
    ...             with T.init():
    ...                 t[vi] = T.imm("bfloat16", "-inf")
    ...             t[vi] = T.max(t[vi], a[vi, vk])
    ...     for i in range(8):
    ...         with T.block("copy"):
    ...             vi = T.axis.spatial(8, i)
    ...             c[vi] = t[vi]
    ... ''').prim_funcs()["main"])
    >>> sch.set_dtype("most", 0, "float32")
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: bf16[Buffer, 8, 4], c: bf16[Buffer, 8]) -> None:
        t = T.alloc((8,), "float32")
        for i, k in T.grid(8, 4):
            with T.block("most"):
                vi, vk = T.axis.remap("SR", i, k)
                with T.init():
                    t[vi] = T.imm("float32", "-inf")
                t[vi] = T.max(t[vi], T.cast("float32", a[vi, vk]))
        for i in range(8):
            with T.block("copy"):
                vi = T.axis.remap("S", i)
                c[vi] = T.cast("bfloat16", t[vi])
    """
    buffer = laid_out(func, name, index, "set_dtype")
    old = buffer.dtype
    where = "set_dtype, argument 3 'dtype'"
    if not (old.is_float and dtype.is_float) or dtype.bits < max(FLOAT32.bits, old.bits + 1):
        why = f"not each {old} of {buffer.name!r} is known to be a {dtype}"
        raise illegal(where, why, "a wider float of at least 32 bits holds all of them")
    new = replace(buffer, dtype=dtype)

    def narrow(e: Load) -> PrimExpr | None:
        if e.buffer is not buffer:
            return None
        return Cast(old, replace(e, buffer=new))

    def stored(s: Stmt) -> Stmt | None:
        if not isinstance(s, Store) or s.buffer is not buffer:
            return None
        return replace(s, buffer=new, value=_widened(where, s.value, buffer, new))

    body = rewrite_stmt(rewrite_stmt(func.body, stored), None, load_fn=narrow)
    return Outcome(replace(func, body=with_buffers(body, {buffer: new})))


def _widened(where: str, value: PrimExpr, old: Buffer, new: Buffer) -> PrimExpr:
    """What is stored, as the wider float."""
    match value:
        case Binary(op, Load() as kept, other) if op in EXTREMES and kept.buffer is old:
            return Binary(op, replace(kept, buffer=new), _widened(where, other, old, new))
        case Imm():
            return imm(value.value, new.dtype)
        case _:
            if any(x.buffer is old for x in prim_loads(value)):
                why = f"what is kept in {old.name!r} is rounded with each step"
                raise illegal(where, why, "only the least or the greatest of floats is exact")
            return Cast(new.dtype, value)
