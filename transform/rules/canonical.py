"""Kernels told apart by what they compute: their blocks' names and their history don't count.

Two kernels that a schedule could not tell apart get one name, so what was found out about one of
them (a record of `unity.tuning`) serves the other, in another model and after another edit.
"""

from __future__ import annotations

from dataclasses import replace

from unity.ir.attrs import NO_ATTRS
from unity.ir.fingerprint import fingerprint
from unity.ir.stmt import Block, PrimFunc, Stmt
from unity.ir.visit import map_stmts

from ..blocks.tree import distinct

HISTORY = ("op", "pattern", "private", "source")
"""Attributes that say where a kernel came from."""


def canonical(func: PrimFunc) -> PrimFunc:
    """The prim func with blocks called ``b0``, ``b1`` ... in order, and no word of its history.

    >>> from unity.script import parse, print_module
    >>> func = parse('''
    ... @script.prim_func(attrs={"op": "copy"})
    ... def main(a: f32[Buffer, 4], c: f32[Buffer, 4]) -> None:
    ...     for i in range(4):
    ...         with T.block("copy"):
    ...             vi = T.axis.spatial(4, i)
    ...             c[vi] = a[vi]
    ... ''').prim_funcs()["main"]
    >>> print(canonical(func), end="")
    @script.prim_func
    def main(a: f32[Buffer, 4], c: f32[Buffer, 4]) -> None:
        for i in range(4):
            with T.block("b0"):
                vi = T.axis.remap("S", i)
                c[vi] = a[vi]
    """
    count = 0

    def renamed(s: Stmt) -> Stmt:
        nonlocal count
        if isinstance(s, Block):
            s = replace(s, name=f"b{count}")
            count += 1
        return map_stmts(s, renamed)

    attrs = func.attrs.without(*HISTORY)
    return distinct(replace(func, body=renamed(func.body), attrs=attrs or NO_ATTRS))


def identity(func: PrimFunc) -> str:
    """What a kernel is called in records: 32 hexadecimal digits, equal where `canonical` is."""
    return fingerprint(canonical(func))[:32]
