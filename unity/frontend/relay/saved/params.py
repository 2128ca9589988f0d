"""Parameter dictionaries (``save_param_dict``): names and tensors, one after the other.

Little endian: a magic number, the names, the tensors. The format is that of all versions of TVM.
No length is believed before the file is known to be as long; tensors are views of the file.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from unity.errors import Span, UnityError
from unity.ir.arrays.mapped import MappedFile, map_file
from unity.ir.dtype import Array

LIST_MAGIC = 0xF7E58D4F05049CB7
TENSOR_MAGIC = 0xDD5E40F096B4A13F
_MOST_DIMS = 32
_TYPES: Mapping[tuple[int, int], np.dtype[Any]] = {
    **{(0, bits): np.dtype(f"<i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{(1, bits): np.dtype(f"<u{bits // 8}") for bits in (8, 16, 32, 64)},
    **{(2, bits): np.dtype(f"<f{bits // 8}") for bits in (16, 32, 64)},
    (1, 1): np.dtype(np.bool_),
    (0, 1): np.dtype(np.bool_),
    (6, 8): np.dtype(np.bool_),
    (4, 16): np.dtype(ml_dtypes.bfloat16),
}


def read_params(
    source: str | Path | bytes | memoryview, name: str = "the parameters"
) -> dict[str, Array]:
    """Read a parameter dictionary.

    Args:
        source: Its file, which is mapped, or its bytes.
        name: What messages call bytes.

    Returns:
        Read-only arrays by name.

    Raises:
        UnityError: It is none, or damaged.
    """
    data: bytes | memoryview | MappedFile
    if isinstance(source, bytes | memoryview):
        data = source
    else:
        name = Path(source).name
        try:
            data = map_file(Path(source))
        except (OSError, ValueError) as error:
            raise UnityError(f"can't read the parameters {source}: {error}") from None
    reader = _Reader(data, name, None)
    if len(data) < 8 or reader.take("<Q", "the magic number") != LIST_MAGIC:
        raise reader.error(
            "this is no parameter dictionary of TVM",
            "relay.save_param_dict(params) writes one",
        )
    reader.take("<Q", "a reserved word")
    names = [reader.string() for _ in range(reader.count("names", 8))]
    if len(set(names)) < len(names):
        raise reader.error("it names a parameter twice")
    tensors = reader.count("tensors", 44)
    if tensors != len(names):
        raise reader.error(f"{len(names)} names, but {tensors} tensors")
    found = {n: reader.tensor(n) for n in names}
    reader.require_end()
    return found


def one_tensor(data: bytes, span: Span | None) -> Array:
    """The tensor that is all of some bytes, as JSON holds them.

    Raises:
        UnityError: They are none.
    """
    reader = _Reader(data, "the tensor", span)
    found = reader.tensor("it")
    reader.require_end()
    return found


@dataclass(slots=True)
class _Reader:
    """A place in bytes."""

    data: bytes | memoryview | MappedFile
    name: str
    span: Span | None
    at: int = 0

    def error(self, message: str, hint: str = "the file is damaged or cut short") -> UnityError:
        return UnityError(f"{self.name}: {message}", self.span, hint)

    def take(self, form: str, what: str) -> int:
        """A number."""
        size = struct.calcsize(form)
        self.require(size, what)
        (value,) = struct.unpack_from(form, self.data, self.at)
        self.at += size
        return int(value)

    def require(self, size: int, what: str) -> None:
        """That so many bytes are left."""
        if size > len(self.data) - self.at:
            raise self.error(f"{what} needs {size} bytes at {self.at}, of {len(self.data)} in all")

    def count(self, what: str, least: int) -> int:
        """How many things follow, each of which takes so many bytes at least."""
        found = self.take("<Q", f"the number of {what}")
        self.require(found * least, f"{found} {what}")
        return found

    def string(self) -> str:
        length = self.take("<Q", "the length of a name")
        self.require(length, "a name")
        text = bytes(self.data[self.at : self.at + length])
        self.at += length
        try:
            return text.decode()
        except UnicodeDecodeError:
            raise self.error("a name that is no text") from None

    def tensor(self, name: str) -> Array:
        if self.take("<Q", "a tensor") != TENSOR_MAGIC:
            raise self.error(f"where the tensor of {name!r} should begin is something else")
        self.take("<Q", "a reserved word")
        self.take("<i", "a device")
        self.take("<i", "a device")
        rank = self.take("<i", "the number of dims")
        code, bits = self.take("<B", "a dtype"), self.take("<B", "a dtype")
        lanes = self.take("<H", "a dtype")
        dtype = _TYPES.get((code, bits))
        if dtype is None or lanes != 1:
            raise self.error(f"{name!r} has a dtype of code {code}, {bits} bits, {lanes} lanes")
        if not 0 <= rank <= _MOST_DIMS:
            raise self.error(f"{name!r} has {rank} dims")
        shape = tuple(self.take("<q", "a dim") for _ in range(rank))
        size = self.take("<q", "the size of a tensor")
        if min(shape, default=0) < 0 or prod(shape) * dtype.itemsize != size:
            raise self.error(f"{name!r} of the shape {shape} and {dtype} can't have {size} bytes")
        self.require(size, f"the tensor {name!r}")
        array = np.frombuffer(self.data, dtype, prod(shape), self.at).reshape(shape)
        self.at += size
        array.flags.writeable = False
        return array

    def require_end(self) -> None:
        """That nothing is left."""
        if self.at != len(self.data):
            raise self.error(f"{len(self.data) - self.at} bytes too many at its end")
