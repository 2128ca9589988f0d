"""The head of a block while it is parsed: axes, predicate, regions, allocations, init."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from unity.errors import Span
from unity.ir.attrs import NO_ATTRS, Attrs
from unity.ir.prim_expr import Binary, PrimExpr, PrimVar, imm
from unity.ir.regions import block_regions
from unity.ir.stmt import AxisKind, Block, BlockAxis, Buffer, Range, Region, Stmt

from .prim_calls import PrimCalls

_KINDS: dict[str, AxisKind] = {
    "T.axis.spatial": "S",
    "T.axis.reduce": "R",
    "T.axis.opaque": "O",
}
_LETTERS: dict[str, AxisKind] = {"S": "S", "R": "R", "O": "O"}
_KINDS_HINT = "S is spatial, R is reduce, O is opaque; one letter per loop variable"


@dataclass(slots=True)
class BlockHead:
    """What a block's statements said so far."""

    name: str
    attrs: Attrs = NO_ATTRS
    span: Span | None = None
    axes: list[BlockAxis] = field(default_factory=list[BlockAxis])
    reads: tuple[Region, ...] | None = None
    writes: tuple[Region, ...] | None = None
    allocations: list[Buffer] = field(default_factory=list[Buffer])
    init: Stmt | None = None
    predicate: PrimExpr | None = None

    def finish(self, body: Stmt, visible: tuple[PrimVar, ...]) -> Block:
        """The block; absent regions are inferred.

        Args:
            body: Its statement.
            visible: Variables that its regions may be over beside its axes.
        """
        axes_vars = (*(axis.var for axis in self.axes), *visible)
        reads, writes = self.reads, self.writes
        if reads is None or writes is None:
            found_reads, found_writes = block_regions(body, self.init, axes_vars)
            own = set(self.allocations)
            found_reads = tuple(r for r in found_reads if r.buffer not in own)
            found_writes = tuple(r for r in found_writes if r.buffer not in own)
            reads = found_reads if reads is None else reads
            writes = found_writes if writes is None else writes
        return Block(
            self.name,
            tuple(self.axes),
            reads,
            writes,
            body,
            self.init,
            self.predicate,
            tuple(self.allocations),
            self.attrs,
            self.span,
        )


def is_axis(path: str) -> bool:
    """Whether a name of the language makes axes."""
    return path in _KINDS or path == "T.axis.remap"


def parse_axes(
    evaluator: PrimCalls,
    node: ast.Call,
    path: str,
    names: list[ast.Name],
    loops: dict[PrimVar, Range],
) -> list[BlockAxis]:
    """The axes that ``vi = T.axis.spatial(...)`` or ``vi, vj = T.axis.remap(...)`` makes."""
    if path != "T.axis.remap":
        given = evaluator.given(node, evaluator.signature(node)).named
        if len(names) != 1:
            raise evaluator.source.error(node, f"{path} makes one axis, got {len(names)} names")
        var = _axis_var(evaluator, names[0])
        kind = _KINDS[path]
        return [
            BlockAxis(var, kind, evaluator.domain(given["domain"]), evaluator.index(given["value"]))
        ]
    return _remap(evaluator, node, names, loops)


def _remap(
    evaluator: PrimCalls,
    node: ast.Call,
    names: list[ast.Name],
    loops: dict[PrimVar, Range],
) -> list[BlockAxis]:
    given = evaluator.given(node, evaluator.signature(node))
    kinds = evaluator.text(given.named["kinds"])
    values = list(given.rest)
    if len(values) == 1 and isinstance(values[0], ast.List):
        values = values[0].elts
    for letter in kinds:
        if letter not in _LETTERS:
            raise evaluator.source.error(
                node.args[0], f"unknown axis kind {letter!r} in {kinds!r}", _KINDS_HINT
            )
    if not len(kinds) == len(values) == len(names):
        raise evaluator.source.error(
            node.args[0],
            f"{kinds!r} gives {len(kinds)} kinds for {len(values)} loop variables "
            f"and {len(names)} names",
            _KINDS_HINT,
        )
    axes: list[BlockAxis] = []
    for letter, value, name in zip(kinds, values, names, strict=True):
        loop = evaluator.value(value)
        if not isinstance(loop, PrimVar) or loop not in loops:
            raise evaluator.source.error(
                value,
                f"T.axis.remap takes loop variables, got {ast.unparse(value)!r}",
                "bind an expression with T.axis.spatial(extent, expression)",
            )
        axes.append(BlockAxis(_axis_var(evaluator, name), _LETTERS[letter], loops[loop], loop))
    return axes


def _axis_var(evaluator: PrimCalls, name: ast.Name) -> PrimVar:
    return PrimVar(name.id, span=evaluator.source.span(name))


def parse_regions(evaluator: PrimCalls, node: ast.Call) -> tuple[Region, ...]:
    """The regions of ``T.reads(a[vi, 0:128], b)``; a bare buffer is all of it."""
    return tuple(
        _region(evaluator, a) for a in evaluator.given(node, evaluator.signature(node)).rest
    )


def _region(evaluator: PrimCalls, node: ast.expr) -> Region:
    if not isinstance(node, ast.Subscript):
        buffer = evaluator.buffer(node)
        return Region(buffer, tuple(Range(imm(0), extent) for extent in buffer.shape))
    buffer = evaluator.buffer(node.value)
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    evaluator.check_rank(node, buffer, len(parts))
    ranges = [
        _range(evaluator, part, extent) for part, extent in zip(parts, buffer.shape, strict=True)
    ]
    return Region(buffer, tuple(ranges))


def _range(evaluator: PrimCalls, node: ast.expr, extent: PrimExpr) -> Range:
    match node:
        case ast.Slice(lower=None, upper=None):
            return Range(imm(0), extent)
        case ast.Slice(lower=None, upper=ast.expr() as upper):
            return Range(imm(0), evaluator.index(upper))
        case ast.Slice(lower=ast.expr() as lower, upper=None):
            begin = evaluator.index(lower)
            return Range(begin, Binary("sub", extent, begin))
        case ast.Slice(lower=ast.expr() as lower, upper=ast.expr() as upper):
            return evaluator.interval(lower, upper)
        case _:
            return Range(evaluator.index(node), imm(1))
