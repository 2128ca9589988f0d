"""Reading the arguments of a call in a type rule; each check names what was got and expected."""

from __future__ import annotations

from collections.abc import Sequence

from unity.ir.dims import Dim, dim_text, equal, symbols_of
from unity.ir.dtype import INT8, INT16, UINT8, DType
from unity.ir.types import Shape, ShapeType, TensorType, TupleType

from .registry import OpCall


def tensor(call: OpCall, index: int) -> TensorType:
    """The type of a tensor argument.

    Raises:
        UnityError: It is no tensor.
    """
    found = call.args[index]
    if not isinstance(found, TensorType):
        raise call.error(f"{_name(call, index)} must be a tensor, got {found}")
    return found


def has(call: OpCall, index: int) -> bool:
    """Whether an optional argument is present."""
    return index < len(call.args)


def tensors(call: OpCall, index: int) -> tuple[TensorType, ...]:
    """The types of an argument that is a tuple of at least one tensor.

    Raises:
        UnityError: It is none.
    """
    found = call.args[index]
    if not isinstance(found, TupleType) or not found.fields:
        raise call.error(f"{_name(call, index)} must be a tuple of tensors, got {found}")
    fields: list[TensorType] = []
    for field in found.fields:
        if not isinstance(field, TensorType):
            raise call.error(f"{_name(call, index)} must hold tensors, got {field}")
        fields.append(field)
    return tuple(fields)


def shape(call: OpCall, index: int) -> ShapeType:
    """The type of a shape argument.

    Raises:
        UnityError: It is no shape.
    """
    found = call.args[index]
    if not isinstance(found, ShapeType):
        raise call.error(f"{_name(call, index)} must be a shape, got {found}")
    return found


def ranked(call: OpCall, index: int, *ranks: int) -> TensorType:
    """The type of a tensor argument whose rank, where known, is one of `ranks`.

    Raises:
        UnityError: It is no tensor or has another rank.
    """
    found = tensor(call, index)
    if found.ndim is not None and found.ndim not in ranks:
        wanted = " or ".join(str(r) for r in ranks)
        raise call.error(
            f"{_name(call, index)} must have rank {wanted}, got {type_text(found)}",
        )
    return found


def float_tensor(call: OpCall, index: int) -> TensorType:
    """The type of a tensor argument of real numbers.

    Raises:
        UnityError: It is no tensor or of another dtype.
    """
    found = tensor(call, index)
    if found.dtype is not None and not found.dtype.is_float:
        raise call.error(
            f"{_name(call, index)} must be of a float dtype, got {found.dtype}",
            hint='convert with astype(x, "float32")',
        )
    return found


def number_tensor(call: OpCall, index: int) -> TensorType:
    """The type of a tensor argument of integers or real numbers.

    Raises:
        UnityError: It is no tensor or of another dtype.
    """
    found = tensor(call, index)
    if found.dtype is not None and not (found.dtype.is_float or found.dtype.is_int):
        raise call.error(
            f"{_name(call, index)} must be numbers, got {found.dtype}",
            hint='convert with astype(x, "float32")',
        )
    return found


def int_tensor(call: OpCall, index: int) -> TensorType:
    """The type of a tensor argument of integers.

    Raises:
        UnityError: It is no tensor or of another dtype.
    """
    found = tensor(call, index)
    if found.dtype is not None and not found.dtype.is_int:
        raise call.error(
            f"{_name(call, index)} must be of an integer dtype, got {found.dtype}",
            hint='convert with astype(x, "int64")',
        )
    return found


def common_dtype(call: OpCall, types: Sequence[TensorType]) -> DType | None:
    """The one dtype of several tensors; None where none is known.

    Raises:
        UnityError: They differ.
    """
    found = dict.fromkeys(t.dtype for t in types if t.dtype is not None)
    if len(found) > 1:
        raise call.error(
            f"operands must have one dtype, got {', '.join(str(d) for d in found)}",
            hint="convert with astype",
        )
    return next(iter(found), None)


