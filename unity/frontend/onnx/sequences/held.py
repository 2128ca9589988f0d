"""What a name stands for that is no tensor: a sequence, or a value that may be absent.

As far as it is known during the import how long a sequence is and which value is there, a node that
reads an item reads the tensor itself, and nothing is left of the sequence. Where only running tells
(a position, a branch, a state of a loop, an input of the model), a sequence becomes tensors
(`unity.frontend.run_time.ragged`), and an optional value becomes a flag and a sequence, one of at
most one item where it is a tensor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from unity.errors import UnityError
from unity.frontend.emission import Emission
from unity.frontend.run_time.ragged import (
    ItemKind,
    Ragged,
    item,
    item_kind,
    of_tensors,
    unpaired,
    widened,
)
from unity.frontend.sizes import Sizes
from unity.ir.dtype import BOOL
from unity.ir.graph import Constant, Expr, Tuple
from unity.ir.types import TensorType, TupleType


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """A sequence of known length.

    Attributes:
        kind: What its items have in common.
        items: Its tensors.
    """

    kind: ItemKind
    items: tuple[Expr | Sizes, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Maybe:
    """A value that may be absent.

    Attributes:
        kind: Of the tensor, or of the items of the sequence.
        is_tensor: Whether it is a tensor, not a sequence.
        value: What it is, if it is there. If that is known at run time only, a sequence; for a
            tensor one of at most one item.
        there: A scalar that says so, if only running tells; None where `value` says all.
    """

    kind: ItemKind
    is_tensor: bool
    value: Expr | Sizes | Listed | Ragged | None = None
    there: Expr | None = None


Held: TypeAlias = Listed | Ragged | Maybe


@dataclass(frozen=True, slots=True)
class Form:
    """How a held value is passed on as tensors: a sequence, perhaps behind a flag.

    Attributes:
        kind: Of the items.
        optional: Whether it may be absent.
        is_tensor: Whether it is a tensor that may be absent.
    """

    kind: ItemKind
    optional: bool = False
    is_tensor: bool = False

    @property
    def type(self) -> TupleType:
        """The type of the value that it is passed as."""
        if not self.optional:
            return self.kind.type
        return TupleType((TensorType((), BOOL), self.kind.type))

    def joined(self, other: Form) -> Form:
        """The form of what is passed in one of two.

        Raises:
            UnityError: No value can have both.
        """
        if self.is_tensor != other.is_tensor:
            raise UnityError("a sequence beside a tensor that may be absent")
        kind = self.kind.joined(other.kind)
        return Form(kind, self.optional or other.optional, self.is_tensor)

    def packed(self, node: Emission, held: Held) -> Expr:
        """A value in this form, as one."""
        if not self.optional:
            found = present(node, held) if isinstance(held, Maybe) else held
            assert isinstance(found, Listed | Ragged)
            return ragged(node, found, self.kind).pair(node)
        there: Expr = Constant(np.asarray(True))
        if isinstance(held, Maybe):
            there = is_there(held)
            held = sequence_of(held)
        pair = ragged(node, held, self.kind).pair(node)
        return node.builder.emit(Tuple((there, pair)), f"{node.label}_optional")

    def unpacked(self, node: Emission, value: Expr) -> Held:
        """What is held by one value in this form."""
        if not self.optional:
            return unpaired(node, value, self.kind)
        whole = unpaired(node, node.field(value, 1), self.kind)
        return Maybe(self.kind, self.is_tensor, whole, node.field(value, 0))


def form_of(held: Held) -> Form:
    """The form that a value needs at least."""
    if isinstance(held, Maybe):
        return Form(held.kind, optional=True, is_tensor=held.is_tensor)
    return Form(held.kind)


def is_there(held: Maybe) -> Expr:
    """Whether a value is there, a scalar."""
    if held.there is not None:
        return held.there
    return Constant(np.asarray(held.value is not None))


def sequence_of(held: Maybe) -> Listed | Ragged:
    """A value that may be absent as a sequence; one of one tensor, or of none, where it is that."""
    match held.value:
        case None:
            return Listed(held.kind)
        case Listed() | Ragged():
            return held.value
        case _:
            return Listed(held.kind, (held.value,))


def present(node: Emission, held: Maybe) -> Expr | Sizes | Listed | Ragged:
    """The value that may be absent; that it is there is checked when the program runs.

    Raises:
        UnityError: It is known to be absent.
    """
    if held.value is None:
        raise UnityError("takes the value of an optional that is empty")
    if held.there is None or not isinstance(held.value, Ragged):
        return held.value
    if held.is_tensor:
        return item(node, held.value, Constant(np.asarray(0, np.int64)))
    kind = TensorType((1,), BOOL)
    flag = node.op("reshape", held.there, (1,))
    found = node.op("reshape", node.op("nonzero", flag), (-1,))
    node.builder.match_cast(
        found, replace(kind, dtype=node.dtype_of(found)), f"{node.label}_is_there", node.span
    )
    return held.value


def listed(node: Emission, items: tuple[Expr | Sizes, ...], kind: ItemKind | None = None) -> Listed:
    """A sequence of given tensors.

    Raises:
        UnityError: Their dtypes differ, or there is none and no kind is given.
    """
    for one in items:
        own = _kind_of(node, one)
        kind = own if kind is None else kind.joined(own)
    if kind is None:
        raise UnityError("is a sequence of nothing")
    return Listed(kind, items)


def ragged(node: Emission, held: Listed | Ragged, kind: ItemKind | None = None) -> Ragged:
    """A sequence whose length may be known at run time only."""
    wanted = held.kind if kind is None else kind
    if isinstance(held, Ragged):
        return held if held.kind == wanted else widened(node, held, wanted)
    return of_tensors(node, wanted, [tensor_of(node, one) for one in held.items])


def tensor_of(node: Emission, value: Expr | Sizes) -> Expr:
    """A tensor, given as sizes perhaps."""
    return node.materialize(value) if isinstance(value, Sizes) else value


def _kind_of(node: Emission, value: Expr | Sizes) -> ItemKind:
    if isinstance(value, Sizes):
        return item_kind(value.dtype, value.dims.shape)
    return item_kind(node.dtype_of(value), node.shape_of(value))
