"""TVMScript as TVM's users write it: change the import, keep the module.

``from tvm.script import ir as I, relax as R, tir as T`` becomes
``from unity.script.tvmscript import I, R, T``. Classes decorated with ``@I.ir_module`` become
modules; functions that stand alone become modules of one function. Macros (``@T.macro``,
``@T.inline``, ``@R.macro``) are put in place where they are called. `parse` reads a text.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType

from unity.arguments import public
from unity.errors import UnityError
from unity.ir.module import IRModule

from .module import macro, of_definition, of_python, parse
from .signatures import FUNCTION_OPTIONS, MACRO_OPTIONS, MODULE_OPTIONS, PRIM_FUNC_OPTIONS
from .words import Word


def _decorator(
    definition: object = None, /, **options: object
) -> IRModule | Callable[[type], IRModule]:
    """``@I.ir_module``."""
    _check_options("I.ir_module", options, MODULE_OPTIONS)
    if definition is None:
        return of_definition
    if not isinstance(definition, type):
        raise UnityError(f"I.ir_module decorates a class, got {definition!r}")
    return of_definition(definition)


def _check_options(name: str, options: Mapping[str, object], known: Iterable[str]) -> None:
    for option, value in options.items():
        if option not in known:
            hint = f"it takes {', '.join(sorted(known))}"
            raise UnityError(f"{name} has no parameter {option!r}", hint=hint)
        if not isinstance(value, bool):
            raise UnityError(f"{name}: {option!r} must be True or False, got {value!r}")


def _marking(name: str, known: Iterable[str]) -> Callable[..., object]:
    """``@T.prim_func`` or ``@R.function``: in a class the class's decorator reads them."""

    def mark(definition: object = None, /, **options: object) -> object:
        _check_options(name, options, known)
        if definition is None:
            return mark
        if not isinstance(definition, FunctionType):
            raise UnityError(f"the decorator takes a plain function, got {definition!r}")
        in_class = "__qualname__" in sys._getframe(2).f_locals
        return definition if in_class else of_python(definition)

    return public(mark)


def _macro(spelling: str, known: Iterable[str]) -> Callable[..., object]:
    """``@T.macro``, ``@T.inline`` or ``@R.macro``."""

    def mark(definition: object = None, /, **options: object) -> object:
        _check_options(spelling, options, known)
        hygienic = options.get("hygienic", True) is True

        def make(definition: object) -> object:
            if not isinstance(definition, FunctionType):
                raise UnityError(f"{spelling} takes a plain function, got {definition!r}")
            return macro(definition, spelling, hygienic)

        return public(make) if definition is None else make(definition)

    return public(mark)


class _Module(Word):
    ir_module = staticmethod(public(_decorator))


class _Tensor(Word):
    prim_func = staticmethod(_marking("T.prim_func", PRIM_FUNC_OPTIONS))
    macro = staticmethod(_macro("T.macro", MACRO_OPTIONS))
    inline = staticmethod(_macro("T.inline", ()))


class _Relax(Word):
    function = staticmethod(_marking("R.function", FUNCTION_OPTIONS))
    macro = staticmethod(_macro("R.macro", MACRO_OPTIONS))


I = _Module()  # noqa: E741
T = _Tensor()
R = _Relax()

__all__ = ["I", "R", "T", "parse"]