def factor_dtype(call: OpCall, types: Sequence[TensorType]) -> DType | None:
    """The same of what is multiplied, where integers of 8 bits, signed or not, and of 16 may meet.

    Their sums have the dtype that `out_dtype` gives.
    """
    found = {t.dtype for t in types if t.dtype is not None}
    if found < {INT8, UINT8, INT16} and len(found) > 1 and call.attrs["out_dtype"] is not None:
        return INT16 if INT16 in found else INT8
    return common_dtype(call, types)


def axis(call: OpCall, value: object, ndim: int, what: str = "axis") -> int:
    """An axis counted from the front.

    Raises:
        UnityError: It is no axis of a tensor of this rank.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise call.error(f"{what} must be an int, got {value!r}")
    if not -ndim <= value < ndim:
        raise call.error(
            f"{what} {value} is out of range for rank {ndim}",
            hint=f"an axis is in [{-ndim}, {ndim - 1}]" if ndim else "a scalar has no axis",
        )
    return value % ndim


def axes(call: OpCall, value: object, ndim: int, what: str = "axes") -> tuple[int, ...]:
    """Distinct axes, each counted from the front; None means all, an int one.

    Raises:
        UnityError: One is out of range or repeated.
    """
    if value is None:
        return tuple(range(ndim))
    given = value if isinstance(value, tuple) else (value,)
    found = tuple(axis(call, v, ndim, what) for v in given)
    if len(set(found)) != len(found):
        raise call.error(f"{what} {given} name an axis twice")
    return found


def require_equal(
    call: OpCall, got: Dim, expected: Dim, what: str, hint: str | None = None
) -> None:
    """Check that two dims are provably equal.

    Raises:
        UnityError: They are not; with a hint to use match_cast where they might be.
    """
    if equal(got, expected):
        return
    if hint is None and not (isinstance(got, int) and isinstance(expected, int)):
        hint = "if they are equal at run time, say so with match_cast"
    raise call.error(f"{what}: got {dim_text(got)}, expected {dim_text(expected)}", hint)


def broadcast_shapes(call: OpCall, shapes: Sequence[Shape]) -> Shape:
    """The shape that several broadcast to (numpy's rules).

    Raises:
        UnityError: Two dims differ and neither is 1.
    """
    rank = max((len(s) for s in shapes), default=0)
    result: list[Dim] = []
    for position in range(rank):
        found: Dim = 1
        for s in shapes:
            offset = position - rank + len(s)
            if offset < 0 or equal(s[offset], 1):
                continue
            if equal(found, 1):
                found = s[offset]
            elif not equal(found, s[offset]):
                shown = " and ".join(shape_text(s) for s in shapes)
                raise call.error(
                    f"shapes {shown} do not broadcast: axis {position - rank} is "
                    f"{dim_text(found)} and {dim_text(s[offset])}{_homonyms(found, s[offset])}",
                    hint="dims must be equal, or one of them 1"
                    + (
                        ""
                        if isinstance(found, int) and isinstance(s[offset], int)
                        else "; if they are equal at run time, say so with match_cast"
                    ),
                )
        result.append(found)
    return tuple(result)


def _homonyms(a: Dim, b: Dim) -> str:
    """What tells symbols of one name apart, if two dims have such: each is a symbol of its own."""
    pairs = [(one, other) for one in symbols_of(a) for other in symbols_of(b)]
    names = [one.name for one, other in pairs if one.name == other.name and one != other]
    return f" (two symbols {names[0]!r}, defined with other facts)" if names else ""


def shape_text(value: Shape | int | None) -> str:
    """A shape for a message."""
    if isinstance(value, tuple):
        return f"({', '.join(dim_text(d) for d in value)}{',' if len(value) == 1 else ''})"
    return "(unknown)" if value is None else f"(rank {value})"


def type_text(value: TensorType) -> str:
    """A tensor type for a message."""
    return str(value)


def _name(call: OpCall, index: int) -> str:
    params = [p.name for p in call.op.params if p.kind != "attr"]
    return f"{params[index]!r}" if index < len(params) else f"argument {index}"
