"""LLVM: lowered prim funcs to object code for CPUs.

`compile_kernels` is the way in; `host_target` describes this machine. IR is written as text by
`kernel`, `stmt` and `expr` on the registers of `emitter`; `machine` hands it to LLVM.
"""

from typing import TYPE_CHECKING

from unity.lazy import exports

from .build import Listing, ObjectCode, compile_kernels
from .cache import default_folder
from .host import host_target
from .pool import POOL_SYMBOLS, pool_text

if TYPE_CHECKING:
    from .expr import OUT_OF_BOUNDS
    from .stmt import OUT_OF_MEMORY

__all__ = [
    "OUT_OF_BOUNDS",
    "OUT_OF_MEMORY",
    "POOL_SYMBOLS",
    "Listing",
    "ObjectCode",
    "compile_kernels",
    "default_folder",
    "host_target",
    "pool_text",
]

__getattr__ = exports(__name__, {"OUT_OF_BOUNDS": ".expr", "OUT_OF_MEMORY": ".stmt"})
