"""Tensors and parameter dictionaries as TVM saves them; `params` reads them back."""

from __future__ import annotations

import struct
from collections.abc import Mapping

import numpy as np

from unity.errors import UnityError
from unity.ir.dtype import Array, dtype

from .params import LIST_MAGIC, TENSOR_MAGIC

_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4}


def tensor_bytes(array: Array) -> bytes:
    """A tensor.

    Raises:
        UnityError: The format has no such dtype.
    """
    kind = dtype(array.dtype)
    name = "uint1" if kind.kind == "bool" else str(kind)
    code = name.rstrip("0123456789")
    if code not in _CODES:
        raise UnityError(f"a parameter dictionary holds no {kind}")
    data = np.ascontiguousarray(array)
    return b"".join(
        (
            struct.pack("<QQii", TENSOR_MAGIC, 0, 1, 0),
            struct.pack("<iBBH", array.ndim, _CODES[code], int(name[len(code) :]), 1),
            struct.pack(f"<{array.ndim}q", *array.shape),
            struct.pack("<q", data.nbytes),
            data.tobytes(),
        )
    )


def params_bytes(arrays: Mapping[str, Array]) -> bytes:
    """A parameter dictionary.

    >>> from unity.frontend.relay.saved.params import read_params
    >>> read_params(params_bytes({"w": np.array([1, 2], np.int8)}))
    {'w': array([1, 2], dtype=int8)}
    """
    names = [name.encode() for name in arrays]
    parts = [struct.pack("<QQQ", LIST_MAGIC, 0, len(names))]
    parts += (struct.pack("<Q", len(n)) + n for n in names)
    parts.append(struct.pack("<Q", len(names)))
    parts += (tensor_bytes(np.asarray(a)) for a in arrays.values())
    return b"".join(parts)
