"""Arrays from outside: whatever numpy or DLPack understands comes in, results go out in kind.

What native code takes is a *plain* array: exactly ``numpy.ndarray``, native byte order, aligned,
C-contiguous. Others are viewed as one without a copy where possible; arrays that are not contiguous
are copied. Wrong dtypes and foreign byte orders are refused, never converted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    from typing_extensions import CapsuleType

from unity.errors import UnityError
from unity.ir.dtype import BFLOAT16, Array, dtype

from .exchange import remember

Export: TypeAlias = Callable[[Array], object]
"""Turns a result into the caller's kind of array."""


@runtime_checkable
class _DLPack(Protocol):
    def __dlpack__(self, *, stream: None = None) -> CapsuleType: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...


class _TorchModules(Protocol):
    Parameter: type


class _Torch(Protocol):
    """What is used of a torch tensor and of the torch module."""

    Tensor: type
    nn: _TorchModules

    dtype: object
    bfloat16: object
    int16: object

    def view(self, dtype: object) -> _Torch: ...
    def detach(self) -> _Torch: ...
    def numpy(self) -> Array: ...
    def from_numpy(self, array: Array) -> _Torch: ...


def plain(array: Array, wanted: str | None, keep: bool = False) -> Array:
    """The array as a plain one with the dtype's own descriptor, copied if its layout demands it.

    With `keep` its strides stay as they are.
    """
    result = np.asarray(array)
    if not ((keep or result.flags.c_contiguous) and result.flags.aligned):
        result = np.require(result, requirements=("C", "A")).reshape(result.shape)
    if wanted is not None:
        own = dtype(wanted).numpy
        if result.dtype is not own and result.dtype == own:
            result = result.view(own)
    return result


def accept(
    value: object, wanted: str | None, where: str, keep: bool = False
) -> tuple[Array, Export | None]:
    """An array for a tensor argument, and how to give results back in its kind (None: as numpy).

    Args:
        value: A numpy array, anything with DLPack, or a number.
        wanted: The dtype the parameter has, for numbers and for a plain result.
        where: How messages name the argument.
        keep: Whether an array that is not contiguous is taken as it lies, not copied.

    Raises:
        UnityError: It is none of these, or of a foreign byte order or an unknown dtype.
    """
    if isinstance(value, np.ndarray | np.generic):
        array: Array = np.asarray(value)
        if not array.dtype.isnative:
            raise UnityError(
                f"{where}: the array has foreign byte order ({array.dtype.str})",
                hint="x.astype(x.dtype.newbyteorder('=')) converts it",
            )
        return plain(array, wanted, keep), None
    if isinstance(value, bool | int | float):
        return np.asarray(value, None if wanted is None else dtype(wanted).numpy), None
    if isinstance(value, _DLPack):
        return _from_dlpack(value, wanted, where, keep)
    raise UnityError(
        f"{where}: expected an array, got {type(value).__name__}",
        hint="numpy.asarray(x, dtype) makes one; whatever has __dlpack__ is taken as it is",
    )


def _from_dlpack(
    value: _DLPack, wanted: str | None, where: str, keep: bool
) -> tuple[Array, Export]:
    if type(value).__module__.partition(".")[0] == "torch":
        return _from_torch(cast("_Torch", value), wanted, where, keep)
    try:
        array: Array = np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as e:
        raise UnityError(f"{where}: can't take the array through DLPack: {e}") from e
    return plain(array, wanted, keep), _exporter(value)


def _exporter(value: object) -> Export:
    namespace = getattr(value, "__array_namespace__", None)
    maker: object = getattr(namespace(), "from_dlpack", None) if callable(namespace) else None
    return cast("Export", maker) if callable(maker) else _same


def _same(array: Array) -> object:
    return array


def _from_torch(value: _Torch, wanted: str | None, where: str, keep: bool) -> tuple[Array, Export]:
    torch = cast("_Torch", sys.modules["torch"])
    tensor = value.detach()
    try:
        if tensor.dtype == torch.bfloat16:
            array = tensor.view(torch.int16).numpy().view(BFLOAT16.numpy)
        else:
            array = tensor.numpy()
    except (RuntimeError, TypeError) as e:
        raise UnityError(f"{where}: can't take the torch tensor: {e}") from e

    if type(value) in (torch.Tensor, torch.nn.Parameter):
        remember(type(value), torch.from_numpy, _to_torch, refuse_if="is_neg")
    return plain(array, wanted, keep), _to_torch


def _to_torch(result: Array) -> object:
    torch = cast("_Torch", sys.modules["torch"])
    if result.dtype.kind == "V" and result.dtype == BFLOAT16.numpy:
        return torch.from_numpy(result.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(result)
