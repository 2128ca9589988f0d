"""Objects of TVM's that are values: numbers, strings, containers, attributes, constants."""

from __future__ import annotations

from collections.abc import Mapping

from unity.errors import UnityError
from unity.ir.dtype import Array

from ..schema import Field
from ..syntax import Attributes, AttrValue, Ignored, Record
from .objects import Node, Objects, Walk

_LARGEST = 4096
"""How many numbers a constant may have that stands in an attribute."""
_BOXED = {
    *(("axis", op) for op in ("gather", "stack", "scatter_elements", "scatter", "scatter_add")),
    ("batch_dims", ""),
    ("exclusive", ""),
    ("inverse", ""),
    ("k", "topk"),
    ("k", "dyn.topk"),
    ("num_samples", ""),
    ("repeats", ""),
    ("seq_axis", ""),
    ("batch_axis", ""),
}
"""Numbers that TVM keeps as objects, though they have no default of null: name and operator."""


def constant_of(objects: Objects, index: int) -> Array:
    """The tensor of a ``relay.Constant``.

    Raises:
        UnityError: The object is none.
    """
    node = objects.node(index)
    if node.key not in ("relay.Constant", "Constant"):
        raise objects.error(node, "expected a constant")
    return objects.array(node, "data")


def plain(objects: Objects, index: int) -> AttrValue:
    """An object as a value; one that is none of ours is a `Record`.

    Raises:
        UnityError: It is damaged, or holds itself.
    """
    try:
        return _plain(objects, index, objects.walk(objects.node(index)))
    except RecursionError:
        raise objects.error(objects.node(index), "an object that holds itself") from None


def _plain(objects: Objects, index: int, walk: Walk) -> AttrValue:
    walk.step()
    node = objects.node(index)
    match node.key:
        case "":
            return None
        case "IntImm" | "runtime.BoxInt":
            value = objects.number(node, "value")
            return bool(value) if node.fields.get("dtype") in ("bool", "uint1") else value
        case "runtime.BoxBool":
            return bool(objects.number(node, "value"))
        case "FloatImm" | "runtime.BoxFloat":
            return real(objects, node, "value")
        case "runtime.String":
            return node.text if node.text is not None else objects.string(node, "value")
        case "Array":
            return tuple(_plain(objects, i, walk) for i in node.items)
        case "Map":
            return {k: _plain(objects, i, walk) for k, i in objects.entries(node).items()}
        case "DictAttrs":
            held = objects.optional(node, "__dict__")
            return {} if held is None else _plain(objects, held.index, walk)
        case "relay.Constant":
            array = constant_of(objects, index)
            return _nested(array.tolist()) if array.size <= _LARGEST else Record(node.key)
        case _ if node.key.startswith("relay.attrs."):
            return dict(node.fields)
        case _:
            return Record(node.key, tuple(node.fields.items()))


def _nested(value: object) -> AttrValue:
    if isinstance(value, list):
        return tuple(_nested(v) for v in value)
    return value if isinstance(value, bool | int | float) else str(value)


def real(objects: Objects, node: Node, name: str) -> float:
    """A field that is a number.

    Raises:
        UnityError: It is none.
    """
    try:
        return float(node.fields.get(name, ""))
    except ValueError:
        text = node.fields.get(name, "")
        raise objects.error(node, f"its field {name!r} is {text[:40]!r}, not a number") from None


def attributes_of(
    objects: Objects,
    node: Node,
    operator: str,
    fields: Mapping[str, Field] | None,
    ignored: list[Ignored],
) -> Attributes:
    """The attributes of a call of an operator, by the kinds that its signature says.

    JSON holds every field of an attribute struct as text, and numbers of other objects are text,
    too: only the kind of a field says which of the two ``"12"`` is.

    Args:
        objects: The graph.
        node: The attributes.
        operator: What is called.
        fields: Those that it has; None for any.
        ignored: Gets those that it does not have, which are 0: others are refused.

    Raises:
        UnityError: One is damaged, or the operator has none of this name.
    """
    if fields is None:
        return dict(node.fields)
    found: dict[str, AttrValue] = {}
    for name, text in node.fields.items():
        field = fields.get(name)
        if field is None:
            if not is_empty(objects, text):
                raise objects.error(node, f"{operator} has no attribute {name!r}")
            if text == "0":
                ignored.append(Ignored(f"calls of `{operator}`", name, 0, objects.span(node)))
            continue
        try:
            found[name] = _value(objects, node, operator, field, text)
        except UnityError as error:
            raise objects.error(
                node, f"the attribute {name!r} of {operator}: {error.message}"
            ) from None
    return {k: v for k, v in found.items() if v is not None or fields[k].default is not None}


def _value(objects: Objects, node: Node, operator: str, field: Field, text: str) -> AttrValue:
    number = text.removeprefix("-").isdecimal() and len(text) < 20
    match field.kind:
        case "dtype":
            return text
        case "str":
            return objects.string(node, field.name)
        case "ints" | "floats" | "pairs" | "sections":
            return plain(objects, objects.number(node, field.name))
        case "any":
            return plain(objects, int(text)) if number else text
        case "float" if not number or field.required or field.default is not None:
            return real(objects, node, field.name)
        case "bool" if not _is_boxed(operator, field):
            return bool(objects.number(node, field.name))
        case _ if not _is_boxed(operator, field):
            return objects.number(node, field.name)
        case _:
            return plain(objects, objects.number(node, field.name))


def _is_boxed(operator: str, field: Field) -> bool:
    optional = not field.required and field.default is None
    return optional or (field.name, "") in _BOXED or (field.name, operator) in _BOXED


def is_empty(objects: Objects, text: str) -> bool:
    """Whether a field that we don't know says nothing, or 0."""
    if text in ("", "0"):
        return True
    if not text.isdecimal() or len(text) > 18:
        return False
    found = objects.node(int(text))
    return found.key == "" or (
        found.key in ("Array", "runtime.String") and not (found.items or found.text)
    )
