"""store_in: a temporary lies where another block writes later."""

from __future__ import annotations

from dataclasses import replace

from unity.arith.region import covers
from unity.ir.prim_expr import imm
from unity.ir.stmt import Allocate, Block, Buffer, For, PrimFunc, PrimWhile, Range, Stmt
from unity.ir.visit import map_stmts

from ....blocks.dataflow import accesses, addressed_in, checked, site_of
from ....blocks.legality import breach, reaches_once
from ....blocks.nest import is_formula
from ....blocks.tree import Outcome, Path, all_blocks, block_path, illegal, known_at, with_buffers
from .set_scope import laid_out

OTHER = "store_in, argument 3 'other'"


def store_in(func: PrimFunc, name: str, index: int, other: str, place: int) -> Outcome:
    """What a block writes is kept in a buffer that another block writes, until it does so.

    A temporary as large as an output costs no memory, and no part of a cache, in its place: a
    softmax keeps its powers where it divides them. Before blocks are put into one loop, when one
    stage stands wholly before another; what moves them then keeps them in order.

    Args:
        func: The prim func.
        name: A block.
        index: Which of its writes: to a temporary.
        other: The first block behind all that use the temporary, or the last of them: it writes
            all of another buffer.
        place: Which of its writes: to a buffer like the temporary. What that held before is read
            last before the temporary is made, or as it is made, element for element.

    Raises:
        UnityError: The buffers are not alike; one may be touched while it holds the other.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 8], c: f32[Buffer, 8]) -> None:
    ...     t = T.alloc((8,), "float32")
    ...     for i in range(8):
    ...         with T.block("power"):
    ...             vi = T.axis.spatial(8, i)
    ...             t[vi] = T.exp(a[vi])
    ...     for i in range(8):
    ...         with T.block("share"):
    ...             vi = T.axis.spatial(8, i)
    ...             c[vi] = t[vi] / 3.0
    ... ''').prim_funcs()["main"])
    >>> sch.store_in("power", 0, "share", 0)
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 8], c: f32[Buffer, 8]) -> None:
        for i in range(8):
            with T.block("power"):
                vi = T.axis.remap("S", i)
                c[vi] = T.exp(a[vi])
        for i in range(8):
            with T.block("share"):
                vi = T.axis.remap("S", i)
                c[vi] /= 3.0
    """
    buffer = laid_out(func, name, index, "store_in")
    path, block = block_path(func, other)
    if not 0 <= place < len(block.writes):
        raise illegal(
            "store_in, argument 4 'place'", f"{other!r} has {len(block.writes)} writes, got {place}"
        )
    host = block.writes[place].buffer
    _refuse_unlike(func, buffer, host)
    if buffer in {b for x in all_blocks(func.body) for b in x.allocations}:
        raise illegal("store_in, argument 2 'index'", f"{buffer.name!r} is a block's own")
    if "overwritable" in func.attrs:
        raise illegal(OTHER, f"{host.name!r} may be an input's memory, which is read until then")
    uses, taken = _blocks(func, buffer), _blocks(func, host)
    order = [b.name for b in all_blocks(func.body)]
    first, last = order.index(min(uses, key=order.index)), order.index(max(uses, key=order.index))
    for each in taken:
        at = order.index(each)
        if first < at < last or (first == last == at):
            raise illegal(
                OTHER, f"{each!r} touches {host.name!r} while it would hold {buffer.name!r}"
            )
        for use in uses:
            if use == each:
                _refuse_apart(uses[use], buffer, host)
            elif any(
                s is x for s in taken[each] for x in uses[use] if isinstance(s, For | PrimWhile)
            ):
                raise illegal(
                    OTHER, f"{each!r} and {use!r}, which uses {buffer.name!r}, share a loop"
                )
    behind = min((order.index(x) for x in taken if order.index(x) >= last), default=-1)
    if behind != order.index(other):
        raise illegal(
            OTHER, f"it is not the first to touch {host.name!r} behind what uses {buffer.name!r}"
        )
    box, known = site_of(path).fills(host), known_at(path[:-1])
    if box is None or not covers(box, [Range(imm(0), n) for n in host.shape], known):
        raise illegal(OTHER, f"it is not known to write all of {host.name!r}")
    done = replace(func, body=_exchanged(func.body, buffer, host))
    return Outcome(checked(done, OTHER))


def _blocks(func: PrimFunc, buffer: Buffer) -> dict[str, Path]:
    """The ways to the blocks that touch a buffer, by their names."""
    found: dict[str, Path] = {}
    for access in (a for part in accesses(func, buffer) for a in part):
        inside = [k for k, s in enumerate(access.path) if isinstance(s, Block)]
        if len(inside) != 1:
            raise illegal(OTHER, f"{buffer.name!r} is touched outside of blocks, or in nested ones")
        path = access.path[: inside[0] + 1]
        block = path[-1]
        assert isinstance(block, Block)
        found[block.name] = path
    return found


def _refuse_unlike(func: PrimFunc, buffer: Buffer, host: Buffer) -> None:
    known = known_at(())
    shapes = len(buffer.shape) == len(host.shape) and all(
        known.equal(a, b) for a, b in zip(buffer.shape, host.shape, strict=True)
    )
    if host is buffer or host.dtype != buffer.dtype or not shapes:
        raise illegal(OTHER, f"{host.name!r} is no other buffer like {buffer.name!r}")
    if any(b.strides is not None or b.separators for b in (buffer, host)):
        raise illegal(OTHER, f"{buffer.name!r} or {host.name!r} has a layout of its own")
    if host in addressed_in(func.body):
        raise illegal(OTHER, f"a foreign function gets the address of {host.name!r}")


def _refuse_apart(path: Path, buffer: Buffer, host: Buffer) -> None:
    """Refuse a block that reads a temporary elsewhere than where it writes in the same step."""
    block = path[-1]
    assert isinstance(block, Block)
    regions = [r for r in (*block.reads, *block.writes) if r.buffer is buffer or r.buffer is host]
    if {buffer, host} <= {r.buffer for r in block.reads}:
        raise illegal(OTHER, f"{block.name!r} reads both {buffer.name!r} and {host.name!r}")
    points = all(x.extent == imm(1) for r in regions for x in r.ranges)
    same = len({r.ranges for r in regions}) == 1
    plain = block.init is None and not block.allocations and is_formula(block.body)
    if not (points and same and plain and all(a.kind == "S" for a in block.axes)):
        why = f"{block.name!r} does not read {buffer.name!r} at the one place where it writes"
        raise illegal(OTHER, why)
    site = site_of(path)
    why_not = breach(site)
    if why_not is None and not reaches_once(site):
        why_not = f"{block.name!r} may come to a place more than once"
    if why_not is not None:
        raise illegal(OTHER, why_not)


def _exchanged(s: Stmt, buffer: Buffer, host: Buffer) -> Stmt:
    """A statement without a temporary, in whose place is another buffer."""

    def without(x: Stmt) -> Stmt:
        if isinstance(x, Allocate) and x.buffer is buffer:
            return without(x.body)
        return map_stmts(x, without)

    return with_buffers(without(s), {buffer: host})
