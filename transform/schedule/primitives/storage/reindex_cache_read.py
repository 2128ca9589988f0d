"""reindex_cache_read: a block reads a copy laid out as a map of its axes says."""

from __future__ import annotations

from unity.ir.stmt import PrimFunc
from unity.ir.visit import variables

from ....blocks.tree import Outcome, block_path, illegal
from ...index_map import IndexMap
from .reindex import by_axes
from .transform_layout import relaid


def reindex_cache_read(
    func: PrimFunc,
    name: str,
    index: int,
    scope: str,
    index_map: IndexMap,
    place: int | None = None,
) -> Outcome:
    """A copy of what the block reads is made before its nest, laid out as a map of its axes says.

    Args:
        func: The prim func.
        name: The block.
        index: Which of its reads.
        scope: Of the copy: ``shared``, ``local`` ...
        index_map: The indices in the copy in terms of the block's axes, counted from their begins;
            only of those that index the access.
        place: Which of several places where the block reads the buffer, in their order; the others
            stay. None where there is one.

    Returns:
        The block that copies, over these axes in their order.

    Raises:
        UnityError: There is no such read, it is not at one place, or might be out of bounds;
            the map uses other axes, or may send two elements to one place.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 10], c: f32[Buffer, 8, 3]) -> None:
    ...     for i, k in T.grid(8, 3):
    ...         with T.block("windows"):
    ...             vi, vk = T.axis.remap("SS", i, k)
    ...             c[vi, vk] = a[vi + vk]
    ... ''').prim_funcs()["main"])
    >>> copy = sch.reindex_cache_read("windows", 0, "local", lambda i, k: (k, i))
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 10], c: f32[Buffer, 8, 3]) -> None:
        a_local = T.alloc((3, 8), "float32", scope="local")
        for i, k in T.grid(8, 3):
            with T.block("a_local"):
                vi, vk = T.axis.remap("SS", i, k)
                a_local[vk, vi] = a[vi + vk]
        for i, k in T.grid(8, 3):
            with T.block("windows"):
                vi, vk = T.axis.remap("SS", i, k)
                c[vi, vk] = a_local[vk, vi]
    """
    return cached_by_map("reindex_cache_read", func, name, "read", index, scope, index_map, place)


def cached_by_map(
    step: str,
    func: PrimFunc,
    name: str,
    kind: str,
    index: int,
    scope: str,
    index_map: IndexMap,
    place: int | None = None,
) -> Outcome:
    """An access through a copy over the axes that index it, laid out by a map."""
    where = f"{step}, argument 4 'index_map'"
    _, block = block_path(func, name)
    if len(index_map.inputs) != len(block.axes):
        why = f"it takes {len(index_map.inputs)} axes, {name!r} has {len(block.axes)}"
        raise illegal(where, why)
    suffix = scope.replace(".", "_")
    done = by_axes(f"{step}, argument 2 'index'", func, name, kind, index, suffix, scope, place)
    by_axis = dict(zip(block.axes, index_map.inputs, strict=True))
    own = tuple(by_axis[a] for a in done.axes)
    for axis, v in by_axis.items():
        if v not in own and any(v in variables(e) for e in index_map.outputs):
            raise illegal(where, f"{axis.var.name!r} does not index the access")
    new = relaid(where, done.outcome.func, done.buffer, IndexMap(own, index_map.outputs))
    return Outcome(new, blocks=done.outcome.blocks)
