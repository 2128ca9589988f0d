"""Index maps: how the indices of one layout follow from those of another, as data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, TypeAlias, get_args

from unity.arguments import public_class
from unity.errors import UnityError
from unity.ir.dims import Facts
from unity.ir.prim_expr import (
    Binary,
    BinaryOp,
    Imm,
    Operand,
    PrimExpr,
    PrimVar,
    SizeVar,
    as_prim_expr,
    imm,
)
from unity.ir.visit import substitute_prim, walk_prim
from unity.script.printer import text
from unity.script.printer.names import identifier


@public_class
@dataclass(frozen=True, slots=True)
class IndexMap:
    """New indices as expressions over variables that stand for the old ones.

    >>> m = IndexMap.of(lambda i, j: (i // 16, j, i % 16))
    >>> IndexMap.from_json(m.to_json()).to_json() == m.to_json()
    True
    """

    inputs: tuple[PrimVar, ...]
    outputs: tuple[PrimExpr, ...]

    @staticmethod
    def of(fn: Callable[..., Sequence[Operand]]) -> IndexMap:
        """The map that a Python function of the old indices computes."""
        inputs = tuple(PrimVar(name) for name in signature(fn).parameters)
        return IndexMap(inputs, tuple(as_prim_expr(e) for e in fn(*inputs)))

    def __call__(self, at: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        """The new indices at some old ones."""
        values: dict[PrimVar | SizeVar, PrimExpr] = dict(zip(self.inputs, at, strict=True))
        return tuple(substitute_prim(e, values) for e in self.outputs)

    def to_json(self) -> Any:
        """As nested lists: inputs by number under ``i``, sizes by name, operations by name."""
        return [len(self.inputs), [self._encode(e) for e in self.outputs]]

    def _encode(self, e: PrimExpr) -> Any:
        match e:
            case PrimVar() if e in self.inputs:
                return {"i": self.inputs.index(e)}
            case Imm(int() as value):
                return value
            case SizeVar(name, facts):
                known = [name, facts.min, facts.max, facts.multiple_of]
                return {"size": known if facts.typical is None else [*known, facts.typical]}
            case Binary(op, a, b):
                return [op, self._encode(a), self._encode(b)]
            case _:
                raise UnityError(
                    "an index map is made of its inputs, sizes, integers, + - * // and %"
                )

    def to_python(self) -> str | None:
        """As a Python function, where it has no sizes and what it does is done by operators.

        >>> IndexMap.of(lambda i, j: (i // 16, j, i % 16)).to_python()
        'lambda i0, i1: (i0 // 16, i1, i0 % 16)'
        >>> IndexMap.of(lambda a, b, c, d, e: (a, e)).to_python()  # i2 and i4 are dtypes
        'lambda i0, i1, i2_, i3, i4_: (i0, i4_)'
        """
        inputs = tuple(PrimVar(identifier(f"i{k}")) for k in range(len(self.inputs)))
        outputs = self(inputs)
        if not all(_is_written_alike(x) for e in outputs for x in walk_prim(e)):
            return None
        made = ", ".join(text(e) for e in outputs)
        given = ", ".join(v.name for v in inputs)
        return f"lambda {given}: ({made}{',' if len(outputs) == 1 else ''})"

    @staticmethod
    def from_json(data: Any) -> IndexMap:
        """The map that `to_json` wrote.

        Raises:
            UnityError: It is none.
        """
        try:
            count, outputs = data
            inputs = tuple(PrimVar(f"i{k}") for k in range(count))
            return IndexMap(inputs, tuple(_decode(e, inputs) for e in outputs))
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise UnityError(f"this is no index map: {error}") from None


AnyMap: TypeAlias = IndexMap | Callable[..., Sequence[Operand]]


def as_map(given: AnyMap) -> IndexMap:
    """The index map itself, or the one that a Python function computes."""
    return given if isinstance(given, IndexMap) else IndexMap.of(given)


def _is_written_alike(e: PrimExpr) -> bool:
    """Whether Python computes what the language says."""
    if isinstance(e, Binary):
        return e.op in ("add", "sub", "mul", "floordiv", "floormod")
    return isinstance(e, PrimVar | Imm)


_OPS: dict[str, BinaryOp] = {op: op for op in get_args(BinaryOp)}


def _decode(data: Any, inputs: Sequence[PrimVar]) -> PrimExpr:
    match data:
        case int():
            return imm(data)
        case {"i": int(k)}:
            return inputs[k]
        case {"size": [str(name), int(low), int() | None as high, int(factor)]}:
            return SizeVar(name, Facts(low, high, factor))
        case {"size": [str(name), int(low), int() | None as high, int(factor), int(typical)]}:
            return SizeVar(name, Facts(low, high, factor, typical))
        case [str(op), a, b]:
            return Binary(_OPS[op], _decode(a, inputs), _decode(b, inputs))
        case _:
            raise ValueError(data)
