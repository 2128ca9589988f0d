"""reindex_cache_write: a block writes to a copy laid out as a map of its axes says."""

from __future__ import annotations

from unity.ir.stmt import PrimFunc

from ....blocks.tree import Outcome
from ...index_map import IndexMap
from .reindex_cache_read import cached_by_map


def reindex_cache_write(
    func: PrimFunc, name: str, index: int, scope: str, index_map: IndexMap
) -> Outcome:
    """The block writes to a buffer laid out as a map of its axes says, copied behind its nest.

    Args:
        func: The prim func.
        name: The block; it accesses the buffer at one place.
        index: Which of its writes.
        scope: Of the copy: ``shared``, ``local`` ...
        index_map: The indices in the copy in terms of the block's axes, counted from their begins;
            only of those that index the access.

    Returns:
        The block that copies, over these axes in their order.

    Raises:
        UnityError: There is no such write, it is not at one place, or the block does not make all
            of it; the map uses other axes, or may send two elements to one place.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 8, 3], c: f32[Buffer, 24]) -> None:
    ...     for i, k in T.grid(8, 3):
    ...         with T.block("windows"):
    ...             vi, vk = T.axis.remap("SS", i, k)
    ...             c[vi * 3 + vk] = a[vi, vk]
    ... ''').prim_funcs()["main"])
    >>> copy = sch.reindex_cache_write("windows", 0, "local", lambda i, k: (k, i))
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 8, 3], c: f32[Buffer, 24]) -> None:
        c_local = T.alloc((3, 8), "float32", scope="local")
        for i, k in T.grid(8, 3):
            with T.block("windows"):
                vi, vk = T.axis.remap("SS", i, k)
                c_local[vk, vi] = a[vi, vk]
        for i, k in T.grid(8, 3):
            with T.block("c_local"):
                vi, vk = T.axis.remap("SS", i, k)
                c[vi * 3 + vk] = c_local[vk, vi]
    """
    return cached_by_map("reindex_cache_write", func, name, "write", index, scope, index_map)
