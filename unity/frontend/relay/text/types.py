"""Types in Relay's text: ``Tensor[(1, ?), float32]``, ``fn (A) -> List[A]``."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

from unity.ir.dtype import DType

from .. import syntax
from ..schema.dtypes import named
from .cursor import Cursor
from .lexer import NAME, NUMBER
from .literals import number

_Item = TypeVar("_Item")


def listed(cursor: Cursor, close: str, item: Callable[[], _Item], where: str) -> tuple[_Item, ...]:
    """Items between commas up to a closing token, which is stepped over; the last comma is free."""
    found: list[_Item] = []
    while not cursor.take(close):
        found.append(item())
        if not cursor.take(","):
            cursor.expect(close, where)
            break
    return tuple(found)


def type_params(cursor: Cursor) -> tuple[str, ...]:
    """``[A, B]``, or nothing."""
    if not cursor.take("["):
        return ()
    return listed(
        cursor, "]", lambda: cursor.word(NAME, "a type parameter"), "after type parameters"
    )


def type_of(cursor: Cursor, variables: Collection[str]) -> syntax.Type:
    """A type.

    Args:
        cursor: Where it begins.
        variables: The type parameters that are known.

    Raises:
        UnityError: None stands there.
    """
    first = cursor.at
    if cursor.take("("):
        fields = listed(cursor, ")", lambda: type_of(cursor, variables), "after a tuple's types")
        alone = len(fields) == 1 and cursor.tokens.texts[cursor.at - 2] != ","
        return fields[0] if alone else syntax.TupleType(fields, cursor.span(first))
    name = cursor.word(NAME, "a type")
    if name == "_":
        return syntax.Hole(cursor.span(first))
    if name == "Tensor":
        return _tensor(cursor, first)
    if name == "fn":
        return _function(cursor, first, variables)
    if name == "ref" and cursor.take("("):
        value = type_of(cursor, variables)
        cursor.expect(")", "after a reference's type")
        return syntax.RefType(value, cursor.span(first))
    if name in variables:
        return syntax.TypeVar(name, cursor.span(first))
    element = named(name)
    if element is not None:
        return syntax.TensorType((), element, cursor.span(first))
    cursor.types.setdefault(name, cursor.span(first))
    arguments: tuple[syntax.Type, ...] = ()
    if cursor.take("["):
        arguments = listed(cursor, "]", lambda: type_of(cursor, variables), "after type arguments")
    return syntax.AdtType(name, arguments, cursor.span(first))


def _tensor(cursor: Cursor, first: int) -> syntax.TensorType:
    cursor.expect("[", "after Tensor")
    if cursor.take("("):
        shape = listed(cursor, ")", lambda: _dim(cursor), "after a shape")
    else:
        shape = (_dim(cursor),)
    cursor.expect(",", "between a tensor's shape and its dtype")
    element = _dtype(cursor)
    cursor.expect("]", "after a tensor's dtype")
    return syntax.TensorType(shape, element, cursor.span(first))


def meta_reference(cursor: Cursor) -> tuple[str, int]:
    """``meta[relay.Constant][0]``: a type key and an index.

    Raises:
        UnityError: It is not written so.
    """
    cursor.expect("meta", "here")
    cursor.expect("[", "after meta")
    key = cursor.word(NAME, "what kind of object is meant, as relay.Constant")
    cursor.expect("]", "after the kind of object")
    cursor.expect("[", "before the object's number")
    index = number(cursor.text) if cursor.kind == NUMBER else None
    if not isinstance(index, int) or index < 0:
        raise cursor.unexpected("the object's number")
    cursor.at += 1
    cursor.expect("]", "after the object's number")
    return key, index


def _dim(cursor: Cursor) -> syntax.Dim:
    if cursor.take("?"):
        return None
    if cursor.text == "meta":  # a formula over other dims: as good as unknown
        meta_reference(cursor)
        return None
    if cursor.kind == NAME:
        name = cursor.text
        cursor.at += 1
        if named(name) is None or cursor.text != "(":
            return name
        value = number(cursor.cast_number())  # int64(3)
    else:
        value = number(cursor.text) if cursor.kind == NUMBER else None
        if not _is_size(value):
            raise cursor.unexpected("a dim: an int or ?")
        cursor.at += 1
    if not _is_size(value):
        raise cursor.error(f"{value} is no dim", "an int or ?")
    assert isinstance(value, int)
    return value


def _is_size(value: float | None) -> bool:
    return isinstance(value, int) and 0 <= value < 2**63


def _dtype(cursor: Cursor) -> DType:
    found = named(cursor.text) if cursor.kind == NAME else None
    if found is None:
        raise cursor.unexpected("a dtype, as float32")
    cursor.at += 1
    return found


def _function(cursor: Cursor, first: int, variables: Collection[str]) -> syntax.FunctionType:
    own = type_params(cursor)
    known = {*variables, *own}
    cursor.expect("(", "after fn")
    params = listed(cursor, ")", lambda: type_of(cursor, known), "after a function's types")
    cursor.expect("->", "before a function's result type")
    return syntax.FunctionType(params, type_of(cursor, known), own, cursor.span(first))
