"""What a model declares of its inputs and outputs: types, dims by their names, what a result is.

Comes in: ONNX's declarations, shapes that a caller gives. Goes out: our types; an error where a
declaration makes no sense, or a result is not what it says.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import onnx

from unity.errors import UnityError, UnsupportedError
from unity.frontend.onnx.strings import STRING
from unity.ir.dims import Dim, dim, equal
from unity.ir.dtype import INT64
from unity.ir.types import TensorType
from unity.op.builder import GraphBuilder, plain_identifier

from .tensors import check_declared, dtype_of

ShapeSpec = Sequence["int | str | Dim | None"]
"""A shape that a caller gives for an input: extents, names of dims, None for any."""
MOST_BYTES = 1 << 47
"""What a process can address; a declared shape beyond it is damage or malice."""


def dim_params(info: onnx.ValueInfoProto) -> list[str]:
    """The symbols that a declaration names."""
    dims = info.type.tensor_type.shape.dim
    return [plain_identifier(d.dim_param) for d in dims if any(c.isalnum() for c in d.dim_param)]


def declared_type(
    info: onnx.ValueInfoProto, given: ShapeSpec | None, builder: GraphBuilder
) -> TensorType:
    """The type of an input that is a tensor.

    Args:
        info: Its declaration.
        given: A shape in place of its own; its rank if it has one.
        builder: Gives symbols for extents without a name.
    """
    if not info.type.HasField("tensor_type"):
        kind = info.type.WhichOneof("value") or "no type"
        raise UnsupportedError(f"the input {info.name!r} is no tensor", [f"an input of {kind}"])
    tensor = info.type.tensor_type
    is_string = tensor.elem_type == STRING
    kind = INT64 if is_string else dtype_of(tensor.elem_type, f"the input {info.name!r}")
    if not tensor.HasField("shape") and given is None:
        return TensorType(None, kind)
    own: list[onnx.TensorShapeProto.Dimension | None] = list(tensor.shape.dim)
    if given is not None:
        if own and len(given) != len(own):
            raise UnityError(
                f"the input {info.name!r} has rank {len(own)}, but the shape given is {given}"
            )
        own = own or [None] * len(given)
    wanted = given or [None] * len(own)
    pairs = enumerate(zip(own, wanted, strict=True))
    shape = tuple(_dim(builder, info.name, i, o, w) for i, (o, w) in pairs)
    least = prod(d for d in shape if isinstance(d, int)) * kind.bytes
    if least > MOST_BYTES:
        raise UnityError(
            f"the input {info.name!r} of shape {list(shape)} takes {least} bytes",
            hint="no machine addresses that much; the model's shape is damaged",
        )
    return TensorType(shape, kind)


def _dim(
    builder: GraphBuilder,
    name: str,
    axis: int,
    own: onnx.TensorShapeProto.Dimension | None,
    given: int | str | Dim | None,
) -> Dim:
    if isinstance(given, str):
        return dim(plain_identifier(given))
    if given is not None:
        return given
    if own is not None and own.dim_value < -1:  # -1 is what some exporters call an unknown size
        raise UnityError(f"the input {name!r} declares the extent {own.dim_value} at axis {axis}")
    if own is not None and own.HasField("dim_value") and own.dim_value >= 0:
        return int(own.dim_value)
    # "?" and the like name nothing: two of them need not be equal.
    if own is not None and any(c.isalnum() for c in own.dim_param):
        return dim(plain_identifier(own.dim_param))
    return builder.fresh(f"{name}_d{axis}")


def check_output(info: onnx.ValueInfoProto, found: TensorType) -> None:
    """Refuse a result that is not what is declared of it."""
    tensor = info.type.tensor_type
    assert found.dtype is not None
    check_declared(info, found.dtype, f"the output {info.name!r}")
    if not tensor.HasField("shape") or not isinstance(found.shape, tuple):
        return
    if len(tensor.shape.dim) != len(found.shape):
        return  # published models (madmom's) declare wrong ranks; onnxruntime warns and runs them
    for axis, (own, got) in enumerate(zip(tensor.shape.dim, found.shape, strict=True)):
        fixed = own.HasField("dim_value") and own.dim_value > 0
        if fixed and isinstance(got, int) and not equal(got, own.dim_value):
            raise UnityError(
                f"the output {info.name!r} has extent {got} at axis {axis}, "
                f"declared as {own.dim_value}"
            )
