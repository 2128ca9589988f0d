"""Prim expressions: scalar (and, once lowered, vector) arithmetic inside prim funcs.

Not sympy: a schedule rewrites thousands of these. `unity.ir.symbols.convert` turns dims into prim
expressions and back; a symbol is the same variable on both sides (`SizeVar`).
Every index and size is int64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from unity.arguments import shown
from unity.errors import Span, UnityError
from unity.ir.attrs import NO_ATTRS, Attrs
from unity.ir.dims import NO_FACTS, Facts
from unity.ir.dtype import BOOL, INT64, DType
from unity.quick_init import Finds, quick_init, setter

if TYPE_CHECKING:
    from unity.ir.leaves import Leaves
    from unity.ir.stmt import Buffer

BinaryOp: TypeAlias = Literal[
    "add", "sub", "mul", "div", "floordiv", "floormod", "truncdiv", "truncmod", "min", "max",
    "fmin", "fmax", "and", "or", "xor", "shl", "shr",
]  # fmt: skip
DIVISIONS: tuple[BinaryOp, ...] = ("floordiv", "floormod", "truncdiv", "truncmod")
"""Operations that stop a program where they divide integers by zero."""
CompareOp: TypeAlias = Literal["eq", "ne", "lt", "le", "gt", "ge"]
T = TypeVar("T")


class _Operators:
    """Python's operators, each building one node and folding nothing (`unity.arith` simplifies)."""

    _hash: int | None
    leaves: Leaves | None  # as `unity.ir.leaves.leaves` gives them
    linear: dict[tuple[PrimExpr, ...], int] | Literal[False] | None  # as `unity.arith.linear` does
    normal: PrimExpr | None  # likewise
    bits: int  # as `unity.arith.wrapping.data_bits` finds them, nothing being known of variables
    order: str  # as `unity.arith.polynomial.key` gives it
    # found once: they are deep, and asked for often
    __slots__ = ("_hash", "bits", "leaves", "linear", "normal", "order")
    __match_args__: tuple[str, ...]

    def __reduce__(self) -> tuple[type[object], tuple[object, ...]]:
        """A copy is made of the fields; what was found of them is found again."""
        return type(self), tuple(getattr(self, name) for name in self.__match_args__)

    def __add__(self, other: Operand) -> Binary:
        return Binary("add", *_both(self, other))

    def __radd__(self, other: Operand) -> Binary:
        return Binary("add", *_both(other, self))

    def __sub__(self, other: Operand) -> Binary:
        return Binary("sub", *_both(self, other))

    def __rsub__(self, other: Operand) -> Binary:
        return Binary("sub", *_both(other, self))

    def __mul__(self, other: Operand) -> Binary:
        return Binary("mul", *_both(self, other))

    def __rmul__(self, other: Operand) -> Binary:
        return Binary("mul", *_both(other, self))

    def __truediv__(self, other: Operand) -> Binary:
        return Binary("div", *_both(self, other))

    def __rtruediv__(self, other: Operand) -> Binary:
        return Binary("div", *_both(other, self))

    def __floordiv__(self, other: Operand) -> Binary:
        return Binary("floordiv", *_both(self, other))

    def __rfloordiv__(self, other: Operand) -> Binary:
        return Binary("floordiv", *_both(other, self))

    def __mod__(self, other: Operand) -> Binary:
        return Binary("floormod", *_both(self, other))

    def __rmod__(self, other: Operand) -> Binary:
        return Binary("floormod", *_both(other, self))

    def __neg__(self) -> Binary:
        value, _ = _both(self, 0)
        if value.dtype.is_float:
            return Binary("mul", value, imm(-1, value.dtype))  # 0 - x would lose the sign of zero
        return Binary("sub", imm(0, value.dtype), value)

    def __lt__(self, other: Operand) -> Compare:
        return Compare("lt", *_both(self, other))

    def __le__(self, other: Operand) -> Compare:
        return Compare("le", *_both(self, other))

    def __gt__(self, other: Operand) -> Compare:
        return Compare("gt", *_both(self, other))

    def __ge__(self, other: Operand) -> Compare:
        return Compare("ge", *_both(self, other))


