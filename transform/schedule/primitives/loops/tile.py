"""tile: two loops split, the inner halves inside."""

from __future__ import annotations

from collections.abc import Callable

from unity.errors import UnityError
from unity.ir.prim_expr import PrimVar
from unity.ir.stmt import PrimFunc

from ....blocks.tree import Outcome, illegal
from .reorder import reorder
from .split import split


def tile(func: PrimFunc, rows: PrimVar, columns: PrimVar, height: int, width: int) -> Outcome:
    """Four loops: over tiles of `height` by `width`, then over the points of one.

    Args:
        func: The prim func.
        rows: A loop.
        columns: The loop directly in it.
        height: Rows of a tile.
        width: Columns of a tile.

    Raises:
        UnityError: A split or the change of order is refused.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 16, 8], c: f32[Buffer, 8, 16]) -> None:
    ...     for i, j in T.grid(8, 16):
    ...         with T.block("transpose"):
    ...             vi, vj = T.axis.remap("SS", i, j)
    ...             c[vi, vj] = a[vj, vi]
    ... ''').prim_funcs()["main"])
    >>> tiles = sch.tile(*sch.get_loops("transpose"), 4, 4)
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 16, 8], c: f32[Buffer, 8, 16]) -> None:
        for i_0, j_0, i_1, j_1 in T.grid(2, 4, 4, 4):
            with T.block("transpose"):
                vi = T.axis.spatial(8, i_0 * 4 + i_1)
                vj = T.axis.spatial(16, j_0 * 4 + j_1)
                c[vi, vj] = a[vj, vi]
    """
    for at, (name, size) in enumerate((("height", height), ("width", width)), 3):
        if size < 1:
            raise illegal(f"tile, argument {at} {name!r}", f"it must be positive, got {size}")
    first = _part("argument 1 'rows'", lambda: split(func, rows, (None, height)))
    second = _part("argument 2 'columns'", lambda: split(first.func, columns, (None, width)))
    loops = (first.loops[0], second.loops[0], first.loops[1], second.loops[1])
    done = _part("arguments 1 and 2", lambda: reorder(second.func, loops))
    return Outcome(done.func, loops)


def _part(arguments: str, do: Callable[[], Outcome]) -> Outcome:
    """A step of it, refused as one of its own arguments."""
    try:
        return do()
    except UnityError as error:
        _, _, why = error.message.partition(": ")
        raise illegal(f"tile, {arguments}", why or error.message, error.hint) from None
