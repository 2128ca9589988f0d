"""A function of operators as a pattern: its parameters stand for any values of their types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from unity.errors import UnityError
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, SymDim
from unity.ir.graph import (
    Call,
    Constant,
    Expr,
    Function,
    Op,
    PrimValue,
    ShapeValue,
    Tuple,
    TupleGet,
    Var,
    VarBinding,
)
from unity.ir.lattice import atom_type
from unity.ir.types import TensorType, Type
from unity.ir.visiting.visit_graph import type_symbols, walk_bindings

from .bind import bind
from .nodes import Any, Const, Field, OpCall, Pattern

INNER = "%"
"""Begins the captures of what is no parameter."""
TOLERANCE = 1e-6
"""Of float constants, relative: exporters round them differently."""


def pattern_of(function: Function) -> tuple[Pattern, Mapping[str, Type]]:
    """The pattern of what a function computes, and the types of what is captured, by name.

    Parameters are captured under their names, sizes under names of no parameter. The types are to
    be bound together (`bind`), the pattern looks at each value by itself.

    >>> from unity.script import parse
    >>> from unity.transform.pattern.from_function import pattern_of
    >>> function = parse('''
    ... @script.function
    ... def main(x: f32[Tensor, ...]) -> f32[Tensor, ...]:
    ...     return R.multiply(x, R.sigmoid(x))
    ... ''').graph_functions()["main"]
    >>> pattern, types = pattern_of(function)
    >>> list(types), pattern.name
    (['x'], '%2')

    Raises:
        UnityError: The function holds what can't be looked for.
    """
    reader = _Reader(function)
    return reader.result(), reader.formal


@dataclass(slots=True)
class _Reader:
    """Reads a function as a pattern.

    Attributes:
        formal: The types of what is captured, by name.
    """

    function: Function
    formal: dict[str, Type] = field(default_factory=dict[str, Type])
    _known: dict[Var, Pattern] = field(default_factory=dict[Var, Pattern])

    def result(self) -> Pattern:
        """The pattern of what the function gives."""
        for param in self.function.params:
            self._known[param] = Any(name=param.name, test=_type_test(param.type))
            self.formal[param.name] = param.type
        for binding in walk_bindings(self.function):
            assert isinstance(binding, VarBinding)
            name = f"{INNER}{len(self._known)}"
            self._known[binding.var] = replace(self.pattern(binding.value), name=name)
        return self.pattern(self.function.body.result)

    def pattern(self, e: Expr) -> Pattern:
        """The pattern of an expression."""
        match e:
            case Var():
                return self._known[e]
            case Constant():
                return _constant(e)
            case ShapeValue() | PrimValue():
                name = f"{INNER}size{len(self.formal)}"
                found = atom_type(e)
                assert found is not None
                self.formal[name] = found
                return Any(name=name)
            case TupleGet():
                return Field(self.pattern(e.value), e.index)
            case Call(Op(name)):
                if symbolic_attrs(e.attrs):
                    raise UnityError("a rule can't look for attributes of symbols", e.span)
                args = [f for a in e.args for f in (a.fields if isinstance(a, Tuple) else (a,))]
                return OpCall((name,), tuple(map(self.pattern, args)), e.attrs, exact=True)
            case _:
                raise UnityError(
                    f"a rule can't look for {type(e).__name__}", e.span, "only for calls of ops"
                )


def _type_test(of: Type) -> Callable[[TensorType], bool]:
    """Whether a value alone may stand for a parameter; `bind` looks at all of them together."""
    return lambda given: bind([of], [given]) is not None or bool(type_symbols(of))


def _constant(c: Constant) -> Const:
    if c.data.size != 1:
        raise UnityError(
            "a rule looks for constants of one element only", c.span, "make it a parameter"
        )
    tolerance = TOLERANCE if c.data.dtype.kind not in "iub" else 0.0
    return Const(float(np.asarray(c.data, np.float64).reshape(())), tolerance)


def symbolic_attrs(attrs: Attrs) -> list[Dim]:
    """The dims among attributes that mention symbols."""
    flat = [i for v in attrs.values() for i in (v if isinstance(v, tuple) else (v,))]
    return [v for v in flat if isinstance(v, SymDim)]
