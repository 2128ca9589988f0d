"""The verifier of prim funcs: scoping, arity of accesses, dtypes of stores, block signatures."""

from __future__ import annotations

from itertools import pairwise

from unity.errors import UnityError
from unity.ir.foreign import foreign_symbol, is_address
from unity.ir.marks import SCOPES
from unity.ir.prim_expr import Binary, Compare, Imm, Intrinsic, Load, PrimExpr, PrimVar, SizeVar
from unity.ir.signature import size_params
from unity.ir.stmt import (
    Allocate,
    Block,
    Buffer,
    Evaluate,
    For,
    Let,
    PrimFunc,
    Region,
    Stmt,
    Store,
)
from unity.ir.visiting.visit_prim import prim_children
from unity.ir.visiting.visit_stmt import map_stmt, stmt_children

_INDEXED = "indexed with {got} indices, its rank is {rank}"


def verify_prim_func(name: str, func: PrimFunc) -> None:
    """Check a prim func.

    Raises:
        UnityError: The first thing found wrong, naming the function and the place.
    """
    checker = _Checker(name, set(size_params(func)))
    for param in func.params:
        if isinstance(param, Buffer):
            if param.separators:
                raise checker.error(f"the parameter {param.name} has separators: it is compact")
            checker.known_scope(param)
            checker.buffers.add(param)
        else:
            checker.scope.add(param)
    checker.stmt(func.body)


