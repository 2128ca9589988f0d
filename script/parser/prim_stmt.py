"""Statements of prim funcs from syntax: loops, blocks, stores, lets, allocations."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from unity.arguments import Signature
from unity.arith.analyzer import Analyzer
from unity.errors import Span, UnityError
from unity.ir.attrs import NO_ATTRS
from unity.ir.foreign import CALL_EXTERN, is_address
from unity.ir.leaves import leaves
from unity.ir.prim_expr import Cast, Intrinsic, Load, PrimExpr, PrimVar
from unity.ir.stmt import (
    Allocate,
    Assert,
    Buffer,
    Evaluate,
    IfThen,
    Let,
    Param,
    PrimFunc,
    Seq,
    Stmt,
    Store,
)
from unity.ir.visit import rewrite_prim

from ..inlined import Given, inlined
from ..pointed import Pointer
from .evaluate import ONE_TARGET, shown
from .leaving.loops import jumps, word_of
from .prim_block import BlockHead, is_axis, parse_axes, parse_regions
from .prim_loops import LoopParser, names_of
from .promotion import converts

_SUITES = ("T.block", "T.init", "T.suite", "T.seq")


class StmtParser(LoopParser):
    """Parses suites."""

    def suite(self, nodes: Sequence[ast.stmt], head: BlockHead | None = None) -> Stmt:
        """A suite as one statement; `head` collects the declarations of a block's own suite."""
        parts = self.statements(nodes, head)
        return parts[0] if len(parts) == 1 else Seq(tuple(parts))

    def statements(self, nodes: Sequence[ast.stmt], head: BlockHead | None = None) -> list[Stmt]:
        """The statements of a suite; a let or an allocation holds those after it."""
        parts: list[Stmt] = []
        for k, node in enumerate(nodes):
            if out := jumps([node]):
                self._refuse_within_block(out, head)
                return [*parts, *self.leaving(node, nodes[k + 1 :])]
            target, value = self._sides(node)
            if target is None or value is None:
                parts += self._statement(node, head)
            elif isinstance(target, ast.Subscript):
                parts.append(self._store(target, value, node))
            else:
                opened = self._declaration(node, target, value, head)
                if opened is not None:
                    return [*parts, opened(self.suite(nodes[k + 1 :], head))]
        return parts

    def _refuse_within_block(
        self, out: Sequence[ast.Break | ast.Continue], head: BlockHead | None
    ) -> None:
        """Refuse an exit from a block's own suite: what a block does is done as a whole."""
        if out and head is not None:
            raise self.source.error(
                out[0],
                f"{word_of(out[0])} leaves a block in its midst",
                "write the loop into the block, or the block under an if within the loop",
            )

    def statement(self, node: ast.stmt) -> list[Stmt]:
        """A statement that declares nothing."""
        return self._statement(node, None)

    def _statement(self, node: ast.stmt, head: BlockHead | None) -> list[Stmt]:
        span = self.source.span(node)
        match node:
            case ast.For():
                return [self.for_statement(node)]
            case ast.With():
                return self._with(node, head)
            case ast.AugAssign():
                return [self._augmented(node)]
            case ast.If():
                condition = self.condition(node.test)
                orelse = self.scoped(node.orelse) if node.orelse else None
                return [IfThen(condition, self.scoped(node.body), orelse, span)]
            case ast.While():
                return [self.while_statement(node)]
            case ast.Assert():
                message = "" if node.msg is None else self.text(node.msg)
                return [Assert(self.condition(node.test), message, span)]
            case ast.Expr(ast.Call() as call):
                return self._call_statement(node, call, head)
            case ast.Pass() | ast.Expr(ast.Constant()):
                return []
            case ast.Expr():
                raise self.source.error(node, "the value is not used", "store it in a buffer")
            case ast.Return():
                raise self.source.error(
                    node,
                    "a prim_func returns nothing",
                    "store into an output buffer: c[i, j] = ...",
                )
            case _:
                raise self.unsupported(node)

    def scoped(self, nodes: Sequence[ast.stmt]) -> Stmt:
        """A suite whose names end with it."""
        self.scope.push()
        stmt = self.suite(nodes)
        self.scope.pop()
        return stmt

    def _sides(self, node: ast.stmt) -> tuple[ast.expr, ast.expr] | tuple[None, None]:
        """An assignment's target and value."""
        if isinstance(node, ast.Assign):
            if len(node.targets) != 1:
                raise self.source.error(node, "assign to one target at a time", ONE_TARGET)
            return node.targets[0], node.value
        if isinstance(node, ast.AnnAssign):
            if node.value is None:
                raise self.source.error(node, "a declaration needs a value")
            return node.target, node.value
        return None, None

    def _declaration(
        self, node: ast.stmt, target: ast.expr, value: ast.expr, head: BlockHead | None
    ) -> Callable[[Stmt], Stmt] | None:
        """What a declaration opens over its suite's rest; None for a part of a block's head."""
        names = names_of(target)
        if names is None:
            raise self.source.error(
                target, f"can't assign to {ast.unparse(target)!r}", "assign to an element: c[i]"
            )
        path = self.marker(value)
        if path is not None and isinstance(value, ast.Call):
            if is_axis(path):
                self._axes(value, path, names, head)
                return None
            if path == "T.block_alloc":
                self._need_head(value, head).allocations.append(self._alloc(value, names))
                return None
            if path == "T.alloc":
                buffer = self._alloc(value, names)
                span = self.source.span(node)
                return lambda rest: Allocate(buffer, rest, span)
        return self._let(node, names, value, path)

    def _let(
        self,
        node: ast.stmt,
        names: list[ast.Name],
        value: ast.expr,
        path: str | None,
    ) -> Callable[[Stmt], Stmt]:
        if len(names) != 1:
            raise self.source.error(node, "several names need T.axis.remap on the right")
        like = None
        if path == "T.let" and isinstance(value, ast.Call):
            given = self.given(value, self.signature(value)).named
            like = self.dtype(given["dtype"]) if "dtype" in given else None
            value = given["value"]
        if isinstance(found := self.value(value), Buffer):
            raise self.source.error(value, f"{found.name} is a buffer; a name is given to scalars")
        expr = self.expr(value, like)
        if like is not None and expr.dtype != like:
            raise self.source.error(
                value, f"the value is {expr.dtype}, expected {like}", f'T.cast("{like}", ...)'
            )
        var = PrimVar(names[0].id, expr.dtype, self.source.span(names[0]))
        self.define(names[0], var)
        self.visible.append(var)
        span = self.source.span(node)
        return lambda rest: Let(var, expr, rest, span)

    def _axes(
        self, node: ast.Call, path: str, names: list[ast.Name], head: BlockHead | None
    ) -> None:
        block = self._need_head(node, head)
        for name, axis in zip(names, parse_axes(self, node, path, names, self.loops), strict=True):
            self.define(name, axis.var, "axis")
            self.visible.append(axis.var)
            self.domains[axis.var] = axis.domain
            block.axes.append(axis)

    def _need_head(self, node: ast.Call, head: BlockHead | None) -> BlockHead:
        if head is None:
            raise self.source.error(
                node,
                f"{ast.unparse(node.func)} belongs directly in a block",
                'write it first inside with T.block("name"):',
            )
        return head

    def _alloc(self, node: ast.Call, names: list[ast.Name]) -> Buffer:
        given = self.given(node, self.signature(node)).named
        shape = given["shape"]
        if not isinstance(shape, ast.Tuple | ast.List):
            raise self.source.error(shape, "the shape must be a tuple", "write (n, 4), or (n,)")
        if len(names) != 1:
            raise self.source.error(node, "an allocation makes one buffer")
        buffer = Buffer(
            names[0].id,
            tuple(self.index(extent) for extent in shape.elts),
            self.dtype(given["dtype"]),
            span=self.source.span(names[0]),
        )
        if "scope" in given:
            buffer = replace(buffer, scope=self.text(given["scope"]))
        if "align" in given:
            buffer = replace(buffer, align=self.integer(given["align"]))
        if "strides" in given:
            strides = tuple(self.index(v) for v in self._tuple(given["strides"]))
            buffer = replace(buffer, strides=strides)
        if "separators" in given:
            separators = tuple(self.integer(v) for v in self._tuple(given["separators"]))
            buffer = replace(buffer, separators=separators)
        self.define(names[0], buffer)
        return buffer

    def _tuple(self, node: ast.expr) -> list[ast.expr]:
        """The parts of what is written as a tuple."""
        if not isinstance(node, ast.Tuple | ast.List):
            raise self.source.error(node, "expected a tuple", "write (4, 1), or (4,)")
        return node.elts

    def _store(self, target: ast.Subscript, value: ast.expr, node: ast.stmt) -> Store:
        buffer = self._target(target)
        indices = self.indices(target.slice, buffer)
        return Store(
            buffer, indices, self._stored(buffer, indices, value), None, self.source.span(node)
        )

    def _target(self, target: ast.Subscript) -> Buffer:
        found = self.value(target.value)
        if not isinstance(found, Buffer):
            raise self.source.error(
                target.value,
                f"can't store into {ast.unparse(target.value)!r}: it is "
                f"{shown(found)}, expected a buffer",
                "declare it as a parameter f32[Buffer, ...] or with T.alloc",
            )
        return found

    def _stored(self, buffer: Buffer, indices: tuple[PrimExpr, ...], value: ast.expr) -> PrimExpr:
        lanes = max((i.dtype.lanes for i in indices), default=1)
        expr = self.expr(value, buffer.dtype.with_lanes(lanes))
        stored = buffer.dtype.with_lanes(lanes)
        if self.promotes and expr.dtype != stored and converts(expr.dtype, stored):
            return Cast(stored, expr)
        if expr.dtype.element != buffer.dtype:
            hint = f'convert it: T.cast("{buffer.dtype}", ...)'
            if isinstance(expr, Intrinsic) and expr.name == CALL_EXTERN:
                hint = f'say what the function returns: T.call_extern(..., dtype="{buffer.dtype}")'
            raise self.source.error(
                value, f"the value is {expr.dtype}, {buffer.name} holds {buffer.dtype}", hint
            )
        if expr.dtype.lanes not in (1, lanes):
            raise self.source.error(
                value, f"the value has {expr.dtype.lanes} lanes, the index of {buffer.name} {lanes}"
            )
        return expr

    def _augmented(self, node: ast.AugAssign) -> Store:
        if not isinstance(node.target, ast.Subscript):
            raise self.source.error(
                node,
                f"can't change {ast.unparse(node.target)!r}: names stand for one value",
                "keep changing values in a buffer: c[i] += ...",
            )
        buffer = self._target(node.target)
        indices = self.indices(node.target.slice, buffer)
        binary = ast.BinOp(node.target, node.op, node.value)
        ast.copy_location(binary, node)
        value = self.combine(binary, Load(buffer, indices), self.value(node.value))
        return Store(buffer, indices, self.typed(binary, value), None, self.source.span(node))

    def _call_statement(self, node: ast.Expr, call: ast.Call, head: BlockHead | None) -> list[Stmt]:
        span, path = self.source.span(node), self.marker(call)
        match path:
            case "T.where":
                block = self._need_head(call, head)
                given = self.condition(self._given(call)["condition"])
                # a predicate is decided outside the block: over loop variables
                values = {axis.var: axis.value for axis in block.axes}
                block.predicate = rewrite_prim(
                    given, lambda e: values.get(e) if isinstance(e, PrimVar) else None
                )
            case "T.reads":
                self._need_head(call, head).reads = parse_regions(self, call)
            case "T.writes":
                self._need_head(call, head).writes = parse_regions(self, call)
            case "T.store":
                return [self._predicated(call, span)]
            case "T.evaluate":
                return [Evaluate(self.expr(self._given(call)["value"]), span)]
            case "T.assert_":
                said = self._given(call)
                message = self.text(said["message"])
                return [Assert(self.condition(said["condition"]), message, span)]
            case None:
                kernel = self.kernel(call)
                if kernel is not None:
                    return [self._kernel_call(call, *kernel)]
                self.value(call)
                raise self.source.error(call, "the value of this call is not used")
            case _:
                return [Evaluate(self.expr(call), span)]
        return []

    def _kernel_call(self, call: ast.Call, name: str, kernel: PrimFunc) -> Stmt:
        """Another kernel's body over what it is given."""
        taken = ", ".join(p.name for p in kernel.params)
        named = self.given(call, Signature.parse(f"{name}({taken})")).named
        given = [self._argument(named[p.name], p) for p in kernel.params]
        try:
            return inlined(name, kernel, given, self.visible, self._known_of(given))
        except UnityError as error:
            raise self.source.error(call, error.message, error.hint) from None

    def _argument(self, node: ast.expr, param: Param) -> Given:
        found = self.value(node)
        if isinstance(found, Buffer):
            return found
        if isinstance(param, Buffer) and isinstance(found, Intrinsic) and is_address(found):
            element = found.args[0]
            assert isinstance(element, Load)
            return Pointer(element.buffer, element.indices)
        return self.expr(node, param.dtype)

    def _known_of(self, given: Sequence[Given]) -> Analyzer:
        """What is known of the variables by which pointers are told."""
        known = Analyzer()
        for arg in given:
            for index in arg.at if isinstance(arg, Pointer) else ():
                for var in leaves(index).variables:
                    if var in self.domains:
                        domain = self.domains[var]
                        known = known.with_extent(var, domain.begin, domain.extent)
        return known

    def _given(self, call: ast.Call) -> Mapping[str, ast.expr]:
        """What a statement of the language is given, by name."""
        return self.given(call, self.signature(call)).named

    def _predicated(self, call: ast.Call, span: Span | None) -> Store:
        given = self._given(call)
        buffer = self.buffer(given["buffer"])
        indices = self.indices(given["index"], buffer)
        stored = self._stored(buffer, indices, given["value"])
        lanes = max((i.dtype.lanes for i in indices), default=1)
        return Store(buffer, indices, stored, self.mask(given["predicate"], lanes), span)

    def _with(self, node: ast.With, head: BlockHead | None) -> list[Stmt]:
        call = node.items[0].context_expr
        path = self.marker(call)
        if len(node.items) != 1 or not isinstance(call, ast.Call):
            raise self.source.error(node, "with takes one of T.block, T.init, T.suite, T.seq")
        given = self._given(call) if path in _SUITES else {}
        self.scope.push()
        try:
            match path:
                case "T.block":
                    return [self._block(node, call, given)]
                case "T.init":
                    block = self._need_head(call, head)
                    if block.init is not None:
                        raise self.source.error(call, "the block has two inits")
                    self._refuse_within_block(jumps(node.body), block)
                    block.init = self.suite(node.body)
                    return []
                case "T.suite":
                    return [self.suite(node.body)]
                case "T.seq":
                    return [Seq(tuple(self.statements(node.body)))]
                case _:
                    raise self.source.error(
                        call,
                        f"with {ast.unparse(call)!r} has no meaning in a prim_func",
                        "with takes one of T.block, T.init, T.suite, T.seq",
                    )
        finally:
            self.scope.pop()

    def _block(self, node: ast.With, call: ast.Call, given: Mapping[str, ast.expr]) -> Stmt:
        name = self.text(given["name"]) if "name" in given else ""
        named = self.attrs(given["attrs"]) if "attrs" in given else NO_ATTRS
        head = BlockHead(name, named, self.source.span(node))
        outer = len(self.visible)
        body = self.suite(node.body, head)
        block = head.finish(body, tuple(self.visible[:outer]))
        del self.visible[outer:]
        if block.init is not None and not any(axis.kind == "R" for axis in block.axes):
            raise self.source.error(
                call,
                f"the block {name!r} has an init but no reduce axis",
                "make an axis of kind R: T.axis.reduce(extent, k)",
            )
        return block
