"""LLVM: lowered prim funcs to object code for CPUs.

`compile_kernels` is the way in; `host_target` describes this machine. IR is written as text by
`kernel`, `stmt` and `expr` on the registers of `emitter`; `machine` hands it to LLVM. Names are
imported when they are first used: a child process that compiles one text needs `machine` alone.
"""

from typing import TYPE_CHECKING

from unity.lazy import exports

if TYPE_CHECKING:
    from .build import Listing, ObjectCode, compile_kernels
    from .cache import default_folder
    from .expr import OUT_OF_BOUNDS
    from .host import host_target
    from .pool.module import POOL_SYMBOLS, pool_text
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

__getattr__ = exports(
    __name__,
    {
        "OUT_OF_BOUNDS": ".expr",
        "OUT_OF_MEMORY": ".stmt",
        "POOL_SYMBOLS": ".pool.module",
        "Listing": ".build",
        "ObjectCode": ".build",
        "compile_kernels": ".build",
        "default_folder": ".cache",
        "host_target": ".host",
        "pool_text": ".pool.module",
    },
)
