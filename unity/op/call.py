"""Calls of operators from Python values, as the parser, the importers and people write them.

Numbers given for tensors become scalar constants of the other operands' dtype (or of the one that
a parameter names), scalars and sizes tensors of rank 0 (`scalar_operand`); tuples given for shapes
become shape values, tuples of expressions become tuples.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeGuard

import numpy as np

from unity.errors import Span, UnityError
from unity.ir.attrs import Attrs, AttrValue
from unity.ir.dims import SymDim, as_dim
from unity.ir.dtype import BOOL, FLOAT32, INT64, DType, dtype
from unity.ir.graph import (
    Call,
    CallEngine,
    CallLibrary,
    CallPython,
    CallTir,
    Constant,
    Expr,
    Function,
    FunctionRef,
    If,
    Literal,
    Op,
    PrimValue,
    Scan,
    ShapeValue,
    Tuple,
    TupleGet,
    Var,
    While,
)
from unity.ir.types import PrimType, TensorType, Type

from .attribute import DTYPE
from .infer import infer_type
from .registry import OpDef, Param, attr_value, shown_value
from .table import OPS


def call_op(
    name: str,
    *args: object,
    span: Span | None = None,
    signatures: Mapping[str, Type] | None = None,
    **attrs: object,
) -> Call:
    """A call of an operator.

    Args:
        name: The operator's name, ``nn.relu``.
        *args: Its arguments by position: expressions, or Python values as told above.
        span: Where the call is written.
        signatures: Types of the module's functions, if arguments are nested calls of them.
        **attrs: Its arguments by name.

    Raises:
        UnityError: There is no such operator, or the arguments don't fit its parameters.
    """
    row = OPS.get(name)
    if row is None:
        raise UnityError(f"there is no operator {name!r}", span, _near(name))
    values, named = row.bind(args, attrs, span)
    params = [p for p in row.params if p.kind != "attr"]
    bound = _given(row, params, values)
    kinds = {p.name: p for p in row.params}
    checked = Attrs({n: _attribute(row, kinds[n], v, span) for n, v in named.items()})
    lent = _lent_dtype(bound, signatures or {})
    like = _Like(lent, checked.get("dtype"), signatures or {})
    exprs = tuple(_argument(row, p, v, like, span) for p, v in bound)
    return Call(Op(name, span), exprs, checked, span)


def _given(
    row: OpDef, params: Sequence[Param], values: Sequence[object]
) -> list[tuple[Param, object]]:
    """Each argument with its parameter (`bind` leaves out optional ones, which are last)."""
    return list(zip(params, values, strict=False))


def _attribute(row: OpDef, param: Param, value: object, span: Span | None) -> AttrValue:
    """A value as an attribute; whether it is of the attribute's type is asked by `infer_call`."""
    try:
        if param.type is DTYPE and isinstance(value, str | type | np.dtype):
            return dtype(value)
        return attr_value(value)
    except UnityError as error:
        raise UnityError(f"{row.name}: {param.name!r}: {error.message}", span, error.hint) from None


@dataclass(frozen=True, slots=True)
class _Like:
    """What says which dtype numbers among the arguments are of.

    Attributes:
        lent: That of the tensors beside them, if there are any.
        asked: The attribute `dtype`.
        signatures: The types of the module's functions.
    """

    lent: DType | None
    asked: AttrValue
    signatures: Mapping[str, Type]

    @property
    def numbers(self) -> DType | None:
        """The dtype of Python's numbers."""
        return self.asked if self.lent is None and isinstance(self.asked, DType) else self.lent


