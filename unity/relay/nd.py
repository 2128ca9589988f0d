"""Arrays and devices under the names that scripts use: numpy's arrays, on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unity.errors import UnityError

from .types import dtype_of


@dataclass(frozen=True)
class Device:
    """The CPU."""

    device_id: int = 0
    device_type: int = 1

    @property
    def exist(self) -> bool:
        """Whether it is there."""
        return True

    def sync(self) -> None:
        """Wait for what runs; nothing runs behind a call."""


def cpu(device_id: int = 0) -> Device:
    """The CPU, which has one number: threads are a property of executables."""
    return Device(device_id)


def device(target: str = "cpu", device_id: int = 0) -> Device:
    """The device of a kind of target.

    Raises:
        UnityError: It is none of the CPU.
    """
    kind = target.split()[0] if target.split() else ""
    if kind not in ("llvm", "cpu", "c"):
        raise UnityError(f"no device {target!r}", hint='programs run on "cpu"')
    return Device(device_id)


class NDArray(np.ndarray[Any, np.dtype[Any]]):
    """An array of numpy's, with TVM's names for what it has."""

    def numpy(self) -> npt.NDArray[Any]:
        """A copy as plain numpy."""
        return np.array(self)

    asnumpy = numpy

    def copyfrom(self, source: npt.ArrayLike) -> NDArray:
        """Take over the numbers of another array."""
        np.copyto(self, np.asarray(source), casting="unsafe")
        return self

    def copyto(self, target: NDArray | Device) -> NDArray:
        """Give them to another array, or to a new one on a device."""
        if isinstance(target, Device):
            return array(self)
        return target.copyfrom(self)


def array(values: npt.ArrayLike, device: Device | None = None) -> NDArray:
    """A copy of numbers as an array; Python's floats are float32."""
    found = np.array(values)
    if not isinstance(values, np.ndarray | np.generic) and found.dtype == np.float64:
        found = found.astype(np.float32)
    return np.ascontiguousarray(found).reshape(found.shape).view(NDArray)


def empty(shape: Sequence[int], dtype: object = "float32", device: Device | None = None) -> NDArray:
    """An array to be written."""
    return np.zeros(shape, dtype_of(dtype).numpy).view(NDArray)
