"""Padding left out: a reduction over a padded copy reads what there is and skips the rest.

A convolution is written as a stage that pads and one that adds up. Joined, every element that is
read stands under a condition (`roles/padding.py`), so that the schedule may leave taps that read
padding out instead of testing.
"""

from __future__ import annotations

from dataclasses import replace

from unity.ir.prim_expr import Cast, Imm, Load, PrimExpr, PrimVar, Select, SizeVar
from unity.ir.stmt import Store
from unity.ir.visit import rewrite_prim, substitute_prim

from ..blocks.nest import Nest
from ..roles.padding import Edge, padding_of


def unpadded(pad: Nest, nest: Nest) -> Nest | None:
    """The stage that reads through a padding stage; None if that does more than padding."""
    if pad.reduction is not None or nest.reduction is None or not isinstance(pad.finish, Store):
        return None
    value, indices = pad.finish.value, pad.finish.indices
    places = [i for i in indices if isinstance(i, PrimVar)]
    if len(set(places)) != len(indices) or not _is_padding(value):
        return None

    def on_load(e: PrimExpr) -> PrimExpr | None:
        if not isinstance(e, Load) or e.buffer is not pad.output:
            return None
        here: dict[PrimVar | SizeVar, PrimExpr] = dict(zip(places, e.indices, strict=True))
        return substitute_prim(value, here)

    reduction = replace(nest.reduction, value=rewrite_prim(nest.reduction.value, on_load))
    return replace(nest, reduction=reduction)


def _is_padding(value: PrimExpr) -> bool:
    match value:
        case Select(_, Load() | Cast(_, Load()), Imm()):
            return True
        case _:
            return False


def without_padding(nest: Nest) -> tuple[Nest, tuple[Edge, ...]] | None:
    """The stage as if all it reads were there, and where it is; None as `padding_of`."""
    padding, reduction = padding_of(nest), nest.reduction
    if padding is None or padding.choice is None:
        return None if padding is None else (nest, ())
    assert reduction is not None
    choice = padding.choice
    bare = rewrite_prim(reduction.value, lambda e: choice.then if e == choice else None)
    return replace(nest, reduction=replace(reduction, value=bare)), padding.edges
