"""MarkInPlace: which inputs a kernel may overwrite with its output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unity.ir.module import IRModule
from unity.ir.prim_expr import Imm, PrimExpr, PrimVar
from unity.ir.stmt import Block, Buffer, For, PrimFunc, Stmt, Store
from unity.ir.visit import stmt_loads, walk_stmt

from ...passes import Context, Pass


@dataclass(frozen=True, slots=True)
class MarkInPlace(Pass):
    """Gives kernels the attribute ``overwritable``: the indices of inputs that may be written over.

    It is found from the kernels as they were made, since a schedule takes their form; `PlanMemory`
    reads it.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... @script.prim_func
    ... def add_reversed(x: f32[Buffer, 4], y: f32[Buffer, 4], z: f32[Buffer, 4]) -> None:
    ...     for i in range(4):
    ...         with T.block("add"):
    ...             v = T.axis.spatial(4, i)
    ...             z[v] = x[v] + y[3 - v]
    ... ''')
    >>> print(print_module(MarkInPlace()(before, Context())), end="")
    @script.prim_func(attrs={"overwritable": (0,)})
    def add_reversed(x: f32[Buffer, 4], y: f32[Buffer, 4], z: f32[Buffer, 4]) -> None:
        for i in range(4):
            with T.block("add"):
                v = T.axis.remap("S", i)
                z[v] = x[v] + y[3 - v]
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each prim func by itself; those that have no such input stay as they are."""
        return module.with_({name: _marked(f) for name, f in module.prim_funcs().items()})


def _marked(kernel: PrimFunc) -> PrimFunc:
    safe = overwritable(kernel)
    found = tuple(i for i, buffer in enumerate(kernel.buffers) if buffer in safe)
    if not found or "overwritable" in kernel.attrs:
        return kernel
    return replace(kernel, attrs=kernel.attrs.with_(overwritable=found))


def overwritable(kernel: PrimFunc) -> frozenset[Buffer]:
    """The inputs that the kernel reads only at the element it is about to write.

    That is so for a kernel of a single block over spatial axes with one store, indexed by those
    axes. (One with several blocks may be scheduled so that partial results are written early.)
    """
    block = _only_block(kernel.body)
    if block is None or block.init is not None or any(a.kind != "S" for a in block.axes):
        return frozenset()
    stores = [s for s in walk_stmt(block.body) if isinstance(s, Store)]
    if len(stores) != 1 or any(isinstance(s, For | Block) for s in walk_stmt(block.body)):
        return frozenset()
    (store,) = stores
    if not _each_once(block, store.indices):
        return frozenset()
    reads: dict[Buffer, set[tuple[PrimExpr, ...]]] = {}
    for s in walk_stmt(block.body):
        for x in stmt_loads(s):
            reads.setdefault(x.buffer, set()).add(x.indices)
    return frozenset(
        buffer
        for buffer in kernel.buffers
        if buffer is not store.buffer
        and buffer.dtype == store.buffer.dtype
        and buffer.shape == store.buffer.shape
        and reads.get(buffer, {store.indices}) == {store.indices}
    )


def _only_block(stmt: Stmt) -> Block | None:
    while isinstance(stmt, For):
        stmt = stmt.body
    return stmt if isinstance(stmt, Block) else None


def _each_once(block: Block, indices: Sequence[PrimExpr]) -> bool:
    """Whether the indices are the block's axes, each of them somewhere."""
    wide = {a.var for a in block.axes if a.domain.extent != Imm(1, a.var.dtype)}
    plain = [i for i in indices if isinstance(i, PrimVar)]
    return len(set(plain)) == len(plain) and wide <= set(plain)
