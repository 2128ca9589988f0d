"""What single steps refuse, by text; `test_hostile.py` shows that what they take is right."""

from __future__ import annotations

import pytest

from tests.transform.schedule.hostile import HOSTILE, Program
from unity.errors import UnityError
from unity.transform.schedule import Schedule

from .refused import FACTS, FEW, FOREIGN, INIT_BEHIND, NESTED, STAGES, Do, at, swapped

CASES: dict[str, tuple[Program, Do, str]] = {
    "no factor": (
        HOSTILE["matmul"],
        lambda s: s.split(at("b", 0)(s), []),
        "split, argument 2 'factors': one of them may be None, got []",
    ),
    "factor of 0": (
        HOSTILE["matmul"],
        lambda s: s.split(at("b", 0)(s), [None, 0]),
        "split, argument 2 'factors': they must be positive, got [None, 0]",
    ),
    "an empty reduction": (
        FACTS,
        lambda s: s.split(at("b", 1)(s), [2, 4]),
        "split, argument 2 'factors': 'k' may be empty: the init of block 'b' would not run",
    ),
    "a kind already": (
        HOSTILE["matmul"],
        lambda s: (s.unroll(at("b", 0)(s)), s.split(at("b", 0)(s), [2, 2])),
        "split, argument 1 'loop': it is unrolled already",
    ),
    "bounds that change": (
        HOSTILE["shrinking"],
        lambda s: s.split(at("b", 0)(s), [None, 2]),
        "split, argument 1 'loop': the bounds of 'k' load 'l', which it stores to",
    ),
    "tile size": (
        HOSTILE["matmul"],
        lambda s: s.tile(at("b", 0)(s), at("b", 1)(s), 0, 2),
        "tile, argument 3 'height': it must be positive, got 0",
    ),
    "tile of loops with a kind": (
        HOSTILE["matmul"],
        lambda s: (s.unroll(at("b", 1)(s)), s.tile(at("b", 0)(s), at("b", 1)(s), 2, 2)),
        "tile, argument 2 'columns': it is unrolled already",
    ),
    "fuse of nothing": (
        HOSTILE["matmul"],
        lambda s: s.fuse(),
        "fuse, argument 1 'loops': there must be one at least",
    ),
    "reorder of one loop twice": (
        HOSTILE["matmul"],
        lambda s: s.reorder(at("b", 0)(s), at("b", 0)(s)),
        "reorder, argument 1 'loops': each loop must be given once",
    ),
    "steps with an order": (
        HOSTILE["horner2"],
        lambda s: s.reorder(at("b", 2)(s), at("b", 1)(s)),
        "reorder, argument 1 'loops': the steps of the reduction 'b' are not known to come in any "
        "order",
    ),
    "single steps that another block reads": (
        HOSTILE["interleaved"],
        lambda s: s.reorder(*reversed(s.split(at("s", 1)(s), [None, 2]))),
        "reorder, argument 1 'loops': block 'u' touches what single steps of 's' make",
    ),
    "elements that points share": (
        HOSTILE["race"],
        lambda s: s.parallel(at("b", 0)(s)),
        "parallel, argument 1 'loop': points of block 'b' may write to one place of 'c'",
    ),
    "elements of other points": (
        HOSTILE["shift"],
        lambda s: s.parallel(at("b", 0)(s)),
        "parallel, argument 1 'loop': points of block 'b' may read what others write to 'a'",
    ),
    "a predicate over what is written": (
        HOSTILE["preddep"],
        lambda s: s.vectorize(at("b", 0)(s)),
        "vectorize, argument 1 'loop': block 'b' writes 'c', which decides what it does",
    ),
    "lanes of steps in an order": (
        HOSTILE["horner2"],
        lambda s: s.vectorize(at("b", 2)(s)),
        "vectorize, argument 1 'loop': 'b' does not reduce one formula by an operation with a zero",
    ),
    "lanes of a reduction and more": (
        HOSTILE["matmul"],
        lambda s: s.vectorize(s.fuse(at("b", 1)(s), at("b", 2)(s))),
        "vectorize, argument 1 'loop': it drives a reduce axis of block 'b'",
    ),
    "lanes of single steps that another block reads": (
        HOSTILE["interleaved"],
        lambda s: s.vectorize(s.split(at("s", 1)(s), [None, 2])[1]),
        "vectorize, argument 1 'loop': it drives a reduce axis of block 's'",
    ),
    "a loop's variable in a block": (
        HOSTILE["loopvar2"],
        lambda s: s.compute_at("p", at("q", 1)(s)),
        "compute_at, argument 1 'block': it uses 'r' other than by an axis",
    ),
    "no such thread": (
        HOSTILE["matmul"],
        lambda s: s.bind(at("b", 0)(s), "threadIdx.w"),
        "bind, argument 2 'thread': there is no thread axis 'threadIdx.w'",
    ),
    "no annotation": (
        HOSTILE["matmul"],
        lambda s: s.unannotate("b", "note"),
        "unannotate, argument 2 'key': there is no annotation 'note'",
    ),
    "no stretch": (
        HOSTILE["matmul"],
        lambda s: s.loop_partition(at("b", 0)(s), []),
        "loop_partition, argument 2 'extents': they must be positive, got []",
    ),
    "nothing peeled": (
        HOSTILE["matmul"],
        lambda s: s.peel(at("b", 0)(s), 0),
        "peel, argument 2 'first': nothing is taken from either end",
    ),
    "less than nothing peeled": (
        HOSTILE["matmul"],
        lambda s: s.peel(at("b", 0)(s), 1, -1),
        "peel, argument 3 'last': it must not be negative, got -1",
    ),
    "the first step of a reduction that may be empty": (
        FACTS,
        lambda s: s.peel(at("b", 1)(s)),
        "peel, argument 1 'loop': it may be empty, and drives the reduction 'b'",
    ),
    "the last step of a reduction of one": (
        HOSTILE["matmul"],
        lambda s: s.peel(at("b", 2)(s), 0, 99),
        "peel, argument 1 'loop': it may be empty, and drives the reduction 'b'",
    ),
    "one loop in one pass": (
        HOSTILE["chainreduce"],
        lambda s: s.fuse_siblings(at("p", 0)(s)),
        "fuse_siblings, argument 1 'loops': there must be two at least, each given once",
    ),
    "loops in another order": (
        HOSTILE["chainreduce"],
        lambda s: s.fuse_siblings(at("s", 0)(s), at("p", 0)(s)),
        "fuse_siblings, argument 1 'loops': they do not stand one behind another",
    ),
    "loops of other extents": (
        STAGES,
        lambda s: s.fuse_siblings(at("shorter", 0)(s), at("rows", 0)(s)),
        "fuse_siblings, argument 1 'loops': 'i' does not run over what 'j' does",
    ),
    "a sum before it is complete": (
        STAGES,
        lambda s: s.fuse_siblings(at("total", 0)(s), at("share", 0)(s)),
        "fuse_siblings, argument 1 'loops': block 'share' may touch of 's' what block 'total' "
        "touches in later iterations",
    ),
    "elements made in later iterations": (
        STAGES,
        lambda s: s.fuse_siblings(at("share", 0)(s), at("window", 0)(s)),
        "fuse_siblings, argument 1 'loops': block 'window' may touch of 't' what block 'share' "
        "touches in later iterations",
    ),
    "elements that are read in later iterations": (
        STAGES,
        lambda s: s.fuse_siblings(at("window", 0)(s), at("again", 0)(s)),
        "fuse_siblings, argument 1 'loops': block 'again' may touch of 't' what block 'window' "
        "touches in later iterations",
    ),
    "loops of which one has a kind": (
        STAGES,
        lambda s: (
            s.parallel(at("share", 0)(s)),
            s.fuse_siblings(at("total", 0)(s), at("share", 0)(s)),
        ),
        "fuse_siblings, argument 1 'loops': 'i' is parallel already",
    ),
    "an init that comes late": (
        HOSTILE["backk"],
        lambda s: s.decompose_reduction("p", at("p", 1)(s)),
        "decompose_reduction, argument 2 'loop': axis 'vk' of block 'p' is not at its begin first",
    ),
    "an init left out": (
        HOSTILE["pred1"],
        lambda s: s.decompose_reduction("b", at("b", 1)(s)),
        "decompose_reduction, argument 2 'loop': the predicate of block 'b' may leave out the step "
        "with its init",
    ),
    "an init under a condition": (
        HOSTILE["if1"],
        lambda s: s.rfactor(at("b", 1)(s)),
        "rfactor, argument 1 'loop': block 'b' stands under a condition",
    ),
    "bounds of the reduction": (
        NESTED,
        lambda s: s.decompose_reduction("sum", at("sum", 0)(s)),
        "decompose_reduction, argument 2 'loop': bounds of loops in it depend on loops that reduce",
    ),
    "factor axis": (
        HOSTILE["matmul"],
        lambda s: s.rfactor(at("b", 2)(s), 3),
        "rfactor, argument 2 'factor_axis': 3 is above the rank 2",
    ),
    "partial results in a loop that reduces": (
        HOSTILE["matmul"],
        lambda s: s.rfactor(s.split(at("b", 2)(s), [None, 2])[1], 0, at("b", 2)(s)),
        "rfactor, argument 3 'at': 'k_0', which reduces, is not in it",
    ),
    "partial results in another block's loop": (
        HOSTILE["chainreduce"],
        lambda s: s.rfactor(at("s", 1)(s), 0, at("p", 0)(s)),
        "rfactor, argument 3 'at': it is not around 's'",
    ),
    "init behind": (
        INIT_BEHIND,
        lambda s: s.merge_reduction("zero", "sum"),
        "merge_reduction, argument 2 'update': it stands before 'zero'",
    ),
    "init that reads": (
        INIT_BEHIND,
        lambda s: s.merge_reduction("copy", "again"),
        "merge_reduction, argument 1 'init': 'copy' is more than the store of one value",
    ),
    "axes without loops of their own": (
        HOSTILE["modreduce"],
        lambda s: s.transform_block_layout("p", lambda i, j: (j, i)),
        "transform_block_layout, argument 1 'block': 'p' is not directly in one loop for each of "
        "its axes",
    ),
    "too few paddings": (
        HOSTILE["matmul"],
        lambda s: s.pad_einsum("b", [8]),
        "pad_einsum, argument 2 'padding': it takes a number for each of vi, vj, vk, got [8]",
    ),
    "no padding": (
        HOSTILE["matmul"],
        lambda s: s.pad_einsum("b", [8, 0, 8]),
        "pad_einsum, argument 2 'padding': they must be positive, got [8, 0, 8]",
    ),
    "neither read nor write": (
        HOSTILE["matmul"],
        lambda s: s.reindex("b", "both", 0),
        "reindex, argument 2 'kind': it is 'read' or 'write', got 'both'",
    ),
    "no such buffer": (
        HOSTILE["matmul"],
        lambda s: s.cache_read("b", "w", "local"),
        "cache_read, argument 2 'index': 'b' has no read of 'w'",
    ),
    "a map of fewer axes": (
        HOSTILE["matmul"],
        lambda s: s.reindex_cache_read("b", 0, "local", swapped),
        "reindex_cache_read, argument 4 'index_map': it takes 2 axes, 'b' has 3",
    ),
    "a map of axes that index nothing": (
        HOSTILE["matmul"],
        lambda s: s.reindex_cache_read("b", 0, "local", lambda i, j, k: (i, j, k)),
        "reindex_cache_read, argument 4 'index_map': 'vj' does not index the access",
    ),
    "a map that loses elements": (
        HOSTILE["matmul"],
        lambda s: s.reindex_cache_write("b", 0, "local", lambda i, j, k: (i + j,)),
        "reindex_cache_write, argument 4 'index_map': it is not known to send each element to a "
        "place of its own",
    ),
    "fewer than no times": (
        HOSTILE["matmul"],
        lambda s: s.cache_index("b", "local", -1),
        "cache_index, argument 3 'threshold': it must not be negative, got -1",
    ),
    "a region of neither": (
        HOSTILE["matmul"],
        lambda s: s.annotate_buffer_access("b", 0, "both", lambda i, j, k: (i, i + 1, k, k + 1)),
        "annotate_buffer_access, argument 3 'kind': it is 'read' or 'write', got 'both'",
    ),
    "a region with an end missing": (
        HOSTILE["matmul"],
        lambda s: s.annotate_buffer_access("b", 0, "read", lambda i, j, k: (i, k)),
        "annotate_buffer_access, argument 4 'ranges': it gives 2 numbers, not a begin and an end "
        "for each dimension of 'a'",
    ),
    "a region that is too small": (
        HOSTILE["matmul"],
        lambda s: s.annotate_buffer_access("b", 0, "read", lambda i, j, k: (i, i + 1, 0, k)),
        "annotate_buffer_access, argument 4 'ranges': an access to 'a' is not known to lie between",
    ),
    "an address": (
        FOREIGN,
        lambda s: s.transform_layout("p", 0, lambda i, j: (j, i)),
        "transform_layout, argument 2 'index': a foreign function gets the address of 't', and "
        "relies on its layout",
    ),
    "a copy at another block's loop": (
        HOSTILE["chainreduce"],
        lambda s: s.cache_write("p", 0, "local", at("q", 0)(s)),
        "cache_write, argument 4 'at': it is not around 'p'",
    ),
    "a copy of single steps that another block reads": (
        HOSTILE["interleaved"],
        lambda s: s.cache_write("s", 0, "local", at("s", 1)(s)),
        "cache_write, argument 1 'block': 'c' is touched by others within the loop",
    ),
    "a copy of no box": (
        HOSTILE["if1"],
        lambda s: s.cache_write("b", 0, "local", at("b", 0)(s)),
        "cache_write, argument 4 'at': what 'b' makes of 'c' in an iteration is no box",
    ),
    "a copy where the reduction may be empty": (
        FACTS,
        lambda s: s.cache_write("b", 0, "local", at("b", 1)(s)),
        "cache_write, argument 4 'at': 'k' may be empty and drives the reduction 'b'",
    ),
    "an init where the reduction may be empty": (
        FEW,
        lambda s: s.decompose_reduction("b", at("b", 2)(s)),
        "decompose_reduction, argument 2 'loop': 'k' may be empty and drives the reduction 'b'",
    ),
    "a copy behind an address": (
        FOREIGN,
        lambda s: s.cache_read("call", "t", "local"),
        "cache_read, argument 2 'index': 't' is made within the block's nest",
    ),
    "inline into a foreign call": (
        FOREIGN,
        lambda s: s.compute_inline("p"),
        "compute_inline, argument 1 'block': it is not all that makes 't'",
    ),
    "sources that change": (
        HOSTILE["time2"],
        lambda s: s.compute_inline("p"),
        "compute_inline, argument 1 'block': 'a', which it reads, is stored to behind it",
    ),
    "sources that change in a while loop": (
        HOSTILE["while1"],
        lambda s: s.compute_at("p", at("q", 0)(s)),
        "compute_at, argument 1 'block': 'a', which it reads, is stored to behind it",
    ),
    "separators": (
        HOSTILE["chainreduce"],
        lambda s: s.set_axis_separator("p", 0, [2]),
        "set_axis_separator, argument 3 'separators': they lie between 1 and 1, got [2]",
    ),
    "alignment of no axis": (
        HOSTILE["chainreduce"],
        lambda s: s.storage_align("p", 0, 2, 4, 0),
        "storage_align, argument 3 'axis': 2 is not below the rank 2",
    ),
    "alignment to nothing": (
        HOSTILE["chainreduce"],
        lambda s: s.storage_align("p", 0, 0, 0, 0),
        "storage_align, argument 4 'factor': it must be positive, got 0",
    ),
    "negative offset": (
        HOSTILE["chainreduce"],
        lambda s: s.storage_align("p", 0, 0, 4, -1),
        "storage_align, argument 5 'offset': it must not be negative: -1",
    ),
    "negative indices": (
        HOSTILE["chainreduce"],
        lambda s: s.transform_layout("p", 0, lambda i, j: (i - 1, j)),
        "transform_layout, argument 3 'index_map': an index is not known never to be negative",
    ),
    "no part": (
        HOSTILE["matmul"],
        lambda s: s.sample_perfect_tile(at("b", 0)(s), 0),
        "sample_perfect_tile, argument 2 'parts': must be from 1 to 64, got 0",
    ),
    "limit of nothing": (
        HOSTILE["matmul"],
        lambda s: s.sample_perfect_tile(at("b", 0)(s), 2, 0),
        "sample_perfect_tile, argument 3 'limit': must be positive, got 0",
    ),
    "factors of an unknown extent": (
        HOSTILE["symbolic"],
        lambda s: s.sample_perfect_tile(at("b", 0)(s), 2),
        "sample_perfect_tile, argument 1 'loop': its extent is no constant",
    ),
    "factors decided": (
        HOSTILE["matmul"],
        lambda s: s.sample_perfect_tile(at("b", 0)(s), 2, decision=[3, 2]),
        "sample_perfect_tile, argument 'decision': it is 2 factors of 4, the last at most 16, got "
        "[3, 2]",
    ),
    "no place for the inner part": (
        HOSTILE["matmul"],
        lambda s: s.sample_partitioned_tile(at("b", 0)(s), 2, 2),
        "sample_partitioned_tile, argument 3 'place': it is the number of a part, from 0 to 1, "
        "got 2",
    ),
    "an inner part that divides nothing": (
        HOSTILE["matmul"],
        lambda s: s.sample_partitioned_tile(at("b", 0)(s), 2, 1, 3),
        "sample_partitioned_tile, argument 4 'inner_factor': it must divide 4, got 3",
    ),
    "an inner part decided": (
        HOSTILE["matmul"],
        lambda s: s.sample_partitioned_tile(at("b", 0)(s), 2, 1, 2, decision=[4, 1]),
        "sample_partitioned_tile, argument 'decision': it is 2 factors of 4, those from number 1 "
        "on a multiple of 2 together, got [4, 1]",
    ),
    "no order of axes": (
        HOSTILE["matmul"],
        lambda s: s.reorder_block_iter_var("b", [0, 1, 1]),
        "reorder_block_iter_var, argument 2 'order': it holds each number from 0 to 2 once, got "
        "[0, 1, 1]",
    ),
    "a layout of steps in another order than the axes": (
        HOSTILE["crossed"],
        lambda s: s.transform_block_layout("b", lambda i, j, k: (i, j, k)),
        "transform_block_layout, argument 2 'index_map': the steps of 'b' are not known to come "
        "in any order",
    ),
    "weights": (
        HOSTILE["matmul"],
        lambda s: s.sample_categorical([1, 2], [1.0]),
        "sample_categorical, argument 2 'weights': there must be one for each of the candidates, "
        "got [1.0]",
    ),
    "a choice decided": (
        HOSTILE["matmul"],
        lambda s: s.sample_categorical([1, 2], [1.0, 1.0], decision=2),
        "sample_categorical, argument 'decision': it lies between 0 and 1, got 2",
    ),
    "a place decided": (
        HOSTILE["chainreduce"],
        lambda s: s.sample_compute_location("p", decision=9),
        "sample_compute_location, argument 'decision': it lies between -1 and 1, got 9",
    ),
    "no symbol": (
        HOSTILE["symbolic"],
        lambda s: s.specialize({"k": 3}),
        "specialize, argument 1 'sizes': there is no symbol 'k'",
    ),
    "a size too large": (
        FACTS,
        lambda s: s.specialize({"few": 9}),
        "specialize, argument 1 'sizes': 'few' is from 0 to 8, got 9",
    ),
    "another schedule's loop": (
        HOSTILE["matmul"],
        lambda s: s.unroll(Schedule(HOSTILE["matmul"].func()).get_loops("b")[0]),
        "the loop 'l0' is of another schedule",
    ),
    "too few arguments": (
        HOSTILE["matmul"],
        lambda s: getattr(s, "split")(at("b", 0)(s)),  # noqa: B009
        "split needs 'factors'",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_refused(case: str) -> None:
    program, do, message = CASES[case]
    sch = Schedule(program.func())
    with pytest.raises(UnityError) as caught:
        do(sch)
    assert caught.value.message == message


def test_an_empty_loop_has_no_tiles() -> None:
    body = """
for i in range(0):
    with T.block("b"):
        vi = T.axis.spatial(0, i)
        c[vi] = 0.0
"""
    sch = Schedule(Program("c: f32[Buffer, 0]", body).func())
    with pytest.raises(UnityError, match="it is empty: 0 has no factors"):
        sch.sample_perfect_tile(sch.get_loops("b")[0], 3, 4)
