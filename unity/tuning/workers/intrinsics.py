"""Tensor intrinsics that a program registered, as text: children know only those of `DOTS`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import cast

from unity.codegen.workers.child import Message
from unity.ir.module import IRModule
from unity.script import parse, print_module
from unity.transform.schedule.dots import DOTS, TILE_STEPS
from unity.transform.schedule.intrinsics import INTRINSICS, intrinsic_named, register_intrinsic
from unity.transform.schedule.tensor_intrinsic import TensorIntrinsic

_DESCRIPTION, _IMPLEMENTATION = "description", "implementation"


def registered() -> Message:
    """The texts of all that were registered, by name."""
    own = INTRINSICS.keys() - DOTS.keys() - TILE_STEPS.keys()
    return {name: _text(INTRINSICS[name]) for name in sorted(own)}


def register(texts: object) -> None:
    """Register what `registered` told, in another process.

    Raises:
        UnityError: A text is none, or there is another intrinsic of the name.
    """
    for name, text in cast("Mapping[str, str]", texts).items():
        if intrinsic_named(name) is None:
            funcs = parse(text).prim_funcs()
            made = TensorIntrinsic(funcs[_DESCRIPTION], funcs[_IMPLEMENTATION])
            register_intrinsic(name, made)


@lru_cache(maxsize=64)
def _text(intrinsic: TensorIntrinsic) -> str:
    funcs = {_DESCRIPTION: intrinsic.description, _IMPLEMENTATION: intrinsic.implementation}
    return print_module(IRModule(funcs))
