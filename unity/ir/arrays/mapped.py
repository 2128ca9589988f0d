"""Arrays that lie in a file: mapped, so that memory holds only what is being looked at.

A mapped array is read-only, and its bytes are those of the file at the time they are read. The file
must not be written to while something reads the array: what is read then may be old or new, and
where the file was cut short the system ends the process. `require_unchanged` tells of a file that
was written to, by its size and the time of its last change. A file that is replaced (another one
is written beside it and renamed, as most tools do) or deleted stays what it was.
"""

from __future__ import annotations

import mmap
import os
import weakref
from collections.abc import Iterable
from math import prod
from pathlib import Path

import numpy as np
import numpy.typing as npt

from unity.errors import UnityError
from unity.ir.dtype import Array


class MappedFile(mmap.mmap):
    """The bytes of a file; made by `map_file`.

    Attributes:
        path: Where the file was.
        state: Its size and the time of its last change when it was mapped.
        descriptor: The file, wherever it was moved; closed with this.
    """

    path: Path
    state: tuple[int, int]
    descriptor: int

    def array(self, dtype: npt.DTypeLike, shape: tuple[int, ...], offset: int = 0) -> Array:
        """What lies at an offset, as a read-only array."""
        return np.frombuffer(self, dtype, prod(shape), offset).reshape(shape)

    def require_unchanged(self) -> None:
        """Refuse a file that was written to.

        Raises:
            UnityError: It was.
        """
        if _state(self.descriptor) != self.state:
            raise UnityError(
                f"{self.path} was written to while it was in use",
                hint="load it again; write a new file beside it and rename that",
            )


def map_file(path: Path) -> MappedFile:
    """Map a file.

    Raises:
        OSError: It can't be opened, or is none that can be mapped (a pipe).
        ValueError: It is empty.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        state = _state(descriptor)
        mapped = MappedFile(descriptor, 0, access=mmap.ACCESS_READ)
    except BaseException:
        os.close(descriptor)
        raise
    mapped.path, mapped.state, mapped.descriptor = path, state, descriptor
    weakref.finalize(mapped, os.close, descriptor)
    return mapped


def _state(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return found.st_size, found.st_mtime_ns


def owner_of(array: Array) -> object:
    """What an array's memory belongs to: a file, bytes, or the array that it is a view of.

    >>> whole = np.zeros((2, 3))
    >>> owner_of(whole[1:].T) is whole
    True
    >>> owner_of(np.frombuffer(b"1234", np.int8))
    b'1234'
    """
    owner: object = array
    while isinstance(owner, np.ndarray) and owner.base is not None:
        owner = owner.base
    return owner.obj if isinstance(owner, memoryview) else owner


def evict(array: Array) -> None:
    """Let the system have the memory of a mapped array: it was read, and will hardly be again.

    Whoever does read it again finds it in the file. Other arrays stay as they are.
    """
    file = owner_of(array)
    if not isinstance(file, MappedFile) or not hasattr(file, "madvise"):
        return
    first = np.frombuffer(file, np.uint8).ctypes.data
    low, high = np.lib.array_utils.byte_bounds(array)
    begin = -(-(low - first) // mmap.PAGESIZE) * mmap.PAGESIZE
    end = (high - first) // mmap.PAGESIZE * mmap.PAGESIZE
    if begin < end:
        file.madvise(mmap.MADV_DONTNEED, begin, end - begin)


def require_unchanged(arrays: Iterable[Array]) -> None:
    """Refuse arrays whose files were written to since they were mapped.

    Raises:
        UnityError: One was.
    """
    files = {id(o): o for o in map(owner_of, arrays) if isinstance(o, MappedFile)}
    for file in files.values():
        file.require_unchanged()
