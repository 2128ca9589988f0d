"""Every step that a schedule could take next, legal or not, with arguments of each kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise, permutations

from unity.ir.prim_expr import Operand
from unity.transform.blocks.tree import all_blocks
from unity.transform.schedule import LoopRef, Schedule

Step = tuple[str, tuple[object, ...]]
"""A method of `Schedule`, and its arguments."""

FACTORS = ([None, 2], [None, 3], [3, None], [None, 2, 2], [2, 4], [None])
FACTS = ("n >= 3", "m % 2 == 0", "n == m", "few < 2")
STRETCHES = ([1], [2], [1, 2], [100])
MAPS: tuple[Callable[..., Sequence[Operand]], ...] = (
    lambda i: (i // 2, i % 2),
    lambda i: (i // 3, i % 3),
    lambda i: (7 - i,),
    lambda i: (i * 2,),
    lambda i, j: (j, i),
    lambda i, j: (i // 2, j, i % 2),
    lambda i, j: (i, j // 2, j % 2),
    lambda i, j: (i * 8 + j,),
    lambda i, j, k: (k, j, i),
)
RANGES: tuple[Callable[..., Sequence[Operand]], ...] = (
    lambda i: (i - 1, i + 2),
    lambda i, j: (i, i + 1, j - 1, j + 2),
    lambda i, j, k: (i, i + 1, k, k + 1),
)


def next_steps(sch: Schedule) -> list[Step]:
    """Steps on each loop and each block; the trace gets the loops they ask for."""
    blocks = [b.name for b in all_blocks(sch.func.body)]
    loops = tuple(dict.fromkeys(loop for b in blocks for loop in sch.get_loops(b)))
    found = [step for loop in loops for step in _of_loop(loop)]
    found += [("fuse_siblings", each) for each in permutations(loops, 2)]
    found += [("partition_siblings", (2, *each)) for each in permutations(loops, 2)]
    for block in blocks:
        found += _of_nest(sch.get_loops(block))
        found += _of_block(block, len(sch.axis_kinds(block)))
        found += _of_both(block, loops)
        found += [("merge_reduction", (block, other)) for other in blocks]
        found += [("fuse_reduction_epilogue", (block, other)) for other in blocks]
        found += [("store_in", (block, 0, other, 0)) for other in blocks]
    return found


def _of_loop(loop: LoopRef) -> list[Step]:
    names = (
        *("trim", "trim_neutral", "trim_unread", "parallel", "vectorize", "unroll", "unswitch"),
        *("add_unit_loop", "blockize"),
    )
    return [
        ("blockize_body", (loop,)),
        *((name, (loop,)) for name in names),
        *(("split", (loop, factors)) for factors in FACTORS),
        *(("loop_partition", (loop, extents)) for extents in STRETCHES),
        *(("peel", (loop, first, last)) for first, last in ((1, 0), (2, 1), (0, 1))),
        *(("rfactor", (loop, axis)) for axis in (0, 1)),
        ("bind", (loop, "threadIdx.x")),
        ("annotate", (loop, "note", 1)),
    ]


def _of_nest(loops: Sequence[LoopRef]) -> list[Step]:
    return [
        *(("reorder", order) for k in range(1, 4) for order in permutations(loops, k)),
        *(("fuse", tuple(loops[k : k + n])) for k in range(len(loops)) for n in (2, 3)),
        *(("tile", (a, b, 2, 3)) for a, b in pairwise(loops)),
    ]


def _of_block(block: str, axes: int) -> list[Step]:
    inner: list[Step] = [
        (name, (block,))
        for name in (
            "compute_inline",
            "reverse_compute_inline",
            "add_unit_loop",
            "skip_padding",
            "round_up",
        )
    ]
    for k in (0, 1):
        inner += [
            ("cache_read", (block, k, "local")),
            ("stream_stores", (k,)),
            ("cache_write", (block, k, "local")),
            ("reindex", (block, "read", k)),
            ("reindex", (block, "write", k)),
            *(("reindex_cache_read", (block, k, "local", each)) for each in MAPS),
            *(("reindex_cache_write", (block, k, "local", each)) for each in MAPS),
            ("cache_inplace", (block, k, "local")),
            ("compact_buffer", (block, k)),
            ("set_scope", (block, k, "shared")),
            ("set_dtype", (block, k, "float64")),
            ("set_axis_separator", (block, k, [1])),
            ("storage_align", (block, k, 0, 4, 1)),
            *(("transform_layout", (block, k, each)) for each in MAPS),
        ]
    return [
        *inner,
        *(("transform_block_layout", (block, each)) for each in MAPS),
        ("pad_einsum", (block, [4] * axes)),
        *(("tile_axis", (block, k, size)) for k in range(min(axes, 2)) for size in (2, 3)),
        *(("tile_lines", (block, k, lines)) for k in range(min(axes, 2)) for lines in (1, 2)),
        ("pad_einsum", (block, [2, 4, 3][:axes])),
        ("annotate", (block, "note", 1)),
        *(("annotate_buffer_access", (block, 0, "read", each)) for each in RANGES),
        *(("annotate_buffer_access", (block, 0, "write", each)) for each in RANGES),
        *(("cache_index", (block, "local", k)) for k in (0, 1)),
        *(("cache_operand", (block, k, "local")) for k in (0, 1)),
        ("reorder_block_iter_var", (block, list(range(axes))[::-1])),
        *(("specialize_when", (fact, block)) for fact in FACTS),
    ]


def _of_both(block: str, loops: Sequence[LoopRef]) -> list[Step]:
    return [
        *(("compute_at", (block, loop)) for loop in loops),
        *(("compute_at", (block, loop, first)) for loop in loops for first in loops[:4]),
        *(("reverse_compute_at", (block, loop)) for loop in loops),
        *(("decompose_reduction", (block, loop)) for loop in loops),
        *(("decompose_padding", (block, loop)) for loop in loops),
        *(("rolling_buffer", (block, 0, loop)) for loop in loops),
        *(("store_at", (block, 0, loop)) for loop in loops),
        *(("rfactor", (loop, 0, outer)) for outer, loop in pairwise(loops)),
        *(("cache_write", (block, 0, "local", loop)) for loop in loops),
        *(("read_at", (block, k, loop, "local")) for loop in loops for k in (0, 1)),
        *(("write_at", (block, k, loop, "local")) for loop in loops for k in (0, 1)),
    ]


def take(sch: Schedule, step: Step) -> None:
    """Do a step.

    Raises:
        UnityError: It is refused.
    """
    name, args = step
    getattr(sch, name)(*args)


def told(steps: Sequence[Step]) -> str:
    """Steps as text."""
    return "; ".join(f"{name}({', '.join(map(str, args))})" for name, args in steps)
