"""Annotations as checks: what a parameter's annotation expects, in words and as a test.

Annotations are text (``from __future__ import annotations``); names in them are looked up among the
globals of the function, so that aliases and classes mean what they mean there. A name that only
type checkers import means anything.
"""

from __future__ import annotations

import ast
import builtins
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from unity.errors import UnityError


@dataclass(frozen=True, slots=True)
class Kind:
    """What is expected.

    Attributes:
        words: As a message says it.
        fits: Whether a value is it.
        classes: The classes it stands for, where it is nothing but those.
    """

    words: str
    fits: Callable[[object], bool]
    classes: tuple[type, ...] = ()


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_float(value: object) -> bool:
    return isinstance(value, float) or _is_int(value)


def _of(words: str, *classes: type) -> Kind:
    known = frozenset(classes)
    return Kind(words, lambda v: type(v) in known or isinstance(v, classes), classes)


ANYTHING = Kind("anything", lambda _: True)
DECISIONS = Kind("{block: {decision: value}}", lambda v: isinstance(v, Mapping))
"""Changes of rules' decisions by blocks' names; who takes them says what is wrong within."""
RECORDS = Kind("records of tuning", lambda v: hasattr(v, "replays"))
NONE = _of("None", type(None))
_WORDS: Mapping[type, str] = {
    str: "text",
    bool: "True or False",
    bytes: "bytes",
    dict: "a dict",
    tuple: "a tuple",
    Path: "a path",
    PathLike: "a path",
}
_BASIC: Mapping[object, Kind] = {
    int: Kind("an integer", _is_int),
    float: Kind("a number", _is_float),
    object: ANYTHING,
    Any: ANYTHING,
}


def kind_of(
    annotation: object, scope: Mapping[str, object], kinds: Mapping[str, Kind] | None = None
) -> Kind:
    """What an annotation expects.

    Args:
        annotation: Text, a class, or what `typing` makes of them.
        scope: What names in a text stand for.
        kinds: What further names and texts stand for.

    >>> kind_of("Sequence[int] | None", {"Sequence": Sequence}).words
    'integers or None'
    >>> kind_of("Any", {"Any": Any}).words
    'anything'
    """
    own = kinds or {}
    if isinstance(annotation, str):
        if annotation in own:
            return own[annotation]
        return _of_syntax(ast.parse(annotation, mode="eval").body, scope, own)
    return _of_value(annotation, scope, own)


def _of_syntax(node: ast.expr, scope: Mapping[str, object], own: Mapping[str, Kind]) -> Kind:
    text = ast.unparse(node)
    if text in own:
        return own[text]
    match node:
        case ast.BinOp(left, ast.BitOr(), right):
            return _either([_of_syntax(left, scope, own), _of_syntax(right, scope, own)])
        case ast.Constant(None):
            return NONE
        case ast.Constant(str() as inner):
            return kind_of(inner, scope, own)
        case ast.Subscript(base, index):
            return _subscripted(node, base, index, scope, own)
        case ast.Name(name):
            known = {**own, name: ANYTHING}  # within itself a recursive alias is looked at no more
            kind = _of_value(_named(name, scope), scope, known)
            said = _ALIASES.get(name)
            return kind if said is None or kind is ANYTHING else replace(kind, words=said)
        case _:
            return ANYTHING


def _named(name: str, scope: Mapping[str, object]) -> object:
    return scope.get(name, vars(builtins).get(name, object))


def _subscripted(
    node: ast.Subscript,
    base: ast.expr,
    index: ast.expr,
    scope: Mapping[str, object],
    own: Mapping[str, Kind],
) -> Kind:
    origin = _named(base.id, scope) if isinstance(base, ast.Name) else object
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    if origin is Literal:
        return _one_of([p.value for p in parts if isinstance(p, ast.Constant)])
    if origin is Callable:
        return _generic(Callable, [], False)
    kinds = [_of_syntax(p, scope, own) for p in parts if not _is_dots(p)]
    return _generic(origin, kinds, any(_is_dots(p) for p in parts))


