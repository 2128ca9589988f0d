"""FlattenBuffers: every access goes through one index into flat memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

from unity.arith import Analyzer, simplify
from unity.ir.flat_index import flat_index
from unity.ir.leaves import leaves
from unity.ir.module import IRModule
from unity.ir.prim_expr import Binary, Imm, Load, PrimExpr, imm
from unity.ir.regions import add, multiply
from unity.ir.signature import size_params
from unity.ir.stmt import Allocate, Buffer, For, PrimFunc, Stmt, Store
from unity.ir.visit import map_prim, map_stmt, substitute_stmt

from ..passes import Context, Pass, Sight
from .functions import map_prim_funcs


@dataclass(frozen=True, slots=True)
class FlattenBuffers(Pass):
    """Buffers of any rank become buffers of rank 1; strides go into the indices.

    The order of sizes in the signature stays, so callers need not know.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... n = dim("n")
    ...
    ... @script.prim_func
    ... def main(a: f32[Buffer, n, 8], c: f32[Buffer, n, 8]) -> None:
    ...     for i, j in T.grid(n, 8):
    ...         c[i, j] = a[i, 7 - j]
    ... ''')
    >>> print(print_module(FlattenBuffers()(before, Context())), end="")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.prim_func
    def main(a: f32[Buffer, n * 8], c: f32[Buffer, n * 8]) -> None:
        for i, j in T.grid(n, 8):
            c[i * 8 + j] = a[i * 8 + (7 - j)]

    What is accessed has an element along each axis: knowing that, indices are simplified that
    divide by extents which are sums of sizes.

    Attributes:
        groups: Whether axes that separators part stay apart, one index for each group: for memory
            that is not flat.
    """

    sees: ClassVar[Sight] = "kernel"

    groups: bool = False

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each prim func by itself."""
        return map_prim_funcs(module, lambda f: flatten(f, groups=self.groups))


def flatten(func: PrimFunc, *, groups: bool = False) -> PrimFunc:
    """The prim func over flat buffers; itself if they are flat."""
    flattener = _Flattener(groups=groups)
    params = tuple(flattener.buffer(p) if isinstance(p, Buffer) else p for p in func.params)
    body = flattener.stmt(func.body)
    if body is func.body and params == func.params:
        return func
    result = replace(func, params=params, body=body)
    return result if size_params(result) == size_params(func) else _keep_sizes(result, func)


def _keep_sizes(result: PrimFunc, func: PrimFunc) -> PrimFunc:
    """With the first buffer's shape naming every size in the old order (times zero)."""
    first = result.buffers[0]
    extent = first.shape[0]
    head: PrimExpr = imm(0)
    for size in size_params(func):
        head = Binary("add", head, Binary("mul", size, imm(0)))
    named = replace(first, shape=(Binary("add", head, extent),))
    params = tuple(named if p is first else p for p in result.params)
    return replace(result, params=params, body=substitute_stmt(result.body, {}, {first: named}))


class _Flattener:
    """Carries the flat buffer of each buffer, and what is known within the loops around."""

    def __init__(self, *, groups: bool) -> None:
        self.groups = groups
        self.known = Analyzer()
        self._flat: dict[Buffer, Buffer] = {}

    def buffer(self, b: Buffer) -> Buffer:
        """The flat form of a buffer."""
        flat = self._flat.get(b)
        if flat is None:
            already = len(b.shape) == 1 and b.strides is None
            shape = tuple(_extent(part) for part, _ in self._groups(b, b.shape))
            flat = b if already else replace(b, shape=shape, strides=None, separators=())
            self._flat[b] = flat
        return flat

    def stmt(self, s: Stmt) -> Stmt:
        match s:
            case Store():
                indices = tuple(self.expr(i) for i in s.indices)
                predicate = None if s.predicate is None else self.expr(s.predicate)
                flat, value = self.buffer(s.buffer), self.expr(s.value)
                place = self.place(s.buffer, indices)
                same = (
                    flat is s.buffer
                    and place[0] is s.indices[0]
                    and value is s.value
                    and predicate is s.predicate
                )
                return s if same else Store(flat, place, value, predicate, s.span)
            case Allocate():
                flat, body = self.buffer(s.buffer), self.stmt(s.body)
                same = flat is s.buffer and body is s.body
                return s if same else Allocate(flat, body, s.span)
            case For():
                outer = self.known
                self.known = outer.with_extent(s.var, s.begin, s.extent)
                found = map_stmt(s, self.stmt, self.expr)
                self.known = outer
                return found
            case _:
                return map_stmt(s, self.stmt, self.expr)

    def expr(self, e: PrimExpr) -> PrimExpr:
        if not isinstance(e, Load):
            return map_prim(e, self.expr) if leaves(e).loads else e
        indices = tuple(self.expr(i) for i in e.indices)
        predicate = None if e.predicate is None else self.expr(e.predicate)
        flat, place = self.buffer(e.buffer), self.place(e.buffer, indices)
        if flat is e.buffer and place[0] is e.indices[0] and predicate is e.predicate:
            return e
        return Load(flat, place, predicate)

    def place(self, b: Buffer, indices: tuple[PrimExpr, ...]) -> tuple[PrimExpr, ...]:
        """The indices in the flat form of a buffer: one, or one for each group."""
        return tuple(
            self.index(part, flat_index(part, those)) for part, those in self._groups(b, indices)
        )

    def index(self, b: Buffer, index: PrimExpr) -> PrimExpr:
        """An index, simplified where it divides by sums that surely are positive."""
        sums = [extent for extent in b.shape if isinstance(extent, Binary)]
        if not sums or all(isinstance(d.b, Imm) for d in leaves(index).divisions):
            return index
        known = self.known
        for extent in sums:
            known = known.with_positive(extent)
        return known.simplify(index)

    def _groups(
        self, b: Buffer, indices: tuple[PrimExpr, ...]
    ) -> list[tuple[Buffer, tuple[PrimExpr, ...]]]:
        """Each group of axes as a buffer, with the indices of its axes."""
        if not self.groups or not b.separators:
            return [(b, indices)]
        ends = (0, *b.separators, len(b.shape))
        return [
            (replace(b, shape=b.shape[low:high], separators=()), indices[low:high])
            for low, high in pairwise(ends)
        ]


def _extent(b: Buffer) -> PrimExpr:
    if b.strides is not None:
        total: PrimExpr = imm(1)
        for extent, stride in zip(b.shape, b.strides, strict=True):
            total = add(total, multiply(simplify(extent - 1), stride))
        return total
    total = imm(1)
    for extent in b.shape:
        total = multiply(total, extent)
    return total
