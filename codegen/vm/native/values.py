"""Numbers and objects between registers and tensors of rank 0, in native code.

A register holds an integer or a bool as ``i64`` and a float as ``double``; in memory each is as
large as its dtype says. An object of Python is its address, which some argument of the call keeps
alive. Results that are numbers or objects lie in tensors of rank 0, which the caller has memory for
and makes values of again: Python's, or its own registers'.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from unity.ir.dtype import HANDLE, DType, dtype
from unity.runtime import bytecode as bc

if TYPE_CHECKING:
    from unity.codegen.vm.native.body import Body
    from unity.codegen.vm.native.text import Text

_AS_IN_REGISTERS = frozenset({"i64", "double", "ptr"})
"""Types that memory and registers hold alike."""


def store_value(body: Body, dst: bc.Reg, src: bc.Reg) -> None:
    """Put a register's value into a tensor."""
    t, kind = body.t, _held(body, dst)
    value, place, inside = body.get(src), body.get(dst), _in_memory(kind)
    if inside not in _AS_IN_REGISTERS:
        wide, narrowed = ("double", "fptrunc") if kind.is_float else ("i64", "trunc")
        value = t.let(f"{narrowed} {wide} {value} to {inside}")
    t.do(f"store {inside} {value}, ptr {place}")


def read_value(body: Body, src: bc.Reg) -> str:
    """The value in a tensor, as a register holds it."""
    return load_value(body.t, _held(body, src), body.get(src))


def load_value(t: Text, kind: DType, place: str) -> str:
    """The value that lies at a place in memory, as a register holds it."""
    inside = _in_memory(kind)
    value = t.let(f"load {inside}, ptr {place}")
    if inside in _AS_IN_REGISTERS:
        return value
    if kind.is_float:
        return t.let(f"fpext {inside} {value} to double")
    widened = "sext" if kind.kind == "int" else "zext"
    return t.let(f"{widened} {inside} {value} to i64")


def _held(body: Body, register: bc.Reg) -> DType:
    spec = body.code.registers[register]
    assert isinstance(spec, bc.TensorSpec)
    assert spec.dtype is not None
    return dtype(spec.dtype)


def _in_memory(kind: DType) -> str:
    if kind == HANDLE:
        return "ptr"
    if kind.is_float:
        return {32: "float", 64: "double"}[kind.bits]
    return f"i{max(kind.bits, 8)}"


def with_tensors(code: bc.FunctionCode) -> tuple[bc.FunctionCode, frozenset[int]]:
    """A function that puts numbers and objects of its results into tensors, and which those are.

    Results are counted as they come, fields of tuples each by itself.
    """
    *body, last = code.code
    assert isinstance(last, bc.Return)
    results = tuple(bc.leaves(last.value))
    registers, held = list(code.registers), dict[bc.Reg, bc.Reg]()
    for r in results:
        spec = registers[r]
        if isinstance(spec, bc.ScalarSpec | bc.ObjectSpec) and r not in held:
            kind = spec.dtype if isinstance(spec, bc.ScalarSpec) else HANDLE.name
            held[r] = len(registers)
            registers.append(bc.TensorSpec(kind, (), 0))
            body += [bc.AllocTensor(held[r], (), kind), bc.StoreScalar(held[r], r)]
    if not held:
        return code, frozenset()
    value = _renamed(last.value, held)
    found = replace(code, registers=tuple(registers), code=(*body, bc.Return(value)))
    return found, frozenset(k for k, r in enumerate(results) if r in held)


def _renamed(tree: bc.Tree, held: dict[bc.Reg, bc.Reg]) -> bc.Tree:
    if isinstance(tree, tuple):
        return tuple(_renamed(t, held) for t in tree)
    return held.get(tree, tree)
