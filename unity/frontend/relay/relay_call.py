"""One call of a Relay operator being translated: its operands, its attributes, ways to emit code.

A converter takes a `RelayCall` and gives the value of the call. What it does not implement it says
with `RelayCall.gap`; an attribute that it never read counts as such, so none is ignored silently.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from unity.errors import UnityError
from unity.frontend.broadcasting import Broadcasts, broadcast
from unity.frontend.emission import Emission
from unity.frontend.sizes import Sizes
from unity.ir.dims import Dim
from unity.ir.dtype import Array, DType, dtype
from unity.ir.graph import Constant, Expr, Tuple, Var
from unity.ir.types import TensorType, TupleType
from unity.op.builder import GraphBuilder
from unity.op.infer import infer_type

from .known_sizes import worked_out
from .syntax import AttrValue, Call

Converter: TypeAlias = "Callable[[RelayCall], Expr]"


class RelayCall(Emission):
    """A call of an operator.

    Attributes:
        name: The operator's.
        operands: The values that it is called with.
        unread: The attributes that its converter has not read yet.
        dropped: Those that it said nothing is lost without.
        emitted: The operators that it became, each with the variable it is bound to.
        sizes: Tensors of its function whose elements are known as dims; it adds its own.
    """

    def __init__(
        self,
        call: Call,
        name: str,
        operands: Sequence[Expr],
        builder: GraphBuilder,
        broadcasts: Broadcasts,
        sizes: dict[Expr, Sizes] | None = None,
    ) -> None:
        super().__init__(builder, broadcasts, name.rpartition(".")[2], call.span)
        self.sizes = {} if sizes is None else sizes
        self.name = name
        self.operands = tuple(operands)
        self.attributes = call.attributes
        self.unread = set(call.attributes)
        self.dropped: set[str] = set()
        self.emitted: list[tuple[str, str | None]] = []

    # Operands.

    def tensor(self, index: int) -> Expr:
        """An operand that is a tensor."""
        if index >= len(self.operands):
            raise UnityError(f"lacks its operand {index}")
        value = self.operands[index]
        self.type_of(value)
        return value

    def fields(self, index: int) -> tuple[Expr, ...]:
        """An operand that is a tuple of tensors."""
        value = self.operands[index]
        if isinstance(value, Tuple):
            return value.fields
        kind = infer_type(value, self.builder.signatures)
        if not isinstance(kind, TupleType):
            raise UnityError("takes a tuple")
        return tuple(self.field(value, i) for i in range(len(kind.fields)))

    def constant(self, index: int) -> Array | None:
        """An operand's array, if it is known."""
        value = self.operands[index]
        return value.data if isinstance(value, Constant) else None

    def known(self, index: int, what: str) -> Array:
        """An operand's array, which must be known."""
        found = self.constant(index)
        if found is None:
            raise self.gap(f"{what} known only at run time")
        return found

    def dims(self, index: int) -> tuple[Dim, ...] | None:
        """An operand's elements, if they are known as numbers or as sizes of this function."""
        known = self.constant(index)
        if known is not None:
            return tuple(int(v) for v in known.reshape(-1))
        found = self.sizes.get(self.operands[index])
        return None if found is None else found.flat

    def scalar(self, index: int, what: str) -> float:
        """An operand that is one known number: an int if it is of an integer dtype."""
        array = self.known(index, what)
        if array.size != 1:
            raise UnityError(f"{what} must be one number, got {array.size}")
        number = array.reshape(())
        return float(number.astype(np.float64)) if dtype(array.dtype).is_float else int(number)

    def rank(self, index: int = 0) -> int:
        """The rank of an operand."""
        return len(self.shape_of(self.tensor(index)))

    # Attributes.

    def attribute(self, name: str) -> AttrValue:
        """An attribute, noted as read."""
        if name not in self.attributes:
            raise UnityError(f"lacks the attribute {name!r}")
        self.unread.discard(name)
        return self.attributes[name]

    def drop(self, *names: str) -> None:
        """Attributes that say nothing that the operands don't, or that change nothing."""
        self.dropped.update(self.unread.intersection(names))
        self.unread.difference_update(names)

    def only(self, name: str, *allowed: AttrValue) -> None:
        """Refuse an attribute of any other value."""
        found = self.attribute(name)
        if found not in allowed:
            raise self.gap(f"{name}={found!r}")

    def integer(self, name: str) -> int:
        """An int attribute."""
        found = self.attribute(name)
        if isinstance(found, bool) or not isinstance(found, int):
            raise self._mistyped(name, "an int", found)
        return found

    def real(self, name: str) -> float:
        """An attribute that is an int or a float."""
        found = self.attribute(name)
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise self._mistyped(name, "a number", found)
        return found

    def flag(self, name: str) -> bool:
        """A bool attribute, which some versions of TVM write as an int."""
        found = self.attribute(name)
        if not isinstance(found, int):
            raise self._mistyped(name, "a bool", found)
        return bool(found)

    def text(self, name: str) -> str:
        """A string attribute."""
        found = self.attribute(name)
        if not isinstance(found, str):
            raise self._mistyped(name, "a string", found)
        return found

    def dtype_or(self, name: str, default: DType) -> DType:
        """A dtype attribute; empty it means a default."""
        found = self.attribute(name)
        if found is None or found == "":
            return default
        if not isinstance(found, DType):
            raise self._mistyped(name, "a dtype", found)
        return found

    def optional_integer(self, name: str) -> int | None:
        """An int attribute, or None."""
        return None if self.attribute(name) is None else self.integer(name)

    def integers(self, name: str) -> tuple[int, ...]:
        """An attribute of ints; one stands for a tuple of it."""
        found = self.attribute(name)
        items = found if isinstance(found, tuple) else (found,)
        known = tuple(i for i in items if isinstance(i, int) and not isinstance(i, bool))
        if len(known) != len(items):
            raise self._mistyped(name, "ints", found)
        return known

    def optional_integers(self, name: str) -> tuple[int, ...] | None:
        """An attribute of ints, or None."""
        return None if self.attribute(name) is None else self.integers(name)

    def _mistyped(self, name: str, wanted: str, found: AttrValue) -> UnityError:
        return UnityError(f"the attribute {name!r} must be {wanted}, got {found!r}")

    # Emission.

    def op(self, name: str, *args: object, **attrs: object) -> Expr:
        """The result of an operator, noted; what is folded of one parameter has its name."""
        found = super().op(name, *args, **attrs)
        self.emitted.append((name, found.name if isinstance(found, Var) else None))
        if isinstance(found, Var) and isinstance(found.type, TensorType):
            sizes = worked_out(name, args, attrs, found.type, self.sizes)
            if sizes is not None:
                known = sizes.constant()
                if known is not None:
                    return Constant(known)
                self.sizes[found] = sizes
        if isinstance(found, Constant) and found.name is None:
            names = {a.name for a in args if isinstance(a, Constant) and a.name is not None}
            return replace(found, name=names.pop()) if len(names) == 1 else found
        return found

    def of(self, *operands: Expr) -> tuple[Expr, ...]:
        """Tensors as operands of a broadcasting operator."""
        return tuple(broadcast(self, operands))

    def transposed(self, value: Expr, axes: Sequence[int]) -> Expr:
        """A tensor with its axes in another order; itself if that is the order they have."""
        if tuple(axes) == tuple(range(len(axes))):
            return value
        return self.op("permute_dims", value, axes=tuple(axes))

    def reshaped(self, value: Expr, shape: Sequence[Dim]) -> Expr:
        """A tensor of another shape; itself if it has it."""
        return value if self.shape_of(value) == tuple(shape) else self.op("reshape", value, shape)

    def along(self, vector: Expr, axis: int, rank: int) -> Expr:
        """A vector in the place of one axis of a tensor of some rank."""
        if axis == rank - 1:
            return vector
        return self.op("reshape", vector, (-1, *(1,) * (rank - axis - 1)))
