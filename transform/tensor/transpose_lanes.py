"""TransposeLanes: squares that are read down and written across are turned in registers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from unity.arith.polynomial import as_constant, from_expr, split_linear
from unity.ir.attrs import Attrs
from unity.ir.marks import INSTRUCTION
from unity.ir.module import IRModule
from unity.ir.prim_expr import Load, PrimExpr, PrimVar
from unity.ir.stmt import For, Stmt, Store
from unity.ir.visit import map_stmt

from ..blocks.extents import number
from ..passes import Context, Pass, Sight
from .functions import map_prim_funcs, with_body


@dataclass(frozen=True, slots=True)
class TransposeLanes(Pass):
    """A vector loop that gathers, in an unrolled one that walks through memory, is a transpose.

    Takes flat buffers. The two loops are to be as long as each other. They are marked as one
    instruction, which reads whole lines and turns them in registers: a gather of 16 elements takes
    as long as some ten loads.

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
    if isinstance(s, For) and s.kind == "unrolled" and _is_transpose(s):
        assert isinstance(s.body, For)
        attrs = Attrs({**s.attrs, INSTRUCTION: "transpose"})
        return replace(s, kind="serial", attrs=attrs, body=replace(s.body, kind="serial"))
    return map_stmt(s, _turned, lambda e: e)


def _is_transpose(s: For) -> bool:
    lanes = s.body
    if not isinstance(lanes, For) or lanes.kind != "vectorized":
        return False
    store = lanes.body
    if not isinstance(store, Store) or not isinstance(store.value, Load):
        return False
    load = store.value
    if store.predicate is not None or load.predicate is not None or load.buffer is store.buffer:
        return False
    if s.begin != lanes.begin or number(s.begin) != 0 or load.buffer.dtype != store.buffer.dtype:
        return False
    height, width = number(s.extent), number(lanes.extent)
    if height is None or height != width or height & (height - 1) or height < 4:
        return False
    (target,), (source,) = store.indices, load.indices
    across = _step(target, lanes.var), _step(source, s.var)
    return across == (1, 1) and _step(source, lanes.var) not in (0, 1)


def _step(index: PrimExpr, var: PrimVar) -> int | None:
    """How far an index moves along with a variable; None if that is no number."""
    _, by = split_linear(from_expr(index), var)
    return None if by is None else as_constant(by)
