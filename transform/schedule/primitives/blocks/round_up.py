"""round_up: blocks that run in every iteration of their loops, whatever their predicates say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from unity.arith import Analyzer
from unity.arith.region import end_if_any, extremes
from unity.ir.empty_reduction import conjuncts
from unity.ir.prim_expr import Binary, Compare, Load, PrimExpr, PrimVar, Select, imm
from unity.ir.stmt import Allocate, Block, BlockAxis, Buffer, PrimFunc, Range, Stmt, Store
from unity.ir.visit import bound_in, leaves, map_prim, map_stmt, prim_loads, variables
from unity.script.printer import text

from ....blocks.access import asked_in_vain, may_trap
from ....blocks.dataflow import checked
from ....blocks.dependence import loose_statement
from ....blocks.legality import calls_foreign
from ....blocks.site import sites
from ....blocks.tree import (
    Outcome,
    Path,
    block_path,
    bound_to,
    conjunction,
    illegal,
    known_above,
    loops_of,
    replaced,
    scope_path,
    with_buffers,
    with_regions,
)
from ....blocks.trust import is_trusted

WHERE = "round_up, argument 1 'blocks'"


def round_up(func: PrimFunc, names: Sequence[str]) -> Outcome:
    """Blocks whose predicates go: past an end they fill places of temporaries that nobody needs.

    So extents are those of loops, which `split` rounded up to whole vectors, and no lane is asked
    whether it is inside. What is read from beyond an end of a buffer is zero instead; temporaries
    have room for what is stored. Halide's tail strategy of this name.

    Args:
        func: The prim func.
        names: Blocks that store to temporaries, each under a predicate over its loops that limits
            the places it stores to: those that are beyond the limits, only these blocks touch, and
            where their own predicates fail.

    Raises:
        UnityError: They are no such blocks; another one may need what lies beyond.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 5], c: f32[Buffer, 5]) -> None:
    ...     t = T.alloc((5,), "float32", scope="local")
    ...     for i in range(8):
    ...         with T.block("exp"):
    ...             vi = T.axis.spatial(8, i)
    ...             T.where(i < 5)
    ...             t[vi] = T.exp(a[vi])
    ...     for i in range(5):
    ...         with T.block("copy"):
    ...             vi = T.axis.spatial(5, i)
    ...             c[vi] = t[vi]
    ... ''').prim_funcs()["main"])
    >>> sch.round_up("exp")
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 5], c: f32[Buffer, 5]) -> None:
        t = T.alloc((8,), "float32", scope="local")
        for i in range(8):
            with T.block("exp"):
                vi = T.axis.remap("S", i)
                t[vi] = T.exp(T.select(vi < 5, a[vi], 0.0))
        for i in range(5):
            with T.block("copy"):
                vi = T.axis.remap("S", i)
                c[vi] = t[vi]
    """
    if not names:
        raise illegal(WHERE, "there must be one at least")
    for name in names:
        func = _with_room(func, name)
    if not is_trusted():
        for name in names:
            _refuse_needed(func, name)
    changes: list[tuple[Stmt, Stmt]] = []
    for name in names:
        path, block = block_path(func, name)
        changes.append((block, _filling(block, path)))
    return Outcome(checked(replaced(func, changes), WHERE))


def _places(block: Block) -> list[PrimExpr]:
    """The indices, over its axes, at which a block stores."""
    if len(block.writes) != 1 or any(r.extent != imm(1) for r in block.writes[0].ranges):
        raise illegal(WHERE, f"{block.name!r} does more than store an element")
    if block.allocations or calls_foreign(block) is not None:
        raise illegal(WHERE, f"{block.name!r} does more than store an element")
    return [r.begin for r in block.writes[0].ranges]


def _limits(block: Block, known: Analyzer) -> dict[int, PrimExpr]:
    """By dimensions of what a block stores to, the limits that its predicate gives indices."""
    at = [bound_to(index, block.axes) for index in _places(block)]
    found: dict[int, PrimExpr] = {}
    for part in () if block.predicate is None else conjuncts(block.predicate):
        place = None
        if isinstance(part, Compare) and part.op == "lt" and not prim_loads(part):
            place = next((k for k, i in enumerate(at) if _beyond(i, part, known)), None)
        if not isinstance(part, Compare) or place is None or place in found:
            raise illegal(WHERE, f"{text(part)} does not limit where {block.name!r} stores")
        beyond = Binary("sub", at[place], part.a)
        found[place] = known.simplify(Binary("add", part.b, beyond))
    if not found:
        raise illegal(WHERE, f"{block.name!r} has no predicate")
    return found


def _beyond(index: PrimExpr, part: Compare, known: Analyzer) -> bool:
    """Whether an index differs from what is limited by what loops do not change."""
    moving = variables(index) & variables(part.a)
    rest = known.simplify(Binary("sub", index, part.a))
    return bool(moving) and not moving & variables(rest)


def _over(path: Path) -> dict[PrimVar, Range]:
    return {x.var: Range(x.begin, x.extent) for x in loops_of(scope_path(path))}


def _allocation(path: Path, buffer: Buffer) -> Allocate:
    """Where the temporary is allocated that the block at the end of a path stores to."""
    for s in scope_path(path):
        if isinstance(s, Allocate) and s.buffer is buffer:
            return s
    raise illegal(WHERE, f"{buffer.name!r} is no temporary of the stages that it stands with")


def _with_room(func: PrimFunc, name: str) -> PrimFunc:
    """The prim func with a place for whatever a block would store without its predicate."""
    path, block = block_path(func, name)
    places = _places(block)
    buffer = block.writes[0].buffer
    allocation = _allocation(path, buffer)
    known, over = known_above(path), _over(path)
    shape = list(buffer.shape)
    for k, index in enumerate(places):
        ends = extremes(bound_to(index, block.axes), over, known)
        if ends is None or not known.prove(Compare("ge", ends[0], imm(0))):
            raise illegal(WHERE, f"it is not known where {name!r} would store")
        if known.prove(Compare("lt", ends[1], shape[k])):
            continue
        if variables(ends[1]) or buffer.strides is not None:
            raise illegal(WHERE, f"{buffer.name!r} has no room for all that {name!r} would store")
        shape[k] = known.simplify(Binary("add", ends[1], imm(1)))
    if tuple(shape) == buffer.shape:
        return func
    more = {buffer: replace(buffer, shape=tuple(shape))}
    return replaced(func, [(allocation, with_buffers(allocation, more))])


def _refuse_needed(func: PrimFunc, name: str) -> None:
    """Refuse where a block may touch what another one is to fill beyond its limits."""
    path, block = block_path(func, name)
    buffer = block.writes[0].buffer
    allocation = _allocation(path, buffer)
    limits = _limits(block, known_above(path))
    inside = bound_in(allocation.body)
    if any(variables(limit) & inside for limit in limits.values()):
        raise illegal(WHERE, f"the limits of {name!r} move where {buffer.name!r} stays")
    if loose_statement(allocation.body) is not None:
        raise illegal(WHERE, f"something outside any block may touch {buffer.name!r}")
    above = path[: next(k for k, s in enumerate(path) if s is allocation) + 1]
    for site in sites(allocation.body, above):
        touched = site.touched(buffer, closely=True) if site.names(buffer) else None
        if touched is None:
            continue
        for k, limit in limits.items():
            if not site.known.prove(Compare("le", end_if_any(touched[k]), limit)):
                why = f"{site.block.name!r} may touch what {name!r} is to fill"
                raise illegal(WHERE, f"{why} beyond {text(limit)} in {buffer.name!r}")


def _filling(block: Block, path: Path) -> Block:
    """The block without its predicate; beyond its limits it reads zeros, where there is nothing."""
    known, over = known_above(path), _over(path)
    places = _places(block)
    limits = _limits(block, known)
    inside = conjunction([Compare("lt", places[k], limit) for k, limit in limits.items()])
    assert inside is not None

    within = known
    for var, domain in over.items():
        within = within.with_extent(var, domain.begin, domain.extent)

    def is_there(load: Load) -> bool:
        for index, size in zip(load.indices, load.buffer.shape, strict=True):
            ends = extremes(bound_to(index, block.axes), over, known)
            if ends is None or load.predicate is not None:
                return False
            if not known.prove(Compare("ge", ends[0], imm(0))):
                return False
            if not known.prove(Compare("lt", ends[1], size)):
                return False
        return True

    def on_expr(e: PrimExpr) -> PrimExpr:
        divides = [asked_in_vain(bound_to(x, block.axes), within) for x in leaves(e).divisions]
        if may_trap(e) or not all(divides):
            raise illegal(WHERE, f"{block.name!r} divides by what may be 0 beyond its limits")
        if isinstance(e, Load) and not is_there(e):
            return Select(inside, e, imm(0, e.dtype))
        return map_prim(e, on_expr)

    def on_stmt(s: Stmt) -> Stmt:
        if isinstance(s, Store):
            return replace(s, value=on_expr(s.value))
        return map_stmt(s, on_stmt, on_expr)

    axes = tuple(_wide(axis, over, known) for axis in block.axes)
    init = None if block.init is None else on_stmt(block.init)
    return with_regions(
        replace(block, axes=axes, predicate=None, init=init, body=on_stmt(block.body))
    )


def _wide(axis: BlockAxis, over: Mapping[PrimVar, Range], known: Analyzer) -> BlockAxis:
    """An axis whose domain holds all that its loops take it to."""
    ends = extremes(axis.value, over, known)
    last = Binary("add", axis.domain.begin, axis.domain.extent)
    if ends is None or known.prove(Compare("lt", ends[1], last)):
        return axis
    extent = Binary("add", Binary("sub", ends[1], axis.domain.begin), imm(1))
    return replace(axis, domain=replace(axis.domain, extent=known.simplify(extent)))
