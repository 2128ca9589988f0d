"""annotate, unannotate: named values on loops and blocks, for later passes to read."""

from __future__ import annotations

from dataclasses import replace

from unity.ir.attrs import AttrValue
from unity.ir.prim_expr import PrimVar
from unity.ir.stmt import Block, For, PrimFunc

from ...blocks.tree import Outcome, block_path, illegal, loop_path, replaced


def annotate(func: PrimFunc, at: PrimVar | str, key: str, value: AttrValue) -> Outcome:
    """The loop or block with an attribute set.

    Args:
        func: The prim func.
        at: A loop's variable or a block's name.
        key: The attribute.
        value: What it is to be.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 64], c: f32[Buffer, 64]) -> None:
    ...     for i in range(64):
    ...         with T.block("copy"):
    ...             vi = T.axis.spatial(64, i)
    ...             c[vi] = a[vi]
    ... ''').prim_funcs()["main"])
    >>> sch.annotate(sch.get_loops("copy")[0], "prefetch", 8)
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 64], c: f32[Buffer, 64]) -> None:
        for i in T.serial(64, attrs={"prefetch": 8}):
            with T.block("copy"):
                vi = T.axis.remap("S", i)
                c[vi] = a[vi]
    """
    target = _target(func, at)
    return Outcome(replaced(func, [(target, _with(target, key, value))]))


def unannotate(func: PrimFunc, at: PrimVar | str, key: str) -> Outcome:
    """The loop or block without an attribute.

    Raises:
        UnityError: It has none of that name.
    """
    target = _target(func, at)
    if key not in target.attrs:
        raise illegal("unannotate, argument 2 'key'", f"there is no annotation {key!r}")
    attrs = target.attrs.without(key)
    new = replace(target, attrs=attrs)
    return Outcome(replaced(func, [(target, new)]))


def _with(target: For | Block, key: str, value: AttrValue) -> For | Block:
    return replace(target, attrs=target.attrs.with_(**{key: value}))


def _target(func: PrimFunc, at: PrimVar | str) -> For | Block:
    return block_path(func, at)[1] if isinstance(at, str) else loop_path(func, at)[1]
