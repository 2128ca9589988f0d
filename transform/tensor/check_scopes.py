"""CheckScopes: the memories of kernels' buffers are there, and large enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unity.arith.analyzer import bounds
from unity.errors import UnityError
from unity.ir.module import IRModule
from unity.ir.prim_expr import Binary, PrimExpr, imm
from unity.ir.stmt import Allocate, Block, Buffer, PrimFunc, Stmt
from unity.ir.visit import stmt_children
from unity.machine.scope import MemoryScope

from ..passes import Context, Pass, Sight
from ..scopes import check_scopes


@dataclass(frozen=True, slots=True)
class CheckScopes(Pass):
    """Refuses kernels that a target's own memories are missing or too small for; changes none.

    Comes when temporaries have their sizes (`CompactBuffers`). What stands one behind the other
    shares a memory, what stands within each other does not.

    >>> from unity import Target
    >>> from unity.script import parse
    >>> module = parse('''
    ... @script.prim_func
    ... def main(c: f32[Buffer, 64]) -> None:
    ...     a = T.alloc((48,), "float32", scope="acme.sram")
    ...     b = T.alloc((32,), "float32", scope="acme.sram")
    ...     for i in range(32):
    ...         b[i] = 1.0
    ... ''')
    >>> def machine(size: int) -> Context:
    ...     return Context(Target("acme", "", "", (), scopes=(MemoryScope("acme.sram", size),)))
    >>> CheckScopes()(module, machine(320)) is module
    True
    >>> CheckScopes()(module, machine(256))
    Traceback (most recent call last):
    unity.errors.UnityError: main needs 320 bytes of 'acme.sram', which has 256
    hint: at a time it holds a (192 bytes), b (128 bytes)
    """

    sees: ClassVar[Sight] = "kernel"

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each prim func by itself."""
        for name, func in module.prim_funcs().items():
            check_scopes(name, func, ctx.target.scopes)
            for scope in ctx.target.scopes:
                _require_room(name, func, scope)
        return module


def _require_room(name: str, func: PrimFunc, scope: MemoryScope) -> None:
    held = _most(name, func.body, scope)
    needed = sum(held.values())
    if needed > scope.bytes:
        each = ", ".join(f"{b.name} ({size:,} bytes)" for b, size in held.items())
        raise UnityError(
            f"{name} needs {needed:,} bytes of {scope.name!r}, which has {scope.bytes:,}",
            hint=f"at a time it holds {each}",
        )


def _most(name: str, s: Stmt, scope: MemoryScope) -> dict[Buffer, int]:
    """What a statement holds of a memory when it holds most."""
    match s:
        case Allocate():
            own = [s.buffer]
        case Block():
            own = list(s.allocations)
        case _:
            own = []
    inner = [_most(name, child, scope) for child in stmt_children(s)]
    most = max(inner, key=lambda held: sum(held.values()), default=dict[Buffer, int]())
    return {b: _bytes(name, b) for b in own if b.scope == scope.name} | most


def _bytes(name: str, buffer: Buffer) -> int:
    """The room for a buffer, whatever sizes are within their bounds.

    Raises:
        UnityError: They have none.
    """
    last: PrimExpr = imm(0)
    for k, extent in enumerate(buffer.shape):
        if buffer.strides is None:
            last = Binary("add", Binary("mul", last, extent), Binary("sub", extent, imm(1)))
        else:
            step = Binary("mul", Binary("sub", extent, imm(1)), buffer.strides[k])
            last = Binary("add", last, step)
    _, most = bounds(last)
    if most is None:
        raise UnityError(
            f"{name}: nothing bounds the size of {buffer.name}, which is in {buffer.scope!r}",
            hint="tiles of known sizes, or dim(..., max=...)",
        )
    return (most + 1) * buffer.dtype.bytes
