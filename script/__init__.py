"""The language: decorated Python functions become IR, and IR prints as decorated functions."""

from typing import TYPE_CHECKING

from unity.lazy import exports

from . import graph_names as R  # noqa: N812
from . import prim_names as T  # noqa: N812
from .annotations import (
    Buffer,
    Tensor,
    bf16,
    boolean,
    dim,
    f4e2m1,
    f8e4m3,
    f8e4m3fnuz,
    f8e5m2,
    f8e5m2fnuz,
    f16,
    f32,
    f64,
    i2,
    i4,
    i8,
    i16,
    i32,
    i64,
    u2,
    u4,
    u8,
    u16,
    u32,
    u64,
)
from .program import ScriptExtern, ScriptFunction, ScriptPrimFunc, extern, module, set_compiler

if TYPE_CHECKING:
    from .decorators import function, prim_func
    from .macros.macro import macro
    from .parser.text import parse
    from .printer import constants_of, print_module, show

__all__ = [
    "Buffer",
    "R",
    "ScriptExtern",
    "ScriptFunction",
    "ScriptPrimFunc",
    "T",
    "Tensor",
    "bf16",
    "boolean",
    "constants_of",
    "dim",
    "extern",
    "f4e2m1",
    "f8e4m3",
    "f8e4m3fnuz",
    "f8e5m2",
    "f8e5m2fnuz",
    "f16",
    "f32",
    "f64",
    "function",
    "i2",
    "i4",
    "i8",
    "i16",
    "i32",
    "i64",
    "macro",
    "module",
    "parse",
    "prim_func",
    "print_module",
    "set_compiler",
    "show",
    "u2",
    "u4",
    "u8",
    "u16",
    "u32",
    "u64",
]

__getattr__ = exports(
    __name__,
    {
        "constants_of": ".printer",
        "function": ".decorators",
        "macro": ".macros.macro",
        "parse": ".parser.text",
        "prim_func": ".decorators",
        "print_module": ".printer",
        "show": ".printer",
    },
)
