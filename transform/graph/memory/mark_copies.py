"""MarkCopies: which kernels only move whole tensors into or out of a larger one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from unity.arith.polynomial import Poly, add, as_constant
from unity.ir.module import IRModule
from unity.ir.prim_expr import Compare, Imm, Load, PrimExpr, PrimVar, Select, SizeVar, imm
from unity.ir.stmt import Buffer, PrimFunc, Seq, Stmt, Store
from unity.ir.visit import substitute_prim

from ...blocks.access import known_of, place
from ...blocks.nest import Nest, nest_of
from ...passes import Context, Pass

Copy = tuple[int, int, int]
"""A buffer that is an interval of another, by their indices in the kernel; and from where on."""


@dataclass(frozen=True, slots=True)
class MarkCopies(Pass):
    """Gives kernels the attribute ``copies`` that do nothing but put tensors together or apart.

    That is so where each tensor is a contiguous interval of the larger one: concatenation and
    slices along the outermost axis that is longer than 1. An entry ``(part, whole, begin)`` says
    that buffer `part` equals the elements of buffer `whole` from `begin` on. `PlanMemory` lets both
    lie in the same memory, and the kernel need not run. Sizes must be known.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... @script.prim_func
    ... def join(x: f32[Buffer, 2, 8], y: f32[Buffer, 3, 8], z: f32[Buffer, 5, 8]) -> None:
    ...     for i, j in T.grid(5, 8):
    ...         with T.block("join"):
    ...             vi, vj = T.axis.remap("SS", i, j)
    ...             z[vi, vj] = T.select(vi < 2, x[vi, vj], y[vi - 2, vj])
    ... ''')
    >>> print(print_module(MarkCopies()(before, Context())), end="")
    @script.prim_func(attrs={"copies": ((0, 2, 0), (1, 2, 16))})
    def join(x: f32[Buffer, 2, 8], y: f32[Buffer, 3, 8], z: f32[Buffer, 5, 8]) -> None:
        for i, j in T.grid(5, 8):
            with T.block("join"):
                vi, vj = T.axis.remap("SS", i, j)
                z[vi, vj] = T.select(vi < 2, x[vi, vj], y[vi - 2, vj])
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each prim func by itself; those that compute something stay as they are."""
        return module.with_({name: _marked(f) for name, f in module.prim_funcs().items()})


def _marked(kernel: PrimFunc) -> PrimFunc:
    found = copies(kernel)
    if not found or "copies" in kernel.attrs:
        return kernel
    return replace(kernel, attrs=kernel.attrs.with_(copies=found))


def copies(kernel: PrimFunc) -> tuple[Copy, ...]:
    """What a kernel moves, if it does nothing else and each output is moved whole; else nothing."""
    found: list[Copy] = []
    numbers = {buffer: i for i, buffer in enumerate(kernel.buffers)}
    stages = kernel.body.stmts if isinstance(kernel.body, Seq) else (kernel.body,)
    for stage in stages:
        moved = _moved(stage, numbers)
        if moved is None:
            return ()
        found += moved
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Interval:
    """Where along an axis what is read comes from one load, and that load."""

    begin: int
    end: int
    load: Load


def _moved(stage: Stmt, numbers: dict[Buffer, int]) -> list[Copy] | None:
    nest = nest_of(stage)
    if nest is None or nest.reduction is not None or not isinstance(nest.finish, Store):
        return None
    store, size = nest.finish, _elements(nest.finish.buffer)
    if size is None or size == 0 or store.buffer not in numbers or store.predicate is not None:
        return None
    split = _intervals(nest, store)
    if split is None:
        return None
    inner, parts = split
    known, first = known_of(nest.axes), _first(nest)
    to = place(first(Load(store.buffer, store.indices)), known)
    found: list[Copy] = []
    for part in parts:
        source, number = _elements(part.load.buffer), numbers.get(part.load.buffer)
        shift = _difference(place(first(part.load), known), to)
        if source is None or shift is None or number is None or part.load.predicate is not None:
            return None
        if part.load.buffer.dtype != store.buffer.dtype:
            return None
        whole = numbers[store.buffer]
        if len(parts) == 1 and source > size:
            if not 0 <= shift <= source - size:
                return None
            found.append((whole, number, shift))
            continue
        begin, length = part.begin * inner, (part.end - part.begin) * inner
        if shift != -begin or source != length:
            return None
        found.append((number, whole, begin))
    return found if len({a for a, _, _ in found}) == len(found) else None


def _intervals(nest: Nest, store: Store) -> tuple[int, list[_Interval]] | None:
    """The elements per step of the outermost axis that is not 1, and which load is read where."""
    extents = [a.extent.value if isinstance(a.extent, Imm) else None for a in nest.axes]
    if not extents or store.indices != tuple(a.var for a in nest.axes) or None in extents:
        return None
    numbers = [int(e) for e in extents if e is not None]
    outermost = next((i for i, e in enumerate(numbers) if e != 1), 0)
    var, extent = nest.axes[outermost].var, numbers[outermost]
    inner = 1
    for e in numbers[outermost + 1 :]:
        inner *= e
    found = list(_read(store.value, var, extent))
    return (inner, found) if found and found[-1].end == extent else None


def _read(e: PrimExpr, var: PrimVar, extent: int) -> Iterator[_Interval]:
    """The intervals along an axis, up to the first thing that is none."""
    begin = 0
    while True:
        match e:
            case Load():
                yield _Interval(begin, extent, e)
                return
            case Select(Compare("lt", at, Imm(int() as end)), Load() as load, rest):
                if at is not var or not begin < end < extent:
                    return
                yield _Interval(begin, end, load)
                begin, e = end, rest
            case _:
                return


def _first(nest: Nest) -> Callable[[Load], Load]:
    """An access without the variables that are always 0."""
    zero: dict[PrimVar | SizeVar, PrimExpr] = {
        a.var: imm(0) for a in nest.axes if a.extent == imm(1)
    }
    return lambda x: Load(x.buffer, tuple(substitute_prim(i, zero) for i in x.indices))


def _difference(a: Poly, b: Poly) -> int | None:
    return as_constant(add(a, b, -1))


def _elements(buffer: Buffer) -> int | None:
    total = 1
    for extent in buffer.shape:
        if not isinstance(extent, Imm):
            return None
        total *= int(extent.value)
    return total if buffer.strides is None else None