class _Checker:
    """Carries the variables and buffers in scope."""

    def __init__(self, name: str, sizes: set[SizeVar]) -> None:
        self.name = name
        self.scope: set[PrimVar | SizeVar] = {*sizes}
        self.buffers: set[Buffer] = set()
        self.block: str | None = None

    def error(self, message: str, hint: str | None = None) -> UnityError:
        place = self.name if self.block is None else f"{self.name}, block {self.block}"
        return UnityError(f"{place}: {message}", hint=hint)

    def known_scope(self, buffer: Buffer) -> None:
        if buffer.scope not in SCOPES and "." not in buffer.scope:
            raise self.error(
                f"the buffer {buffer.name} has the scope {buffer.scope!r}: it is one of "
                f"{', '.join(SCOPES)}, or a backend's own, with a dot"
            )
        if buffer.align < 1 or buffer.align & (buffer.align - 1):
            raise self.error(
                f"the buffer {buffer.name} is aligned to {buffer.align} bytes: it is a power of 2"
            )

        for extent in buffer.shape:
            if isinstance(extent, Imm) and extent.value < 0:
                raise self.error(f"the buffer {buffer.name} has the negative extent {extent.value}")
        rank = len(buffer.shape)
        if buffer.strides is not None and len(buffer.strides) != rank:
            raise self.error(
                f"the buffer {buffer.name} has {len(buffer.strides)} strides, its rank is {rank}"
            )
        bounds = (0, *buffer.separators, rank)
        if buffer.separators and any(a >= b for a, b in pairwise(bounds)):
            raise self.error(
                f"the separators {list(buffer.separators)} of the buffer {buffer.name} do not "
                f"ascend between 1 and {rank - 1}"
            )

    def stmt(self, s: Stmt) -> None:
        match s:
            case Block():
                self._block(s)
            case For():
                self.expr(s.begin)
                self.expr(s.extent)
                self._within([s.var], [], s.body)
            case Let():
                self._value(s.value)
                self._within([s.var], [], s.body)
            case Allocate():
                for extent in s.buffer.shape:
                    self.expr(extent)
                self._within([], [s.buffer], s.body)
            case _:
                self._leaf(s)
                for child in stmt_children(s):
                    self.stmt(child)

    def _leaf(self, s: Stmt) -> None:
        if isinstance(s, Store):
            self._access(s.buffer, s.indices)
            stored, held = s.value.dtype.element, s.buffer.dtype
            if stored != held:
                raise self.error(f"stores {stored} into {s.buffer.name}, which holds {held}")

        whole = s.value if isinstance(s, Store | Evaluate) else None

        def note(e: PrimExpr) -> PrimExpr:
            if e is whole:
                self._value(e)
            else:
                self.expr(e)
            return e

        map_stmt(s, lambda x: x, note)

    def _value(self, e: PrimExpr) -> None:
        """What a statement is the value of: here a foreign function may be called."""
        symbol = foreign_symbol(e)
        if symbol is None:
            self.expr(e)
            return
        if any(x.dtype.lanes > 1 for x in (e, *prim_children(e))):
            raise self.error(f"calls {symbol!r} with vectors: a C function takes numbers")
        for child in prim_children(e):
            for x in prim_children(child) if is_address(child) else (child,):
                self.expr(x)

    def _block(self, s: Block) -> None:
        for axis in s.axes:
            for e in (axis.value, axis.domain.begin, axis.domain.extent):
                self.expr(e)
        if s.predicate is not None:
            self.expr(s.predicate)
        outer, self.block = self.block, s.name
        if s.init is not None and not any(axis.kind == "R" for axis in s.axes):
            raise self.error("has an init but no reduce axis")
        axes = [axis.var for axis in s.axes]
        self._enter(axes, list(s.allocations))
        for region in (*s.reads, *s.writes):
            self._region(region)
        for child in stmt_children(s):
            self.stmt(child)
        self._leave(axes, list(s.allocations))
        self.block = outer

    def _region(self, region: Region) -> None:
        if region.buffer not in self.buffers:
            raise self.error(f"the region's buffer {region.buffer.name} is not in scope")
        got, rank = len(region.ranges), len(region.buffer.shape)
        if got != rank:
            raise self.error(
                f"the region of {region.buffer.name} is " + _INDEXED.format(got=got, rank=rank)
            )
        for r in region.ranges:
            self.expr(r.begin)
            self.expr(r.extent)

    def _within(self, vars: list[PrimVar], buffers: list[Buffer], body: Stmt) -> None:
        self._enter(vars, buffers)
        self.stmt(body)
        self._leave(vars, buffers)

    def _enter(self, vars: list[PrimVar], buffers: list[Buffer]) -> None:
        for v in vars:
            if v in self.scope:
                raise self.error(f"the variable {v.name} is bound twice")
            self.scope.add(v)
        for b in buffers:
            if b in self.buffers:
                raise self.error(f"the buffer {b.name} is allocated twice")
            self.known_scope(b)
            self.buffers.add(b)

    def _leave(self, vars: list[PrimVar], buffers: list[Buffer]) -> None:
        self.scope.difference_update(vars)
        self.buffers.difference_update(buffers)

    def _access(self, buffer: Buffer, indices: tuple[PrimExpr, ...]) -> None:
        if buffer not in self.buffers:
            raise self.error(f"the buffer {buffer.name} is not in scope")
        got, rank = len(indices), len(buffer.shape)
        if got != rank:
            raise self.error(f"{buffer.name} is " + _INDEXED.format(got=got, rank=rank))

    def expr(self, e: PrimExpr) -> None:
        match e:
            case PrimVar() | SizeVar():
                if e not in self.scope:
                    raise self.error(f"the variable {e.name} is not in scope")
            case Load():
                self._access(e.buffer, e.indices)
            case Intrinsic() if (symbol := foreign_symbol(e)) is not None:
                raise self.error(
                    f"calls {symbol!r} within an expression",
                    hint="call it by a statement of its own: v = T.call_extern(...)",
                )
            case Intrinsic() if is_address(e):
                raise self.error(
                    "takes an address within an expression",
                    hint="T.address_of(x[i]) is by itself an argument of T.call_extern",
                )
            case Binary() | Compare():
                if e.a.dtype != e.b.dtype:
                    raise self.error(f"{e.op} of {e.a.dtype} and {e.b.dtype}")
            case _:
                pass
        for child in prim_children(e):
            self.expr(child)
