"""CompactBuffers: a temporary shrinks to what one iteration of the loops around its blocks uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unity.ir.module import IRModule
from unity.ir.stmt import Allocate, Block, Buffer, PrimFunc, Stmt
from unity.ir.visit import stmt_children, walk_stmt

from ..blocks.compaction import compacted
from ..blocks.memory_of_runs import in_runs
from ..passes import Context, Pass, Sight
from .functions import map_prim_funcs


@dataclass(frozen=True, slots=True)
class CompactBuffers(Pass):
    """Temporaries that hold values of one iteration only get the extent, and the place, of that.

    What `compute_at`, `cache_read` or `cache_write` leave behind: a buffer as large as all of its
    values, of which each iteration of the loops around makes and takes a part. Blocks that take
    only what the same iteration made of it before may share the room with other iterations; where
    that is not proven, or the size of the part is not known, the buffer stays. Iterations on
    threads that need more than a stack holds share memory in a few runs (`memory_of_runs.py`).

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... n = dim("n")
    ...
    ... @script.prim_func
    ... def main(a: f32[Buffer, n, 8], c: f32[Buffer, n, 4]) -> None:
    ...     t = T.alloc((n, 8), "float32")
    ...     for i in range(n):
    ...         for j in range(8):
    ...             with T.block("double"):
    ...                 vi, vj = T.axis.remap("SS", i, j)
    ...                 t[vi, vj] = a[vi, vj] * 2.0
    ...         for j in range(4):
    ...             with T.block("pairs"):
    ...                 vi, vj = T.axis.remap("SS", i, j)
    ...                 c[vi, vj] = t[vi, vj * 2] + t[vi, vj * 2 + 1]
    ... ''')
    >>> print(print_module(CompactBuffers()(before, Context())), end="")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.prim_func
    def main(a: f32[Buffer, n, 8], c: f32[Buffer, n, 4]) -> None:
        for i in range(n):
            t = T.alloc((1, 8), "float32")
            for j in range(8):
                with T.block("double"):
                    vi, vj = T.axis.remap("SS", i, j)
                    t[0, vj] = a[vi, vj] * 2.0
            for j in range(4):
                with T.block("pairs"):
                    vi, vj = T.axis.remap("SS", i, j)
                    c[vi, vj] = t[0, vj * 2] + t[0, vj * 2 + 1]
    """

    sees: ClassVar[Sight] = "kernel"

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each prim func by itself."""
        return map_prim_funcs(module, lambda f: in_runs(compact(f), ctx.target.threads))


def compact(func: PrimFunc) -> PrimFunc:
    """The prim func with its temporaries compacted; itself if none can be."""
    if not any(isinstance(s, Block) for s in walk_stmt(func.body)):
        return func
    for buffer in _seen(func.body):
        func = compacted(func, buffer)
    return func


def _seen(s: Stmt) -> list[Buffer]:
    """The temporaries outside blocks: inside of one the loops around are not seen."""
    if isinstance(s, Block):
        return []
    here = [s.buffer] if isinstance(s, Allocate) else []
    return here + [b for child in stmt_children(s) for b in _seen(child)]
