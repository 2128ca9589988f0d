"""Who calls a graph function, and whether what it takes and gives may change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from unity.errors import UnityError
from unity.ir.graph import Call, Function, FunctionRef, VarBinding
from unity.ir.module import IRModule
from unity.ir.visit import walk_bindings

from ..origins import INLINED
from ..simplify.dce import references
from ..simplify.inline_functions import stands_for
from .parameters import NUM_INPUT, told_by_place

_OF_NO_PLACE = frozenset({"private", "source", NUM_INPUT, INLINED})
"""Attributes that say nothing of a parameter or a result by its place."""


def function_to_change(module: IRModule, name: str, step: str) -> Function:
    """A function that users call, and nothing else, whose inputs may become fewer.

    Raises:
        UnityError: As `function_nobody_calls`; or its attributes tell of inputs by place.
    """
    found = function_nobody_calls(module, name, step)
    if told := told_by_place(found):
        raise UnityError(
            f"{step}: the inputs of {name} are told by place in its attributes {', '.join(told)}",
            hint="give the numbers when it is called",
        )
    return found


def function_nobody_calls(module: IRModule, name: str, step: str) -> Function:
    """A function that users call, and nothing else.

    Raises:
        UnityError: There is none of the name, or other functions call it.
    """
    found = module.graph_functions().get(name)
    if found is None:
        known = ", ".join(module.graph_functions()) or "none"
        raise UnityError(f"the module has no graph function {name!r}", hint=f"it has {known}")
    callers = [k for k, f in _functions(module) if name in references(f.body)]
    if callers:
        raise UnityError(
            f"{step}: {callers[0]} calls {name}, whose parameters it would have to give",
            hint="InlineFunctions puts small private functions into those that call them",
        )
    return found


def private_functions(module: IRModule) -> Iterator[tuple[str, Function, list[VarBinding]]]:
    """Private functions that are only called, each by bindings that check nothing at run time.

    What such a function takes and gives is nobody's business but that of those calls.
    """
    named = Counter[str]()
    calls: dict[str, list[VarBinding]] = {}
    for _, f in _functions(module):
        named.update(references(f.body))
        for binding in walk_bindings(f):
            match binding:
                case VarBinding(_, Call(FunctionRef(name))):
                    calls.setdefault(name, []).append(binding)
                case _:
                    pass
    for name, f in module.graph_functions().items():
        if not f.attrs.get("private", False) or not f.attrs.keys() <= _OF_NO_PLACE:
            continue
        found = calls.get(name, [])
        if found and named[name] == len(found) and all(_checks_nothing(f, b) for b in found):
            yield name, f, found


def _functions(module: IRModule) -> Iterator[tuple[str, Function]]:
    yield from module.graph_functions().items()
    yield from module.engine_functions().items()


def _checks_nothing(f: Function, binding: VarBinding) -> bool:
    call = binding.value
    assert isinstance(call, Call)
    return stands_for(f, call.args, binding.var.type, closure=False) is not None
