"""Types and dims of a graph function as specs and sizes over its symbol slots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import assert_never

from unity.ir.dims import Dim
from unity.ir.prim_expr import Binary, Imm, PrimExpr, SizeVar
from unity.ir.symbols.convert import to_prim_expr
from unity.ir.types import (
    FuncType,
    ObjectType,
    PrimType,
    ShapeType,
    TensorType,
    TupleType,
    Type,
)
from unity.runtime.bytecode import (
    ObjectSpec,
    ScalarSpec,
    ShapeSpec,
    Spec,
    SymbolInfo,
    TensorSpec,
    TupleSpec,
    spec_sizes,
)
from unity.runtime.bytecode.sizes import Size, SizeOpName, Slot, combine, slots_of

_OPS: dict[str, SizeOpName] = {
    "add": "add", "sub": "sub", "mul": "mul", "floordiv": "floordiv", "floormod": "floormod",
    "min": "min", "max": "max",
}  # fmt: skip


@dataclass(slots=True)
class Scope:
    """The symbols of one function: their slots, and which of them have a value so far."""

    symbols: list[SymbolInfo] = field(default_factory=list)
    bound: set[int] = field(default_factory=set)
    _slots: dict[SizeVar, int] = field(default_factory=dict)

    def size(self, value: Dim) -> Size:
        """A dim as a size."""
        return self._size(to_prim_expr(value))

    def sizes(self, values: Sequence[Dim]) -> tuple[Size, ...]:
        """Dims as sizes."""
        return tuple(self.size(v) for v in values)

    def spec(self, of: Type) -> Spec:
        """A type as a spec."""
        match of:
            case TensorType(shape, kind):
                dims = self.sizes(shape) if isinstance(shape, tuple) else None
                name = None if kind is None else kind.name
                return TensorSpec(name, dims, of.ndim)
            case ShapeType(dims):
                known = self.sizes(dims) if isinstance(dims, tuple) else None
                return ShapeSpec(known, of.ndim)
            case PrimType(kind, value):
                return ScalarSpec(kind.name, None if value is None else self.size(value))
            case TupleType(fields):
                return TupleSpec(tuple(self.spec(f) for f in fields))
            case FuncType() | ObjectType():
                return ObjectSpec()
            case _:
                assert_never(of)

    def counter(self, name: str) -> Slot:
        """A slot of its own, which stands for no symbol and always has a value."""
        self.bound.add(len(self.symbols))
        self.symbols.append(SymbolInfo(name))
        return Slot(len(self.symbols) - 1)

    def unbound(self, spec: Spec) -> tuple[int, ...]:
        """The slots of a spec that have no value yet, in order."""
        found = dict.fromkeys(s for size in spec_sizes(spec) for s in slots_of(size))
        return tuple(s for s in found if s not in self.bound)

    def copy(self) -> Scope:
        """A scope that starts as this one is."""
        return Scope(list(self.symbols), set(self.bound), dict(self._slots))

    def _size(self, e: PrimExpr) -> Size:
        match e:
            case Imm(value):
                return int(value)
            case SizeVar():
                return Slot(self._slot(e))
            case Binary(op, a, b):
                return combine(_OPS[op], self._size(a), self._size(b))
            case _:
                raise AssertionError(f"no size: {e!r}")

    def _slot(self, var: SizeVar) -> int:
        if var not in self._slots:
            self._slots[var] = len(self.symbols)
            facts = var.facts
            self.symbols.append(SymbolInfo(var.name, facts.min, facts.max, facts.multiple_of))
        return self._slots[var]
