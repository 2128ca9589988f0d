"""Loop state of unknown shape: its dims become slots, which each assignment of the state sets.

What a loop's steps make longer has no shape that types could tell. Its rank is known, and so is the
shape of whatever it is assigned, where that is: the function is written anew with a slot for each
of the state's dims, so that native code finds sizes where it finds all others.
"""

from __future__ import annotations

from dataclasses import replace

from unity.runtime import bytecode as bc
from unity.runtime.bytecode.sizes import Slot
from unity.runtime.bytecode.verify import written


def with_dims(code: bc.FunctionCode) -> tuple[bc.FunctionCode, dict[bc.Reg, tuple[int, ...]]]:
    """A function with dims as slots of what only loops and branches assign, and those slots."""
    sources: dict[bc.Reg, list[bc.Reg]] = {}
    others: set[bc.Reg] = set()
    for i in code.code:
        match i:
            case bc.Update(targets, values):
                for target, value in zip(targets, values, strict=True):
                    sources.setdefault(target, []).append(value)
            case bc.Move(target, value):
                sources.setdefault(target, []).append(value)
            case _:
                others.update(written(i))
    traced = {r for r in sources if r not in others and _is_shapeless(code.registers[r])}
    while True:
        known = {r for r in traced if all(_is_known(code, s, traced) for s in sources[r])}
        if known == traced:
            break
        traced = known
    return _with_slots(code, sorted(traced)) if traced else (code, {})


def _with_slots(
    code: bc.FunctionCode, traced: list[bc.Reg]
) -> tuple[bc.FunctionCode, dict[bc.Reg, tuple[int, ...]]]:
    symbols, registers = list(code.symbols), list(code.registers)
    found: dict[bc.Reg, tuple[int, ...]] = {}
    for r in traced:
        spec = registers[r]
        assert isinstance(spec, bc.TensorSpec)
        assert spec.rank is not None
        found[r] = tuple(range(len(symbols), len(symbols) + spec.rank))
        symbols += [bc.SymbolInfo(f"r{r}.{axis}") for axis in range(spec.rank)]
        registers[r] = replace(spec, shape=tuple(map(Slot, found[r])))
    lines: list[bc.Instruction] = []
    for i in code.code:
        if isinstance(i, bc.Match) and isinstance(i.value, int) and i.value in found:
            i = replace(i, known=registers[i.value])
        lines.append(i)
    new = replace(code, symbols=tuple(symbols), registers=tuple(registers), code=tuple(lines))
    return new, found


def _is_shapeless(spec: bc.Spec) -> bool:
    """Whether a tensor's rank and dtype are known, and its shape is not."""
    if not isinstance(spec, bc.TensorSpec):
        return False
    return spec.shape is None and spec.dtype is not None and spec.rank is not None


def _is_known(code: bc.FunctionCode, register: bc.Reg, traced: set[bc.Reg]) -> bool:
    """Whether the shape of what is assigned is known where it is."""
    spec = code.registers[register]
    return register in traced or (isinstance(spec, bc.TensorSpec) and spec.shape is not None)
