"""Statements as Python source: loops, blocks, stores, scoped declarations.

A let or an allocation reaches to the end of its suite, so one that ends earlier stands in a
``with T.suite():`` of its own; a sequence that is not simply its suite stands in ``with T.seq():``.
"""

from __future__ import annotations

from typing import assert_never

from unity.ir.dtype import INT64
from unity.ir.prim_expr import Binary, Imm, Load, PrimExpr, PrimVar
from unity.ir.regions import block_regions
from unity.ir.stmt import (
    Allocate,
    Assert,
    Block,
    BlockAxis,
    Buffer,
    Evaluate,
    For,
    IfThen,
    Let,
    PrimWhile,
    Range,
    Region,
    Seq,
    Stmt,
    Store,
)
from unity.ir.visit import walk_prim

from .lines import Lines
from .literals import attrs_text, string_text, tuple_text
from .prim_expr import PrimText

_LOOP: dict[str, str] = {
    "serial": "T.serial",
    "parallel": "T.parallel",
    "vectorized": "T.vectorized",
    "unrolled": "T.unroll",
    "thread": "T.thread",
}
_AXIS: dict[str, str] = {"S": "T.axis.spatial", "R": "T.axis.reduce", "O": "T.axis.opaque"}
_AUGMENTED: dict[str, str] = {"add": "+=", "sub": "-=", "mul": "*=", "div": "/="}
_ZERO, _ONE = Imm(0, INT64), Imm(1, INT64)
DEFAULT_ALIGN = 64


