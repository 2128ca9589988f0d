"""Emitting what one call becomes, operator by operator: types asked, calls bound.

An operator that is several others says so by its row's `expand`, which gets an `Emitter`; importers
emit what a node of a foreign model becomes by one that knows more (`unity.frontend.emission`).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from unity.errors import Span, UnityError
from unity.ir.dtype import DType
from unity.ir.graph import Constant, Expr, TupleGet, Var
from unity.ir.types import Shape, TensorType, Type

from .accumulate import working_dtype
from .argument import shape_text
from .call import call_op
from .infer import infer_type


class Binder(Protocol):
    """What binds expressions to variables: a `GraphBuilder`, or a pass that rewrites a body."""

    signatures: dict[str, Type]

    def emit(self, value: Expr, name: str, span: Span | None = None, /) -> Var:
        """Bind an expression."""
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
        """A tensor whose shape is checked at run time.

        Raises:
            UnityError: What is checked there must be known here: only importers can do it.
        """
        raise self.gap(f"a shape that is {shape_text(shape)} only at run time")

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
