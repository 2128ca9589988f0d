"""From tensors to a prim func: one block for each operation, in order of need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from unity.arguments import public
from unity.errors import UnityError
from unity.ir.attrs import NO_ATTRS, Attrs
from unity.ir.prim_expr import Load, PrimExpr, PrimVar, SizeVar, imm
from unity.ir.regions import block_regions
from unity.ir.signature import size_params
from unity.ir.stmt import (
    Allocate,
    Block,
    BlockAxis,
    Buffer,
    For,
    Let,
    Param,
    PrimFunc,
    Range,
    Region,
    Seq,
    Stmt,
    Store,
)
from unity.ir.visit import (
    leaves,
    stmt_exprs,
    substitute_prim,
    substitute_stmt,
    walk_prim,
    walk_stmt,
)

from .reduction import Reduce, ReduceAxis
from .tensor import Compute, Extern, Placeholder, Tensor, compute

Buffers: TypeAlias = dict[Buffer, Buffer]


@public
def create_prim_func(
    args: Sequence[Tensor | SizeVar | PrimVar], attrs: Attrs = NO_ATTRS
) -> PrimFunc:
    """The prim func that computes the outputs from the inputs.

    Args:
        args: Inputs (placeholders and scalars), then outputs. What lies between is computed in
            temporaries. Sizes that no shape among them gives are added as parameters.
        attrs: The function's attributes; ``num_outputs`` is set.

    Raises:
        UnityError: A tensor is needed that is not among the arguments.
    """
    emitter = _Emitter()
    params: list[Param] = []
    outputs: list[Tensor] = []
    for arg in args:
        if not isinstance(arg, Tensor):
            params.append(arg)
        elif isinstance(arg.op, Placeholder) and arg not in emitter.buffers:
            params.append(emitter.add_input(arg))
        elif isinstance(arg.op, Placeholder) or arg in outputs:
            outputs.append(_copy(arg))  # an output is a parameter of its own, never shared
        else:
            outputs.append(arg)
    for output in outputs:
        emitter.need(output)
    body: Stmt = emitter.stmts[0] if len(emitter.stmts) == 1 else Seq(tuple(emitter.stmts))
    results = [emitter.buffers[t] for t in outputs]
    for buffer in reversed(emitter.made):
        if buffer not in results:
            body = Allocate(buffer, body)
    func = PrimFunc((*params, *results), body, attrs.with_(num_outputs=len(results)))
    unbound = _sizes(body) - set(size_params(func))
    return replace(func, params=(*func.params, *sorted(unbound, key=lambda s: s.name)))


def _copy(tensor: Tensor) -> Tensor:
    return compute(tensor.shape, lambda *i: tensor[i], f"{tensor.name}_copy")


def _sizes(body: Stmt) -> set[SizeVar]:
    found: set[SizeVar] = set()
    for stmt in walk_stmt(body):
        exprs = stmt_exprs(stmt)
        if isinstance(stmt, Allocate):
            exprs += stmt.buffer.shape
        for expr in exprs:
            found |= leaves(expr).sizes
    return found


class _Emitter:
    """Emits each needed operation once, its producers first.

    Buffers and variables are made anew, so that one tensor may be emitted into several functions.
    """

    def __init__(self) -> None:
        self.buffers: Buffers = {}
        self.stmts: list[Stmt] = []
        self.made: list[Buffer] = []
        self._names: set[str] = set()
        self._done: dict[Compute | Extern, tuple[Buffer, ...]] = {}

    def add_input(self, tensor: Tensor) -> Buffer:
        """A parameter for a placeholder."""
        self.buffers[tensor] = Buffer(tensor.name, tensor.shape, tensor.dtype)
        return self.buffers[tensor]

    def need(self, tensor: Tensor) -> None:
        """Emit what makes a tensor, unless it is there."""
        if tensor in self.buffers:
            return
        op = tensor.op
        if isinstance(op, Placeholder):
            raise UnityError(f"the tensor {tensor.name!r} is used but is not an argument")
        if op not in self._done:
            for source in _sources(op):
                self.need(source)
            fresh = {b: replace(b) for b in op.outputs}
            name = self._unique(op.name)
            if isinstance(op, Compute):
                self.stmts.append(_emit_compute(op, name, fresh, self.buffers))
            else:
                self.stmts.append(_emit_extern(op, name, fresh, self.buffers))
            self._done[op] = tuple(fresh.values())
            self.made += fresh.values()
        self.buffers[tensor] = self._done[op][tensor.index]

    def _unique(self, name: str) -> str:
        found, count = name, 0
        while found in self._names:
            count += 1
            found = f"{name}_{count}"
        self._names.add(found)
        return found


def _sources(op: Compute | Extern) -> list[Tensor]:
    """The tensors an operation reads, in order of first use."""
    if isinstance(op, Extern):
        return list(op.inputs)
    exprs = (*op.body.values, *op.body.init) if isinstance(op.body, Reduce) else op.body
    found: dict[Tensor, None] = {}
    for expr in exprs:
        for e in walk_prim(expr):
            if isinstance(e, Load) and isinstance(e.buffer, Tensor):
                found[e.buffer] = None
    return list(found)


def _emit_compute(op: Compute, name: str, fresh: Buffers, buffers: Buffers) -> Stmt:
    reduce_axes = op.body.axes if isinstance(op.body, Reduce) else ()
    shape = op.outputs[0].shape
    axes = [
        BlockAxis(PrimVar(v.name), "S", Range(imm(0), extent), PrimVar(v.name[1:]))
        for v, extent in zip(op.axes, shape, strict=True)
    ]
    axes += [_reduce_axis(a) for a in reduce_axes]
    old = (*op.axes, *(a.var for a in reduce_axes))
    new: dict[PrimVar | SizeVar, PrimExpr] = {
        was: axis.var for was, axis in zip(old, axes, strict=True)
    }
    at = tuple(axis.var for axis in axes[: len(shape)])

    def now(exprs: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        return tuple(substitute_prim(e, new, buffers) for e in exprs)

    outputs = tuple(fresh.values())
    init: Stmt | None = None
    if isinstance(op.body, Reduce):
        init = _store_all(outputs, at, now(op.body.init))
        loads = tuple(Load(b, at) for b in outputs)
        body = _store_together(outputs, at, op.body.combiner.combine(loads, now(op.body.values)))
    else:
        body = _store_all(outputs, at, now(op.body))
    reads, writes = block_regions(body, init, [axis.var for axis in axes])
    stmt: Stmt = Block(name, tuple(axes), reads, writes, body, init, attrs=op.attrs)
    for axis in reversed(axes):
        assert isinstance(axis.value, PrimVar)
        stmt = For(axis.value, axis.domain.begin, axis.domain.extent, stmt)
    return stmt


def _reduce_axis(axis: ReduceAxis) -> BlockAxis:
    return BlockAxis(PrimVar(axis.var.name), "R", axis.domain, PrimVar(axis.var.name[1:]))


def _store_all(
    buffers: Sequence[Buffer], at: tuple[PrimExpr, ...], values: Sequence[PrimExpr]
) -> Stmt:
    stores = tuple(Store(b, at, v) for b, v in zip(buffers, values, strict=True))
    return stores[0] if len(stores) == 1 else Seq(stores)


def _store_together(
    buffers: Sequence[Buffer], at: tuple[PrimExpr, ...], values: Sequence[PrimExpr]
) -> Stmt:
    """Stores of values that read what is being stored: all are computed first."""
    if len(buffers) == 1:
        return _store_all(buffers, at, values)
    names = [PrimVar(f"new_{b.name}", b.dtype) for b in buffers]
    body = _store_all(buffers, at, names)
    for var, value in zip(reversed(names), reversed(values), strict=True):
        body = Let(var, value, body)
    return body


def _emit_extern(op: Extern, name: str, fresh: Buffers, buffers: Mapping[Buffer, Buffer]) -> Stmt:
    used: Buffers = {t: buffers[t] for t in op.inputs}
    body = substitute_stmt(op.body, {}, {**used, **fresh})
    if any(isinstance(s, Block) for s in walk_stmt(body)):
        return body
    reads = tuple(_whole(b) for b in dict.fromkeys(used.values()))
    return Block(name, (), reads, tuple(_whole(b) for b in fresh.values()), body, attrs=op.attrs)


def _whole(buffer: Buffer) -> Region:
    return Region(buffer, tuple(Range(imm(0), extent) for extent in buffer.shape))
