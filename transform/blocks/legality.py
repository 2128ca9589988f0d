"""Whether a block does what its signature promises, as far as that can be told from its statements.

By its signature points of the spatial axes are independent, the steps of a reduction come in any
order, and the init comes before them. Those who write kernels may promise too much: schedules
rely on what is found here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from unity.arith import Analyzer
from unity.arith.iter_map import detect
from unity.arith.region import covers, relaxed
from unity.ir.empty_reduction import conjuncts
from unity.ir.foreign import symbols_in
from unity.ir.prim_expr import Binary, Load, PrimExpr, PrimVar, imm
from unity.ir.regions import block_regions
from unity.ir.stmt import (
    Allocate,
    Block,
    Buffer,
    Evaluate,
    For,
    Let,
    PrimWhile,
    Range,
    Region,
    Seq,
    Store,
)
from unity.ir.visit import prim_loads, stmt_exprs, substitute_prim, variables, walk_stmt

from .combine import step_of
from .site import Site, iteration_map
from .tree import Values, driven
from .trust import unless_trusted

INTRINSIC = "intrinsic"
"""Attribute of a block that calls C functions: the tensor intrinsic that says what they do."""
_KEPT: dict[tuple[int, ...], Block] = {}
"""By bodies and axes, blocks that keep their word; held so that nothing else gets their places."""
_MOST_KEPT = 256


@unless_trusted
def breach(site: Site, fixed: Collection[PrimVar] = ()) -> str | None:
    """Why points of a block's spatial axes may not be independent; None if they are.

    Args:
        site: The block.
        fixed: Axes of it along which no others are looked at.
    """
    block = site.block
    name = uses_loop(site)
    if name is not None:
        return f"block {block.name!r} uses {name!r} other than by an axis"
    written = {r.buffer for r in block.writes}
    for buffer in site.decides_by() & written:
        return f"block {block.name!r} writes {buffer.name!r}, which decides what it does"
    fixed = (*fixed, *_of_iterations(site))
    key = (id(block.body), id(block.init), *(id(x) for a in block.axes for x in (a.var, a.domain)))
    key += (-1, *(id(v) for v in fixed))
    if key in _KEPT:
        return None
    why = _dependent(block, site.known, fixed)
    if why is None:
        if len(_KEPT) >= _MOST_KEPT:
            _KEPT.clear()
        _KEPT[key] = block
    return why


def _of_iterations(site: Site) -> list[PrimVar]:
    """Axes that stand still in an iteration which has all that the block writes for itself."""
    written = {r.buffer for r in site.block.writes}
    at = [k for k, s in enumerate(site.above) if isinstance(s, Allocate) and s.buffer in written]
    if len(at) < len(written) or not at:
        return []
    inside = {s.var for s in site.above[min(at) :] if isinstance(s, For) and s.extent != imm(1)}
    return [a.var for a in site.block.axes if not variables(a.value) & inside]


def uses_loop(site: Site) -> str | None:
    """A variable around a block that its statements use directly, if they use any."""
    outside = {s.var for s in site.above if isinstance(s, For | Let)}
    if not outside:
        return None
    parts = [site.block.body] if site.block.init is None else [site.block.init, site.block.body]
    for s in (x for part in parts for x in walk_stmt(part)):
        for e in stmt_exprs(s):
            used = variables(e) & outside
            if used:
                return min(v.name for v in used)
    return None


def calls_foreign(block: Block) -> str | None:
    """Why a block may not run at another time: it calls what nothing is known of; None if not."""
    called = symbols_in(block)
    if not called:
        return None
    return f"block {block.name!r} calls the C function {called[0]!r}, of which nothing is known"


def _dependent(block: Block, known: Analyzer, still: Collection[PrimVar]) -> str | None:
    """Why points touch what others write, or may."""
    why = calls_foreign(block)
    if why is not None:
        return why
    both = Seq((block.body,) if block.init is None else (block.init, block.body))
    fixed = {v for s in walk_stmt(both) for e in stmt_exprs(s) for v in variables(e)}
    reads, writes = block_regions(both, None, fixed | {a.var for a in block.axes})
    for write in writes:
        buffer = write.buffer
        if buffer in block.allocations:
            continue
        box = _reduced(block, write, known)
        if not _apart(block, box, known, still):
            return f"points of block {block.name!r} may write to one place of {buffer.name!r}"
        for read in reads:
            if read.buffer is buffer and not covers(box, _reduced(block, read, known), known):
                name = block.name
                return f"points of block {name!r} may read what others write to {buffer.name!r}"
    return None


def _reduced(block: Block, region: Region, known: Analyzer) -> tuple[Range, ...]:
    """What a point of the spatial axes touches, all steps together."""
    over = {a.var: a.domain for a in block.axes if a.kind != "S"}
    if not any(variables(e) & over.keys() for r in region.ranges for e in (r.begin, r.extent)):
        return region.ranges
    return relaxed(region.ranges, region.buffer.shape, over, known)


def _apart(block: Block, box: Sequence[Range], known: Analyzer, still: Collection[PrimVar]) -> bool:
    """Whether boxes of different points of the spatial axes share nothing."""
    over: dict[PrimVar, PrimExpr] = {}
    shift: Values = {}
    for axis in block.axes:
        if axis.kind == "S" and axis.domain.extent != imm(1) and axis.var not in still:
            over[axis.var] = axis.domain.extent
            shift[axis.var] = Binary("add", axis.var, axis.domain.begin)
    values: list[PrimExpr] = []
    for r in box:
        value = substitute_prim(r.begin, shift)
        if r.extent != imm(1):
            inside = PrimVar("inside")
            over[inside] = r.extent
            value = Binary("add", value, inside)
        values.append(value)
    m = detect(values, over, known)
    return m is not None and m.is_injective()


def commutes(block: Block) -> bool:
    """Whether steps of a block's reduction may come in any order: each adds to what is there."""
    private = {s.buffer for s in walk_stmt(block.body) if isinstance(s, Allocate)}
    private |= set(block.allocations)
    stores = [s for s in walk_stmt(block.body) if isinstance(s, Store)]
    written = {s.buffer for s in stores} - private
    operations: dict[Buffer, str] = {}
    for s in walk_stmt(block.body):
        if isinstance(s, Evaluate | PrimWhile):
            return False
        own: list[PrimExpr] = [*stmt_exprs(s)]
        if isinstance(s, Store) and s.buffer in written:
            step = _step(s)
            if step is None or operations.setdefault(s.buffer, step[0]) != step[0]:
                return False
            own = [step[1], *s.indices, *([] if s.predicate is None else [s.predicate])]
        if any(x.buffer in written for e in own for x in prim_loads(e)):
            return False
    return True


