"""add_unit_loop: a loop of one iteration, to bind or to move others to."""

from __future__ import annotations

from unity.ir.prim_expr import PrimVar, imm
from unity.ir.stmt import For, PrimFunc

from ....blocks.tree import Outcome, block_path, loop_path, replaced


def add_unit_loop(func: PrimFunc, at: PrimVar | str) -> Outcome:
    """A loop of extent 1 directly around a loop or a block.

    Args:
        func: The prim func.
        at: A loop's variable or a block's name.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, ()], c: f32[Buffer, ()]) -> None:
    ...     with T.block("copy"):
    ...         c[()] = a[()]
    ... ''').prim_funcs()["main"])
    >>> loop = sch.add_unit_loop("copy")
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, ()], c: f32[Buffer, ()]) -> None:
        for unit in range(1):
            with T.block("copy"):
                c[()] = a[()]
    """
    target = block_path(func, at)[1] if isinstance(at, str) else loop_path(func, at)[1]
    var = PrimVar("unit")
    return Outcome(replaced(func, [(target, For(var, imm(0), imm(1), target))]), (var,))
