"""compute_at: a block's nest moves into a loop of those that read its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unity.arith import Analyzer
from unity.arith import polynomial as poly
from unity.arith.region import cut_short, hull
from unity.ir.prim_expr import Binary, Compare, Imm, PrimExpr, PrimVar, imm
from unity.ir.stmt import Block, BlockAxis, Buffer, For, PrimFunc, Range
from unity.ir.visit import variables, walk_stmt

from ....blocks.dataflow import (
    accesses,
    axes_of_index,
    checked,
    is_param,
    order_of,
    site_of,
    sole_store,
    spans,
    stored,
)
from ....blocks.motion import may_skip, refuse_moved, unsettled
from ....blocks.site import Site, sites
from ....blocks.tree import (
    NOTHING,
    Outcome,
    Path,
    around,
    block_path,
    conjunction,
    illegal,
    known_at,
    loop_path,
    loops_of,
    replaced,
    scope_path,
    sequence,
    unique,
)
from ....blocks.trust import is_trusted


def compute_at(func: PrimFunc, name: str, var: PrimVar, first_of: PrimVar | None = None) -> Outcome:
    """In each iteration of a loop, a block computes what the blocks there read of its result.

    Args:
        func: The prim func.
        name: A block that makes a temporary, which is read in the loop only.
        var: A loop behind the block's nest.
        first_of: A loop around it whose iterations all read the same: only the first one computes,
            and leaves it to the others.

    Raises:
        UnityError: The block is no such, or what it reads is not there in the loop; iterations of
            `first_of` read different things, or may run at once.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 8, 8], c: f32[Buffer, 8, 4]) -> None:
    ...     t = T.alloc((8, 8), "float32")
    ...     for i, j in T.grid(8, 8):
    ...         with T.block("double"):
    ...             vi, vj = T.axis.remap("SS", i, j)
    ...             t[vi, vj] = a[vi, vj] * 2.0
    ...     for i, j in T.grid(8, 4):
    ...         with T.block("pairs"):
    ...             vi, vj = T.axis.remap("SS", i, j)
    ...             c[vi, vj] = t[vi, vj * 2] + t[vi, vj * 2 + 1]
    ... ''').prim_funcs()["main"])
    >>> sch.compute_at("double", sch.get_loops("pairs")[0])
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 8, 8], c: f32[Buffer, 8, 4]) -> None:
        t = T.alloc((8, 8), "float32")
        for i in range(8):
            for i_at, j_at in T.grid(1, 8):
                with T.block("double"):
                    vi = T.axis.spatial(8, i + i_at)
                    vj = T.axis.spatial(8, j_at)
                    t[vi, vj] = a[vi, vj] * 2.0
            for j in range(4):
                with T.block("pairs"):
                    vi, vj = T.axis.remap("SS", i, j)
                    c[vi, vj] = t[vi, vj * 2] + t[vi, vj * 2 + 1]
    """
    where = "compute_at, argument 1 'block'"
    path, block = block_path(func, name)
    target, loop = loop_path(func, var)
    refuse_scope("compute_at, argument 2 'loop'", path, target)
    site = site_of(path)
    buffer = made_by(where, block)
    region = block.writes[0]
    axes = axes_of_index([r.begin for r in region.ranges], block)
    if axes is None or any(r.extent != imm(1) for r in region.ranges):
        raise illegal(where, f"{name!r} does not index {buffer.name!r} by its axes, each once")
    if len(axes) != sum(a.kind == "S" for a in block.axes) or any(a.kind != "S" for a in axes):
        raise illegal(where, f"the axes that index {buffer.name!r} are not the spatial ones")
    if is_param(func, buffer):
        raise illegal(where, f"it stores to {buffer.name!r}, a parameter")
    if not sole_store(block, buffer, func):
        raise illegal(where, f"others store to {buffer.name!r} too")
    covered = is_trusted() or site.covers_domain()
    if not spans(axes, buffer.shape, site.known) or not covered:
        raise illegal(where, f"it is not known to run over all of {buffer.name!r}")
    first, last = order_of(func, loop)
    if order_of(func, block)[0] > first:
        raise illegal("compute_at, argument 2 'loop'", f"it does not stand behind {name!r}")
    readers = [a for a in accesses(func, buffer)[1] if a.block is not block]
    if any(not first < a.order <= last or a.block is None for a in readers) or not readers:
        raise illegal(where, f"{buffer.name!r} is read outside the loop")
    refuse_moved(where, func, path, target)
    why = unsettled(func, block, path, [target]) or may_skip(scope_path(target))
    if why is not None:
        raise illegal(where, why)
    need = _needed([s for s in sites(loop.body, target) if s.block is not block], buffer)
    ranges = dict(zip([a.var for a in axes], need, strict=True))
    once = [] if first_of is None else [_first(func, target, first_of, need, buffer)]
    nest = nest_over(func, block, ranges, known_at(target), once)
    inner = replace(loop, body=sequence([nest, loop.body]))
    return Outcome(checked(replaced(func, [(block, NOTHING), (loop, inner)]), where))


def _first(
    func: PrimFunc, target: Path, var: PrimVar, need: Sequence[Range], buffer: Buffer
) -> PrimExpr:
    """The condition that a loop around a place is in its first iteration, which makes all."""
    where = "compute_at, argument 3 'first_of'"
    _, outer = loop_path(func, var)
    scope = scope_path(target)
    at = next((k for k, s in enumerate(scope) if s is outer), None)
    if at is None or at == len(scope) - 1:
        raise illegal(where, f"{var.name!r} is not around the loop")
    for s in loops_of(scope[at:]):
        if s.kind not in ("serial", "unrolled"):
            raise illegal(where, f"{s.var.name!r} is {s.kind}: its iterations are in no order")
    if any(var in variables(e) for r in need for e in (r.begin, r.extent)):
        why = f"what is read of {buffer.name!r} is not the same in each iteration of {var.name!r}"
        raise illegal(where, why)
    return Compare("lt", var, Binary("add", outer.begin, imm(1)))


def made_by(where: str, block: Block) -> Buffer:
    """The one buffer that a block makes."""
    if len(stored(block)) != 1 or len(block.writes) != 1:
        raise illegal(where, f"{block.name!r} stores to more than one buffer")
    if any(a.kind == "O" for a in block.axes):
        raise illegal(where, f"{block.name!r} has an opaque axis")
    if block.init is None and block.writes[0].buffer in {r.buffer for r in block.reads}:
        raise illegal(where, f"{block.name!r} reads what it stores to")
    return block.writes[0].buffer


def refuse_scope(where: str, path: Path, target: Path) -> None:
    """Refuse a loop around the block, or in another block than the block is."""
    if any(s is target[-1] for s in path):
        raise illegal(where, "the block is in it already")
    inside = [
        next((s for s in reversed(p[:-1]) if isinstance(s, Block)), None) for p in (path, target)
    ]
    if inside[0] is not inside[1]:
        raise illegal(where, "it is in another scope than the block")


def _needed(readers: list[Site], buffer: Buffer) -> list[Range]:
    found: list[Range] | None = None
    for site in readers:
        ranges = site.touched(buffer)
        if ranges is None:
            continue
        known = site.known
        if found is None:
            found = list(ranges)
        else:
            found = [hull(a, b, known) for a, b in zip(found, ranges, strict=True)]
    assert found is not None
    return found


def nest_over(
    func: PrimFunc,
    block: Block,
    ranges: dict[PrimVar, Range],
    known: Analyzer,
    conditions: Sequence[PrimExpr] = (),
) -> For | Block:
    """A block in a nest of its own: over these ranges of its axes, over all of the others.

    A range cut short by an end (``min(4, n - i * 4)`` points) is run over whole, under a predicate.
    The loops have new names: sums of variables of one name would not be ordered the same each time.
    """
    taken = {s.var.name for s in walk_stmt(func.body) if isinstance(s, For)}
    loops: list[For] = []
    axes: list[BlockAxis] = []
    inside = [known.simplify(c) for c in conditions if not known.prove(c)]
    for axis in block.axes:
        r = ranges.get(axis.var, axis.domain)
        var = PrimVar(unique(f"{axis.var.name.removeprefix('v')}_at", taken))
        extent = known.simplify(r.extent)
        value = known.simplify(Binary("add", r.begin, var))
        cut = None if isinstance(extent, Imm) else cut_short(r, known)
        if cut is not None:
            extent, limit = cut
            inside.append(_less(value, known.simplify(limit)))
        loops.append(For(var, imm(0), extent, NOTHING))
        axes.append(replace(axis, value=value))
    new = replace(block, axes=tuple(axes), predicate=conjunction(inside))
    result = around(loops, new)
    assert isinstance(result, For | Block)
    return result


def _less(a: PrimExpr, b: PrimExpr) -> Compare:
    """That one is less than the other, without what both move with alike."""
    ours, theirs = poly.from_expr(a), poly.from_expr(b)
    both = {m for m, c in theirs.items() if m and ours.get(m) == c}
    if not any(variables(atom) for m in both for atom in m):
        return Compare("lt", a, b)
    a, b = (poly.to_expr({m: c for m, c in p.items() if m not in both}) for p in (ours, theirs))
    return Compare("lt", a, b)