def _is_dots(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _of_value(value: object, scope: Mapping[str, object], own: Mapping[str, Kind]) -> Kind:
    if isinstance(value, str):
        return kind_of(value, scope, own)
    if value is None or value is type(None):
        return NONE
    try:
        if value in _BASIC:
            return _BASIC[value]
    except TypeError:
        return ANYTHING
    origin, parts = get_origin(value), get_args(value)
    if origin in (Union, types.UnionType):
        return _either([_of_value(p, scope, own) for p in parts])
    if origin is Literal:
        return _one_of(parts)
    if origin is not None:
        kinds = [_of_value(p, scope, own) for p in parts if p is not ...]
        return _generic(origin, kinds if origin is not Callable else [], ... in parts)
    if isinstance(value, type):
        return _class(value)
    if isinstance(value, TypeVar):
        return ANYTHING if value.__bound__ is None else _of_value(value.__bound__, scope, own)
    return ANYTHING


def _class(value: type) -> Kind:
    if getattr(value, "_is_protocol", False):
        return _generic(Callable, [], False) if "__call__" in vars(value) else ANYTHING
    if value is object:
        return ANYTHING
    if value in (Callable, types.FunctionType):
        return _generic(Callable, [], False)
    return _of(_WORDS.get(value) or _article(value.__name__), value)


def _article(name: str) -> str:
    shown = name.lstrip("_")
    return f"an {shown}" if shown[0] in "AEIOUaeiou" else f"a {shown}"


def _one_of(values: Sequence[object]) -> Kind:
    words = f"one of {', '.join(map(repr, values))}"
    return Kind(words, lambda v: any(type(v) is type(k) and v == k for k in values))


def _either(kinds: Sequence[Kind]) -> Kind:
    flat = [k for k in kinds if k is not ANYTHING]
    if len(flat) < len(kinds):
        return ANYTHING
    words = " or ".join(dict.fromkeys(k.words for k in kinds))
    if all(k.classes for k in kinds):
        return _of(words, *(c for k in kinds for c in k.classes))
    tests = [k.fits for k in kinds]
    return Kind(words, lambda v: any(fits(v) for fits in tests))


def _generic(origin: object, parts: Sequence[Kind], dots: bool) -> Kind:
    """A container of kinds: ``Sequence[int]``, ``Mapping[str, int]``, ``tuple[int, ...]``."""
    if origin is Callable or origin is types.FunctionType:
        return Kind("a function", callable)
    if not isinstance(origin, type):
        return ANYTHING
    if issubclass(origin, Mapping) and len(parts) == 2:
        key, item = parts
        return Kind(
            f"a dict of {_plural(key)} to {_plural(item)}",
            lambda v: (
                isinstance(v, origin) and all(key.fits(k) and item.fits(i) for k, i in v.items())
            ),
        )
    if issubclass(origin, tuple) and not dots:
        return Kind(
            f"a tuple of {len(parts)}: {', '.join(p.words for p in parts)}",
            lambda v: (
                isinstance(v, tuple)
                and len(v) == len(parts)
                and all(p.fits(x) for p, x in zip(parts, v, strict=True))
            ),
        )
    if issubclass(origin, Iterable) and len(parts) == 1:
        (item,) = parts
        if not hasattr(origin, "__len__"):  # an iterator can be looked at once only
            return Kind(
                _plural(item), lambda v: isinstance(v, Iterable) and not isinstance(v, str | bytes)
            )
        return Kind(
            _plural(item),
            lambda v: (
                isinstance(v, origin) and not isinstance(v, str | bytes) and all(map(item.fits, v))
            ),
        )
    return _class(origin)


def _plural(kind: Kind) -> str:
    """Several of a kind, in words."""
    words = kind.words
    if words in _PLURALS:
        return _PLURALS[words]
    if words.startswith(("a ", "an ")) and " " not in words.partition(" ")[2]:
        return f"{words.partition(' ')[2]}s"
    return f"a sequence of {words}"


_ALIASES = {
    "Expr": "an expression",
    "ExprLike": "an expression, a number or an array",
    "Operand": "a scalar expression or a number",
    "PrimExpr": "a scalar expression",
    "Extent": "a dim or a scalar expression",
    "Dim": "a dim",
    "SymDim": "a dim",
    "Definition": "a function",
    "Dynamic": "a dict: {input: {axis: size or symbol}} or {symbol: size}",
}
"""What aliases of many classes are called in a message."""
_PLURALS = {
    "a ReduceAxis": "reduce axes (axis=[k])",
    "a scalar expression": "scalar expressions",
    "a dim": "dims",
    "an expression": "expressions",
    "an expression, a number or an array": "expressions, numbers or arrays",
    "a dim or a scalar expression": "dims or scalar expressions",
    "an integer": "integers",
    "a number": "numbers",
    "text": "texts",
    "anything": "values",
    "an integer or None": "integers, one of them perhaps None",
    "True or False": "truth values",
}


def require(kind: Kind, what: str, value: object) -> None:
    """Refuse a value that is not of a kind.

    Raises:
        UnityError: It is not.
    """
    if not kind.fits(value):
        raise UnityError(f"{what}: expected {kind.words}, got {value!r}")
