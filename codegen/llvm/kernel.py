"""A lowered prim func as LLVM functions: the exported entry of the C ABI and the internal body.

The body's buffer parameters are ``noalias`` (twice as fast where results accumulate in memory); an
attribute on an internal function is what LLVM can use, pointers loaded from memory have none.
"""

from __future__ import annotations

from dataclasses import dataclass

from unity.ir.prim_expr import PrimVar, SizeVar
from unity.ir.signature import scalar_params, size_params
from unity.ir.stmt import Buffer, For, PrimFunc, Stmt, Store
from unity.ir.visit_prim import stmt_children, stmt_exprs, walk_prim, walk_stmt

from .emitter import Emitter, Unit
from .memory import At, load
from .stmt import Facts, Statements
from .types import memory_type, value_type


@dataclass(frozen=True, slots=True)
class KernelText:
    """What emitting a kernel tells besides its text.

    Attributes:
        messages: What each assert says; result code ``k`` means ``messages[k - 1]``.
        has_scalar_loops: An innermost loop is scalar: LLVM's own vectorizer should see it.
    """

    messages: tuple[str, ...]
    has_scalar_loops: bool


def emit_kernel(unit: Unit, name: str, func: PrimFunc, *, checks: bool = False) -> KernelText:
    """Add a kernel's functions to a module.

    Args:
        unit: The module.
        name: The exported symbol.
        func: A lowered prim func.
        checks: Whether each access asserts that its index lies within the buffer.
    """
    written = {s.buffer for s in walk_stmt(func.body) if isinstance(s, Store)}
    read_only = frozenset(b for b in func.buffers if b not in written)
    messages: list[str] = []
    facts = Facts(read_only, checks, may_alias=func.attrs.get("noalias", True) is False)
    body = Statements(unit, f"{name}.body", messages, facts)
    keys: list[Buffer | SizeVar | PrimVar] = [
        *func.buffers,
        *size_params(func),
        *scalar_params(func),
    ]
    params: list[str] = []
    for k, key in enumerate(keys):
        body.bind(key, f"%p{k}")
        params.append(f"{body.parameter(key)} %p{k}")
    body.stmt(func.body)
    body.finish()
    header = f"define internal i32 @{name}.body({', '.join(params)}) {unit.attributes}"
    unit.functions[f"{name}.body"] = body.em.function(header)
    unit.functions[name] = _entry(unit, name, keys)
    return KernelText(tuple(messages), has_scalar_loops(func.body))


def _entry(unit: Unit, name: str, keys: list[Buffer | SizeVar | PrimVar]) -> str:
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
    code = em.effect(f"call i32 @{name}.body({', '.join(args)})")
    em.do(f"ret i32 {code}")
    return em.function(f"define i32 @{name}({', '.join(params)}) {unit.attributes}")


def has_scalar_loops(s: Stmt) -> bool:
    """Whether an innermost loop of any length stores scalars only."""
    children = stmt_children(s)
    if isinstance(s, For) and not any(isinstance(x, For) for x in walk_stmt(s.body)):
        return not any(
            e.dtype.lanes > 1
            for part in walk_stmt(s.body)
            for root in stmt_exprs(part)
            for e in walk_prim(root)
        )
    return any(has_scalar_loops(c) for c in children)
