"""Linking object code into this process: bytes in, addresses of functions out.

The runtime's only user of LLVM: its JIT linker, which runs no passes and generates no code.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache

import llvmlite.binding as llvm

_names = itertools.count()
_linking = threading.Lock()


class Library:
    """Linked object code; functions may be called while the library is alive.

    Attributes:
        addresses: Where each exported symbol lies.
    """

    __slots__ = ("_tracker", "addresses")

    def __init__(self, tracker: llvm.ResourceTracker, addresses: Mapping[str, int]) -> None:
        self._tracker = tracker
        self.addresses = dict(addresses)

    def __getitem__(self, symbol: str) -> int:
        """The address of an exported symbol."""
        return self.addresses[symbol]


@lru_cache(maxsize=1)
def _jit() -> llvm.LLJIT:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.create_lljit_compiler(use_jit_link=True)


def link(
    objects: Sequence[bytes], exports: Sequence[str], imports: Mapping[str, int] | None = None
) -> Library:
    """Link object files with each other and with the symbols of the process.

    Args:
        objects: Contents of object files for this machine.
        exports: The symbols whose addresses are wanted.
        imports: Addresses of further symbols that the objects use.

    Raises:
        RuntimeError: A symbol is missing, or the bytes are no object file of this machine.
    """
    builder = llvm.JITLibraryBuilder()
    for data in objects:
        builder.add_object_img(data)
    for symbol, address in (imports or {}).items():
        builder.import_symbol(symbol, address)
    builder.add_current_process()
    for symbol in exports:
        builder.export_symbol(symbol)
    with _linking:
        tracker = builder.link(_jit(), f"unity{next(_names)}")
    return Library(tracker, {symbol: tracker[symbol] for symbol in exports})


_POOL_SYMBOLS = (
    "unity_parallel_for",
    "unity_set_threads",
    "unity_thread_count",
    "unity_workers",
)
_pool: list[Library] = []
_starting = threading.Lock()


def thread_pool(object_code: bytes) -> Library:
    """The process's thread pool; linked from the object on the first call, the same ever after.

    Pass its `addresses` as the imports of kernels.
    """
    with _starting:
        if not _pool:
            _pool.append(link([object_code], _POOL_SYMBOLS))
        return _pool[0]