def _argument(row: OpDef, param: Param, value: object, like: _Like, span: Span | None) -> Expr:
    what = f"{row.name}: {param.name!r}"
    if not param.lends_dtype:
        like = _Like(None, None, like.signatures)
    if is_expr(value):
        kind = infer_type(value, like.signatures) if param.kind == "tensor" else None
        if isinstance(kind, PrimType):
            return scalar_operand(value, kind, param.numbers or like.lent, span, what)
        return value
    match param.kind:
        case "tensor" if isinstance(value, bool | int | float | np.ndarray | np.generic):
            return scalar(value, param.numbers or like.numbers, span, what)
        case "tensor" if isinstance(value, SymDim):
            return size_operand(value, param.numbers or like.lent, span, what)
        case "tensors" if isinstance(value, tuple | list):
            items = [_argument(row, Param(param.name), v, like, span) for v in value]
            return Tuple(tuple(items), span)
        case "shape" if isinstance(value, tuple | list):
            return ShapeValue(tuple(as_dim(_as_size(v)) for v in value), span)
        case "value" if isinstance(value, int | float | SymDim):
            return prim_value(value, None, span)
        case _:
            wanted = {"tensor": "a tensor", "tensors": "a tuple of tensors", "shape": "a shape"}
            raise UnityError(
                f"{what} must be {wanted.get(param.kind, 'a value')}, got {_told(value)}",
                span,
                row.usage,
            )


def _told(value: object) -> str:
    """What a message says was given."""
    if isinstance(value, tuple | list) and any(map(is_expr, value)):
        return f"a {type(value).__name__} of {len(value)}"
    return shown_value(value)


def prim_value(
    value: bool | float | SymDim, kind: DType | None, span: Span | None = None
) -> PrimValue:
    """A number as a scalar of a dtype, by default Python's own.

    Raises:
        UnityError: It is none of that dtype.
    """
    found = kind or _python_dtype(value)
    fits = isinstance(value, bool) == (found == BOOL) and not (
        isinstance(value, float) and not found.is_float
    )
    if found.is_float and fits and not isinstance(value, SymDim):
        return PrimValue(float(value), found, span)
    if not fits:
        raise UnityError(f"{value!r} is no {found}", span, "cast with R.prim(value, dtype)")
    return PrimValue(value, found, span)


def scalar_operand(
    value: Expr, kind: PrimType, like: DType | None, span: Span | None, what: str
) -> Expr:
    """A scalar where a tensor is wanted, as one of rank 0.

    Beside tensors it is of their dtype, if that holds what the scalar may be: a scalar is widened,
    an integer becomes a float, and nothing else.

    Args:
        value: The scalar.
        kind: Its type.
        like: The dtype of the tensors beside it; None if there are none.
        span: Where the call is written.
        what: Whose argument it is, for the message.

    Raises:
        UnityError: The scalar would have to be narrowed, or is of another kind.
    """
    if isinstance(value, PrimValue) and not isinstance(value.value, SymDim):
        return scalar(value.value, like or kind.dtype, span, what)
    if isinstance(kind.value, SymDim):
        return size_operand(kind.value, like or kind.dtype, span, what)
    own = Call(Op("scalar_tensor", span), (value,), Attrs({"dtype": kind.dtype}), span)
    if like is None or like == kind.dtype:
        return own
    same, a, b = kind.dtype.kind == like.kind, kind.dtype.bits, like.bits
    if not ((kind.dtype.is_int and like.is_float) or (same and a <= b)):
        raise UnityError(
            f"{what}: a scalar {kind.dtype} does not go with {like}",
            span,
            f'convert one of them: R.astype(value, "{like}")',
        )
    return Call(Op("astype", span), (own,), Attrs({"dtype": like}), span)


def size_operand(size: SymDim, like: DType | None, span: Span | None, what: str) -> Expr:
    """A size where a tensor is wanted, as one of rank 0: of the dtype beside it, or int64.

    Raises:
        UnityError: There is bool beside it.
    """
    found = like or INT64
    if not (found.is_int or found.is_float):
        raise UnityError(f"{what}: the size {size} is no {found}", span, "compare it first")
    return Call(Op("dims", span), (), Attrs({"values": size, "dtype": found}), span)


