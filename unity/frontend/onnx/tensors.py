"""ONNX tensors into numpy arrays, distrusting every number in them.

Sizes are checked against the bytes that are there before anything is allocated; external data must
lie inside the model's folder.
"""

from __future__ import annotations

import sys
from math import prod
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from unity.errors import UnityError, UnsupportedError
from unity.ir.dtype import Array, DType

DTYPES: dict[int, str] = {
    onnx.TensorProto.FLOAT: "float32",
    onnx.TensorProto.DOUBLE: "float64",
    onnx.TensorProto.FLOAT16: "float16",
    onnx.TensorProto.BFLOAT16: "bfloat16",
    onnx.TensorProto.FLOAT8E4M3FN: "float8_e4m3fn",
    onnx.TensorProto.FLOAT8E4M3FNUZ: "float8_e4m3fnuz",
    onnx.TensorProto.FLOAT8E5M2: "float8_e5m2",
    onnx.TensorProto.FLOAT8E5M2FNUZ: "float8_e5m2fnuz",
    onnx.TensorProto.INT4: "int4",
    onnx.TensorProto.INT8: "int8",
    onnx.TensorProto.INT16: "int16",
    onnx.TensorProto.INT32: "int32",
    onnx.TensorProto.INT64: "int64",
    onnx.TensorProto.UINT4: "uint4",
    onnx.TensorProto.UINT8: "uint8",
    onnx.TensorProto.UINT16: "uint16",
    onnx.TensorProto.UINT32: "uint32",
    onnx.TensorProto.UINT64: "uint64",
    onnx.TensorProto.BOOL: "bool",
}


def dtype_of(code: int, what: str) -> DType:
    """The dtype of an ONNX type code.

    Raises:
        UnsupportedError: There is none for it (strings, complex numbers).
    """
    if code in DTYPES:
        return DType(DTYPES[code])
    names = {v: k for k, v in onnx.TensorProto.DataType.items()}
    found = names.get(code, str(code))
    raise UnsupportedError(f"{what} has a type that Unity lacks", [f"the element type {found}"])


def array_of(tensor: onnx.TensorProto, folder: Path | None, what: str | None = None) -> Array:
    """The array of a tensor.

    Args:
        tensor: The tensor.
        folder: Where external data may lie; None for nowhere.
        what: What to call it in messages.

    Raises:
        UnityError: Its type is unknown, or its declared size is not that of its data.
    """
    name = what or f"the initializer {tensor.name!r}"
    kind = dtype_of(tensor.data_type, name)
    shape = tuple(int(d) for d in tensor.dims)
    if any(d < 0 for d in shape):
        raise UnityError(f"{name} declares the shape {shape}")
    if tensor.HasField("segment"):
        raise UnityError(f"{name} is stored in segments, which Unity lacks")
    count = prod(shape)
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return _external(tensor, folder, name, kind, shape)
    if tensor.HasField("raw_data"):
        raw = tensor.raw_data  # a copy each time it is asked for
        _require_bytes(name, shape, kind, len(raw))
        if kind.bits >= 8 and sys.byteorder == "little":
            return np.frombuffer(raw, kind.numpy).reshape(shape)
    else:
        found = _typed_length(tensor)
        packed = kind.bits == 4
        if found != (-(-count // 2) if packed else count):
            raise UnityError(f"{name} declares the shape {shape}, but holds {found} elements")
    return np.asarray(numpy_helper.to_array(tensor)).reshape(shape)


def _require_bytes(name: str, shape: tuple[int, ...], kind: DType, found: int) -> None:
    needed = -(-prod(shape) * kind.bits // 8)
    if found != needed:
        raise UnityError(
            f"{name} declares {kind}{list(shape)}, which is {needed} bytes, but holds {found}",
            hint="the file is damaged or cut short",
        )


def _typed_length(tensor: onnx.TensorProto) -> int:
    fields = (
        tensor.float_data,
        tensor.int32_data,
        tensor.int64_data,
        tensor.double_data,
        tensor.uint64_data,
    )
    return max(len(f) for f in fields)


def _external(
    tensor: onnx.TensorProto, folder: Path | None, name: str, kind: DType, shape: tuple[int, ...]
) -> Array:
    entries = {e.key: e.value for e in tensor.external_data}
    location = entries.get("location", "")
    if folder is None:
        raise UnityError(
            f"{name} is stored in the file {location!r}, but the model was not read from a folder",
            hint="pass the model's path, not its bytes",
        )
    path = inside(folder, location, name)
    offset, length = _number(entries, "offset", name), _number(entries, "length", name)
    size = path.stat().st_size
    needed = -(-prod(shape) * kind.bits // 8)
    start = offset or 0
    if length is not None and length != needed:
        raise UnityError(f"{name} declares {needed} bytes, but its external data {length}")
    if start + needed > size:
        raise UnityError(
            f"{name} needs the bytes {start} to {start + needed} of {location!r}, which has {size}",
            hint="the file is damaged or cut short",
        )
    if kind.bits < 8:
        raise UnityError(f"{name}: external data of {kind} is not supported")
    with path.open("rb") as file:
        file.seek(start)
        return np.fromfile(file, kind.numpy, prod(shape)).reshape(shape)


def _number(entries: dict[str, str], key: str, name: str) -> int | None:
    text = entries.get(key)
    if text is None:
        return None
    if not text.isdigit():
        raise UnityError(f"{name}: external data has {key} {text!r}")
    return int(text)


def inside(folder: Path, location: str, name: str) -> Path:
    """The file `location` names, which must lie in `folder`, links followed.

    Raises:
        UnityError: It leads elsewhere, or is no file.
    """
    root = folder.resolve()
    path = (root / location).resolve()
    if not location or Path(location).is_absolute() or not path.is_relative_to(root):
        raise UnityError(
            f"{name}: external data {location!r} is outside the model's folder",
            hint="Unity reads only files beside the model",
        )
    if not path.is_file():
        raise UnityError(f"{name}: the external data file {location!r} is missing")
    return path
