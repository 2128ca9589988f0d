"""Loops of prim funcs from syntax, and what leaves them."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from unity.arguments import Signature
from unity.ir.attrs import NO_ATTRS
from unity.ir.marks import THREADS
from unity.ir.prim_expr import PrimExpr, PrimVar, imm
from unity.ir.stmt import For, ForKind, Range, Stmt

from .. import prim_names
from ..marker import Marker
from .leaving.loops import Leavable, choice, is_choice, jumps, word_of
from .prim_calls import PrimCalls
from .scope import MISSING, Scope
from .source import Source

_LOOPS: Mapping[str, ForKind] = {
    "T.serial": "serial",
    "T.parallel": "parallel",
    "T.vectorized": "vectorized",
    "T.unroll": "unrolled",
    "T.thread": "thread",
}
_LOOPS_HINT = "loop over T.grid(n, m), T.serial(n), T.parallel(n), T.vectorized(8), T.unroll(4)"


class LoopParser(PrimCalls):
    """Parses loops; carries those around, the blocks and the names in scope."""

    def __init__(self, source: Source, scope: Scope, promotes: bool = False) -> None:
        super().__init__(source, scope, promotes)
        self.loops: dict[PrimVar, Range] = {}
        self.domains: dict[PrimVar, Range] = {}  # of loops and axes
        self.visible: list[PrimVar] = []  # what the regions of an inner block may be over
        self.left: list[Leavable] = []  # the loops around that break and continue leave

    @abstractmethod
    def suite(self, nodes: Sequence[ast.stmt]) -> Stmt:
        """A suite as one statement."""

    @abstractmethod
    def scoped(self, nodes: Sequence[ast.stmt]) -> Stmt:
        """A suite whose names end with it."""

    @abstractmethod
    def statement(self, node: ast.stmt) -> list[Stmt]:
        """A statement that declares nothing."""

    def define(self, node: ast.Name, value: object, what: str = "name") -> None:
        """Bind a name, which must be new in the program."""
        if self.scope.local(node.id) is not MISSING:
            raise self.source.error(
                node,
                f"the {what} {node.id!r} is defined twice",
                "names in a prim_func stand for one value; keep changing values in a buffer",
            )
        self.scope.bind(node.id, value)

    def marker(self, node: ast.expr) -> str | None:
        """The path of a call's function if it is a name of the language."""
        if not isinstance(node, ast.Call):
            return None
        if not isinstance(node.func, ast.Name | ast.Attribute):
            return None
        found = self.value(node.func)
        return found.path if isinstance(found, Marker) else None

    def for_statement(self, node: ast.For) -> Stmt:
        """A loop over what the language has for it."""
        self.source.refuse_else(node)
        call, names = node.iter, names_of(node.target)
        path = self.marker(call)
        if not isinstance(call, ast.Call) or names is None:
            raise self.source.error(call, f"can't loop over {ast.unparse(call)!r}", _LOOPS_HINT)
        if path == "T.grid":
            extents = [Range(imm(0), e) for e in self._grid(call)]
            if len(extents) != len(names):
                raise self.source.error(
                    node.target,
                    f"T.grid gives {len(extents)} loop variables, got {len(names)} names",
                )
            return self._nest(node, names, extents)
        is_range = isinstance(call.func, ast.Name) and self.value(call.func) is range
        if path not in _LOOPS and not is_range:
            raise self.source.error(call, f"can't loop over {ast.unparse(call)!r}", _LOOPS_HINT)
        if len(names) != 1:
            raise self.source.error(node.target, f"one loop variable expected, got {len(names)}")
        return self._single(node, names[0], call, _LOOPS.get(path or "", "serial"))

    def _grid(self, call: ast.Call) -> list[PrimExpr]:
        extents: list[PrimExpr] = []
        given = (
            self.given(call, self.signature(call)).rest if self.marker(call) else tuple(call.args)
        )
        for arg in given:
            if isinstance(arg, ast.Starred):
                extents += [self.typed(arg, v) for v in self.items([arg])]
            else:
                extents.append(self.index(arg))
        return extents

    def _nest(self, node: ast.For, names: list[ast.Name], extents: list[Range]) -> Stmt:
        span = self.source.span(node)
        with self._leavable(node, ("continue",), "T.grid is several loops") as loop:
            loops = [self._loop_var(n, r) for n, r in zip(names, extents, strict=True)]
            body = loop.iteration(self.suite(node.body))
        for var, extent in zip(reversed(loops), reversed(extents), strict=True):
            body = For(var, extent.begin, extent.extent, body, span=span)
        return body

    def _loop_var(self, name: ast.Name, extent: Range) -> PrimVar:
        var = PrimVar(name.id, span=self.source.span(name))
        self.loops[var] = self.domains[var] = extent
        self.define(name, var, "loop variable")
        return var

    def _single(self, node: ast.For, name: ast.Name, call: ast.Call, kind: ForKind) -> Stmt:
        named = self.given(call, self._loop_signature(call)).named
        begin, end, attrs = named["begin"], named.get("end"), named.get("attrs")
        thread: str | None = None
        if kind == "thread":
            axis = named.get("axis", end)
            if axis is None:
                raise self.source.error(call, "T.thread needs 'axis'", 'T.thread(n, "threadIdx.x")')
            end, thread = end if "axis" in named else None, self.text(axis)
            if thread not in THREADS:
                raise self.source.error(
                    axis, f"there is no axis {thread!r} of threads", f"one of {', '.join(THREADS)}"
                )
        given = Range(imm(0), self.index(begin)) if end is None else self.interval(begin, end)
        marks = NO_ATTRS if attrs is None else self.attrs(attrs)
        span = self.source.span(node)
        plain = kind == "serial" and not marks
        why = "its iterations don't follow one another, or it has attributes"
        with self._leavable(node, ("break", "continue") if plain else ("continue",), why) as loop:
            var = self._loop_var(name, given)
            body = self.suite(node.body)
        if loop.on is not None:
            return loop.counted(var, given, body, span)
        body = loop.iteration(body)
        return For(var, given.begin, given.extent, body, kind, thread, marks, span)

    def while_statement(self, node: ast.While) -> Stmt:
        """A loop as long as a condition holds."""
        self.source.refuse_else(node)
        condition = self.condition(node.test)
        with self._leavable(node, ("break", "continue"), "") as loop:
            body = self.suite(node.body)
        return loop.while_loop(condition, body, self.source.span(node))

    @contextmanager
    def _leavable(
        self, node: ast.For | ast.While, ways: Sequence[str], why: str
    ) -> Iterator[Leavable]:
        """While the body of a loop is parsed: its scope, and what exits from it do.

        Raises:
            UnityError: It is left in another way than those.
        """
        for jump in jumps(node.body):
            if (word := word_of(jump)) not in ways:
                raise self.source.error(
                    jump,
                    f"{word} can't leave this loop: {why}",
                    "T.serial, range and while can be left",
                )
        self.left.append(Leavable.of(node.body))
        self.scope.push()
        yield self.left[-1]
        self.scope.pop()
        self.left.pop()

    def _loop_signature(self, call: ast.Call) -> Signature:
        """What a loop takes; ``range`` is ``T.serial``."""
        if self.marker(call) is not None:
            return self.signature(call)
        serial = prim_names.serial
        assert isinstance(serial, Marker)
        assert serial.signature is not None
        return replace(serial.signature, name="range", params=serial.signature.params[:2])

    def leaving(self, node: ast.stmt, rest: Sequence[ast.stmt]) -> list[Stmt]:
        """A statement that a break or continue leaves, and those behind it."""
        span = self.source.span(node)
        if isinstance(node, ast.Break | ast.Continue):
            if not self.left:
                raise self.source.error(node, f"{word_of(node)} stands in no loop")
            if rest:
                raise self.source.error(rest[0], "nothing gets here: the loop is left above")
            return self.left[-1].left_by(node, span)
        if isinstance(node, ast.If) and is_choice(node):
            condition = self.condition(node.test)
            return [choice(condition, node, rest, self.scoped, self.suite, span)]
        parts = self.statement(node)
        return [*parts, self.left[-1].rest(self.suite(rest))] if rest else parts


def names_of(target: ast.expr) -> list[ast.Name] | None:
    """The names that a target is made of; None if there is anything else."""
    parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    names = [p for p in parts if isinstance(p, ast.Name)]
    return names if len(names) == len(parts) else None
