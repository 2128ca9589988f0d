"""Memory that a called kernel is given from an element on, and its accesses of it.

Comes in: the callee's statement over a buffer of its own, and an element of a buffer of the
caller's. Comes out: the statement over the caller's buffer, whose elements lie in the same order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from unity.arith.analyzer import Analyzer
from unity.errors import UnityError
from unity.ir.flat_index import flat_index
from unity.ir.leaves import leaves
from unity.ir.prim_expr import Binary, Compare, Load, PrimExpr, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import Block, Buffer, Range, Region, Stmt, Store
from unity.ir.visit import rewrite_stmt


@dataclass(frozen=True, slots=True)
class Pointer:
    """The memory of a buffer from an element on.

    Attributes:
        buffer: The buffer.
        at: The element's indices.
    """

    buffer: Buffer
    at: tuple[PrimExpr, ...]

    @property
    def before(self) -> PrimExpr:
        """How many elements lie before it."""
        return flat_index(self.buffer, self.at)


def count(shape: Sequence[PrimExpr]) -> PrimExpr:
    """How many elements a compact buffer has."""
    found: PrimExpr = imm(1)
    for extent in shape:
        found = multiply(found, extent)
    return found


def must_hold(own: Buffer, given: Pointer) -> list[Compare]:
    """What makes all elements of a callee's buffer ones of the buffer that it lies in."""
    begin = given.at[0] if given.at else imm(0)
    found = [Compare("ge", begin, imm(0))]
    for index, extent in zip(given.at[1:], given.buffer.shape[1:], strict=True):
        if index != imm(0):
            found += [Compare("ge", index, imm(0)), Compare("lt", index, extent)]
    end = add(given.before, count(own.shape))
    return [*found, Compare("le", end, count(given.buffer.shape))]


@dataclass(frozen=True, slots=True)
class Seen:
    """A callee's buffer as part of one of the caller's; both are compact.

    Attributes:
        own: The callee's.
        given: Where it lies.
        same: How many of the last axes are axes of both.
    """

    own: Buffer
    given: Pointer
    same: int

    @classmethod
    def of(cls, own: Buffer, given: Pointer, known: Analyzer) -> Seen:
        """A callee's buffer where its elements are those of the caller's from some on."""
        shape, whole, same = own.shape, given.buffer.shape, 0
        while same < min(len(shape), len(whole)):
            if same == len(whole) - 1 and len(shape) > len(whole):
                break  # an axis is left for what lies in front
            a, b, index = shape[-1 - same], whole[-1 - same], given.at[-1 - same]
            if index != imm(0) or not known.prove(Compare("eq", a, b)):
                break
            same += 1
        return cls(own, given, same)

    def element(self, indices: Sequence[PrimExpr], known: Analyzer) -> tuple[PrimExpr, ...]:
        """The indices of an element in the caller's buffer.

        Raises:
            UnityError: Lanes of the callee's buffer are on several axes of the caller's.
        """
        rank = len(self.given.buffer.shape) - self.same
        front, last = indices[: len(indices) - self.same], indices[len(indices) - self.same :]
        at, shape = self.given.at[:rank], self.given.buffer.shape[:rank]
        if not front or not at:
            return (*at, *last)
        steps = tuple(count(self.own.shape[k + 1 : len(front)]) for k in range(len(front)))
        begin = flat_index(replace(self.given.buffer, shape=shape), at)
        line = replace(self.own, strides=(imm(1), *steps))
        flat = flat_index(line, (begin, *front))
        if flat.dtype.lanes > 1 and len(shape) > 1:
            raise UnityError(
                f"{self.own.name!r} is accessed by lanes, which are no lanes of "
                f"{self.given.buffer.name}",
                hint="give it a buffer of the shape that it has",
            )
        found: list[PrimExpr] = []
        for extent in reversed(shape[1:]):
            found.append(known.simplify(Binary("floormod", flat, extent)))
            flat = Binary("floordiv", flat, extent)
        return (known.simplify(flat), *reversed(found), *last)

    def region(self, ranges: Sequence[Range], known: Analyzer) -> tuple[Range, ...]:
        """A part of the caller's buffer that holds a part of the callee's."""
        cut = len(ranges) - self.same
        front, last = ranges[:cut], ranges[cut:]
        if all(r.extent == imm(1) for r in front):
            at = self.element([r.begin for r in ranges], known)
            begins = at[: len(at) - self.same]
            return (*(Range(b, imm(1)) for b in begins), *last)
        shape = self.given.buffer.shape
        return (*(Range(imm(0), e) for e in shape[: len(shape) - self.same]), *last)


def seen_through(
    body: Stmt, parts: Mapping[Buffer, Seen], allowed: Collection[PrimVar], known: Analyzer
) -> Stmt:
    """A callee's statement over the caller's buffers.

    Args:
        body: The statement.
        parts: Its buffers that are parts of the caller's.
        allowed: The variables of the caller that regions of blocks may be over.
        known: What is known of indices.

    Raises:
        UnityError: Lanes of one of the buffers are on several axes of the caller's.
    """
    hidden = {
        v for seen in parts.values() for i in seen.given.at for v in leaves(i).variables
    } - set(allowed)

    def region(found: Region) -> Region:
        seen = parts.get(found.buffer)
        if seen is None:
            return found
        buffer = seen.given.buffer
        ranges = tuple(
            Range(imm(0), whole) if hidden & leaves(r.begin).variables else r
            for r, whole in zip(seen.region(found.ranges, known), buffer.shape, strict=True)
        )
        return Region(buffer, ranges)

    def stmt(s: Stmt) -> Stmt | None:
        match s:
            case Store(buffer) if buffer in parts:
                seen = parts[buffer]
                indices = seen.element(s.indices, known)
                return replace(s, buffer=seen.given.buffer, indices=indices)
            case Block() if any(r.buffer in parts for r in (*s.reads, *s.writes)):
                reads, writes = tuple(map(region, s.reads)), tuple(map(region, s.writes))
                return replace(s, reads=reads, writes=writes)
            case _:
                return None

    def load(e: Load) -> PrimExpr | None:
        seen = parts.get(e.buffer)
        if seen is None:
            return None
        return replace(e, buffer=seen.given.buffer, indices=seen.element(e.indices, known))

    return rewrite_stmt(body, stmt, load_fn=load)