def _step(s: Store) -> tuple[str, PrimExpr] | None:
    """The operation by which a store changes an element, and what with; None if by no such."""
    step = step_of(s)
    if step is not None:
        return step
    here = Load(s.buffer, s.indices)
    match s.value:
        case Binary("xor", a, b) if here in (a, b):
            return "xor", b if a == here else a
        case Binary("sub", a, b) if a == here:
            return "add", b
        case _:
            pass
    return None


def keeps_order(site: Site) -> bool:
    """Whether loops take a block's reduce axes through their domains in order, the last fastest."""
    values = [a.value for a in site.block.axes if a.kind != "S"]
    loops = [x.var for x in site.loops if driven(site.block, x.var) - {"S"}]
    return values == loops


@unless_trusted
def late_init(site: Site) -> str | None:
    """Why a block's init may not come once and before every step; None if it does."""
    block = site.block
    if not site.is_certain:
        return f"block {block.name!r} stands under a condition"
    if not reaches_once(site):
        return f"the loops may reach points of the reduction {block.name!r} more than once"
    reducing = [x for x in site.loops if "R" in driven(block, x.var)]
    first: Values = {}
    for x in reducing:
        first[x.var] = substitute_prim(x.begin, first)
    for axis in block.axes:
        begins = substitute_prim(axis.value, first)
        if axis.kind == "R" and not site.known.equal(begins, axis.domain.begin):
            return f"axis {axis.var.name!r} of block {block.name!r} is not at its begin first"
    for part in () if block.predicate is None else conjuncts(block.predicate):
        if variables(part) & first.keys() and not site.known.prove(substitute_prim(part, first)):
            return f"the predicate of block {block.name!r} may leave out the step with its init"
    return None


def reaches_once(site: Site) -> bool:
    """Whether the loops reach each point of a block's domain once at most."""
    values = [a.value for a in site.block.axes]
    plain = {v for v in values if isinstance(v, PrimVar)}
    if {x.var for x in site.loops} <= plain:
        return True
    m = iteration_map(values, site.loops, site.known, site.block.predicate)
    return m is not None and m.is_injective()


__all__ = [
    "INTRINSIC",
    "breach",
    "calls_foreign",
    "commutes",
    "keeps_order",
    "late_init",
    "reaches_once",
    "uses_loop",
]
