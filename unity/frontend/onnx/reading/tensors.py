"""ONNX tensors into numpy arrays, distrusting every number in them.

Sizes are checked against the bytes that are there before anything is allocated. What is large and
lies in a file stays there (`storage`).
"""

from __future__ import annotations

import sys
from math import prod

import numpy as np
import onnx
from onnx import helper, numpy_helper

from unity.errors import UnityError, UnsupportedError
from unity.ir.dtype import Array, DType

from .outline import LEAST
from .storage import Storage

DTYPES: dict[int, str] = {
    onnx.TensorProto.FLOAT: "float32",
    onnx.TensorProto.DOUBLE: "float64",
    onnx.TensorProto.FLOAT16: "float16",
    onnx.TensorProto.BFLOAT16: "bfloat16",
    onnx.TensorProto.FLOAT8E4M3FN: "float8_e4m3fn",
    onnx.TensorProto.FLOAT8E4M3FNUZ: "float8_e4m3fnuz",
    onnx.TensorProto.FLOAT8E5M2: "float8_e5m2",
    onnx.TensorProto.FLOAT8E5M2FNUZ: "float8_e5m2fnuz",
    onnx.TensorProto.FLOAT4E2M1: "float4_e2m1fn",
    onnx.TensorProto.INT2: "int2",
    onnx.TensorProto.INT4: "int4",
    onnx.TensorProto.INT8: "int8",
    onnx.TensorProto.INT16: "int16",
    onnx.TensorProto.INT32: "int32",
    onnx.TensorProto.INT64: "int64",
    onnx.TensorProto.UINT2: "uint2",
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


def array_of(tensor: onnx.TensorProto, storage: Storage, what: str | None = None) -> Array:
    """The array of a tensor; read-only, and mapped where its data is large and lies in a file.

    Args:
        tensor: The tensor.
        storage: Where data lies that is not in it.
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
    needed = -(-prod(shape) * kind.bits // 8)
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raw: bytes | memoryview | None = storage.external(tensor, name, needed)
    else:
        raw = tensor.raw_data if tensor.HasField("raw_data") else None
    _require_one_field(tensor, name, raw is not None)
    if raw is None:
        return _typed(tensor, name, kind, shape)
    if len(raw) != needed:
        raise UnityError(
            f"{name} declares {kind}{list(shape)}, which is {needed} bytes, but holds {len(raw)}",
            hint="the file is damaged or cut short",
        )
    if kind.bits < 8 or sys.byteorder != "little":
        copy = onnx.TensorProto(dims=tensor.dims, data_type=tensor.data_type, raw_data=bytes(raw))
        return np.asarray(numpy_helper.to_array(copy)).reshape(shape)
    found = np.frombuffer(raw, kind.numpy).reshape(shape)
    return found if needed >= LEAST else found.copy()


_FIELDS = (
    "float_data", "int32_data", "int64_data", "uint64_data", "double_data", "string_data",
)  # fmt: skip


def _require_one_field(tensor: onnx.TensorProto, name: str, is_raw: bool) -> None:
    """Refuse data in more than one field, or in the field of another type."""
    own = "raw_data" if is_raw else helper.tensor_dtype_to_field(tensor.data_type)
    other = [f for f in (*_FIELDS, "raw_data") if f != own and getattr(tensor, f)]
    if other:
        raise UnityError(
            f"{name} holds {other[0]} beside or in place of {own}", hint="the file is damaged"
        )


def check_declared(info: onnx.ValueInfoProto, found: DType, what: str) -> None:
    """Check that a value has the dtype that the model declares of it, if it does.

    Raises:
        UnityError: It has another.
    """
    code = info.type.tensor_type.elem_type
    if code and dtype_of(code, what) != found:
        raise UnityError(f"{what} is {found}, declared as {DTYPES[code]}")


def _typed(tensor: onnx.TensorProto, name: str, kind: DType, shape: tuple[int, ...]) -> Array:
    """The array of a tensor whose elements stand in a field of their type."""
    found = len(getattr(tensor, helper.tensor_dtype_to_field(tensor.data_type)))
    count = prod(shape)
    if found != (-(-count * kind.bits // 8) if kind.bits < 8 else count):
        raise UnityError(f"{name} declares the shape {shape}, but holds {found} elements")
    return np.asarray(numpy_helper.to_array(tensor)).reshape(shape)