def _as_size(value: object) -> object:
    return value.value if isinstance(value, PrimValue) else value


def scalar(
    value: bool | float | np.ndarray[tuple[int, ...], np.dtype[np.generic]] | np.generic,
    like: DType | None,
    span: Span | None = None,
    what: str = "a number",
) -> Constant:
    """A number as a constant tensor of rank 0, of the dtype `like` or else Python's own.

    Raises:
        UnityError: The number is not one of that dtype.
    """
    if isinstance(value, np.ndarray | np.generic):
        return Constant(np.asarray(value), None, span)
    target = like or _python_dtype(value)
    fits = {"bool": isinstance(value, bool), "int": isinstance(value, int)}
    if not (target.is_float or fits["bool" if target.kind == "bool" else "int"]):
        raise UnityError(f"{what}: {value!r} is no {target}", span, "cast with R.astype")
    try:
        data = np.asarray(value).astype(target.numpy) if target.is_float else _exact(value, target)
    except OverflowError:
        raise UnityError(f"{what}: {value!r} does not fit {target}", span) from None
    return Constant(data, None, span)


def _exact(value: bool | float, target: DType) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    data = np.asarray(value).astype(target.numpy)
    if int(data) != value:
        raise OverflowError
    return data


def _python_dtype(value: object) -> DType:
    if isinstance(value, bool):
        return BOOL
    return FLOAT32 if isinstance(value, float) else INT64


def _lent_dtype(
    bound: Sequence[tuple[Param, object]], signatures: Mapping[str, Type]
) -> DType | None:
    """The dtype that numbers among the arguments take: the tensors', else the widest scalar's."""
    scalars: list[DType] = []
    for param, value in reversed(bound):
        if param.kind in ("tensor", "tensors") and param.lends_dtype:
            items = value if isinstance(value, tuple | list) else (value,)
            for item in items:
                if is_expr(item):
                    found = infer_type(item, signatures)
                    if isinstance(found, TensorType) and found.dtype is not None:
                        return found.dtype
                    if isinstance(found, PrimType):
                        scalars.append(found.dtype)
    return max(scalars, key=lambda d: (d.is_float, d.bits), default=None)


def bitwise(dtypes: Iterable[DType | None], word: str) -> str:
    """The operator that ``& | ^ ~`` are: of bools a logical one, as numpy has it.

    Args:
        dtypes: The operands'.
        word: ``"and"``, ``"or"``, ``"xor"`` or ``"not"``.

    >>> bitwise([BOOL], "not"), bitwise([INT64, None], "and")
    ('logical_not', 'bitwise_and')
    """
    return f"{'logical' if BOOL in dtypes else 'bitwise'}_{word}"


def is_expr(value: object) -> TypeGuard[Expr]:
    """Whether a Python value is a graph expression."""
    return isinstance(
        value,
        Var | Constant | ShapeValue | PrimValue | Literal | FunctionRef | Op | Tuple | TupleGet
        | Call | CallTir | CallLibrary | CallPython | CallEngine | If | While | Scan | Function,
    )  # fmt: skip


ELSEWHERE = {
    "cast": "astype", "concatenate": "concat", "div": "divide", "mul": "multiply",
    "neg": "negative", "pow": "power", "sub": "subtract", "transpose": "permute_dims",
    "unsqueeze": "expand_dims",
}  # fmt: skip
"""What torch, numpy and ONNX call operators that have another name in Relax, and here."""


def _near(name: str) -> str | None:
    short = name.rpartition(".")[2]
    if short in ELSEWHERE:
        return f"it is called {ELSEWHERE[short]} here"
    close = [known for known in OPS if known.rpartition(".")[2] == short]
    close = close or get_close_matches(name, OPS, 3) or [n for n in OPS if n[:4] == name[:4]]
    return f"did you mean {', '.join(close[:4])}?" if close else None
