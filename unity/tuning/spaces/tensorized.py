"""Instructions found by structure: any tensor intrinsic that a reduction's inner loops can become.

Of every intrinsic that this machine has (those of `DOT_UNITS` by features, all that users
registered), each way to take its loops from the kernel's is tried: the loops are split by its
extents, put innermost in its order, and `tensorize` says whether they compute what it does. Nothing
in the kernel has to name an intrinsic. What is left outside is cut for threads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import permutations

from unity.errors import UnityError
from unity.ir.stmt import Block, PrimFunc
from unity.machine.dot_units import DOT_UNITS, LANE_COUNTS
from unity.machine.target import Target
from unity.transform.blocks.tree import block_path as path_to
from unity.transform.blocks.tree import blocks_below, loops_of, scope_path
from unity.transform.schedule.intrinsics import INTRINSICS
from unity.transform.schedule.refs import BlockRef, LoopRef
from unity.transform.schedule.schedule import Schedule
from unity.transform.schedule.tensor_intrinsic import TensorIntrinsic

_TASKS = (1, 2, 4, 8, 16)
_WAYS = 24
"""Ways to take an intrinsic's loops from a kernel's that are tried."""


def tensorized(sch: Schedule) -> None:
    """Lay a kernel out by an intrinsic that computes its inner loops; which one is drawn.

    Raises:
        UnityError: There is none.
    """
    sums = [b for b in sch.get_blocks() if "R" in sch.axis_kinds(b)]
    main = max(sums, key=lambda b: len(sch.axis_kinds(b)), default=None)
    if main is None:
        raise UnityError("the kernel sums nothing up")
    found = fitting(sch, main)
    if not found:
        raise UnityError(f"no tensor intrinsic computes the inner loops of {main.name!r}")
    at = sch.sample_categorical(list(range(len(found))), [1 / len(found)] * len(found))
    name, places = found[at]
    outer = sch.get_loops(_take(sch, main, name, places))
    if outer:
        cut = sch.sample_categorical(list(_TASKS), [1 / len(_TASKS)] * len(_TASKS))
        with suppress(UnityError):
            tasks, _ = sch.split(outer[0], [None, cut])
            sch.parallel(tasks)


def fitting(sch: Schedule, block: BlockRef) -> list[tuple[str, tuple[int, ...]]]:
    """The intrinsics that a block's inner loops can become, and which loops that takes.

    Args:
        sch: A schedule; nothing is done to it.
        block: A reduction.

    Returns:
        Names, with the numbers of the block's loops in the order of the intrinsic's.
    """
    return list(_fitting(sch.func, sch.target, block, tuple(INTRINSICS)))


@lru_cache(maxsize=64)
def _fitting(
    func: PrimFunc, target: Target | None, block: BlockRef, names: Sequence[str]
) -> Sequence[tuple[str, tuple[int, ...]]]:
    """Those of some intrinsics that fit: found once for all samples of a kernel's space."""
    sch = Schedule(func, target)
    found: list[tuple[str, tuple[int, ...]]] = []
    own = _dtypes(path_to(sch.func, block.name)[1])
    for name in names:
        intrinsic = INTRINSICS[name]
        if _dtypes(_described(intrinsic)) != own:
            continue
        if target is not None and not has_intrinsic(target, name):
            continue
        for places in _ways(sch, block, intrinsic):
            trial = sch.copy()
            with suppress(UnityError):
                _take(trial, block, name, places)
                found.append((name, places))
                break
    return found


def has_intrinsic(target: Target, name: str) -> bool:
    """Whether a machine has what an intrinsic is made of; those of users are theirs to say."""
    unit = next((u for u in DOT_UNITS if name.startswith(f"{u.name}_")), None)
    if unit is None:
        return True
    lanes = next((n for n in LANE_COUNTS if name.startswith(f"{unit.name}_{n}x")), LANE_COUNTS[-1])
    return all(map(target.has, unit.needs(lanes)))


def _ways(sch: Schedule, block: BlockRef, intrinsic: TensorIntrinsic) -> Iterator[tuple[int, ...]]:
    """Loops of a block that may be an intrinsic's: of the same kinds, and no shorter."""
    kinds, extents = _kinds(_described(intrinsic)), _extents(intrinsic)
    own, loops = sch.axis_kinds(block), sch.get_loops(block)
    if len(own) != len(loops):
        return
    lengths = [sch.extent(loop) for loop in loops]
    count = 0
    for places in permutations(range(len(loops)), len(kinds)):
        fits = all(
            own[p] == kind and ((n := lengths[p]) is None or n >= extent)
            for p, kind, extent in zip(places, kinds, extents, strict=True)
        )
        if fits:
            yield places
            count += 1
        if count >= _WAYS:
            return


def _described(intrinsic: TensorIntrinsic) -> Block:
    """The block that says what an intrinsic computes."""
    (block,) = blocks_below(intrinsic.description.body)
    return block


def _extents(intrinsic: TensorIntrinsic) -> tuple[int, ...]:
    """The extents of the loops that an intrinsic describes."""
    func = intrinsic.description
    path, _ = path_to(func, _described(intrinsic).name)
    return tuple(int(getattr(x.extent, "value", 0)) for x in loops_of(scope_path(path)))


def _kinds(block: Block) -> str:
    return "".join(axis.kind for axis in block.axes)


def _dtypes(block: Block) -> tuple[Counter[str], Counter[str]]:
    """Of what a block reads besides what it adds to, and of what it writes."""
    made = [r.buffer for r in block.writes]
    read = [r.buffer for r in block.reads if r.buffer not in made]
    return Counter(b.dtype.name for b in read), Counter(b.dtype.name for b in made)


def _take(sch: Schedule, block: BlockRef, name: str, places: Sequence[int]) -> BlockRef:
    """The loops at some places become an intrinsic; gives the block around it.

    Raises:
        UnityError: They compute something else, or lie otherwise.
    """
    extents = _extents(INTRINSICS[name])
    outer, own = list(sch.get_loops(block)), sch.axis_kinds(block)
    inner: list[LoopRef] = []
    for place, extent in zip(places, extents, strict=True):
        outer[place], part = sch.split(outer[place], [None, extent])
        inner.append(part)
    sch.reorder(*outer, *inner)
    summed = [loop for loop, kind in zip(outer, own, strict=True) if kind == "R"]
    if summed:
        with suppress(UnityError):
            sch.decompose_reduction(block, summed[0])
    return sch.tensorize(inner[0], name)
