"""Which memories kernels may place buffers in: those that all targets have, and a target's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from unity.errors import UnityError
from unity.ir.marks import SCOPES
from unity.ir.stmt import Allocate, Block, Buffer, PrimFunc
from unity.ir.visit import walk_stmt
from unity.machine.scope import MemoryScope


def require_scope(scope: str, own: Sequence[MemoryScope], where: str) -> None:
    """Refuse a scope that is not there.

    Args:
        scope: Its name.
        own: What a target has besides.
        where: Who asks for it.

    Raises:
        UnityError: There is none of that name; the hint lists those that there are.
    """
    known = (*SCOPES, *(each.name for each in own))
    if scope not in known:
        hint = f"there are {', '.join(known)}; others are told by Target(scopes=...)"
        raise UnityError(f"{where}: the target has no scope {scope!r}", hint=hint)


def check_scopes(name: str, func: PrimFunc, own: Sequence[MemoryScope]) -> None:
    """Refuse a kernel with buffers in memories that are not there.

    Raises:
        UnityError: There is one, naming the kernel and the buffer.
    """
    for buffer in _buffers(func):
        require_scope(buffer.scope, own, f"{name}, buffer {buffer.name}")


def _buffers(func: PrimFunc) -> Iterator[Buffer]:
    """Those that a kernel is given, and those that it allocates."""
    yield from func.buffers
    for s in walk_stmt(func.body):
        if isinstance(s, Allocate):
            yield s.buffer
        elif isinstance(s, Block):
            yield from s.allocations
