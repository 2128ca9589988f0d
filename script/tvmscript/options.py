"""What decorators of TVMScript are told, and the attributes that only TVM reads.

Comes in: their calls. Goes out: what Unity keeps of them. Unknown names and other values than those
that TVM takes are refused at their place, also where a value makes no difference here.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping

from ..parser.source import Source
from .signatures import FUNCTION_OPTIONS, MODULE_OPTIONS, PRIM_FUNC_OPTIONS
from .syntax import constant

_OPTIONS: Mapping[str, frozenset[str]] = {
    "T.prim_func": PRIM_FUNC_OPTIONS,
    "R.function": FUNCTION_OPTIONS,
    "I.ir_module": MODULE_OPTIONS,
}
_ONLY_TVMS: Mapping[str, tuple[type, ...]] = {
    "global_symbol": (str,),
    "tir.noalias": (bool, int),
    "tir.is_scheduled": (bool, int),
}
"""Attributes that only TVM reads, with what they are."""


def options_of(source: Source, decorator: ast.expr, name: str) -> Mapping[str, ast.keyword]:
    """The options of ``@T.prim_func(...)``, ``@R.function(...)``, ``@I.ir_module(...)`` by name.

    Raises:
        UnityError: One is unknown, stands twice, or is not ``True`` or ``False``.
    """
    if not isinstance(decorator, ast.Call):
        return {}
    known = _OPTIONS[name]
    for extra in decorator.args:
        raise source.error(extra, f"{name} takes its options by name", _takes(known))
    found: dict[str, ast.keyword] = {}
    for option in decorator.keywords:
        if option.arg is None or option.arg not in known:
            said = ast.unparse(option) if option.arg is None else repr(option.arg)
            raise source.error(option, f"{name} has no parameter {said}", _takes(known))
        if not isinstance(constant(option.value), bool):
            raise source.error(
                option.value,
                f"{name}: {option.arg!r} must be True or False, got {ast.unparse(option.value)}",
            )
        found[option.arg] = option
    return found


def _takes(known: Collection[str]) -> str:
    return f"it takes {', '.join(sorted(known))}"


def only_tvms(source: Source, key: ast.expr, value: ast.expr) -> bool:
    """Whether an attribute is one that only TVM reads.

    Raises:
        UnityError: It is, and is not what it is in TVM.
    """
    name = constant(key)
    if not isinstance(name, str) or name not in _ONLY_TVMS:
        return False
    if not isinstance(constant(value), _ONLY_TVMS[name]):
        wanted = "a text" if name == "global_symbol" else "True or False"
        raise source.error(value, f"{name!r} is {wanted}, got {ast.unparse(value)}")
    return True