class _Computed(_Operators):
    """What is computed of others: its dtype follows from theirs."""

    dtype: DType
    __slots__ = ("dtype",)


_set_hash = setter(_Operators, "_hash")


def _kept(node: _Operators, content: tuple[object, ...]) -> int:
    """The hash of a node's content, kept in the node."""
    found = hash(content)
    _set_hash(node, found)
    return found


def _node(**found: Finds) -> Callable[[type[T]], type[T]]:
    """A node: its slots besides the fields found, or left until they are asked for."""
    return partial(quick_init, found=found, later=("_hash", "leaves", "linear", "normal"))


def _bool_like(_op: CompareOp, a: PrimExpr, _b: PrimExpr) -> DType:
    return BOOL.with_lanes(a.dtype.lanes)


def _loaded(buffer: Buffer, indices: tuple[PrimExpr, ...], _predicate: PrimExpr | None) -> DType:
    lanes = max([i.dtype.lanes for i in indices], default=1)
    return buffer.dtype.with_lanes(lanes)


def _stepped(base: PrimExpr, _stride: PrimExpr, lanes: int) -> DType:
    return base.dtype.with_lanes(lanes)


def _repeated(value: PrimExpr, lanes: int) -> DType:
    return value.dtype.with_lanes(lanes)


@_node()
@dataclass(frozen=True, slots=True, eq=False)
class PrimVar(_Operators):
    """A loop variable, block axis, let-bound value or scalar parameter. Equal by identity."""

    name: str
    dtype: DType = INT64
    span: Span | None = field(default=None, repr=False)


@_node()
@dataclass(frozen=True, slots=True)
class SizeVar(_Operators):
    """A symbol of the graph level, by value: the same unknown as ``dim(name, **facts)``."""

    name: str
    facts: Facts = NO_FACTS

    @property
    def dtype(self) -> DType:
        """Sizes are int64."""
        return INT64

    def __hash__(self) -> int:
        """Of the content, computed once."""
        found = self._hash
        return _kept(self, (self.name, self.facts)) if found is None else found


@_node()
@dataclass(frozen=True, slots=True)
class Imm(_Operators):
    """A literal: an int, float or bool of a dtype."""

    value: int | float | bool
    dtype: DType

    def __hash__(self) -> int:
        """Of the content, computed once."""
        found = self._hash
        return _kept(self, (self.value, self.dtype)) if found is None else found


@_node(dtype="a.dtype")
@dataclass(frozen=True, slots=True)
class Binary(_Computed):
    """Arithmetic on two values of one dtype.

    ``div`` is for floats; integers have floor and truncating division. ``min`` and ``max`` of
    floats give NaN when either is NaN. ``and``, ``or``, ``xor``, ``shl``, ``shr`` are bitwise, on
    integers and bools (on bools they do not short-circuit).
    """

    op: BinaryOp
    a: PrimExpr
    b: PrimExpr

    def __hash__(self) -> int:
        """Of the content, computed once."""
        found = self._hash
        return _kept(self, (self.op, self.a, self.b)) if found is None else found


@_node(dtype=_bool_like)
@dataclass(frozen=True, slots=True)
class Compare(_Computed):
    """A comparison of two values of one dtype; with NaN every one but ``ne`` is false."""

    op: CompareOp
    a: PrimExpr
    b: PrimExpr

    def __hash__(self) -> int:
        """Of the content, computed once."""
        found = self._hash
        return _kept(self, (self.op, self.a, self.b)) if found is None else found


@_node(dtype="a.dtype")
@dataclass(frozen=True, slots=True)
class Not(_Computed):
    """Logical negation of a bool."""

    a: PrimExpr

    def __hash__(self) -> int:
        """Of the content, computed once."""
        found = self._hash
        return _kept(self, ("not", self.a)) if found is None else found


@_node(dtype="then.dtype")
@dataclass(frozen=True, slots=True)
class Select(_Computed):
    """`then` where `condition`, else `orelse`. Loads in the branch not taken are not performed."""

    condition: PrimExpr
    then: PrimExpr
    orelse: PrimExpr

    def __hash__(self) -> int:
        """Of the content, computed once."""
        found = self._hash
        return _kept(self, (self.condition, self.then, self.orelse)) if found is None else found


