"""reindex: a block reads or writes a copy of a buffer that is laid out by its axes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from unity.arith.iter_map import detect
from unity.ir.prim_expr import Binary, Compare, Load, PrimExpr, PrimVar, Select, imm
from unity.ir.stmt import Block, BlockAxis, Buffer, IfThen, PrimFunc, PrimWhile, Stmt, Store
from unity.ir.visit import (
    rewrite_stmt,
    stmt_exprs,
    substitute_prim,
    variables,
    walk_prim,
    walk_stmt,
)

from ....blocks.dataflow import allocated, checked, copy_nest, site_of, top_of
from ....blocks.motion import refuse_shifting
from ....blocks.site import stores_always
from ....blocks.tree import (
    Outcome,
    Path,
    Values,
    all_blocks,
    block_path,
    illegal,
    known_above,
    known_at,
    replaced,
    sequence,
    unique,
    with_regions,
)
from .cache_read import refuse_if_made_inside
from .cache_write import refuse_if_shared


def reindex(func: PrimFunc, name: str, kind: str, index: int) -> Outcome:
    """A buffer over the axes that index an access takes the place of the one accessed.

    Args:
        func: The prim func.
        name: The block; it accesses the buffer at one place.
        kind: ``read`` or ``write``.
        index: Which of its reads or writes.

    Returns:
        The block that copies: before the nest for a read, behind it for a write.

    Raises:
        UnityError: There is no such access, it is not at one place, or it might be out of bounds
            where the block does not make it.

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
    >>> copy = sch.reindex("windows", "read", 0)
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 10], c: f32[Buffer, 8, 3]) -> None:
        a_reindex = T.alloc((8, 3), "float32")
        for i, k in T.grid(8, 3):
            with T.block("a_reindex"):
                vi, vk = T.axis.remap("SS", i, k)
                a_reindex[vi, vk] = a[vi + vk]
        for i, k in T.grid(8, 3):
            with T.block("windows"):
                vi, vk = T.axis.remap("SS", i, k)
                c[vi, vk] = a_reindex[vi, vk]
    """
    if kind not in ("read", "write"):
        raise illegal("reindex, argument 2 'kind'", f"it is 'read' or 'write', got {kind!r}")
    where = "reindex, argument 3 'index'"
    return by_axes(where, func, name, kind, index, "reindex", "global").outcome


@dataclass(frozen=True, slots=True)
class ByAxes:
    """A prim func where an access goes to a buffer laid out by a block's axes.

    Attributes:
        outcome: The prim func, and the block that copies.
        buffer: The new buffer.
        axes: The axes that index it.
    """

    outcome: Outcome
    buffer: Buffer
    axes: tuple[BlockAxis, ...]


def by_axes(
    where: str,
    func: PrimFunc,
    name: str,
    kind: str,
    index: int,
    suffix: str,
    scope: str,
    which: int | None = None,
) -> ByAxes:
    """The same, to a buffer of a name and scope.

    Args:
        where: The argument that `index` is.
        func: The prim func.
        name: The block.
        kind: ``read`` or ``write``.
        index: Which of its reads or writes.
        suffix: What the new buffer's name ends in.
        scope: Of the new buffer.
        which: Of several places in the buffer, in their order; None where there is to be one.
    """
    path, block = block_path(func, name)
    regions = block.reads if kind == "read" else block.writes
    if not 0 <= index < len(regions):
        raise illegal(where, f"{name!r} has {len(regions)} {kind}s, got {index}")
    buffer = regions[index].buffer
    outer = {a.var for s in path[:-1] if isinstance(s, Block) for a in s.axes}
    place = _place(where, func, block, buffer, which, outer)
    axes = [a for a in block.axes if any(a.var in variables(i) for i in place)]
    top = top_of(path)
    refuse_shifting(where, func, path)
    if kind == "read":
        refuse_if_made_inside(where, top, buffer)
        _refuse_outside(where, place, buffer, path)
    else:
        _refuse_write(where, func, path, buffer, top, axes, place)
    extents = tuple(a.domain.extent for a in axes)
    new = Buffer(f"{buffer.name}_{suffix}", extents, buffer.dtype, scope=scope)
    at = tuple(
        a.var
        if a.domain.begin == imm(0)  # also where it has one point: it is told by its axis
        else known_at(path).simplify(Binary("sub", a.var, a.domain.begin))
        for a in axes
    )

    def there(point: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        values: Values = {
            a.var: Binary("add", p, a.domain.begin) for a, p in zip(axes, point, strict=True)
        }
        return tuple(known_above(path).simplify(substitute_prim(i, values)) for i in place)

    copy = unique(new.name, {b.name for b in all_blocks(func.body)})
    changed = with_regions(_moved(block, buffer, place, new, at))
    inner = replaced(replace(func, body=top), [(block, changed)]).body
    names = [a.var.name for a in axes]
    if kind == "read":
        parts = (copy_nest(copy, new, buffer, extents, True, there, names), inner)
    else:
        parts = (inner, copy_nest(copy, buffer, new, extents, False, there, names))
    both = sequence(parts)
    done = Outcome(checked(allocated(func, path, new, top, both), where), blocks=(copy,))
    return ByAxes(done, new, tuple(axes))


def _place(
    where: str,
    func: PrimFunc,
    block: Block,
    buffer: Buffer,
    which: int | None,
    outer: Collection[PrimVar],
) -> tuple[PrimExpr, ...]:
    found: dict[tuple[PrimExpr, ...], None] = {}
    for s in walk_stmt(block):
        if isinstance(s, Store) and s.buffer is buffer:
            found[s.indices] = None
        for e in stmt_exprs(s):
            found.update(
                {
                    x.indices: None
                    for x in walk_prim(e)
                    if isinstance(x, Load) and x.buffer is buffer
                }
            )
    known = {a.var for a in block.axes} | {p for p in func.params if isinstance(p, PrimVar)}
    known |= {*outer}
    places = list(found)
    if which is not None:
        if not 0 <= which < len(places):
            why = f"{block.name!r} accesses {buffer.name!r} at {len(places)} places, got {which}"
            raise illegal(where.replace("2 'index'", "5 'place'"), why)
        places = [places[which]]
    if len(places) != 1 or any(variables(i) - known for i in places[0]):
        raise illegal(where, f"{buffer.name!r} is not accessed at one place over the axes")
    return places[0]


def _refuse_outside(where: str, place: Sequence[PrimExpr], buffer: Buffer, path: Path) -> None:
    known = known_at(path)
    for i, n in zip(place, buffer.shape, strict=True):
        inside = (Compare("le", imm(0), i), Compare("lt", i, n))
        if not all(known.prove(c) for c in inside) and not _reads_anyway(path):
            raise illegal(where, f"{buffer.name!r} is not known to be read within its bounds")


def _reads_anyway(path: Path) -> bool:
    """Whether a block reads, at every point of its domain, what it reads at all."""
    block = path[-1]
    exprs = [e for s in walk_stmt(block) for e in stmt_exprs(s)]
    chosen = any(isinstance(x, Select) for e in exprs for x in walk_prim(e))
    chosen = chosen or any(isinstance(s, IfThen | PrimWhile) for s in walk_stmt(block))
    return not chosen and site_of(path).covers_domain()


def _refuse_write(
    where: str,
    func: PrimFunc,
    path: Path,
    buffer: Buffer,
    top: Stmt,
    axes: Sequence[BlockAxis],
    place: Sequence[PrimExpr],
) -> None:
    block = path[-1]
    assert isinstance(block, Block)
    refuse_if_shared(where, func, block, buffer, top)
    if any(a.kind != "S" for a in axes) or len(axes) != sum(a.kind == "S" for a in block.axes):
        raise illegal(where, f"{buffer.name!r} is not indexed by the spatial axes")
    m = detect(place, {a.var: a.domain.extent for a in axes}, known_above(path))
    if m is None or not m.is_injective():
        raise illegal(where, f"the block is not known to write {buffer.name!r} once at each place")
    if not site_of(path).covers_domain() or not stores_always(block.body):
        raise illegal(where, f"{block.name!r} is not known to store at each point of its domain")


def _moved(
    block: Block,
    buffer: Buffer,
    place: Sequence[PrimExpr],
    new: Buffer,
    at: tuple[PrimExpr, ...],
) -> Block:
    def on_stmt(s: Stmt) -> Stmt | None:
        if isinstance(s, Store) and s.buffer is buffer and s.indices == place:
            return Store(new, at, s.value, s.predicate)
        return None

    def on_load(e: Load) -> PrimExpr | None:
        here = e.buffer is buffer and e.indices == place
        return Load(new, at) if here else None

    result = rewrite_stmt(block, on_stmt, load_fn=on_load)
    assert isinstance(result, Block)
    return result
