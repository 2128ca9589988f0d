"""Results that are scalars, as tensors of rank 0, which native code has memory for.

The caller makes numbers of them again: Python's, or what its own registers hold.
"""

from __future__ import annotations

from dataclasses import replace

from unity.runtime import program as p


def with_tensors(code: p.FunctionCode) -> tuple[p.FunctionCode, frozenset[int]]:
    """A function that puts the scalars among its results into tensors, and which results those are.

    Results are counted as they come, fields of tuples each by itself.
    """
    *body, last = code.code
    assert isinstance(last, p.Return)
    results = tuple(p.leaves(last.value))
    registers, held = list(code.registers), dict[p.Reg, p.Reg]()
    for r in results:
        spec = registers[r]
        if isinstance(spec, p.ScalarSpec) and r not in held:
            held[r] = len(registers)
            registers.append(p.TensorSpec(spec.dtype, (), 0))
            body += [p.AllocTensor(held[r], (), spec.dtype), p.StoreScalar(held[r], r)]
    if not held:
        return code, frozenset()
    value = _renamed(last.value, held)
    found = replace(code, registers=tuple(registers), code=(*body, p.Return(value)))
    return found, frozenset(k for k, r in enumerate(results) if r in held)


def _renamed(tree: p.Tree, held: dict[p.Reg, p.Reg]) -> p.Tree:
    if isinstance(tree, tuple):
        return tuple(_renamed(t, held) for t in tree)
    return held.get(tree, tree)
