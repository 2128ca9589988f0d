"""reverse_compute_at: a block's nest moves into a loop of the block that makes what it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from unity.arith import Analyzer
from unity.arith.region import covers, lesser
from unity.ir.prim_expr import Binary, Compare, PrimExpr, PrimVar, imm
from unity.ir.stmt import Block, BlockAxis, Buffer, PrimFunc, Range
from unity.ir.visit import variables

from ....blocks.dataflow import (
    Access,
    accesses,
    axes_of_index,
    checked,
    loaded,
    order_of,
    site_of,
    sole_store,
)
from ....blocks.motion import may_skip, refuse_moved
from ....blocks.site import Site, sites
from ....blocks.tree import (
    NOTHING,
    Outcome,
    Path,
    block_path,
    driven,
    illegal,
    known_at,
    loop_path,
    loops_of,
    replaced,
    scope_path,
    sequence,
)
from ....blocks.trust import is_trusted
from .compute_at import made_by, nest_over, refuse_scope


def reverse_compute_at(func: PrimFunc, name: str, var: PrimVar) -> Outcome:
    """In each iteration of a loop, a block takes what was made of its sources there.

    Args:
        func: The prim func.
        name: A block that reads buffers made in the loop at its axes; dimensions that none of
            them stands at (chunks side by side, say) must be made in one iteration.
        var: A loop before the block's nest.

    Raises:
        UnityError: The block is no such, or what it reads is not complete in an iteration.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 8, 8], c: f32[Buffer, 8]) -> None:
    ...     t = T.alloc((8,), "float32")
    ...     for i, k in T.grid(8, 8):
    ...         with T.block("sum"):
    ...             vi, vk = T.axis.remap("SR", i, k)
    ...             with T.init():
    ...                 t[vi] = 0.0
    ...             t[vi] += a[vi, vk]
    ...     for i in range(8):
    ...         with T.block("relu"):
    ...             vi = T.axis.spatial(8, i)
    ...             c[vi] = T.max(t[vi], 0.0)
    ... ''').prim_funcs()["main"])
    >>> sch.reverse_compute_at("relu", sch.get_loops("sum")[0])
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 8, 8], c: f32[Buffer, 8]) -> None:
        t = T.alloc((8,), "float32")
        for i in range(8):
            for k in range(8):
                with T.block("sum"):
                    vi, vk = T.axis.remap("SR", i, k)
                    with T.init():
                        t[vi] = 0.0
                    t[vi] += a[vi, vk]
            for i_at in range(1):
                with T.block("relu"):
                    vi = T.axis.spatial(8, i + i_at)
                    c[vi] = T.max(t[vi], 0.0)
    """
    where = "reverse_compute_at, argument 1 'block'"
    path, block = block_path(func, name)
    target, loop = loop_path(func, var)
    refuse_scope("reverse_compute_at, argument 2 'loop'", path, target)
    first, last = order_of(func, loop)
    here, _ = order_of(func, block)
    if here < last:
        raise illegal("reverse_compute_at, argument 2 'loop'", f"it does not stand before {name!r}")
    output, around = made_by(where, block), loops_of(scope_path(target))

    def is_done(access: Access) -> bool:
        """Whether something is all through before the loop begins, wherever that is repeated."""
        shared = [s for s in access.path if any(s is x for x in around)]
        return access.order <= first and not shared

    if any(
        a.block is not block and a.order < here and not is_done(a)
        for part in accesses(func, output, path)
        for a in part
    ):
        raise illegal(where, f"{output.name!r}, which it makes, is touched before it")
    inside = sites(loop.body, target)
    sources = _sources(where, func, block, inside)
    for maker, buffer in sources:
        for each in loops_of(scope_path(target)):
            if driven(maker.block, each.var) - {"S"}:
                raise illegal(where, f"{buffer.name!r} is complete only after {each.var.name!r}")
    for other in loaded(block) - {buffer for _, buffer in sources} - {output}:
        for access in accesses(func, other, path)[0]:
            if not is_done(access):
                raise illegal(where, f"{other.name!r}, which it reads, is made too late")
    site, ranges = site_of(path), dict[PrimVar, Range]()
    if not is_trusted() and not site.covers_domain():
        raise illegal(where, f"its loops are not known to run over all of {output.name!r}")
    for maker, buffer in sources:
        for axis, r in _taken(where, func, site, maker, buffer).items():
            given = ranges.setdefault(axis, r)
            same = site.known.equal(given.begin, r.begin) and site.known.equal(
                given.extent, r.extent
            )
            if not same:
                raise illegal(where, f"of {buffer.name!r} an iteration makes other points")
    refuse_moved(where, func, path, target)
    why = may_skip(scope_path(target))
    if why is not None:
        raise illegal(where, why)
    ranges |= _kept(where, block, path, target, ranges)
    nest = nest_over(func, block, ranges, known_at(target))
    inner = replace(loop, body=sequence([loop.body, nest]))
    return Outcome(checked(replaced(func, [(block, NOTHING), (loop, inner)]), where))


def _kept(
    where: str, block: Block, path: Path, target: Path, given: Mapping[PrimVar, Range]
) -> dict[PrimVar, Range]:
    """Axes that loops around both drive, where they are."""
    stays = {x.var for x in loops_of(target) if any(x is s for s in path)}
    own = {x.var for x in loops_of(scope_path(path))} - stays
    found: dict[PrimVar, Range] = {}
    for axis in block.axes:
        driving = variables(axis.value)
        if axis.var in given or not driving & stays:
            continue
        if driving & own:
            raise illegal(where, f"{axis.var.name!r} is driven by loops that stay and others")
        found[axis.var] = Range(axis.value, imm(1))
    return found


def _sources(
    where: str, func: PrimFunc, block: Block, inside: list[Site]
) -> list[tuple[Site, Buffer]]:
    """The blocks in the loop that make what a block reads, one for each buffer."""
    found = [(s, r.buffer) for s in inside for r in s.block.writes if r.buffer in loaded(block)]
    once = len({id(buffer) for _, buffer in found}) == len(found)
    if not found or not once or not all(sole_store(s.block, b, func) for s, b in found):
        raise illegal(where, "not one block in the loop makes each buffer that it reads")
    return found


def _taken(
    where: str, func: PrimFunc, site: Site, maker: Site, buffer: Buffer
) -> dict[PrimVar, Range]:
    """Which points of its axes a block takes, of what is made of a buffer in an iteration.

    A dimension that it reads at an axis tells them; of others, all that it reads must be made.
    """
    block = site.block
    region = next(r for r in block.reads if r.buffer is buffer)
    fixed = [
        k
        for k, r in enumerate(region.ranges)
        if not (variables(r.begin) | variables(r.extent)) and buffer.shape[k] != imm(1)
    ]
    moving = [k for k in range(len(region.ranges)) if k not in fixed]
    axes = axes_of_index([region.ranges[k].begin for k in moving], block)
    if axes is None or any(region.ranges[k].extent != imm(1) for k in moving):
        raise illegal(where, f"it reads {buffer.name!r} elsewhere than at its axes")
    if any(a.kind != "S" for a in axes):
        raise illegal(where, f"it reduces over what it reads of {buffer.name!r}")
    if not _runs_within(axes, [buffer.shape[k] for k in moving], site.known):
        raise illegal(where, f"it is not known to run over {buffer.name!r} from its begin")
    box = maker.fills(buffer)
    maker_path, _ = block_path(func, maker.block.name)
    whole = site_of(maker_path).fills(buffer)
    wanted = site.touched(buffer)
    assert wanted is not None
    spanned = is_trusted() or (whole is not None and covers(whole, wanted, site.known))
    if box is None or not spanned:
        raise illegal(where, f"what {maker.block.name!r} makes in an iteration is no known box")
    made, read = [box[k] for k in fixed], [region.ranges[k] for k in fixed]
    if not covers(made, read, site.known):
        why = f"an iteration does not make all that it reads of {buffer.name!r}"
        raise illegal(where, why)
    return {
        axis.var: _first(box[k], axis, buffer.shape[k], site.known)
        for axis, k in zip(axes, moving, strict=True)
    }


def _runs_within(axes: Sequence[BlockAxis], shape: Sequence[PrimExpr], known: Analyzer) -> bool:
    """Whether axes run over a shape, or over what stands first in it."""
    return all(
        a.domain.begin == imm(0) and known.prove(Compare("le", a.domain.extent, n))
        for a, n in zip(axes, shape, strict=True)
    )


def _first(made: Range, axis: BlockAxis, size: PrimExpr, known: Analyzer) -> Range:
    """What an axis takes of a range of a dimension, which may go on behind the axis' end."""
    extent = axis.domain.extent
    if known.equal(extent, size):
        return made
    last = known.simplify(Binary("add", made.begin, made.extent))
    match last:
        case Binary("min", a, b) if known.prove(Compare("le", extent, a)):
            last = b
        case Binary("min", a, b) if known.prove(Compare("le", extent, b)):
            last = a
        case _:
            pass
    last = lesser(last, extent, known)
    left = known.simplify(Binary("max", Binary("sub", last, made.begin), imm(0)))
    return Range(made.begin, left)