@_node()
@dataclass(frozen=True, slots=True)
class Cast(_Operators):
    """A conversion by numpy's rules; float to integer truncates."""

    dtype: DType
    value: PrimExpr

    def __hash__(self) -> int:
        """Of the content, computed once."""
        found = self._hash
        return _kept(self, (self.dtype, self.value)) if found is None else found


@_node(dtype=_loaded)
@dataclass(frozen=True, slots=True)
class Load(_Computed):
    """One element of a buffer; in lowered form one index may be a `Ramp`, giving a vector.

    A false `predicate` lane reads nothing and yields zero.
    """

    buffer: Buffer
    indices: tuple[PrimExpr, ...]
    predicate: PrimExpr | None = None

    def __hash__(self) -> int:
        """Of the content, computed once."""
        found = self._hash
        return _kept(self, (self.buffer, self.indices, self.predicate)) if found is None else found


@_node()
@dataclass(frozen=True, slots=True)
class Intrinsic(_Operators):
    """A call of a named scalar function (``exp``, ``sqrt`` ...), a row of `unity.ir.intrinsics`."""

    name: str
    args: tuple[PrimExpr, ...]
    dtype: DType
    attrs: Attrs = NO_ATTRS

    def __hash__(self) -> int:
        """Of the content, computed once."""
        found = self._hash
        return (
            _kept(self, (self.name, self.args, self.dtype, self.attrs)) if found is None else found
        )


@_node(dtype=_stepped)
@dataclass(frozen=True, slots=True)
class Ramp(_Computed):
    """The vector ``base, base + stride, ...``."""

    base: PrimExpr
    stride: PrimExpr
    lanes: int

    def __hash__(self) -> int:
        """Of the content, computed once."""
        found = self._hash
        return _kept(self, (self.base, self.stride, self.lanes)) if found is None else found


@_node(dtype=_repeated)
@dataclass(frozen=True, slots=True)
class Broadcast(_Computed):
    """A vector of equal values."""

    value: PrimExpr
    lanes: int

    def __hash__(self) -> int:
        """Of the content, computed once."""
        found = self._hash
        return _kept(self, (self.value, self.lanes)) if found is None else found


PrimExpr: TypeAlias = (
    PrimVar
    | SizeVar
    | Imm
    | Binary
    | Compare
    | Not
    | Select
    | Cast
    | Load
    | Intrinsic
    | Ramp
    | Broadcast
)
Operand: TypeAlias = PrimExpr | int | float | bool | _Operators


_MANY = 1024
_NUMBERS = [Imm(value, INT64) for value in range(_MANY)]
"""What indices are made of most: one node each, with what is found of it."""


def imm(value: float | bool, dtype: DType = INT64) -> Imm:
    """A literal, its Python type made to fit the dtype."""
    if dtype is INT64 and type(value) is int:
        return _NUMBERS[value] if 0 <= value < _MANY else Imm(value, INT64)
    if dtype.kind == "bool":
        return Imm(bool(value), dtype)
    return Imm(float(value) if dtype.is_float else int(value), dtype)


def as_prim_expr(value: Operand, like: DType = INT64) -> PrimExpr:
    """A prim expression as it is; a Python number as a literal of the dtype `like`."""
    if isinstance(value, bool | int | float):
        return imm(value, like)
    if isinstance(
        value,
        PrimVar | SizeVar | Imm | Binary | Compare | Not | Select | Cast | Load | Intrinsic | Ramp
        | Broadcast,
    ):  # fmt: skip
        return value
    raise UnityError(f"expected a scalar expression or a number, got {shown(value)}")


def _both(a: Operand, b: Operand) -> tuple[PrimExpr, PrimExpr]:
    if isinstance(a, bool | int | float):
        right = as_prim_expr(b)
        return imm(a, right.dtype), right
    left = as_prim_expr(a)
    return left, as_prim_expr(b, left.dtype)
