"""TVMScript as TVM's users write it: change the import, keep the module.

``from tvm.script import ir as I, relax as R, tir as T`` becomes
``from unity.script.tvmscript import I, R, T``. Classes decorated with ``@I.ir_module`` become
modules; functions that stand alone become modules of one function. `parse` reads a text.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FunctionType
from typing import TypeVar

from unity.errors import UnityError
from unity.ir.module import IRModule

from .module import of_definition, of_python, parse
from .words import Word

F = TypeVar("F", bound=Callable[..., object])


def _decorator(
    definition: object = None, /, *, check_well_formed: bool = True
) -> IRModule | Callable[[type], IRModule]:
    """``@I.ir_module``."""
    del check_well_formed  # ours are checked always
    if definition is None:
        return of_definition
    if not isinstance(definition, type):
        raise UnityError(f"I.ir_module decorates a class, got {definition!r}")
    return of_definition(definition)


def _function(definition: object = None, /, **_options: object) -> object:
    """``@T.prim_func`` and ``@R.function``: in a class the class's decorator reads them."""
    if definition is None:
        return _function
    if not isinstance(definition, FunctionType):
        raise UnityError(f"the decorator takes a plain function, got {definition!r}")
    in_class = "__qualname__" in sys._getframe(1).f_locals
    return definition if in_class else of_python(definition)


class _Module(Word):
    ir_module = staticmethod(_decorator)


class _Tensor(Word):
    prim_func = staticmethod(_function)


class _Relax(Word):
    function = staticmethod(_function)


I = _Module()  # noqa: E741
T = _Tensor()
R = _Relax()

__all__ = ["I", "R", "T", "parse"]
