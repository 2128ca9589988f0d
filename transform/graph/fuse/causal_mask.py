"""Causal masks, told by what they are computed from: which keys each query sees.

Comes in: what is added to scores, or selects them. Goes out: the word of `nn.attention` for it, so
that its kernel need not read a mask, nor the keys that it hides. Exporters write a comparison of
positions, or the matrix that it gives as a constant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, SymDim, always_ge, as_dim, equal
from unity.ir.dtype import Array, DType
from unity.ir.graph import Call, Constant, Expr, Op, Var
from unity.ir.types import Shape

from .attention_operands import shape_of

LEAST = float(np.finfo(np.float32).min) / 2
"""What is added to scores hides them from here on: as float32 has it, no score outweighs it."""


@dataclass(frozen=True, slots=True)
class Scores:
    """A matrix of scores, and what variables are bound to.

    Attributes:
        queries: Its rows.
        keys: Its columns.
        kept: Whether a row that sees nothing gives 0 anyway.
        alone: Whether nothing else can hide a key: where something can, it may hide all that a row
            sees with the same finite number, and then the row sees the others again.
        values: What variables are bound to.
    """

    queries: Dim
    keys: Dim
    kept: bool
    alone: bool
    values: Mapping[Var, Expr]

    def hides(self, data: Array) -> Array:
        """Which of some numbers, added to scores or in their place, hide keys from every row."""
        least = LEAST if self.alone and data.dtype == np.float32 else -np.inf
        return np.less_equal(data, least)

    def made(self, x: Expr) -> Expr | None:
        """What a variable is bound to."""
        return self.values.get(x) if isinstance(x, Var) else None

    def is_whole(self, x: Expr) -> bool:
        """Whether a tensor has an element for each score, the same for all that stand beside."""
        shape = shape_of(x)
        if shape is None or len(shape) < 2:
            return False
        *others, queries, keys = shape
        alike = equal(queries, self.queries) and equal(keys, self.keys)
        return alike and all(equal(n, 1) for n in others)


@dataclass(frozen=True, slots=True)
class _Positions:
    """Integers that count along an axis, or are all the same.

    Attributes:
        axis: Which, from the end on: 0 for the last one (keys), 1 for that before it (queries).
        first: The first of them.
    """

    axis: int | None
    first: Dim


@dataclass(frozen=True, slots=True)
class _Order:
    """Where a condition holds: for keys up to a query's place and an offset, or for later ones."""

    offset: Dim
    later: bool


def causal_bias(bias: Expr, scores: Scores) -> str | None:
    """The word for what is added to scores, if it is 0 but for later keys, which it hides."""
    if not scores.is_whole(bias):
        return None
    match bias if isinstance(bias, Constant) else scores.made(bias):
        case Constant(data=data):
            hidden = scores.hides(data)
            order = _order_of(hidden) if np.all(hidden | (data == 0)) else None
            return None if order is None else _word(order, scores)
        case Call(Op("expand_dims" | "reshape"), (inner, *_)):
            return causal_bias(inner, scores)
        case Call(Op("where"), (condition, Constant(data=then), Constant(data=other))):
            order = _order(condition, scores)
            if order is None:
                return None
            hidden, seen = (then, other) if order.later else (other, then)
            return (
                _word(order, scores) if np.all(scores.hides(hidden)) and not np.any(seen) else None
            )
        case _:
            return None


def causal_choice(mask: Expr, fill: float, scores: Scores) -> str | None:
    """The same of a mask that holds for keys that are seen; `fill` is the score of the others."""
    hides = bool(scores.hides(np.asarray(fill, np.float32)))
    order = _order(mask, scores) if hides and scores.is_whole(mask) else None
    return None if order is None or order.later else _word(order, scores)


def terms(bias: Expr, values: Mapping[Var, Expr]) -> list[Expr]:
    """What is added up to what is added to scores, given what variables are bound to."""
    match values.get(bias) if isinstance(bias, Var) else None:
        case Call(Op("add"), (a, b)):
            return [*terms(a, values), *terms(b, values)]
        case _:
            return [bias]


def _word(order: _Order, scores: Scores) -> str | None:
    """What `nn.attention` calls an order; None if it has no word, or rows may see nothing."""
    if equal(order.offset, 0):
        return "TopLeft"
    sees = scores.kept or always_ge(scores.keys, scores.queries)
    return "BottomRight" if sees and equal(order.offset, scores.keys - scores.queries) else None


