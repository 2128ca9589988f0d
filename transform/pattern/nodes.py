"""What patterns are made of: values of any kind, constants, calls, alternatives, chains of views.

Patterns are plain data. A name captures what is matched; the same name twice must match the same
value. Operators on patterns are operators of the graph: ``x * 0.5 + y`` matches ``R.add`` of a
``R.multiply``, in either order of their operands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from typing import TypeAlias

from unity.ir.attrs import AttrValue
from unity.ir.dims import Dim
from unity.ir.dtype import DType
from unity.ir.graph import Expr
from unity.ir.types import TensorType, Type

COMMUTATIVE = frozenset(
    {"add", "multiply", "maximum", "minimum", "equal", "not_equal", "logical_and", "logical_or"}
)
"""Ops whose two operands are tried in both orders."""
TypeTest: TypeAlias = Callable[[TensorType], bool]
AttrTest: TypeAlias = "AttrValue | Callable[[AttrValue], bool]"
"""A value that the attribute must have, or a predicate of it."""


@dataclass(frozen=True, slots=True)
class _Node:
    """What all patterns share.

    Attributes:
        name: Captures the value matched.
        test: What its tensor type must satisfy.
        users: The ops that may use it; None for any.
        escapes: Whether a value inside the match may be used outside of it as well.
    """

    name: str | None = dataclass_field(default=None, kw_only=True)
    test: TypeTest | None = dataclass_field(default=None, kw_only=True, repr=False)
    users: frozenset[str] | None = dataclass_field(default=None, kw_only=True)
    escapes: bool = dataclass_field(default=False, kw_only=True)

    def __add__(self, other: Pattern | float) -> OpCall:
        """A sum."""
        return op("add", _pattern(self), _pattern(other))

    def __radd__(self, other: float) -> OpCall:
        """A sum."""
        return op("add", _pattern(other), _pattern(self))

    def __mul__(self, other: Pattern | float) -> OpCall:
        """A product, element by element."""
        return op("multiply", _pattern(self), _pattern(other))

    def __rmul__(self, other: float) -> OpCall:
        """A product, element by element."""
        return op("multiply", _pattern(other), _pattern(self))

    def __sub__(self, other: Pattern | float) -> OpCall:
        """A difference."""
        return op("subtract", _pattern(self), _pattern(other))

    def __truediv__(self, other: Pattern | float) -> OpCall:
        """A quotient."""
        return op("divide", _pattern(self), _pattern(other))

    def __matmul__(self, other: Pattern) -> OpCall:
        """A matrix product."""
        return op("matmul", _pattern(self), other)

    def __or__(self, other: Pattern) -> Either:
        """This, or else the other."""
        mine = _pattern(self)
        return Either((*(mine.options if isinstance(mine, Either) else (mine,)), other))

    def named(self, name: str) -> Pattern:
        """The same, captured under a name."""
        return replace(_pattern(self), name=name)

    def of(
        self,
        dtype: DType | None = None,
        shape: Sequence[Dim | None] | None = None,
        rank: int | None = None,
        where: TypeTest | None = None,
    ) -> Pattern:
        """The same, of a tensor type.

        Args:
            dtype: The elements' type.
            shape: Its dims; None stands for any.
            rank: How many there are.
            where: Any other condition.
        """

        def test(t: TensorType) -> bool:
            dims = t.shape if isinstance(t.shape, tuple) else None
            if dtype is not None and t.dtype != dtype:
                return False
            if rank is not None and t.ndim != rank:
                return False
            if shape is not None:
                if dims is None or len(dims) != len(shape):
                    return False
                if any(want is not None and want != d for want, d in zip(shape, dims, strict=True)):
                    return False
            return (where is None or where(t)) and (self.test is None or self.test(t))

        return replace(_pattern(self), test=test)

    def used_by(self, *ops: str) -> Pattern:
        """The same, used by these ops only."""
        return replace(_pattern(self), users=frozenset(ops))

    def escaping(self) -> Pattern:
        """The same; it may be used outside of what is matched, too."""
        return replace(_pattern(self), escapes=True)


@dataclass(frozen=True, slots=True)
class Any(_Node):
    """Any value, or any but a constant; its own operands are not looked at."""

    constant: bool = True


@dataclass(frozen=True, slots=True)
class Const(_Node):
    """A constant; of one element with about a value, if `value` is given."""

    value: float | None = None
    tolerance: float = 1e-4


@dataclass(frozen=True, slots=True)
class OpCall(_Node):
    """A call of one of some ops; operands are not looked at if `args` is None.

    `exact` says that there are no operands beyond `args`.
    """

    ops: tuple[str, ...]
    args: tuple[Pattern, ...] | None = None
    attrs: Mapping[str, AttrTest] = dataclass_field(default_factory=dict[str, AttrTest], hash=False)
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Field(_Node):
    """One field of a tuple."""

    of_tuple: Pattern
    index: int


@dataclass(frozen=True, slots=True)
class Either(_Node):
    """The first of the options that matches."""

    options: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Through(_Node):
    """`inner`, then any number of calls of `ops` on it, as few as possible."""

    ops: tuple[str, ...]
    inner: Pattern


Pattern: TypeAlias = Any | Const | OpCall | Field | Either | Through


def _pattern(x: _Node | float) -> Pattern:
    if isinstance(x, int | float):
        return scalar(x)
    assert isinstance(x, Any | Const | OpCall | Field | Either | Through)
    return x


def any_(name: str | None = None) -> Any:
    """Any value."""
    return Any(name=name)


def computed(name: str | None = None) -> Any:
    """Any value but a constant."""
    return Any(False, name=name)


def const(name: str | None = None) -> Const:
    """Any constant."""
    return Const(name=name)


def scalar(value: float, tolerance: float = 1e-4) -> Const:
    """A constant of one element.

    Args:
        value: About what it holds.
        tolerance: Relative: zero is matched by zero alone.
    """
    return Const(value, tolerance)


def op(
    names: str | Sequence[str],
    *args: Pattern | float,
    attrs: Mapping[str, AttrTest] | None = None,
    name: str | None = None,
) -> OpCall:
    """A call of an op.

    Args:
        names: The op, or several of which any may stand there.
        args: Its operands; without any they are not looked at. Operands that the call has beyond
            these (shapes, for instance) are let pass.
        attrs: What attributes must be.
        name: Captures the result.
    """
    ops = (names,) if isinstance(names, str) else tuple(names)
    given = tuple(_pattern(a) if isinstance(a, int | float) else a for a in args)
    return OpCall(ops, given or None, dict(attrs or {}), name=name)


def field(of_tuple: Pattern, index: int) -> Field:
    """One field of a tuple: a result of an op with several."""
    return Field(of_tuple, index)


def optional(inner: Pattern, *wrap: Callable[[Pattern], Pattern]) -> Pattern:
    """`inner` with each of some steps around it that is there.

    Args:
        inner: What must be there.
        wrap: Steps that may follow, in order, each a function of the pattern so far.
    """
    found = inner
    for step in wrap:
        found = Either((step(found), found))
    return found


def through(ops: str | Sequence[str], inner: Pattern) -> Through:
    """`inner` seen through calls that may stand between: reshapes, transposes, casts."""
    return Through((ops,) if isinstance(ops, str) else tuple(ops), inner)


def capture_names(p: Pattern) -> frozenset[str]:
    """The names that a match may capture.

    >>> sorted(capture_names(any_("x") @ any_("w") + const("b") | any_("x")))
    ['b', 'w', 'x']
    """
    match p:
        case Any() | Const():
            parts: tuple[Pattern, ...] = ()
        case OpCall():
            parts = p.args or ()
        case Field():
            parts = (p.of_tuple,)
        case Either():
            parts = p.options
        case Through():
            parts = (p.inner,)
    own = frozenset(() if p.name is None else (p.name,))
    return own.union(*map(capture_names, parts))


def satisfies(p: Pattern, t: Type | None) -> bool:
    """Whether a value's type is what a pattern asks for."""
    if p.test is None:
        return True
    return isinstance(t, TensorType) and p.test(t)


Captures: TypeAlias = Mapping[str, Expr]
