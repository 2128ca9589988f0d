"""Types among TVM's objects."""

from __future__ import annotations

from .. import syntax
from ..schema.dtypes import named
from .objects import Node, Objects, Walk


def type_of(objects: Objects, node: Node | None) -> syntax.Type | None:
    """The type that an object is; None of a null.

    Raises:
        UnityError: It is none.
    """
    if node is None or not node.key:
        return None
    try:
        return _type(objects, node, objects.walk(node))
    except RecursionError:
        raise objects.error(node, "a type that holds itself") from None


def _type(objects: Objects, node: Node, walk: Walk) -> syntax.Type:
    walk.step()
    span = objects.span(node)
    match node.key:
        case "TensorType":
            shape = tuple(_dim(objects, dim) for dim in objects.members(node, "shape"))
            dtype = named(node.fields.get("dtype", ""))
            if dtype is None:
                raise objects.error(node, f"no dtype is called {node.fields.get('dtype', '')!r}")
            return syntax.TensorType(shape, dtype, span)
        case "TupleType":
            return syntax.TupleType(_types(objects, node, "fields", walk), span)
        case "FuncType":
            result = _type(objects, objects.member(node, "ret_type"), walk)
            own = tuple(
                objects.string(p, "name_hint") for p in objects.members(node, "type_params")
            )
            return syntax.FunctionType(_types(objects, node, "arg_types", walk), result, own, span)
        case "GlobalTypeVar":
            return syntax.AdtType(objects.string(node, "name_hint"), (), span)
        case "TypeCall":
            name = objects.string(objects.member(node, "func"), "name_hint")
            return syntax.AdtType(name, _types(objects, node, "args", walk), span)
        case "TypeVar":
            return syntax.TypeVar(objects.string(node, "name_hint"), span)
        case "RelayRefType":
            return syntax.RefType(_type(objects, objects.member(node, "value"), walk), span)
        case "IncompleteType":
            return syntax.Hole(span)
        case _:
            raise objects.error(node, "expected a type")


def _types(objects: Objects, node: Node, name: str, walk: Walk) -> tuple[syntax.Type, ...]:
    return tuple(_type(objects, member, walk) for member in objects.members(node, name))


def _dim(objects: Objects, node: Node) -> syntax.Dim:
    if node.key == "IntImm":
        value = objects.number(node, "value")
        if value >= 0:
            return value
    if node.key == "tir.Any":
        return None
    if node.key == "tir.Var":
        return objects.string(node, "name")
    raise objects.error(node, "expected a dim: an int, ? or a symbol")
