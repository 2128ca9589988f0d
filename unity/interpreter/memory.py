"""The `memory.*` operators, which planned modules consist of: real storage, really aliased.

Two tensors that a plan puts in the same place do overwrite each other here, so a wrong plan gives
a wrong result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from unity.errors import UnityError
from unity.interpreter.storage import arena_view, fresh, fresh_arena
from unity.interpreter.values import Value, kind_of
from unity.ir.attrs import Attrs, AttrValue
from unity.ir.dtype import Array, DType, dtype

MemoryRule: TypeAlias = Callable[[Sequence[Value], Attrs], Value]


def _alloc_arena(args: Sequence[Value], attrs: Attrs) -> Value:
    (nbytes,) = ints(args[0])
    return fresh_arena(nbytes)


def _view(args: Sequence[Value], attrs: Attrs) -> Value:
    arena, (offset,), shape = _array(args[0]), ints(args[1]), ints(args[2])
    return arena_view(arena, offset, shape, _dtype(attrs["dtype"]))


def _alloc_tensor(args: Sequence[Value], attrs: Attrs) -> Value:
    return fresh(ints(args[0]), _dtype(attrs["dtype"]))


def _reshape_view(args: Sequence[Value], attrs: Attrs) -> Value:
    source, shape = _array(args[0]), ints(args[1])
    result = source.reshape(shape)
    if source.size and not np.shares_memory(source, result):
        raise UnityError("memory.reshape_view of a tensor that is not contiguous")
    return result


def ints(value: Value) -> tuple[int, ...]:
    """A shape value.

    Raises:
        UnityError: It is none.
    """
    if isinstance(value, tuple):
        found = tuple(v for v in value if isinstance(v, int))
        if len(found) == len(value):
            return found
    raise UnityError(f"expected a shape, got {kind_of(value)}")


def _array(value: Value) -> Array:
    if isinstance(value, np.ndarray):
        return value
    raise UnityError(f"expected a tensor, got {kind_of(value)}")


def _dtype(value: AttrValue) -> DType:
    assert isinstance(value, str | DType), value
    return dtype(value)


MEMORY_OPS: dict[str, MemoryRule] = {
    "memory.alloc_arena": _alloc_arena,
    "memory.view": _view,
    "memory.alloc_tensor": _alloc_tensor,
    "memory.reshape_view": _reshape_view,
}
"""All but ``memory.call_kernel``, which needs the module (`unity.interpreter.graph`)."""
