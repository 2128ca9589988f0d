"""Which calls of a part an engine can't compile, found by handing them over one at a time.

Asked when a part was refused: a call that fails by itself is left to us, and the rest of the part
is cut anew without it.
"""

from __future__ import annotations

from collections.abc import Hashable

from unity.ir.attrs import NO_ATTRS
from unity.ir.dtype import FLOAT32
from unity.ir.graph import BindingBlock, Body, Call, Constant, Expr, Function, Op, Var, VarBinding
from unity.ir.module import IRModule
from unity.ir.types import TensorType
from unity.machine.target import Target
from unity.transform.graph.resolve import OpSite, engine_of
from unity.transform.graph.resolve.outline import outlined, refusal
from unity.transform.pattern import Graph


def failing_calls(part: Function, engine: str, target: Target) -> dict[str, str] | None:
    """The variables of a part whose calls an engine can't compile, each with the reason.

    Args:
        part: What it was given and refused.
        engine: The engine.
        target: The machine.

    Returns:
        Those that fail by themselves; an empty mapping if none does, so that it is the part as a
        whole; None if the engine compiles nothing at all, so that it is not the part.
    """
    graph = Graph.of(part)
    failed: dict[str, str] = {}
    tried: dict[Hashable, str | None] = {}
    for var, value in graph.values.items():
        if not isinstance(value, Call) or refusal([var], graph) is not None:
            continue
        key = (value.callee, value.attrs, tuple(map(_kind, value.args)), var.type)
        if key not in tried:
            tried[key] = _refused(outlined([var], graph, NO_ATTRS), engine, target)
        why = tried[key]
        if why is not None:
            failed[var.name] = why
    works = None in tried.values() or _refused(_simple(engine), engine, target) is None
    return failed if works else None


def _refused(function: Function | None, engine: str, target: Target) -> str | None:
    """Why an engine can't compile a function; None if it can."""
    if function is None:
        return "it takes no simple function"
    try:
        engine_of(engine).compile(IRModule({"main": function}), target, target.threads)
    except Exception as error:  # whatever an engine raises
        return " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return None


def _simple(engine: str) -> Function | None:
    """What any engine compiles that works; None if it says itself that it does not."""
    x, y = (Var(name, TensorType((4,), FLOAT32)) for name in "xy")
    call = Call(Op("nn.relu"), (x,), NO_ATTRS)
    if engine_of(engine).supports(OpSite(call, (x.type,), y.type)) is not None:
        return None
    return Function((x,), Body((BindingBlock((VarBinding(y, call),), dataflow=True),), y), y.type)


def _kind(e: Expr) -> Hashable:
    """What an engine's answer may depend on of an operand: a variable's type, or what it is."""
    match e:
        case Var():
            return e.type
        case Constant():
            return id(e.data)
        case _:
            return id(e)
