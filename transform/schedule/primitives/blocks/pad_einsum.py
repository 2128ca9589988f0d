"""pad_einsum: a contraction over extents that are multiples of what a tile needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from unity.arith import Analyzer
from unity.ir.prim_expr import Binary, Cast, Compare, Imm, Load, PrimExpr, PrimVar, Select, imm
from unity.ir.stmt import Allocate, Block, Buffer, For, PrimFunc, Range, Stmt, Store
from unity.ir.visit import temporaries, variables

from ....blocks.dataflow import addressed_in, checked, copy_nest, is_param, top_of
from ....blocks.tree import (
    Outcome,
    all_blocks,
    around,
    block_path,
    blocks_below,
    conjunction,
    illegal,
    is_zero,
    known_above,
    replaced,
    scope_path,
    sequence,
    unique,
    with_buffers,
    with_regions,
)
from ..storage.cache_read import refuse_if_made_inside
from ..storage.cache_write import refuse_if_shared
from .tile_axis import axis_loops

BLOCK = "pad_einsum, argument 1 'block'"


def pad_einsum(func: PrimFunc, name: str, padding: Sequence[int]) -> Outcome:
    """The block runs over axes rounded up; what it reads beyond their ends are copies' zeros.

    Products are summed there as well, and are 0; results there are not copied out. Extents may be
    symbolic: the padded ones are multiples all the same, so that tiles of them have no tails.
    Along a spatial axis a parameter is read without a copy where it goes on beyond the end (as
    weights do in whole panels), and so is what was made before a block around; a result that lies
    in a temporary has more room instead.

    Args:
        func: The prim func.
        name: A block that sums products of elements indexed by its axes, in one loop for each axis.
        padding: What each axis' extent becomes a multiple of, in the order of the block's axes.

    Returns:
        The blocks that copy: one for each buffer read along a padded axis that ends with it, and
        one for the result where a spatial axis is padded and callers see the result.

    Raises:
        UnityError: The block is no such; there is not a positive number for each axis.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 4, 7], b: f32[Buffer, 7], c: f32[Buffer, 4]) -> None:
    ...     for i, k in T.grid(4, 7):
    ...         with T.block("dots"):
    ...             vi, vk = T.axis.remap("SR", i, k)
    ...             with T.init():
    ...                 c[vi] = 0.0
    ...             c[vi] += a[vi, vk] * b[vk]
    ... ''').prim_funcs()["main"])
    >>> copies = sch.pad_einsum("dots", [1, 8])
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 4, 7], b: f32[Buffer, 7], c: f32[Buffer, 4]) -> None:
        a_pad = T.alloc((4, 8), "float32")
        b_pad = T.alloc((8,), "float32")
        for ax0, ax1 in T.grid(4, 8):
            with T.block("a_pad"):
                v0, v1 = T.axis.remap("SS", ax0, ax1)
                a_pad[v0, v1] = T.select(v1 < 7, a[v0, v1], 0.0)
        for ax0 in range(8):
            with T.block("b_pad"):
                v0 = T.axis.remap("S", ax0)
                b_pad[v0] = T.select(v0 < 7, b[v0], 0.0)
        for i, k in T.grid(4, 8):
            with T.block("dots"):
                vi, vk = T.axis.remap("SR", i, k)
                with T.init():
                    c[vi] = 0.0
                c[vi] += a_pad[vi, vk] * b_pad[vk]
    """
    path, block = block_path(func, name)
    loops = axis_loops(BLOCK, path, block)
    if any(a.kind == "O" for a in block.axes):
        raise illegal(BLOCK, f"an axis of {block.name!r} is neither spatial nor reduced")
    padded = _padded(block, padding, known_above(path))
    if not padded:
        return Outcome(func)
    known = known_above(path)
    store, loads = _contraction(block)
    reads = [x for x in loads if not _goes_on(func, block, x, padded, known)]
    _refuse_unless_plain(block, [Load(store.buffer, store.indices), *reads])
    _refuse_unless_zeros(block, loads, padded)
    top = top_of(path)
    names = {b.name for b in all_blocks(func.body)}
    copies: dict[Buffer, Buffer] = {}
    grown: dict[Buffer, Buffer] = {}
    before: list[Stmt] = []
    after: list[Stmt] = []
    made: list[str] = []
    for load in reads:
        if load.buffer in copies or not _over(load.indices) & padded.keys():
            continue
        refuse_if_made_inside(BLOCK, top, load.buffer)
        new = _copy(load.buffer, load.indices, block, padded)
        copies[load.buffer] = new
        made.append(unique(new.name, names))
        ends = [_extent(block, i) for i in load.indices]
        before.append(_padding(made[-1], new, load.buffer, ends))
    if _over(store.indices) & padded.keys():
        new = _copy(store.buffer, store.indices, block, padded)
        ends = [_extent(block, i) for i in store.indices]
        if _may_grow(func, store.buffer, ends, known):
            grown[store.buffer] = replace(store.buffer, shape=new.shape)
        else:
            refuse_if_shared(BLOCK, func, block, store.buffer, top)
            copies[store.buffer] = new
            made.append(unique(new.name, names))
            after.append(copy_nest(made[-1], store.buffer, new, ends, False, lambda at: at))
    inner = _widened(block, loops, padded, copies)
    both = sequence([*before, replaced(replace(func, body=top), [(loops[0], inner)]).body, *after])
    root = scope_path(path)[0]
    body = replaced(replace(func, body=root), [(top, both)]).body
    for buffer in reversed(copies.values()):
        body = Allocate(buffer, body)
    done = replaced(func, [(root, body)])
    done = replace(done, body=with_buffers(done.body, grown)) if grown else done
    return Outcome(checked(done, BLOCK), blocks=tuple(made))


def _goes_on(
    func: PrimFunc,
    block: Block,
    load: Load,
    padded: Mapping[PrimVar, PrimExpr],
    known: Analyzer,
) -> bool:
    """Whether a block over padded axes reads what is there: any will do where sums are not kept."""
    moved = {v for index in load.indices for v in variables(index)} & padded.keys()
    if not moved:
        return True
    sums = {a.var for a in block.axes if a.kind == "R"}
    if moved & sums or not _is_outside(func, block, load.buffer):
        return False
    for axis in block.axes:
        known = known.with_extent(axis.var, imm(0), padded.get(axis.var, axis.domain.extent))
    return all(
        known.prove(Compare("ge", index, imm(0))) and known.prove(Compare("lt", index, size))
        for index, size in zip(load.indices, load.buffer.shape, strict=True)
    )


def _is_outside(func: PrimFunc, block: Block, buffer: Buffer) -> bool:
    """Whether a buffer is there before all of the scope of a block, as parameters are."""
    root = scope_path(block_path(func, block.name)[0])[0]
    return all(x is not buffer for x in temporaries(root))


def _may_grow(func: PrimFunc, buffer: Buffer, ends: Sequence[PrimExpr], known: Analyzer) -> bool:
    """Whether a result may be given more room behind its ends."""
    if is_param(func, buffer) or buffer.strides is not None or buffer in addressed_in(func.body):
        return False
    return all(known.equal(n, end) for n, end in zip(buffer.shape, ends, strict=True))


def _padded(block: Block, padding: Sequence[int], known: Analyzer) -> dict[PrimVar, PrimExpr]:
    """The extents of the axes that grow."""
    where = "pad_einsum, argument 2 'padding'"
    if len(padding) != len(block.axes):
        axes = ", ".join(a.var.name for a in block.axes)
        raise illegal(where, f"it takes a number for each of {axes}, got {list(padding)}")
    if any(p < 1 for p in padding):
        raise illegal(where, f"they must be positive, got {list(padding)}")
    padded: dict[PrimVar, PrimExpr] = {}
    for axis, p in zip(block.axes, padding, strict=True):
        up = Binary("floordiv", Binary("add", axis.domain.extent, imm(p - 1)), imm(p))
        extent = known.simplify(Binary("mul", up, imm(p)))
        if not known.equal(extent, axis.domain.extent):
            padded[axis.var] = extent
    return padded


def _contraction(block: Block) -> tuple[Store, list[Load]]:
    """The block's store, and what its products are of."""
    init, body = block.init, block.body
    if block.predicate is not None or block.allocations:
        raise illegal(BLOCK, f"{block.name!r} has a predicate or memory of its own")
    if not isinstance(init, Store) or not isinstance(body, Store) or not _is_zero(init.value):
        raise illegal(BLOCK, f"{block.name!r} is no sum from 0")
    match body.value:
        case Binary("add", Load(buffer, indices), product) if buffer is body.buffer:
            same = indices == body.indices == init.indices and body.predicate is None
        case _:
            raise illegal(BLOCK, f"{block.name!r} is no sum from 0")
    factors = _factors(product)
    if not same or factors is None or any(x.buffer is body.buffer for x in factors):
        raise illegal(BLOCK, f"{block.name!r} does not sum products of elements")
    return body, factors


def _refuse_unless_plain(block: Block, places: Sequence[Load]) -> None:
    """Refuse what is not indexed by axes, each once and at one place, or by 0 where all is one."""
    found: dict[Buffer, tuple[PrimExpr, ...]] = {}
    axes: set[PrimExpr] = {a.var for a in block.axes}
    for buffer, at in ((x.buffer, x.indices) for x in places):
        if found.setdefault(buffer, at) != at:
            raise illegal(BLOCK, f"it takes elements of {buffer.name!r} at several places")
        by = [i for i, n in zip(at, buffer.shape, strict=True) if not (is_zero(i) and n == imm(1))]
        if not set(by) <= axes or len(set(by)) != len(by):
            raise illegal(BLOCK, f"it does not index {buffer.name!r} by its axes, each once")


def _refuse_unless_zeros(
    block: Block, factors: Sequence[Load], padded: Mapping[PrimVar, PrimExpr]
) -> None:
    """Refuse a sum that goes on where not all of its factors are 0."""
    for axis in block.axes:
        if axis.kind == "R" and axis.var in padded:
            for load in factors:
                if axis.var not in load.indices:
                    name = load.buffer.name
                    raise illegal(
                        "pad_einsum, argument 2 'padding'",
                        f"{name!r} does not move along {axis.var.name!r}: 0 times what it holds "
                        "may be no 0",
                    )


def _is_zero(e: PrimExpr) -> bool:
    return isinstance(e, Imm) and e.value == 0


def _factors(e: PrimExpr) -> list[Load] | None:
    """The loads that an expression is the product of."""
    match e:
        case Load() if e.predicate is None:
            return [e]
        case Cast(_, value):
            return _factors(value)
        case Binary("mul", a, b):
            left, right = _factors(a), _factors(b)
            return None if left is None or right is None else left + right
        case _:
            return None


def _over(indices: Sequence[PrimExpr]) -> set[PrimVar]:
    return {i for i in indices if isinstance(i, PrimVar)}


def _extent(block: Block, index: PrimExpr) -> PrimExpr:
    """How many places an index takes: those of an axis, or one."""
    return next((a.domain.extent for a in block.axes if a.var is index), imm(1))


def _copy(
    buffer: Buffer,
    indices: Sequence[PrimExpr],
    block: Block,
    padded: Mapping[PrimVar, PrimExpr],
) -> Buffer:
    """A buffer for as much of another as the padded block indexes."""
    extents = (padded.get(i) if isinstance(i, PrimVar) else None for i in indices)
    shape = tuple(
        _extent(block, i) if n is None else n for n, i in zip(extents, indices, strict=True)
    )
    return Buffer(f"{buffer.name}_pad", shape, buffer.dtype)


def _padding(name: str, new: Buffer, old: Buffer, ends: Sequence[PrimExpr]) -> Stmt:
    """A nest that copies to a buffer, and fills it up with zeros."""
    nest = copy_nest(name, new, old, new.shape, True, lambda at: at)
    (block,) = blocks_below(nest)
    store = block.body
    assert isinstance(store, Store)
    short = [
        Compare("lt", i, n)
        for i, n, whole in zip(store.indices, ends, new.shape, strict=True)
        if n != whole
    ]
    inside = conjunction(short)
    assert inside is not None
    value = Select(inside, store.value, imm(0, new.dtype))
    filled = with_regions(replace(block, body=replace(store, value=value)))
    return replaced(PrimFunc((), nest), [(block, filled)]).body


def _widened(
    block: Block,
    loops: Sequence[For],
    padded: Mapping[PrimVar, PrimExpr],
    copies: Mapping[Buffer, Buffer],
) -> Stmt:
    """The block's nest over padded axes and buffers."""
    new = with_buffers(block, copies)
    assert isinstance(new, Block)
    axes = tuple(
        replace(a, domain=Range(imm(0), padded.get(a.var, a.domain.extent))) for a in new.axes
    )
    extents = {a.value: padded[a.var] for a in block.axes if a.var in padded}
    wide = [replace(x, extent=extents.get(x.var, x.extent)) for x in loops]
    return around(wide, with_regions(replace(new, axes=axes)))
