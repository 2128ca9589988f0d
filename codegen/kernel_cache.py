"""The disk cache of kernels: from a kernel as it is before its schedule to its object code.

An entry is found by a key that names everything its code depends on: the kernel's fingerprint, the
passes that lower it, the target, the options, and the compiler itself. It holds what linking and
calling the kernel takes, and the name of its object in the cache of objects. An entry that is
damaged, or that was made for another key, counts as none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from unity.codegen.llvm.build import KernelCode
from unity.codegen.llvm.cache import FOLDER as OBJECTS
from unity.codegen.llvm.cache import ObjectCache, key_of
from unity.codegen.sources import compiler_digest
from unity.errors import UnityError
from unity.ir.dtype import dtype
from unity.ir.prim_expr import Binary, Imm, PrimExpr, SizeVar, imm
from unity.ir.signature import size_params
from unity.ir.stmt import Buffer, PrimFunc
from unity.machine.target import Target

FOLDER = "kernels"
_LIMIT = 64 << 20


@dataclass(frozen=True, slots=True)
class CachedKernel:
    """What the cache tells of a kernel.

    Attributes:
        code: Its code.
        temporaries: The buffers that the kernel is handed besides its own, to compute in.
    """

    code: KernelCode
    temporaries: tuple[Buffer, ...]


@dataclass(frozen=True, slots=True)
class KernelCache:
    """Kernels in a folder, beside the objects.

    Attributes:
        folder: The folder of all caches.
        setting: What besides the kernel itself its code depends on, see `setting_of`.
    """

    folder: Path
    setting: str

    @property
    def _entries(self) -> ObjectCache:
        return ObjectCache(self.folder / FOLDER, _LIMIT, ".json")

    @property
    def _objects(self) -> ObjectCache:
        return ObjectCache(self.folder / OBJECTS)

    def get(self, identity: str, func: PrimFunc, *, may_alias: bool) -> CachedKernel | None:
        """The code of a kernel; None if there is none.

        Args:
            identity: The kernel's fingerprint.
            func: The kernel as it is before it is lowered; the temporaries' shapes are made of its
                sizes.
            may_alias: Whether outputs may lie in inputs, which the plan of memory tells.
        """
        body = self._entries.get(self._key(identity, may_alias))
        entry = None if body is None else _read(body, func)
        data = None if entry is None else self._objects.get(entry.code.key)
        if entry is None or data is None:
            return None
        return replace(entry, code=replace(entry.code, code=data))

    def put(self, identity: str, func: PrimFunc, kernel: CachedKernel, *, may_alias: bool) -> None:
        """Store what `get` gives; nothing that could not be read again."""
        try:
            body = json.dumps(
                {
                    "version": 1,
                    "symbol": kernel.code.symbol,
                    "messages": kernel.code.messages,
                    "temporaries": [_buffer_json(b) for b in kernel.temporaries],
                    "object": kernel.code.key,
                }
            ).encode()
        except _NotPlainError:
            return
        again = _read(body, func)
        if again is not None and _shapes(again) == _shapes(kernel):
            self._entries.put(self._key(identity, may_alias), body)

    def _key(self, identity: str, may_alias: bool) -> str:
        return key_of(identity, self.setting, str(may_alias))

    def trim(self) -> None:
        """Remove the entries used longest ago, where there are too many."""
        self._entries.trim()


def setting_of(passes: str, target: Target, *, checks: bool) -> str:
    """All that kernels' code depends on besides the kernels.

    Args:
        passes: The passes that lower them, as text that tells all of them.
        target: The machine.
        checks: Whether accesses are checked.
    """
    return key_of(passes, repr(target), str(checks), compiler_digest())


def _shapes(kernel: CachedKernel) -> list[tuple[PrimExpr, ...]]:
    return [b.shape for b in kernel.temporaries]


class _NotPlainError(Exception):
    """A buffer can't be written as data."""


def _read(body: bytes, func: PrimFunc) -> CachedKernel | None:
    """An entry, without its object; None if it is none of ours."""
    sizes = {s.name: s for s in size_params(func)}
    try:
        match json.loads(body):
            case {
                "version": 1,
                "symbol": str(symbol),
                "messages": list(messages),
                "temporaries": list(buffers),
                "object": str(name),
            }:
                told = tuple(m for m in messages if isinstance(m, str))
                made = tuple(_buffer(b, sizes) for b in buffers)
                return CachedKernel(KernelCode(symbol, told, name, b""), made)
            case _:
                return None
    except (ValueError, KeyError, TypeError, RecursionError, UnityError):
        return None


def _buffer_json(b: Buffer) -> dict[str, object]:
    if b.strides is not None or b.separators or b.scope != "global":
        raise _NotPlainError
    shape = [_extent_json(e) for e in b.shape]
    return {"name": b.name, "shape": shape, "dtype": b.dtype.name, "align": b.align}


def _buffer(data: Mapping[str, object], sizes: Mapping[str, SizeVar]) -> Buffer:
    match data:
        case {
            "name": str(name),
            "shape": list(shape),
            "dtype": str(element),
            "align": int(align),
        }:
            extents = tuple(_extent(e, sizes) for e in shape)
            return Buffer(name, extents, dtype(element), align=align)
        case _:
            raise ValueError("no buffer")


def _extent_json(e: PrimExpr) -> object:
    """A number, a size's name, or ``[op, a, b]``."""
    match e:
        case Imm(int() as value) if e == imm(value):
            return value
        case SizeVar():
            return e.name
        case Binary():
            return [e.op, _extent_json(e.a), _extent_json(e.b)]
        case _:
            raise _NotPlainError


def _extent(data: object, sizes: Mapping[str, SizeVar]) -> PrimExpr:
    match data:
        case int():
            return imm(data)
        case str():
            return sizes[data]
        case [
            ("add" | "sub" | "mul" | "floordiv" | "floormod" | "min" | "max") as op,
            a,
            b,
        ]:
            return Binary(op, _extent(a, sizes), _extent(b, sizes))
        case _:
            raise ValueError("no extent")
