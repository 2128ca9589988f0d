"""TransposeLanes: rectangles that are read down and written across are turned in registers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from unity.arith.polynomial import Poly, as_constant, from_expr, split_linear
from unity.ir.attrs import Attrs
from unity.ir.marks import INSTRUCTION
from unity.ir.module import IRModule
from unity.ir.prim_expr import Compare, Imm, Load, PrimExpr, PrimVar, imm
from unity.ir.stmt import For, IfThen, Seq, Stmt, Store
from unity.ir.visit import map_stmts, substitute_prim

from ..blocks.access import mentions
from ..blocks.extents import number
from ..passes import Context, Pass, Sight
from .functions import map_prim_funcs, with_body


@dataclass(frozen=True, slots=True)
class TransposeLanes(Pass):
    """A vector loop that gathers, in an unrolled one that walks through memory, is a transpose.

    Takes flat buffers. The loops are marked as one instruction, which reads whole lines and turns
    them in registers: a gather of 16 elements takes as long as some ten loads.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 160], c: f32[Buffer, 160]) -> None:
    ...     for i in range(10):
    ...         for r in T.unroll(4):
    ...             for lane in T.vectorized(4):
    ...                 c[i * 16 + r * 4 + lane] = a[lane * 40 + i * 4 + r]
    ... ''')
    >>> print(print_module(TransposeLanes()(before, Context())), end="")
    @script.prim_func
    def main(a: f32[Buffer, 160], c: f32[Buffer, 160]) -> None:
        for i in range(10):
            for r in T.serial(4, attrs={"instruction": "transpose"}):
                for lane in range(4):
                    c[i * 16 + r * 4 + lane] = a[lane * 40 + i * 4 + r]
    """

    sees: ClassVar[Sight] = "kernel"

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each prim func by itself."""
        return map_prim_funcs(module, lambda f: with_body(f, _turned(f.body)))


def _turned(s: Stmt) -> Stmt:
    if isinstance(s, For) and s.kind == "unrolled" and isinstance(s.body, For):
        inside = _inside(s.body)
        if inside is not None and _is_transpose(s, inside):
            attrs = Attrs({**s.attrs, INSTRUCTION: "transpose"})
            turned = replace(s, kind="serial", attrs=attrs, body=replace(inside, kind="serial"))
            return turned if isinstance(s.body.body, IfThen) else _with_zeros(s, s.body, turned)
    return map_stmts(s, _turned)


def _inside(lanes: For) -> For | None:
    """A vector loop of those lanes that load something; None if that are not the first ones."""
    match lanes.body:
        case IfThen(Compare("lt", at, Imm(int(count))), Store() as store, None):
            masked = at
        case Store(value=Load(predicate=Compare("lt", at, Imm(int(count)))) as load) as store:
            masked, store = at, replace(store, value=replace(load, predicate=None))
        case _:
            return lanes
    return replace(lanes, extent=imm(count), body=store) if masked == lanes.var else None


def _with_zeros(rows: For, lanes: For, turned: For) -> Stmt:
    """A rectangle behind zeros, which is what the lanes of loads give that are off."""
    store = lanes.body
    assert isinstance(store, Store)
    if turned.body == replace(lanes, kind="serial"):
        return turned
    r, lane = replace(rows.var), replace(lanes.var)
    places = tuple(substitute_prim(i, {rows.var: r, lanes.var: lane}) for i in store.indices)
    zero = replace(store, indices=places, value=imm(0, store.buffer.dtype))
    zeros = replace(rows, var=r, body=replace(lanes, var=lane, body=zero))
    return Seq((zeros, turned))


def _is_transpose(s: For, lanes: For) -> bool:
    store = lanes.body
    if lanes.kind != "vectorized" or not isinstance(store, Store):
        return False
    load = store.value
    if not isinstance(load, Load) or load.buffer is store.buffer:
        return False
    if store.predicate is not None or load.predicate is not None:
        return False
    if s.begin != lanes.begin or number(s.begin) != 0 or load.buffer.dtype != store.buffer.dtype:
        return False
    height, width = number(s.extent), number(lanes.extent)
    if height is None or width is None or min(height, width) < 2:
        return False
    if len(store.indices) != 1 or len(load.indices) != 1:
        return False
    target, source = (_steps(x.indices[0], s.var, lanes.var) for x in (store, load))
    if target is None or source is None:
        return False
    return target[1] == 1 and source[0] == 1 and source[1] not in (0, 1)


def _steps(index: PrimExpr, *loops: PrimVar) -> list[int | None] | None:
    """How far an index moves along with loops, None for what is no number; None if not evenly."""
    rest, steps = from_expr(index), list[Poly]()
    for var in loops:
        rest, factor = split_linear(rest, var)
        if factor is None:
            return None
        steps.append(factor)
    if any(mentions(p, var) for p in (rest, *steps) for var in loops):
        return None
    return [as_constant(factor) for factor in steps]
