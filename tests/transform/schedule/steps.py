"""Random steps of a schedule, legal or not; what is refused is refused with an error of ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random

from unity.errors import UnityError
from unity.ir.prim_expr import Operand, PrimExpr, PrimVar
from unity.ir.signature import size_params
from unity.ir.stmt import For, PrimFunc, Stmt
from unity.ir.visit import map_stmt, substitute_stmt
from unity.transform.blocks.tree import all_blocks
from unity.transform.schedule import IndexMap, LoopRef, Schedule

Step = Callable[[Schedule, Random, str], None]
"""Does something about a block."""


def some_loop(sch: Schedule, random: Random, block: str) -> LoopRef:
    loops = sch.get_loops(block)
    return random.choice(loops) if loops else sch.add_unit_loop(block)


def _end(sch: Schedule, random: Random, block: str) -> None:
    """Loops as far as predicates of blocks in them go, or farther than these."""
    if random.random() < 0.7:
        trim = random.choice([sch.trim, sch.trim_neutral, sch.trim_unread])
        trim(some_loop(sch, random, block))
    else:
        sch.round_up(block)


def _split(sch: Schedule, random: Random, block: str) -> None:
    factors: list[int | None] = [random.randint(1, 5) for _ in range(random.randint(1, 3))]
    if random.random() < 0.8:
        factors[random.randrange(len(factors))] = None
    sch.split(some_loop(sch, random, block), factors)


def _fuse(sch: Schedule, random: Random, block: str) -> None:
    loops = sch.get_loops(block)
    first = random.randrange(len(loops) + 1)
    sch.fuse(*loops[first : first + random.randint(1, 3)])


def _reorder(sch: Schedule, random: Random, block: str) -> None:
    loops = list(sch.get_loops(block))
    random.shuffle(loops)
    sch.reorder(*loops[: random.randint(1, 4)])


def _tile(sch: Schedule, random: Random, block: str) -> None:
    loops = sch.get_loops(block)
    first = random.randrange(max(1, len(loops) - 1))
    rows, columns = (
        [*loops, *loops][first : first + 2] if loops else (some_loop(sch, random, block),) * 2
    )
    sch.tile(rows, columns, random.randint(1, 4), random.randint(1, 4))


def _kind(sch: Schedule, random: Random, block: str) -> None:
    loop = some_loop(sch, random, block)
    match random.randrange(4):
        case 0:
            sch.parallel(loop)
        case 1:
            sch.vectorize(loop)
        case 2:
            sch.unroll(loop)
        case _:
            sch.bind(loop, "threadIdx.x")


def _partition(sch: Schedule, random: Random, block: str) -> None:
    extents = [random.randint(1, 4) for _ in range(random.randint(1, 2))]
    sch.loop_partition(some_loop(sch, random, block), extents)


def _versions(sch: Schedule, random: Random, block: str) -> None:
    sizes = [s.name for s in size_params(sch.func)] or ["n"]
    a, b, k = random.choice(sizes), random.choice(sizes), random.randint(0, 5)
    facts = [f"{a} >= {k}", f"{a} == {b}", f"{a} % 2 == 0 and {b} < {k}", f"{a} == {k}"]
    names = [b.name for b in all_blocks(sch.func.body)]
    others = [random.choice(names)] if random.random() < 0.5 else []
    sch.specialize_when(random.choice(facts), *random.choice([(), (block, *others)]))


def _peel(sch: Schedule, random: Random, block: str) -> None:
    sch.peel(some_loop(sch, random, block), random.randrange(3), random.randrange(2))


def _unswitch(sch: Schedule, random: Random, block: str) -> None:
    sch.unswitch(some_loop(sch, random, block))


def _siblings(sch: Schedule, random: Random, block: str) -> None:
    """Outermost loops of blocks in a row, those before and this one."""
    names = [b.name for b in all_blocks(sch.func.body)]
    last = names.index(block)
    several = names[max(0, last - random.randint(1, 2)) : last + 1]
    depth = random.choice([0, 0, 1])
    loops = [sch.get_loops(name)[depth:] for name in several]
    firsts = [x[0] for x in loops if x]
    if random.random() < 0.3:
        at: list[int | str] = [1, 3, 8, "4"]
        sch.partition_siblings(random.choice(at), *firsts)
    else:
        sch.fuse_siblings(*firsts)


def _mark(sch: Schedule, random: Random, block: str) -> None:
    at: str | LoopRef = some_loop(sch, random, block)
    if random.random() < 0.5:
        at = block
    sch.annotate(at, "note", random.randint(0, 9))
    if random.random() < 0.5:
        sch.unannotate(at, "note")


def _inline(sch: Schedule, random: Random, block: str) -> None:
    random.choice([sch.compute_inline, sch.reverse_compute_inline])(block)


def _move(sch: Schedule, random: Random, block: str) -> None:
    others = [b.name for b in all_blocks(sch.func.body) if b.name != block]
    blocks = others or [block]
    loop = some_loop(sch, random, random.choice(blocks))
    match random.randrange(5):
        case 3:
            sch.store_in(block, 0, random.choice(blocks), 0)
        case 0:
            sch.compute_at(block, loop)
        case 1:
            sch.compute_at(block, loop, some_loop(sch, random, random.choice(blocks)))
        case 2:
            sch.store_at(block, 0, loop)
            if random.random() < 0.5:
                sch.compact_buffer(block, 0)
            if random.random() < 0.3:
                sch.blockize_body(loop)
        case _:
            sch.reverse_compute_at(block, loop)


def _cache(sch: Schedule, random: Random, block: str) -> None:
    index = random.randint(0, 1)
    match random.randrange(5):
        case 3:
            m = _some_map(len(sch.axis_kinds(block)), random)
            if random.random() < 0.5:
                sch.reindex_cache_read(block, index, "local", m)
            else:
                sch.reindex_cache_write(block, 0, "shared", m)
        case 0:
            sch.cache_read(block, index, "local")
        case 4:
            sch.cache_write(block, 0, "local", some_loop(sch, random, block))
        case 1:
            sch.cache_write(block, 0, "local")
        case _:
            sch.reindex(block, random.choice(["read", "write"]), index)


def _copy(sch: Schedule, random: Random, block: str) -> None:
    index = random.randint(0, 1)
    match random.randrange(5):
        case 4:
            sch.cache_operand(block, index, "local")
        case 3:
            sch.cache_index(block, "global", random.randint(0, 1))
        case 0:
            sch.read_at(block, index, some_loop(sch, random, block), "local")
        case 1:
            sch.write_at(block, 0, some_loop(sch, random, block), "global")
        case _:
            sch.cache_inplace(block, index, "shared")


def _some_map(axes: int, random: Random) -> IndexMap:
    """A map of axes: left out, in another order, parted."""
    inputs = tuple(PrimVar(f"i{k}") for k in range(axes))
    kept = [v for v in inputs if random.random() < 0.8]
    random.shuffle(kept)
    outputs: list[PrimExpr] = list(kept)
    if kept and random.random() < 0.4:
        k = random.randint(1, 4)
        outputs = [*kept[1:], kept[0] // k, kept[0] % k]
    return IndexMap(inputs, tuple(outputs))


def _memory(sch: Schedule, random: Random, block: str) -> None:
    if random.random() < 0.5:
        sch.set_scope(block, 0, "shared")
    elif random.random() < 0.2:
        sch.set_dtype(block, 0, "float64")
    elif random.random() < 0.2:
        sch.tile_axis(block, random.randrange(2), random.choice([2, 3, 4]))
    elif random.random() < 0.2:
        sch.tile_lines(block, random.randrange(2), random.choice([1, 2, 3]))
    elif random.random() < 0.5:
        sch.set_axis_separator(block, 0, random.sample([0, 1, 2], random.randrange(3)))
    else:
        sch.storage_align(
            block, 0, random.randrange(3), random.choice([1, 4, 32]), random.randrange(3)
        )


def _fetch(sch: Schedule, random: Random, block: str) -> None:
    loops = sch.get_loops(block) or (sch.add_unit_loop(block),)
    places = sorted(random.choices(range(len(loops)), k=random.choice([2, 2, 3])))
    outer, *between, at = [loops[k] for k in places]
    shared = between[0] if between else None
    sch.prefetch(block, random.randint(0, 1), outer, at, shared, random.randint(1, 3))


def _reduce(sch: Schedule, random: Random, block: str) -> None:
    loop = some_loop(sch, random, block)
    match random.randrange(5):
        case 4:
            axes = next(b.axes for b in all_blocks(sch.func.body) if b.name == block)
            sch.pad_einsum(block, [random.choice([1, 2, 4]) for _ in axes])
        case 0:
            at = random.choice([None, some_loop(sch, random, block)])
            sch.rfactor(loop, random.randint(0, 2), at)
        case 1:
            init = sch.decompose_reduction(block, loop)
            if random.random() < 0.5:
                sch.merge_reduction(init, block)
        case 2:
            sch.merge_reduction(random.choice(all_blocks(sch.func.body)).name, block)
        case _:
            random.choice([sch.blockize, sch.blockize_body])(loop)


def _decompose(sch: Schedule, random: Random, block: str) -> None:
    """The init goes before a loop at which another block was computed; or takes an epilogue."""
    others = [b.name for b in all_blocks(sch.func.body) if b.name != block] or [block]
    if random.random() < 0.4:
        readers = [b.name for b in sch.get_consumers(block)]
        sch.fuse_reduction_epilogue(block, random.choice(readers or others))
        return
    loop = some_loop(sch, random, block)
    with suppress(UnityError):
        random.choice([sch.compute_at, sch.reverse_compute_at])(random.choice(others), loop)
    sch.decompose_reduction(block, some_loop(sch, random, block))


def _fill(sch: Schedule, random: Random, block: str) -> None:
    sch.decompose_padding(block, some_loop(sch, random, block))


def _roll(sch: Schedule, random: Random, block: str) -> None:
    readers = [b.name for b in sch.get_consumers(block)]
    loop = some_loop(sch, random, random.choice(readers or [block]))
    with suppress(UnityError):
        sch.compute_at(block, loop)
    sch.rolling_buffer(block, 0, loop)


def _region(sch: Schedule, random: Random, block: str) -> None:
    """A region as it is, by a step wider at each end, or around an axis."""
    found = next(b for b in all_blocks(sch.func.body) if b.name == block)
    kind, regions = random.choice([("read", found.reads), ("write", found.writes)])
    index = random.randrange(max(1, len(regions)))
    axes = tuple(a.var for a in found.axes)
    ends: list[PrimExpr] = []
    for k, r in enumerate(regions[index].ranges if regions else ()):
        around = [(r.begin - 1, r.begin + r.extent + 1), (r.begin, r.begin + r.extent)]
        around += [(axes[k] - 1, axes[k] + 2)] * 2 if k < len(axes) else []
        ends += random.choice(around)
    sch.annotate_buffer_access(block, index, kind, IndexMap(axes, tuple(ends)))
    if kind == "read":
        maker = random.choice([b.name for b in sch.get_producers(block)] or [block])
        sch.compute_at(maker, some_loop(sch, random, block))


def _lanes(sch: Schedule, random: Random, block: str) -> None:
    _, lanes = sch.split(some_loop(sch, random, block), [None, random.choice([2, 3, 4])])
    sch.vectorize(lanes)


def _layout(sch: Schedule, random: Random, block: str) -> None:
    k = random.randint(1, 4)
    maps: tuple[Callable[..., Sequence[Operand]], ...] = (
        lambda i: (i // k, i % k),
        lambda i, j: (j, i),
        lambda i, j: (i // k, j, i % k),
        lambda i, j: (i * k + j,),
        lambda i, j, h: (i, h, j),
        lambda i, j: (i + j,),
    )
    chosen = random.choice(maps)
    match random.randrange(3):
        case 0:
            sch.transform_layout(block, 0, chosen)
        case 1:
            sch.transform_block_layout(block, chosen)
        case _:
            axes = list(range(len(sch.axis_kinds(block))))
            random.shuffle(axes)
            sch.reorder_block_iter_var(block, axes)


def _sample(sch: Schedule, random: Random, block: str) -> None:
    match random.randrange(4):
        case 3:
            loop = some_loop(sch, random, block)
            parts = random.randint(1, 3)
            args = (parts, random.randrange(parts), random.choice([1, 2, 3]))
            sch.split(loop, sch.sample_partitioned_tile(loop, *args))
        case 0:
            loop = some_loop(sch, random, block)
            sch.split(loop, sch.sample_perfect_tile(loop, random.randint(1, 3), 4))
        case 1:
            factor = sch.sample_categorical([2, 3, 4], [0.5, 0.25, 0.25])
            sch.split(some_loop(sch, random, block), [None, factor])
        case _:
            at = sch.sample_compute_location(block)
            if at is not None:
                sch.compute_at(block, at)


LOOPS: tuple[Step, ...] = (
    *(_split, _split, _fuse, _reorder, _reorder, _tile),
    *(_partition, _peel, _unswitch, _siblings, _mark, _fetch, _versions, _end),
)
KINDS: tuple[Step, ...] = (_kind,)
REDUCTIONS: tuple[Step, ...] = (
    _decompose,
    _reduce,
    _reduce,
    _reduce,
    _lanes,
    _peel,
    _cache,
    _layout,
    _layout,
    _split,
    _reorder,
    _fuse,
)
SAMPLES: tuple[Step, ...] = (_sample, _sample, _reorder, _move)
BLOCKS: tuple[Step, ...] = (
    *(_inline, _move, _move, _move, _cache, _copy, _memory, _fill, _roll, _region),
    *(_fetch, _split, _reorder, _versions, _siblings, _siblings, _unswitch, _end),
)


def scheduled(
    func: PrimFunc, random: Random, steps: Sequence[Step], count: int = 6
) -> tuple[Schedule, int]:
    """A prim func after random steps, and how many of them were legal."""
    sch, done = Schedule(func, seed=0), 0
    for _ in range(count):
        blocks = [b.name for b in all_blocks(sch.func.body)]
        if not blocks:
            break
        try:
            random.choice(steps)(sch, random, random.choice(blocks))
            done += 1
        except UnityError:
            continue
    return sch, done


def backwards(func: PrimFunc) -> PrimFunc:
    """With the loops whose iterations may run at once running from the end."""

    def go(s: Stmt) -> Stmt:
        s = map_stmt(s, go, lambda e: e)
        if isinstance(s, For) and s.kind in ("parallel", "vectorized", "thread"):
            turned = s.begin + s.begin + s.extent - 1 - s.var
            inner = substitute_stmt(s.body, {s.var: turned})
            return For(s.var, s.begin, s.extent, inner, s.kind, s.thread)
        return s

    return PrimFunc(func.params, go(func.body), func.attrs)