def _order(condition: Expr, scores: Scores) -> _Order | None:
    """What a condition on queries and keys says, if it compares their positions."""
    match condition if isinstance(condition, Constant) else scores.made(condition):
        case Constant(data=data):
            return _order_of(data)
        case Call(Op("logical_not"), (inner,)):
            found = _order(inner, scores)
            return None if found is None else _Order(found.offset, not found.later)
        case Call(Op("expand_dims" | "reshape"), (inner, *_)) if scores.is_whole(inner):
            return _order(inner, scores)
        case Call(Op("less"), (a, b)) | Call(Op("greater"), (b, a)):
            return _compared(a, b, scores, 0)
        case Call(Op("less_equal"), (a, b)) | Call(Op("greater_equal"), (b, a)):
            return _compared(a, b, scores, 1)
        case _:
            return None


def _compared(a: Expr, b: Expr, scores: Scores, more: int) -> _Order | None:
    """What ``a < b + more`` says."""
    left, right = _positions(a, scores), _positions(b, scores)
    if left is None or right is None:
        return None
    match left.axis, right.axis:
        case 1, 0:  # query + left < key + right + more
            return _Order(as_dim(left.first - right.first - more), later=True)
        case 0, 1:  # key + left < query + right + more
            return _Order(as_dim(right.first - left.first + more - 1), later=False)
        case _:
            return None


def _order_of(data: Array) -> _Order | None:
    """What a matrix of conditions says."""
    if data.dtype != np.bool_ or data.ndim < 2 or not data.size:
        return None
    queries, keys = data.shape[-2:]
    matrix = data.reshape((queries, keys))
    for later in (True, False):
        hidden = matrix if later else np.logical_not(matrix)
        first = int(np.argmax(hidden[-1])) if hidden[-1].any() else keys  # which the last one lacks
        if np.array_equal(hidden, ~np.tri(queries, keys, first - queries, dtype=np.bool_)):
            return _Order(first - queries, later)
    return None


def _positions(x: Expr, scores: Scores) -> _Positions | None:
    """What is known of a tensor of positions."""
    match x if isinstance(x, Constant) else scores.made(x):
        case Constant(data=data):
            return _counted(data)
        case Call(Op("arange"), (), attrs):
            return _arange(attrs)
        case Call(Op("dims"), (), attrs):
            return _size(attrs["values"])
        case Call(Op("add"), (a, b)):
            left, right = _positions(a, scores), _positions(b, scores)
            if left is None or right is None or None not in (left.axis, right.axis):
                return None
            axis = left.axis if right.axis is None else right.axis
            return _Positions(axis, as_dim(left.first + right.first))
        case Call(Op("expand_dims" | "reshape"), (inner, *_)):
            found, old, new = _positions(inner, scores), shape_of(inner), shape_of(x)
            return None if found is None or not old or new is None else _moved(found, old, new)
        case _:
            return None


def _arange(attrs: Attrs) -> _Positions | None:
    """Numbers in steps of 1, of a dtype that holds as many as there may be keys."""
    kind = attrs["dtype"]
    first = 0 if attrs["end"] is None else attrs["start"]
    counts = kind is None or (isinstance(kind, DType) and kind.kind == "int" and kind.bits >= 32)
    if not counts or attrs["step"] != 1 or not isinstance(first, int | SymDim):
        return None
    return _Positions(0, as_dim(first))


def _size(values: object) -> _Positions | None:
    """One size, or a vector of one."""
    match values:
        case int() | SymDim() as size:
            return _Positions(None, as_dim(size))
        case (int() | SymDim() as size,):
            return _Positions(None, as_dim(size))
        case _:
            return None


def _counted(data: Array) -> _Positions | None:
    """Constants that count along an axis."""
    if data.dtype.kind not in "iu" or not data.size:
        return None
    first = int(data.flat[0])
    if data.size == 1:
        return _Positions(None, first)
    long = [k for k, n in enumerate(reversed(data.shape)) if n != 1]
    counts = np.array_equal(data.reshape(-1), np.arange(first, first + data.size))
    return _Positions(long[0], first) if len(long) == 1 and counts else None


def _moved(found: _Positions, old: Shape, new: Shape) -> _Positions | None:
    """The same in a shape with other axes of one element."""
    if found.axis is None:
        return found if all(equal(n, 1) for n in new) else None
    long = [k for k, n in enumerate(reversed(new)) if not equal(n, 1)]
    if len(long) != 1 or not equal(new[-1 - long[0]], old[-1 - found.axis]):
        return None
    return _Positions(long[0], found.first)
