"""Whether a part of a buffer lies in memory as an implementation's buffer says it does.

Comes in: a buffer of a tensor intrinsic's implementation, and the buffer and the place it is to
stand for. Where the implementation gives the address of its buffer away, what its buffer says must
hold of the part: its strides (one behind the other, where it says none), its alignment. Strides
that are symbols are bound to those that are there.
"""

from __future__ import annotations

from collections.abc import Sequence

from unity.arith import Analyzer
from unity.ir.arrays.aligned import LINE
from unity.ir.prim_expr import Binary, PrimExpr, PrimVar, SizeVar, imm
from unity.ir.stmt import Buffer
from unity.ir.visit import substitute_prim
from unity.script.printer import text

Sizes = dict[PrimVar | SizeVar, PrimExpr]


def strides_of(buffer: Buffer) -> tuple[PrimExpr, ...]:
    """How far apart, in elements, neighbours along each axis lie."""
    if buffer.strides is not None:
        return buffer.strides
    found: list[PrimExpr] = []
    step: PrimExpr = imm(1)
    for size in reversed(buffer.shape):
        found.append(step)
        step = Binary("mul", step, size)
    return tuple(reversed(found))


def bound_strides(made: Buffer, of: Buffer, sizes: Sizes, known: Analyzer) -> str | None:
    """Bind the symbols among the strides of an implementation's buffer.

    Args:
        made: The buffer.
        of: What it stands for a part of.
        sizes: The symbols' values; added to.
        known: What is known of variables at the place.

    Returns:
        Why a symbol would have two values; None if none has.
    """
    there = strides_of(of)[len(of.shape) - len(made.shape) :]
    for axis, (said, is_) in enumerate(zip(made.strides or (), there, strict=False)):
        if isinstance(said, SizeVar):
            value = known.simplify(is_)
            if not known.equal(sizes.setdefault(said, value), value):
                was = text(sizes[said])
                return (
                    f"the stride {said.name!r} of {made.name!r} along axis {axis} is {text(value)} "
                    f"in {of.name!r}, and {was} elsewhere"
                )
    return None


def differs_in_memory(
    made: Buffer, of: Buffer, base: Sequence[PrimExpr], sizes: Sizes, known: Analyzer
) -> str | None:
    """Why a part of a buffer is not what an implementation's buffer says; None if it is.

    Args:
        made: The implementation's buffer.
        of: What it stands for a part of.
        base: Where in that the part begins.
        sizes: The values of the implementation's symbols.
        known: What is known of variables at the place.
    """
    strides = strides_of(of)
    lead = len(of.shape) - len(made.shape)
    for axis, said in enumerate(strides_of(made)):
        if known.equal(made.shape[axis], imm(1)):
            continue
        wanted, is_ = substitute_prim(said, sizes), strides[lead + axis]
        if not known.equal(wanted, is_):
            stated = "compact" if made.strides is None else f"of stride {text(wanted)} there"
            return (
                f"neighbours along axis {axis} of {made.name!r} lie {text(known.simplify(is_))} "
                f"elements apart in {of.name!r}, and the implementation takes its address to be "
                f"{stated}"
            )
    if made.scope not in ("global", of.scope):
        return f"{made.name!r} is of scope {made.scope!r}, and {of.name!r} of {of.scope!r}"
    if made.align < LINE:  # a line is what buffers have that say nothing
        place: PrimExpr = imm(0)
        for b, stride in zip(base, strides, strict=True):
            place = Binary("add", place, Binary("mul", b, stride))
        at = Binary("floormod", Binary("mul", place, imm(of.dtype.bytes)), imm(made.align))
        if of.align % made.align or not known.equal(at, imm(0)):
            return f"{made.name!r} is to be aligned to {made.align} bytes"
    return None
