"""A lowered prim func as LLVM functions: the exported entry of the C ABI and the internal body.

The body's buffer parameters are ``noalias`` (twice as fast where results accumulate in memory); an
attribute on an internal function is what LLVM can use, pointers loaded from memory have none.
"""

from __future__ import annotations

from unity.ir.signature import scalar_params, size_params
from unity.ir.stmt import Buffer, PrimFunc

from .emitter import Emitter, Unit
from .facts.analysis import Analysis
from .facts.certain import numbers_in
from .facts.proven import proven
from .memory import At, load
from .stmt import Facts, Key, Statements
from .streaming import at_lines, streamed_of
from .types import memory_type, value_type


def emit_kernel(
    unit: Unit, name: str, func: PrimFunc, analysis: Analysis, *, checks: bool = False
) -> tuple[str, ...]:
    """Add a kernel's functions to a module.

    Args:
        unit: The module.
        name: The exported symbol.
        func: A lowered prim func.
        analysis: Of its body.
        checks: Whether each access asserts that its index lies within the buffer.

    Returns:
        What each assert says: the kernel's result ``k > 0`` means the k-th, counted from 1.
    """
    messages: list[str] = []
    keys: list[Key] = [*func.buffers, *size_params(func), *scalar_params(func)]
    streamed = streamed_of(func)
    inside = proven(func.body) if checks else frozenset[int]()
    numbers = numbers_in(func.body)
    for suffix, past in (("body", streamed), ("cached", frozenset[Buffer]())):
        if suffix == "cached" and not streamed:
            break
        alias = func.attrs.get("noalias", True) is False
        facts = Facts(analysis, checks, inside, numbers, may_alias=alias, streamed=past)
        body = Statements(unit, f"{name}.{suffix}", messages, facts)
        params: list[str] = []
        for k, key in enumerate(keys):
            body.bind(key, f"%p{k}")
            params.append(f"{body.parameter(key)} %p{k}")
        body.stmt(func.body)
        body.finish()
        header = f"define internal i32 @{name}.{suffix}({', '.join(params)}) {unit.attributes}"
        unit.functions[f"{name}.{suffix}"] = body.em.function(header)
    unit.functions[name] = _entry(unit, name, keys, streamed)
    return tuple(messages)


def _entry(unit: Unit, name: str, keys: list[Key], streamed: frozenset[Buffer]) -> str:
    """The exported function: scalars come as they lie in memory, a bool as a byte."""
    em = Emitter(unit)
    params: list[str] = []
    args: list[str] = []
    for k, key in enumerate(keys):
        if isinstance(key, Buffer):
            params.append(f"ptr %a{k}")
            args.append(f"ptr %a{k}")
            continue
        t, m = value_type(key.dtype), memory_type(key.dtype)
        params.append(f"{m.text} %a{k}")
        value = f"%a{k}"
        if t != m or key.dtype.bits < 8:
            slot = em.alloca(m.text, 1, 8)
            em.do(f"store {m.text} {value}, ptr {slot}, align {key.dtype.bytes}")
            value = load(em, slot, key.dtype, At("0"), None)
        args.append(f"{t.text} {value}")
    if streamed:
        pointers = [f"%a{k}" for k, key in enumerate(keys) if key in streamed]
        then, orelse = em.new_label("lines"), em.new_label("cached")
        em.branch_if(at_lines(em, pointers), then, orelse)
        em.label(orelse)
        code = em.effect(f"call i32 @{name}.cached({', '.join(args)})")
        em.do(f"ret i32 {code}")
        em.label(then)
    code = em.effect(f"call i32 @{name}.body({', '.join(args)})")
    em.do(f"ret i32 {code}")
    return em.function(f"define i32 @{name}({', '.join(params)}) {unit.attributes}")
