"""Arguments of steps that are none: each is refused as a user's mistake, and nothing is changed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.transform.schedule.hostile import HOSTILE
from unity.errors import UnityError
from unity.transform.schedule import BlockRef, LoopRef, Schedule
from unity.transform.schedule.schedule import INSTRUCTIONS

from .refused import Do, Loop, swapped


@pytest.mark.parametrize(
    "do",
    [
        lambda s: s.parallel("i"),
        lambda s: s.reorder("i", "j"),
        lambda s: s.add_unit_loop(7),
        lambda s: s.store_at("s", 0, "i"),
    ],
)
def test_what_is_no_loop_is_told_how_to_get_one(do: Do) -> None:
    with pytest.raises(UnityError, match="expected a loop") as caught:
        do(Schedule(HOSTILE["chainreduce"].func()))
    assert "get_loops" in str(caught.value.hint)


@pytest.mark.parametrize("step", ["cache_read", "cache_write", "set_scope"])
def test_scopes_that_no_code_generator_knows_are_refused(step: str) -> None:
    sch = Schedule(HOSTILE["chainreduce"].func())
    with pytest.raises(UnityError) as caught:
        getattr(sch, step)("p", 0, "banana")
    wanted = "a scope (global, shared, local, amx.tile, or a backend's own)"
    assert caught.value.message == f"{step}, argument 3 'scope': expected {wanted}, got 'banana'"
    for scope in ("global", "shared", "local"):
        getattr(Schedule(HOSTILE["chainreduce"].func()), step)("p", 0, scope)


JUNK: Sequence[object] = (
    *(None, 0, -1, 7, 10**9, 1.5, "x", "", [], [0], [-1], [None], ["a"], [1.5], [[1]], True),
    *(LoopRef("l99"), LoopRef("l0"), BlockRef("nope"), {"a": 1}),
)
STEPS: dict[str, tuple[object, ...]] = {
    "split": (Loop("s", 0), [None, 2]),
    "fuse": (Loop("s", 0), Loop("s", 1)),
    "reorder": (Loop("s", 0), Loop("s", 1)),
    "tile": (Loop("s", 0), Loop("s", 1), 2, 2),
    "vectorize": (Loop("s", 0),),
    "parallel": (Loop("s", 0),),
    "unroll": (Loop("s", 0),),
    "get_loops": ("s",),
    "bind": (Loop("s", 0), "threadIdx.x"),
    "annotate": ("s", "note", 1),
    "unannotate": ("s", "note"),
    "add_unit_loop": ("s",),
    "loop_partition": (Loop("s", 0), [2]),
    "peel": (Loop("s", 0), 1, 1),
    "unswitch": (Loop("p", 0),),
    "partition_siblings": ("n // 2 * 2", Loop("p", 0), Loop("q", 0)),
    "trim": (Loop("s", 0),),
    "trim_neutral": (Loop("s", 1),),
    "trim_unread": (Loop("p", 0),),
    "round_up": ("p", "q"),
    "fuse_siblings": (Loop("p", 0), Loop("q", 0)),
    "compute_inline": ("p",),
    "compute_at": ("p", Loop("s", 0), Loop("s", 0)),
    "reverse_compute_inline": ("q",),
    "prefetch": ("p", 0, Loop("p", 0), Loop("p", 0), Loop("p", 0), 1),
    "reverse_compute_at": ("q", Loop("s", 0)),
    "cache_read": ("s", 0, "local"),
    "cache_inplace": ("s", 0, "local"),
    "read_at": ("s", 0, Loop("s", 0), "local"),
    "write_at": ("s", 0, Loop("s", 0), "local"),
    "reindex_cache_read": ("s", 0, "local", swapped, 0),
    "reindex_cache_write": ("p", 0, "local", swapped),
    "cache_write": ("s", 0, "local", Loop("s", 1)),
    "reindex": ("s", "read", 0),
    "set_scope": ("p", 0, "local"),
    "set_dtype": ("p", 0, "float64"),
    "set_axis_separator": ("p", 0, [1]),
    "storage_align": ("p", 0, 0, 4, 1),
    "store_at": ("p", 0, Loop("s", 0)),
    "stream_stores": (1,),
    "store_in": ("p", 0, "q", 0),
    "pad_einsum": ("s", [2, 2]),
    "tile_axis": ("p", 0, 4),
    "tile_lines": ("p", 0, 2),
    "decompose_reduction": ("s", Loop("s", 1)),
    "merge_reduction": ("p", "s"),
    "fuse_reduction_epilogue": ("s", "q"),
    "decompose_padding": ("p", Loop("p", 0)),
    "cache_index": ("p", "local", 0),
    "cache_operand": ("s", 0, "local"),
    "rolling_buffer": ("p", 0, Loop("p", 0)),
    "skip_padding": ("s",),
    "rfactor": (Loop("s", 1), 0, Loop("s", 0)),
    "annotate_buffer_access": ("p", 0, "read", swapped),
    "blockize": (Loop("s", 1),),
    "blockize_body": (Loop("s", 0),),
    "compact_buffer": ("p", 0),
    "tensorize": (Loop("s", 1), "nothing"),
    "transform_layout": ("p", 0, swapped),
    "transform_block_layout": ("p", swapped),
    "sample_perfect_tile": (Loop("s", 0), 2, 4),
    "sample_partitioned_tile": (Loop("s", 0), 2, 1, 2),
    "reorder_block_iter_var": ("p", [1, 0]),
    "sample_categorical": ([1, 2], [0.5, 0.5]),
    "sample_compute_location": ("p",),
    "specialize": ({},),
    "specialize_when": ("n >= 2", "p"),
}


def test_every_step_is_given_junk() -> None:
    assert STEPS.keys() == INSTRUCTIONS.keys()


@pytest.mark.rotated(2)
@pytest.mark.parametrize("name", STEPS)
def test_arguments_that_make_no_sense(name: str) -> None:
    """Each argument in turn by junk: refused as users' mistakes are, or taken for what it is."""
    given = STEPS[name]
    for k in range(len(given)):
        for junk in JUNK:
            sch = Schedule(HOSTILE["chainreduce"].func())
            real = [a.of(sch) if isinstance(a, Loop) else a for a in given]
            real[k] = junk
            before, length = sch.func, len(sch.trace)
            try:
                getattr(sch, name)(*real)
            except UnityError:
                assert sch.func is before
                assert len(sch.trace) == length
