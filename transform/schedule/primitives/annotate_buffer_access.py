"""annotate_buffer_access: what a block touches of a buffer, where less is known than is true."""

from __future__ import annotations

from dataclasses import replace

from unity.arith import Analyzer
from unity.ir.prim_expr import Binary
from unity.ir.stmt import PrimFunc, Range, Region

from ...blocks.regions import GIVEN, holds_all
from ...blocks.tree import Outcome, block_path, illegal, replaced
from ..index_map import IndexMap


def annotate_buffer_access(
    func: PrimFunc, name: str, index: int, kind: str, ranges: IndexMap
) -> Outcome:
    """A block's region of a buffer is what is given, where that provably holds each access.

    Regions that are found from statements take a dimension whole where a block accesses it at
    several places that are no constant apart; then `compute_at` computes all of it. The region
    stays with the block through later steps as long as it still holds what the block touches.

    Args:
        func: The prim func.
        name: The block.
        index: Which of its reads or writes.
        kind: ``read`` or ``write``.
        ranges: For each dimension of the buffer where the region begins and where it ends, in terms
            of the block's axes; parts out of bounds are nobody's.

    Raises:
        UnityError: There is no such access; there are not a begin and an end for each dimension, or
            an access is not known to lie between.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 8], c: f32[Buffer, 16]) -> None:
    ...     t = T.alloc((8,), "float32")
    ...     for i in range(8):
    ...         with T.block("double"):
    ...             vi = T.axis.spatial(8, i)
    ...             t[vi] = a[vi] * 2.0
    ...     for i in range(16):
    ...         with T.block("between"):
    ...             vi = T.axis.spatial(16, i)
    ...             c[vi] = t[vi // 2] + t[T.min(vi // 2 + 1, 7)]
    ... ''').prim_funcs()["main"])
    >>> sch.annotate_buffer_access("between", "t", "read", lambda i: (i // 2, i // 2 + 2))
    >>> sch.compute_at("double", sch.get_loops("between")[0])
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 8], c: f32[Buffer, 16]) -> None:
        t = T.alloc((8,), "float32")
        for i in range(16):
            for i_at in range(2):
                with T.block("double"):
                    vi = T.axis.spatial(8, i_at + i // 2)
                    T.where(i_at + i // 2 < 8)
                    t[vi] = a[vi] * 2.0
            with T.block("between", attrs={"given_regions": True}):
                vi = T.axis.remap("S", i)
                T.reads(t[vi // 2:vi // 2 + 2])
                c[vi] = t[vi // 2] + t[T.min(vi // 2 + 1, 7)]
    """
    _, block = block_path(func, name)
    if kind not in ("read", "write"):
        where = "annotate_buffer_access, argument 3 'kind'"
        raise illegal(where, f"it is 'read' or 'write', got {kind!r}")
    regions = list(block.reads if kind == "read" else block.writes)
    if not 0 <= index < len(regions):
        where = "annotate_buffer_access, argument 2 'index'"
        raise illegal(where, f"{name!r} has {len(regions)} {kind}s, got {index}")
    buffer = regions[index].buffer
    where = "annotate_buffer_access, argument 4 'ranges'"
    if len(ranges.inputs) != len(block.axes):
        raise illegal(where, f"it takes {len(ranges.inputs)} axes, {name!r} has {len(block.axes)}")
    ends = ranges([a.var for a in block.axes])
    if len(ends) != 2 * len(buffer.shape):
        why = f"it gives {len(ends)} numbers, not a begin and an end for each dimension"
        raise illegal(where, f"{why} of {buffer.name!r}")
    known = Analyzer()
    given = Region(
        buffer,
        tuple(
            Range(known.simplify(begin), known.simplify(Binary("sub", last, begin)))
            for begin, last in zip(ends[::2], ends[1::2], strict=True)
        ),
    )
    if not holds_all(block, given):
        raise illegal(where, f"an access to {buffer.name!r} is not known to lie between")
    regions[index] = given
    attrs = block.attrs.with_(**{GIVEN: True})
    reads, writes = (regions, block.writes) if kind == "read" else (block.reads, regions)
    new = replace(block, reads=tuple(reads), writes=tuple(writes), attrs=attrs)
    return Outcome(replaced(func, [(block, new)]))
