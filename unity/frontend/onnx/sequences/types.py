"""Inputs and outputs of a model that are sequences or optional: their types, and callers' forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx

from unity.errors import UnsupportedError
from unity.frontend.emission import Emission
from unity.frontend.run_time.ragged import MOST_AXES, ItemKind, Ragged
from unity.ir.attrs import AttrValue
from unity.ir.dtype import BOOL, INT64
from unity.ir.graph import Expr, Tuple
from unity.ir.types import TensorType, TupleType, Type

from ..reading.tensors import dtype_of
from ..strings import STRING
from .held import (
    Form,
    Held,
    Listed,
    Maybe,
    form_of,
    is_there,
    present,
    ragged,
    sequence_of,
    tensor_of,
)

if TYPE_CHECKING:
    from unity.op.builder import GraphBuilder


def declared_form(of: onnx.TypeProto, what: str) -> Form | None:
    """The form of a value of a declared type; None if it is something else.

    Raises:
        UnsupportedError: It is a sequence of something else than tensors of numbers.
    """
    optional = of.HasField("optional_type")
    inner = of.optional_type.elem_type if optional else of
    if inner.HasField("sequence_type"):
        items, is_tensor = inner.sequence_type.elem_type, False
    elif optional and inner.HasField("tensor_type"):
        items, is_tensor = inner, True
    else:
        return None
    if not items.HasField("tensor_type") or items.tensor_type.elem_type == STRING:
        raise UnsupportedError(f"{what} is a sequence", ["a sequence that is not of numbers"])
    return Form(_item_kind(items.tensor_type, what), optional, is_tensor)


def _item_kind(of: onnx.TypeProto.Tensor, what: str) -> ItemKind:
    kind = dtype_of(of.elem_type, what)
    dims = of.shape.dim
    if not of.HasField("shape"):
        return ItemKind(kind, MOST_AXES)
    if not dims:  # written for items of any rank as well (as in ONNX's own tests)
        return ItemKind(kind, MOST_AXES, None, 0)
    known = tuple(int(d.dim_value) if d.dim_value > 0 else None for d in dims)
    return ItemKind(kind, len(known), known)


def input_type(builder: GraphBuilder, name: str, form: Form) -> Type:
    """The type of a parameter in a form."""
    elements, items = builder.fresh(f"{name}_elements"), builder.fresh(f"{name}_items")
    rows = TensorType((items, form.kind.width), INT64)
    pair = TupleType((TensorType((elements,), form.kind.dtype), rows))
    return TupleType((TensorType((), BOOL), pair)) if form.optional else pair


def given_form(index: int, form: Form) -> tuple[AttrValue, ...]:
    """What a caller gives for an input: its place, then how it is passed on."""
    return (index, layout_of(form), form.kind.dtype.name, form.kind.width)


def layout_of(form: Form) -> str:
    """The name of a form (`unity.runtime.host_forms`)."""
    if form.is_tensor:
        return "optional tensor"
    return "optional sequence" if form.optional else "sequence"


def taken(node: Emission, held: Held, declared: onnx.TypeProto) -> tuple[Expr, str]:
    """An output as one value, and how a caller takes it.

    Raises:
        UnityError: It is declared as something else.
    """
    if isinstance(held, Maybe) and declared.HasField("sequence_type"):
        found = present(node, held)
        assert isinstance(found, Listed | Ragged)
        held = found
    if isinstance(held, Listed) and held.items:
        items = tuple(tensor_of(node, one) for one in held.items)
        return node.builder.emit(Tuple(items), f"{node.label}_items"), "list"
    form = form_of(held)
    if isinstance(held, Maybe):
        whole = _named(node, ragged(node, sequence_of(held)))
        return node.builder.emit(Tuple((is_there(held), whole))), layout_of(form)
    return _named(node, ragged(node, held)), layout_of(form)


def _named(node: Emission, sequence: Ragged) -> Expr:
    """A sequence as one value, whose sizes, which a run brings about, are symbols."""
    data, shapes = sequence.data, sequence.shapes
    size = node.sized(node.shape_of(data)[0], f"{node.label}_elements")
    count = node.sized(node.shape_of(shapes)[0], f"{node.label}_items")
    pair = (
        node.assert_shape(data, (size,)),
        node.assert_shape(shapes, (count, sequence.kind.width)),
    )
    return node.builder.emit(Tuple(pair), f"{node.label}_sequence")
