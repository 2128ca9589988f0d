"""Statements, buffers and the prim func: TensorIR's node list.

A `Block` is the unit of computation: its axes, its read and write regions and its init are a
signature; everything outside may be transformed knowing only that. Lowering removes blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from unity.errors import Span
from unity.ir.arrays.aligned import LINE
from unity.ir.attrs import NO_ATTRS, Attrs
from unity.ir.display import Displayed
from unity.ir.dtype import DType
from unity.ir.prim_expr import PrimExpr, PrimVar, SizeVar

ForKind: TypeAlias = Literal["serial", "parallel", "vectorized", "unrolled", "thread"]
AxisKind: TypeAlias = Literal["S", "R", "O"]  # spatial, reduce, opaque
Scope: TypeAlias = str  # one of unity.ir.marks.SCOPES, or a backend's own, with a dot


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """A typed, shaped piece of memory; equal by identity.

    `strides` are in elements, None for row-major compact. `align` is in bytes. `separators` are the
    axes that begin a new group: in memory addressed by several indices each group is one of them.
    """

    name: str
    shape: tuple[PrimExpr, ...]
    dtype: DType
    strides: tuple[PrimExpr, ...] | None = None
    scope: Scope = "global"
    align: int = LINE
    span: Span | None = field(default=None, repr=False)
    separators: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Range:
    """``begin <= x < begin + extent``."""

    begin: PrimExpr
    extent: PrimExpr


@dataclass(frozen=True, slots=True)
class Region:
    """A rectangular part of a buffer that a block reads or writes."""

    buffer: Buffer
    ranges: tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class BlockAxis:
    """A block's iteration variable: its kind, its domain and the loop expression it is bound to."""

    var: PrimVar
    kind: AxisKind
    domain: Range
    value: PrimExpr


@dataclass(frozen=True, slots=True)
class Block:
    """A unit of computation over its axes; `init` runs where every reduce axis is at its begin.

    Nothing runs where `predicate` (over loop variables) is false. `reads` and `writes` are over the
    axes' vars.
    """

    name: str
    axes: tuple[BlockAxis, ...]
    reads: tuple[Region, ...]
    writes: tuple[Region, ...]
    body: Stmt
    init: Stmt | None = None
    predicate: PrimExpr | None = None
    allocations: tuple[Buffer, ...] = ()
    attrs: Attrs = NO_ATTRS
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class For:
    """``for var in range(begin, begin + extent)``; `thread` names a thread-bound axis."""

    var: PrimVar
    begin: PrimExpr
    extent: PrimExpr
    body: Stmt
    kind: ForKind = "serial"
    thread: str | None = None
    attrs: Attrs = NO_ATTRS
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Store:
    """``buffer[indices] = value``; lowered, one index may be a `Ramp`, with a lane predicate."""

    buffer: Buffer
    indices: tuple[PrimExpr, ...]
    value: PrimExpr
    predicate: PrimExpr | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class IfThen:
    """A conditional statement."""

    condition: PrimExpr
    then: Stmt
    orelse: Stmt | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Let:
    """``var = value`` within `body`."""

    var: PrimVar
    value: PrimExpr
    body: Stmt
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Allocate:
    """A buffer that lives during `body`."""

    buffer: Buffer
    body: Stmt
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PrimWhile:
    """A loop as long as `condition` (which reads buffers) holds."""

    condition: PrimExpr
    body: Stmt
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Assert:
    """Stops the kernel with `message` unless `condition` holds."""

    condition: PrimExpr
    message: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Evaluate:
    """An expression for its effect (an intrinsic)."""

    value: PrimExpr
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Seq:
    """Statements in order; an empty one does nothing."""

    stmts: tuple[Stmt, ...]


Stmt: TypeAlias = (
    Block | For | Store | IfThen | Let | Allocate | PrimWhile | Assert | Evaluate | Seq
)
Param: TypeAlias = Buffer | SizeVar | PrimVar


@dataclass(frozen=True, slots=True)
class PrimFunc(Displayed):
    """A kernel: buffers (inputs, then outputs) and extra scalars as parameters, and a statement.

    Symbols (`SizeVar`) free in the parameters' shapes are bound by a call. A `SizeVar` among the
    parameters is a size that no shape gives. `attrs` may hold ``num_outputs``, ``pattern`` (for
    fusion), ``source``, ``target``.
    """

    params: tuple[Param, ...]
    body: Stmt
    attrs: Attrs = NO_ATTRS
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The parameters that are buffers, in order."""
        return tuple(p for p in self.params if isinstance(p, Buffer))
