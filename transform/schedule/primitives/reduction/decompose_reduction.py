"""decompose_reduction: a reduction's init becomes a block of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unity.ir.empty_reduction import conjuncts
from unity.ir.prim_expr import Compare, PrimExpr, PrimVar, imm
from unity.ir.regions import add
from unity.ir.stmt import Block, BlockAxis, For, PrimFunc
from unity.ir.visit import substitute_stmt, variables

from ....blocks.begun import refuse_begun
from ....blocks.dataflow import checked
from ....blocks.legality import breach, late_init
from ....blocks.motion import may_skip
from ....blocks.site import Site
from ....blocks.tree import (
    Outcome,
    Values,
    all_blocks,
    around,
    block_path,
    conjunction,
    driven,
    illegal,
    known_above,
    loop_path,
    loops_of,
    replaced,
    scope_path,
    sequence,
    unique,
    with_regions,
)


def decompose_reduction(func: PrimFunc, name: str, var: PrimVar) -> Outcome:
    """The init runs before a loop, for all that the loop reduces into.

    Where loops further out reduce as well, only in the first iteration of these.

    Args:
        func: The prim func.
        name: A block with an init.
        var: A loop around it; blocks that were computed at it, or at loops in it, stay.

    Returns:
        The block of the init.

    Raises:
        UnityError: The block has no init; a loop further out that reduces may be empty, or drives
            other axes as well; others in the loop store to what the init reads or writes, or read
            what it has not begun there.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 4]) -> None:
    ...     for i, k in T.grid(4, 8):
    ...         with T.block("sum"):
    ...             vi, vk = T.axis.remap("SR", i, k)
    ...             with T.init():
    ...                 c[vi] = 0.0
    ...             c[vi] += a[vi, vk]
    ... ''').prim_funcs()["main"])
    >>> init = sch.decompose_reduction("sum", sch.get_loops("sum")[1])
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 4]) -> None:
        for i in range(4):
            with T.block("sum_init"):
                vi = T.axis.remap("S", i)
                c[vi] = 0.0
            for k in range(8):
                with T.block("sum"):
                    vi, vk = T.axis.remap("SR", i, k)
                    c[vi] += a[vi, vk]

    After `compute_at`, the loop holds another block as well:

    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 4]) -> None:
    ...     t = T.alloc((4, 8), "float32")
    ...     for i, k in T.grid(4, 8):
    ...         with T.block("double"):
    ...             vi, vk = T.axis.remap("SS", i, k)
    ...             t[vi, vk] = a[vi, vk] * 2.0
    ...     for k, i in T.grid(8, 4):
    ...         with T.block("sum"):
    ...             vi, vk = T.axis.remap("SR", i, k)
    ...             with T.init():
    ...                 c[vi] = 0.0
    ...             c[vi] += t[vi, vk]
    ... ''').prim_funcs()["main"])
    >>> steps = sch.get_loops("sum")[0]
    >>> sch.compute_at("double", steps)
    >>> init = sch.decompose_reduction("sum", steps)
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 4]) -> None:
        t = T.alloc((4, 8), "float32")
        for i in range(4):
            with T.block("sum_init"):
                vi = T.axis.remap("S", i)
                c[vi] = 0.0
        for k in range(8):
            for i_at, k_at in T.grid(4, 1):
                with T.block("double"):
                    vi = T.axis.spatial(4, i_at)
                    vk = T.axis.spatial(8, k + k_at)
                    t[vi, vk] = a[vi, vk] * 2.0
            for i in range(4):
                with T.block("sum"):
                    vi, vk = T.axis.remap("SR", i, k)
                    c[vi] += t[vi, vk]
    """
    path, block = block_path(func, name)
    target, loop = loop_path(func, var)
    if block.init is None:
        raise illegal("decompose_reduction, argument 1 'block'", f"{name!r} has no init")
    where = "decompose_reduction, argument 2 'loop'"
    scope = loops_of(scope_path(path))
    if not any(s is loop for s in scope):
        raise illegal(where, f"it is not around {name!r}")
    at = next(k for k, s in enumerate(scope) if s is loop)
    began = [x for x in scope[:at] if driven(block, x.var) - {"S"}]
    for outer in began:
        if driven(block, outer.var) != {"R"}:
            raise illegal(where, f"{outer.var.name!r} around it drives spatial and reduce axes")
    inside = scope[at:]
    if not any("R" in driven(block, x.var) for x in inside):
        raise illegal(where, "nothing is reduced in it")
    kept = [x for x in inside if "S" in driven(block, x.var)]
    mixed = [x for x in kept if "R" in driven(block, x.var)]
    if mixed:
        raise illegal(where, f"{mixed[0].var.name!r} drives spatial and reduce axes")
    gone = {x.var for x in inside} - {x.var for x in kept}
    if any((variables(x.begin) | variables(x.extent)) & gone for x in kept):
        raise illegal(where, "bounds of loops in it depend on loops that reduce")
    refuse_begun(where, func, path, loop, block.init)
    outermost = (*began, loop)[0]
    at = next(k for k, s in enumerate(path) if s is outermost)
    site = Site(block, path[at:-1], loops_of(path[at:]), known_above(path))
    why = breach(site) or late_init(site) or (may_skip(scope_path(target)) if began else None)
    if why is not None:
        raise illegal(where, why)
    parts = conjuncts(block.predicate) if block.predicate is not None else ()
    if any(variables(p) & gone and variables(p) - gone & {x.var for x in kept} for p in parts):
        raise illegal(where, "its predicate joins spatial and reduce loops")
    fresh: Values = {x.var: PrimVar(x.var.name, x.var.dtype) for x in kept}
    axes = tuple(
        BlockAxis(PrimVar(a.var.name), "S", a.domain, a.value) for a in block.axes if a.kind == "S"
    )
    renamed: Values = {
        a.var: n.var for a, n in zip((a for a in block.axes if a.kind == "S"), axes, strict=True)
    }
    first = unique(f"{name}_init", {b.name for b in all_blocks(func.body)})
    made = Block(
        first,
        axes,
        (),
        (),
        substitute_stmt(block.init, renamed),
        predicate=conjunction([*_first(began), *(p for p in parts if not variables(p) & gone)]),
    )
    serial = [replace(x, kind="serial", thread=None) for x in kept]
    nest = substitute_stmt(around(serial, with_regions(made)), fresh)
    update = with_regions(replace(block, init=None))
    body = replaced(replace(func, body=loop), [(block, update)]).body
    return Outcome(
        checked(replaced(func, [(loop, sequence([nest, body]))]), where), blocks=(first,)
    )


def _first(loops: Sequence[For]) -> list[PrimExpr]:
    """The conditions that loops are in their first iterations."""
    return [Compare("lt", x.var, add(x.begin, imm(1))) for x in loops]
