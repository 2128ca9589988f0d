"""cache_operand: a factor of what a block sums up is computed beforehand."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from unity.ir.foreign import foreign_symbol
from unity.ir.prim_expr import Binary, Cast, Load, PrimExpr, PrimVar
from unity.ir.stmt import Block, BlockAxis, Buffer, PrimFunc, Store
from unity.ir.visit import bound_in, prim_loads, rewrite_prim, variables, walk_prim

from ....blocks.access import may_trap
from ....blocks.dataflow import allocated, checked, computed_nest, top_of
from ....blocks.tree import (
    Outcome,
    all_blocks,
    block_path,
    illegal,
    is_zero,
    replaced,
    sequence,
    unique,
    with_regions,
)
from .cache_read import refuse_if_made_inside

INDEX = "cache_operand, argument 2 'index'"


def cache_operand(func: PrimFunc, name: str, index: int, scope: str) -> Outcome:
    """A factor of a product is computed before the block's nest, over the axes that it moves along.

    What undoes `compute_inline` for a contraction: its operand is rounded, padded or gathered once
    and not for each of the points that share it. A factor is what stands before it is widened.

    Args:
        func: The prim func.
        name: A block that stores a product, or adds one to a sum.
        index: Which of the factors, from the left.
        scope: Of what is computed: ``local``, ``global`` ...

    Returns:
        The block that computes it.

    Raises:
        UnityError: There is no such factor, or what it reads is made within the block's nest; it
            may stop the program, or calls a foreign function.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: bf16[Buffer, 6], b: bf16[Buffer, 8, 4], c: f32[Buffer, 4]) -> None:
    ...     for j, k in T.grid(4, 8):
    ...         with T.block("dots"):
    ...             vj, vk = T.axis.remap("SR", j, k)
    ...             with T.init():
    ...                 c[vj] = 0.0
    ...             c[vj] += T.cast("float32", T.select(vk < 6, a[vk], 0.0)) * T.cast(
    ...                 "float32", b[vk, vj]
    ...             )
    ... ''').prim_funcs()["main"])
    >>> copy = sch.cache_operand("dots", 0, "local")
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: bf16[Buffer, 6], b: bf16[Buffer, 8, 4], c: f32[Buffer, 4]) -> None:
        dots_operand = T.alloc((8,), "bfloat16", scope="local")
        for ax0 in range(8):
            with T.block("dots_operand"):
                v0 = T.axis.remap("S", ax0)
                dots_operand[v0] = T.select(v0 < 6, a[v0], 0.0)
        for j, k in T.grid(4, 8):
            with T.block("dots"):
                vj, vk = T.axis.remap("SR", j, k)
                with T.init():
                    c[vj] = 0.0
                c[vj] += T.cast("float32", dots_operand[vk]) * T.cast("float32", b[vk, vj])
    """
    path, block = block_path(func, name)
    factors = _factors(block)
    if not 0 <= index < len(factors):
        raise illegal(INDEX, f"{name!r} has {len(factors)} factors, got {index}")
    factor, top = factors[index], top_of(path)
    axes = _axes(block, factor, bound_in(top))
    for load in prim_loads(factor):
        refuse_if_made_inside(INDEX, top, load.buffer)
    made = unique(f"{name}_operand", {b.name for b in all_blocks(func.body)})
    buffer = Buffer(made, tuple(a.domain.extent for a in axes), factor.dtype, scope=scope)
    at = tuple(
        a.var if is_zero(a.domain.begin) else Binary("sub", a.var, a.domain.begin) for a in axes
    )
    body = block.body
    assert isinstance(body, Store)
    value = rewrite_prim(body.value, lambda e: Load(buffer, at) if e == factor else None)
    new = with_regions(replace(block, body=replace(body, value=value)))
    inner = replaced(replace(func, body=top), [(block, new)]).body
    both = sequence([computed_nest(made, buffer, axes, factor), inner])
    return Outcome(checked(allocated(func, path, buffer, top, both), INDEX), blocks=(made,))


def _factors(block: Block) -> list[PrimExpr]:
    """The factors of the product that a block stores, or adds to its sum; none if it does not."""
    body = block.body
    if not isinstance(body, Store) or body.predicate is not None or block.allocations:
        return []
    match body.value:
        case Binary(_, Load(buffer, indices), term) if block.init is not None:
            same = buffer is body.buffer and indices == body.indices
            return _multiplied(term) if same else []
        case Binary("mul") as product:
            return _multiplied(product)
        case _:
            return []


def _multiplied(e: PrimExpr) -> list[PrimExpr]:
    match e:
        case Binary("mul", a, b):
            return [*_multiplied(a), *_multiplied(b)]
        case Cast(_, value) if value.dtype.bits < e.dtype.bits:
            return [value]
        case _:
            return [e]


def _axes(block: Block, factor: PrimExpr, inside: Collection[PrimVar]) -> Sequence[BlockAxis]:
    """The axes that a factor moves along; of other variables, it takes only those from outside."""
    used = variables(factor) & set(inside)
    axes = [a for a in block.axes if a.var in used]
    sizes = [x for a in axes for x in walk_prim(a.domain.extent)]
    if block.predicate is not None or used - {a.var for a in axes}:
        raise illegal(INDEX, f"{block.name!r} does not compute it at all points of its axes")
    if any(isinstance(x, PrimVar | Load) for x in sizes):
        raise illegal(INDEX, "the extents of its axes are no sizes")
    if foreign_symbol(factor) is not None or may_trap(factor):
        raise illegal(INDEX, "it may do more than compute a value")
    return axes
