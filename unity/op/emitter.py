"""Emitting what one call becomes, operator by operator: types asked, calls bound.

An operator that is several others says so by its row's `expand`, which gets an `Emitter`; importers
emit what a node of a foreign model becomes by one that knows more (`unity.frontend.emission`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from unity.errors import Span, UnityError
from unity.ir.dims import Symbol
from unity.ir.dtype import DType
from unity.ir.graph import Constant, Expr, Scan, Tuple, TupleGet, Var
from unity.ir.types import Shape, ShapeType, TensorType, Type

from .accumulate import working_dtype
from .builder import GraphBuilder
from .call import call_op
from .infer import infer_type


class Binder(Protocol):
    """What binds expressions to variables: a `GraphBuilder`, or a pass that rewrites a body."""

    signatures: dict[str, Type]

    def emit(self, value: Expr, name: str, span: Span | None = None, /) -> Var:
        """Bind an expression."""
        ...

    def match_cast(self, value: Expr, kind: Type, name: str, span: Span | None = None, /) -> Var:
        """Bind a value asserted at run time to have a type; its new symbols are in scope after."""
        ...

    def fresh(self, name: str, /) -> Symbol:
        """A symbol like `name` that nothing mentions yet."""
        ...


class Emitter:
    """What the code of one call is emitted with.

    Attributes:
        binder: Where it is bound.
        label: What its bindings are called.
        span: Where errors are.
    """

    def __init__(self, binder: Binder, label: str, span: Span | None) -> None:
        self.binder = binder
        self.label = label
        self.span = span

    def gap(self, what: str) -> Exception:
        """That something is not implemented; to be raised."""
        return UnityError(f"{self.label}: {what} is not implemented", self.span)

    def type_of(self, value: Expr) -> TensorType:
        """The type of a tensor."""
        found = infer_type(value, self.binder.signatures)
        if not isinstance(found, TensorType):
            raise UnityError("takes a tensor")
        return found

    def shape_of(self, value: Expr) -> Shape:
        """The shape of a tensor."""
        self.rank_of(value)
        shape = self.type_of(value).shape
        if not isinstance(shape, tuple):
            raise self.gap("an input of unknown sizes (R.match_cast names them)")
        return shape

    def rank_of(self, value: Expr) -> int:
        """The rank of a tensor, whose sizes may be unknown."""
        rank = self.type_of(value).ndim
        if rank is None:
            raise self.gap("an input of unknown rank")
        return rank

    def dtype_of(self, value: Expr) -> DType:
        """The dtype of a tensor."""
        found = self.type_of(value).dtype
        assert found is not None
        return found

    def op(self, name: str, *args: object, **attrs: object) -> Expr:
        """The result of an operator, bound to a variable."""
        known = self.binder.signatures
        call = call_op(name, *args, span=self.span, signatures=known, **attrs)
        return self.binder.emit(call, self.label, self.span)

    def assert_shape(self, value: Expr, shape: Shape) -> Expr:
        """A tensor whose shape is checked at run time."""
        kind = TensorType(shape, self.dtype_of(value))
        return self.binder.match_cast(value, kind, f"{self.label}_checked", self.span)

    def read_sizes(self, values: Expr, count: int, name: str) -> tuple[Symbol, ...]:
        """So many integers of a vector as new symbols; running stops where one is less than 0."""
        symbols = tuple(self.binder.fresh(name) for _ in range(count))
        read = self.op("tensor_to_shape", values)
        self.binder.match_cast(read, ShapeType(symbols), f"{self.label}_{name}", self.span)
        return symbols

    def scan(self, start: Expr, over: Expr, step: Callable[[Emitter, Var, Var], Expr]) -> Expr:
        """A state after a loop over the first axis of a tensor.

        Args:
            start: What it is at first; its type stays.
            over: The tensor.
            step: Emits the next state, of an emitter of the loop's body, the state and a row.
        """
        kind, of = self.type_of(start), self.type_of(over)
        outer = self.binder
        inner = outer.child() if isinstance(outer, GraphBuilder) else GraphBuilder(outer.signatures)
        row = TensorType(self.shape_of(over)[1:], of.dtype)
        state, element = inner.new_var("state", kind), inner.new_var("row", row)
        following = step(Emitter(inner, self.label, self.span), state, element)
        loop = Scan((state,), (start,), (element,), (over,), inner.body(Tuple((following,))))
        return self.field(outer.emit(loop, self.label, self.span), 0)

    def field(self, value: Expr, index: int) -> Expr:
        """One field of a tuple."""
        return self.binder.emit(TupleGet(value, index), f"{self.label}_{index}", self.span)

    def number(self, value: float, like: Expr) -> Constant:
        """A scalar constant of another tensor's dtype."""
        return Constant(np.asarray(value).astype(self.dtype_of(like).numpy))

    def widened(self, value: Expr) -> Expr:
        """A tensor in its working dtype: float16 and its like would overflow between steps."""
        return self.cast(value, working_dtype(self.dtype_of(value)))

    def cast(self, value: Expr, to: DType) -> Expr:
        """A tensor as another dtype; itself if it has it."""
        return value if self.dtype_of(value) == to else self.op("astype", value, dtype=to)