class StmtText(PrimText):
    """Prints statements into `lines`."""

    lines: Lines
    visible: list[PrimVar]
    loops: dict[PrimVar, Range]

    def into(self, lines: Lines, visible: list[PrimVar]) -> StmtText:
        """Set where to print; `visible` are the parameters that block regions may be over."""
        self.lines, self.visible, self.loops = lines, visible, {}
        return self

    def suite(self, s: Stmt) -> None:
        """A statement as the whole rest of a suite."""
        if isinstance(s, Seq) and len(s.stmts) != 1:
            for i, each in enumerate(s.stmts):
                last = i == len(s.stmts) - 1
                if last and isinstance(each, Let | Allocate):
                    self.stmt(each)
                else:
                    self._item(each)
        else:
            self.stmt(s) if not isinstance(s, Seq) else self._item(s)

    def _item(self, s: Stmt) -> None:
        """A statement with others after it."""
        match s:
            case Let() | Allocate():
                with self.names.scope(), self.lines.block("with T.suite():"):
                    self.stmt(s)
            case Seq(stmts):
                with self.names.scope(), self.lines.block("with T.seq():"):
                    for i, each in enumerate(stmts):
                        last = i == len(stmts) - 1
                        self.stmt(each) if last and isinstance(each, Let | Allocate) else (
                            self._item(each)
                        )
            case _:
                self.stmt(s)

    def stmt(self, s: Stmt) -> None:
        """One statement; a declaration with all that it reaches over."""
        match s:
            case Seq():
                self.suite(s)
            case For():
                self._for(s)
            case Block():
                self._block(s)
            case Store():
                self._store(s)
            case IfThen(condition, then, orelse):
                self._nested(f"if {self.expr(condition)}:", then)
                if orelse is not None:
                    self._nested("else:", orelse)
            case Let(var, value, body):
                text = self.expr(value, var.dtype if isinstance(value, Imm) else None)
                dtype = f', "{var.dtype}"' if isinstance(value, Imm) else ""
                self.visible.append(var)
                self.lines.add(f"{self.names.define(var, var.name)} = T.let({text}{dtype})")
                self.suite(body)
            case Allocate(buffer, body):
                self._allocation(buffer, "T.alloc")
                self.suite(body)
            case PrimWhile(condition, body):
                self._nested(f"while {self.expr(condition)}:", body)
            case Assert(condition, message):
                self.lines.add(f"assert {self.expr(condition)}, {string_text(message)}")
            case Evaluate(value):
                self.lines.add(f"T.evaluate({self.expr(value)})")
            case _:
                assert_never(s)

    def _nested(self, header: str, body: Stmt) -> None:
        with self.names.scope(), self.lines.block(header):
            self.suite(body)

    def _for(self, s: For) -> None:
        nest = _grid(s)
        with self.names.scope():
            for loop in nest:
                self.loops[loop.var] = Range(loop.begin, loop.extent)
            if len(nest) > 1:
                extents = ", ".join(self.expr(loop.extent) for loop in nest)
                names = ", ".join(self.names.define(loop.var, loop.var.name) for loop in nest)
                header = f"for {names} in T.grid({extents}):"
            else:
                source = self._loop_source(s)
                header = f"for {self.names.define(s.var, s.var.name)} in {source}:"
            with self.lines.block(header):
                self.suite(nest[-1].body)

    def _loop_source(self, s: For) -> str:
        first, end = self.interval(Range(s.begin, s.extent))
        parts = [first] if end is None else [first, end]
        if s.thread is not None:
            parts.append(string_text(s.thread))
        if s.attrs:
            parts.append(f"attrs={attrs_text(s.attrs, self.symbols)}")
        plain = s.kind == "serial" and not s.attrs
        return f"{'range' if plain else _LOOP[s.kind]}({', '.join(parts)})"

    def _store(self, s: Store) -> None:
        lanes = max((i.dtype.lanes for i in s.indices), default=1)
        like = s.buffer.dtype.with_lanes(lanes)
        if s.predicate is not None:
            name = self.names.of(s.buffer, s.buffer.name)
            index = tuple_text([self.expr(i) for i in s.indices])
            value, keep = self.expr(s.value, like), self.expr(s.predicate)
            self.lines.add(f"T.store({name}, {index}, {value}, {keep})")
            return
        target = self.access(s.buffer, s.indices)
        match s.value:
            case Binary(op, Load(buffer, indices, None), b) if (
                buffer is s.buffer and indices == s.indices and op in _AUGMENTED
            ):
                self.lines.add(f"{target} {_AUGMENTED[op]} {self.expr(b, s.value.dtype)}")
            case _:
                self.lines.add(f"{target} = {self.expr(s.value, like)}")

    def _allocation(self, buffer: Buffer, function: str) -> None:
        shape = tuple_text([self.expr(n) for n in buffer.shape])
        parts = [shape, f'"{buffer.dtype}"']
        if buffer.strides is not None:
            parts.append(f"strides={tuple_text([self.expr(n) for n in buffer.strides])}")
        if buffer.scope != "global":
            parts.append(f"scope={string_text(buffer.scope)}")
        if buffer.align != DEFAULT_ALIGN:
            parts.append(f"align={buffer.align}")
        if buffer.separators:
            parts.append(f"separators={tuple_text([str(s) for s in buffer.separators])}")
        name = self.names.define(buffer, buffer.name)
        self.lines.add(f"{name} = {function}({', '.join(parts)})")

    def _block(self, s: Block) -> None:
        attrs = f", attrs={attrs_text(s.attrs, self.symbols)}" if s.attrs else ""
        outer = tuple(self.visible)
        with (
            self.names.scope(),
            self.lines.block(f"with T.block({string_text(s.name)}{attrs}):"),
        ):
            self._axes(s.axes)
            if s.predicate is not None:
                self.lines.add(f"T.where({self.expr(s.predicate)})")
            self.visible.extend(axis.var for axis in s.axes)
            for buffer in s.allocations:
                self._allocation(buffer, "T.block_alloc")
            self._regions(s, outer)
            if s.init is not None:
                self._nested("with T.init():", s.init)
            self.suite(s.body)
        del self.visible[len(outer) :]

    def _axes(self, axes: tuple[BlockAxis, ...]) -> None:
        if axes and all(
            isinstance(a.value, PrimVar) and self.loops.get(a.value) == a.domain for a in axes
        ):
            values = ", ".join(self.expr(a.value) for a in axes)
            names = ", ".join(self.names.define(a.var, a.var.name) for a in axes)
            kinds = "".join(a.kind for a in axes)
            self.lines.add(f'{names} = T.axis.remap("{kinds}", {values})')
            return
        sources = []
        for axis in axes:
            begin, end = self.interval(axis.domain)
            domain = begin if end is None else f"({begin}, {end})"
            sources.append(f"{_AXIS[axis.kind]}({domain}, {self.expr(axis.value)})")
        for axis, source in zip(axes, sources, strict=True):
            self.lines.add(f"{self.names.define(axis.var, axis.var.name)} = {source}")

    def _regions(self, s: Block, visible: tuple[PrimVar, ...]) -> None:
        """``T.reads`` and ``T.writes`` where the parser would not infer the same."""
        axes = (*(axis.var for axis in s.axes), *visible)
        reads, writes = block_regions(s.body, s.init, axes)
        own = set(s.allocations)
        for name, given, found in (("reads", s.reads, reads), ("writes", s.writes, writes)):
            if given != tuple(r for r in found if r.buffer not in own):
                self.lines.add(f"T.{name}({', '.join(self._region(r) for r in given)})")

    def _region(self, r: Region) -> str:
        parts = [self._slice(each) for each in r.ranges]
        return f"{self.names.of(r.buffer, r.buffer.name)}[{', '.join(parts) or '()'}]"

    def _slice(self, r: Range) -> str:
        if r.extent == _ONE:
            return self.expr(r.begin)
        return f"{self.expr(r.begin)}:{self.end(r)}"


def _grid(s: For) -> list[For]:
    """The serial loops from here inwards that one ``T.grid`` can say."""
    nest = [s]
    if not _plain(s):
        return nest
    bound: set[PrimExpr] = {s.var}
    body = s.body
    while isinstance(body, For) and _plain(body) and not bound & set(walk_prim(body.extent)):
        nest.append(body)
        bound.add(body.var)
        body = body.body
    return nest


def _plain(s: For) -> bool:
    return s.kind == "serial" and s.begin == _ZERO and not s.attrs and s.thread is None
