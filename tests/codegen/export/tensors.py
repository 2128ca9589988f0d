"""DLPack's structs for ctypes, and calls of exported libraries with numpy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy.typing as npt

Arrays = Sequence[npt.NDArray[Any]]
CODES = {"i": 0, "u": 1, "f": 2, "b": 6}


class DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


def tensor(array: npt.NDArray[Any], *, strides: bool = True) -> DLTensor:
    code = 4 if array.dtype == ml_dtypes.bfloat16 else CODES[array.dtype.kind]
    steps = [s // array.itemsize for s in array.strides]
    dims = ctypes.c_int64 * max(array.ndim, 1)
    return DLTensor(
        array.ctypes.data, 1, 0, array.ndim, code, array.itemsize * 8, 1,
        dims(*array.shape), dims(*steps) if strides else None, 0,
    )  # fmt: skip


class Failed(Exception):  # noqa: N818
    """A call gave something else than 0."""


class Exported:
    """A library, called by the names that its file gives."""

    def __init__(self, path: Path) -> None:
        self.path, self.library = path, ctypes.CDLL(str(path))
        self.name = path.name.removeprefix("lib").partition(".")[0]

    def function(self, name: str) -> Any:
        return self.library[f"{self.name}_{name}"]

    def check(self, result: int) -> None:
        if result:
            message = self.function("message")
            message.restype = ctypes.c_char_p
            raise Failed(message(result).decode())

    def shapes(self, inputs: Arrays, ranks: Sequence[int], name: str = "main") -> list[list[int]]:
        dims = [(ctypes.c_int64 * max(rank, 1))() for rank in ranks]
        places = (ctypes.c_void_p * len(dims))(*(ctypes.addressof(d) for d in dims))
        self.check(self.function(f"{name}_shapes")(pointers([tensor(x) for x in inputs]), places))
        return [list(d)[:rank] for d, rank in zip(dims, ranks, strict=True)]

    def run(self, inputs: Arrays, outputs: Arrays, name: str = "main") -> None:
        self.run_tensors([tensor(x) for x in inputs], [tensor(y) for y in outputs], name)

    def run_tensors(
        self,
        inputs: Sequence[DLTensor | None],
        outputs: Sequence[DLTensor | None],
        name: str = "main",
    ) -> None:
        self.check(self.function(name)(pointers(inputs), pointers(outputs)))


def pointers(tensors: Sequence[DLTensor | None]) -> Any:
    kind = ctypes.POINTER(DLTensor)
    return (kind * len(tensors))(*(kind() if t is None else ctypes.pointer(t) for t in tensors))
