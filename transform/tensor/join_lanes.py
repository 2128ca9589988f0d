"""JoinLanes: what lanes add to one place is joined by halves first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from unity.ir.foreign import foreign_symbol
from unity.ir.module import IRModule
from unity.ir.prim_expr import Binary, Load, PrimExpr, PrimVar, imm
from unity.ir.regions import add
from unity.ir.stmt import Allocate, Buffer, For, ForKind, IfThen, Seq, Stmt, Store
from unity.ir.visit import map_stmts, prim_loads, substitute_prim

from ..blocks.access import depends
from ..blocks.combine import combines, neutral, step_of
from ..blocks.extents import number
from ..passes import Context, Pass, Sight
from .functions import map_prim_funcs, with_body
from .sum_steps import by_pairs


@dataclass(frozen=True, slots=True)
class JoinLanes(Pass):
    """A vectorized loop that adds to one element computes a vector, halved until one is left.

    Takes flat buffers. The same for every commutative operation. Loops whose lanes have places of
    their own, or that do more, are left to `VectorizeLoops`.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 4], c: f32[Buffer, 1]) -> None:
    ...     for i in T.vectorized(4):
    ...         c[0] += a[i]
    ... ''')
    >>> print(print_module(JoinLanes()(before, Context())), end="")
    @script.prim_func
    def main(a: f32[Buffer, 4], c: f32[Buffer, 1]) -> None:
        joined = T.alloc((4,), "float32", scope="local")
        for i in T.vectorized(4):
            joined[i] = a[i]
        for lane in T.vectorized(2):
            joined[lane] += joined[lane + 2]
        for lane in range(1):
            joined[lane] += joined[lane + 1]
        c[0] += joined[0]
    """

    sees: ClassVar[Sight] = "kernel"

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each prim func by itself."""
        bits = ctx.target.vector_bits
        return map_prim_funcs(module, lambda f: with_body(f, _stmt(f.body, bits)))


def _stmt(s: Stmt, bits: int) -> Stmt:
    if isinstance(s, For) and s.kind == "vectorized":
        return _joined(s, s.body, bits) or s
    if isinstance(s, Seq):
        parts: list[Stmt] = []
        for before, each in zip((None, *s.stmts), s.stmts, strict=False):
            alone = _begun(before, each, bits)
            if alone is not None:
                parts[-1] = alone
            else:
                parts.append(_stmt(each, bits))
        same = all(a is b for a, b in zip(parts, s.stmts, strict=False))
        return s if same else Seq(tuple(parts))
    return map_stmts(s, lambda x: _stmt(x, bits))


def _begun(start: Stmt | None, loop: Stmt, bits: int) -> Stmt | None:
    """What a loop joins, stored where nothing that counts was set just before."""
    if not isinstance(start, Store) or not isinstance(loop, For) or loop.kind != "vectorized":
        return None
    found = _step(loop, loop.body)
    if found is None or start.predicate is not None:
        return None
    store, value = found
    if (start.buffer, start.indices) != (store.buffer, store.indices):
        return None
    return _halved(loop, store, value, bits, begun=True) if _adds_nothing(start, store) else None


def _adds_nothing(start: Store, step: Store) -> bool:
    """Whether a store sets what a step's operation leaves as it is."""
    match step.value:
        case Binary(op, a, _) if combines(op):
            return start.value == neutral(op, a.dtype)
        case _:
            return False


def _joined(loop: For, s: Stmt, bits: int) -> Stmt | None:
    """The loop with a statement as its body; None where that adds nothing to one element."""
    if isinstance(s, IfThen) and s.orelse is None and not depends(s.condition, loop.var):
        inner = _joined(loop, s.then, bits)
        return None if inner is None else replace(s, then=inner)
    found = _step(loop, s)
    return None if found is None else _halved(loop, *found, bits)


def _step(loop: For, s: Stmt) -> tuple[Store, PrimExpr] | None:
    """The store by which all lanes of a loop add to one element, and what each adds."""
    if not isinstance(s, Store):
        return None
    found = step_of(s)
    if found is None:
        return None
    _, value = found
    alone = s.predicate is None and not any(depends(i, loop.var) for i in s.indices)
    if number(loop.extent) is None or not alone:
        return None
    return None if _uses(value, s.buffer) else (s, value)


def _uses(value: PrimExpr, buffer: Buffer) -> bool:
    return foreign_symbol(value) is not None or any(x.buffer is buffer for x in prim_loads(value))


def _halved(loop: For, store: Store, value: PrimExpr, bits: int, begun: bool = False) -> Stmt:
    """What whole registers hold joined by pairs, then halves of the one that is left.

    Of a number of lanes that is no power of two, those beyond the largest one in it come first:
    what is left stays in whole registers.
    """
    operation, lanes = store.value, number(loop.extent)
    assert isinstance(operation, Binary)
    assert lanes is not None
    most = max(1, bits // value.dtype.bits)
    wide = lanes if lanes % most else most
    joined = Buffer("joined", (imm(wide),), value.dtype, scope="local")
    first, begin = PrimVar(loop.var.name), loop.begin
    parts = [
        substitute_prim(value, {loop.var: add(begin, add(imm(at), first))})
        for at in range(0, lanes, wide)
    ]
    stored = Store(joined, (first,), by_pairs(operation.op, parts))
    stmts: list[Stmt] = [replace(loop, var=first, begin=imm(0), extent=imm(wide), body=stored)]
    lanes = wide
    while lanes > 1:
        half, lane = lanes - (1 << (lanes - 1).bit_length() - 1), PrimVar("lane")
        both = Binary(
            operation.op, Load(joined, (lane,)), Load(joined, (add(lane, imm(lanes - half)),))
        )
        kind: ForKind = "vectorized" if half > 1 else "serial"
        stmts.append(For(lane, imm(0), imm(half), Store(joined, (lane,), both), kind))
        lanes -= half
    total: PrimExpr = Load(joined, (imm(0),))
    if not begun:
        total = Binary(operation.op, Load(store.buffer, store.indices), total)
    stmts.append(replace(store, value=total))
    return Allocate(joined, Seq(tuple(stmts)))
