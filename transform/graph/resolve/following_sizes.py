"""The sizes that follow from those of a function's inputs, some of them through its tensors.

Comes in: a function, numbers for its inputs' symbols. Comes out: numbers for the symbols that it
binds itself, as far as they follow: what a window leaves over, what a Reshape's computed shape
says. Where data decides (how many elements are not 0), no number is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TypeAlias

import numpy as np

from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, Symbol, SymDim, substitute, symbols_of
from unity.ir.graph import (
    Body,
    Call,
    Constant,
    Expr,
    Function,
    MatchCast,
    Op,
    PrimValue,
    ShapeValue,
    Tuple,
    TupleGet,
    Var,
)
from unity.ir.lattice import atom_type
from unity.ir.types import Shape, ShapeType, TensorType, TupleType, Type
from unity.ir.visit import bodies_of, substitute_symbols
from unity.op.registry import RefArg
from unity.op.table import OPS

_Known: TypeAlias = "RefArg | None"

_MOST = 4096
"""Tensors of more elements say no sizes."""


def following_sizes(function: Function, given: Mapping[Symbol, int]) -> dict[Symbol, int]:
    """The symbols with a number: those given, and those that follow from them."""
    found = _Sizes(given)
    found.body(function.body)
    return found.sizes


class _Sizes:
    """Carries the symbols with a number, and the small values that are known."""

    def __init__(self, given: Mapping[Symbol, int]) -> None:
        self.sizes = dict(given)
        self.dims: dict[Symbol, Dim] = {**given}
        self.values: dict[Var, RefArg] = {}

    def body(self, body: Body) -> None:
        """Go through the bindings, in order."""
        for block in body.blocks:
            for binding in block.bindings:
                value = self.value(binding.value, binding.var.type)
                if value is not None:
                    self.values[binding.var] = value
                if isinstance(binding, MatchCast):
                    self.bind(binding.type, binding.value, value)
                for inner in bodies_of(binding.value):
                    self.body(inner)

    def bind(self, kind: Type, of: Expr, value: _Known) -> None:
        """Take what a value says of the symbols of a type."""
        match kind:
            case ShapeType(tuple(dims)) if isinstance(value, tuple):
                sizes: Sequence[object] = value
            case TensorType(tuple(dims)):
                own = atom_type(of)
                shape = own.shape if isinstance(own, TensorType) else None
                sizes = [self.dim(d) for d in shape] if isinstance(shape, tuple) else ()
            case _:
                return
        for d, size in zip(dims, sizes, strict=False):
            if isinstance(d, Symbol) and isinstance(size, int) and d not in self.sizes:
                self.sizes[d] = self.dims[d] = size

    def dim(self, d: Dim) -> int | None:
        """The number of a dim, if it is known."""
        found = substitute(d, {s: self.dims[s] for s in symbols_of(d) if s in self.dims})
        return found if isinstance(found, int) else None

    def shape(self, dims: Shape) -> tuple[int, ...] | None:
        """The numbers of a shape, if they are known."""
        known = tuple(n for n in map(self.dim, dims) if n is not None)
        return known if len(known) == len(dims) else None

    def value(self, e: Expr, kind: Type) -> _Known:
        """What an expression gives, if that is small and known."""
        match e:
            case Call(Op(name)) if OPS[name].pure and self.is_small(kind):
                call = substitute_symbols(e, self.dims)
                assert isinstance(call, Call)
                rule, args = OPS[name].reference, [self.operand(x) for x in call.args]
                known = [a for a in args if a is not None]
                if rule is None or len(known) < len(args) or _open(call.attrs):
                    return None
                with np.errstate(all="ignore"):
                    return rule(known, call.attrs)
            case TupleGet(of, index):
                found = self.operand(of)
                part = found[index] if isinstance(found, tuple) else None
                return part if isinstance(part, np.ndarray) else None
            case _:
                return self.operand(e)

    def operand(self, e: Expr) -> _Known:
        """What an atom stands for, if that is small and known."""
        match e:
            case Var():
                return self.values.get(e)
            case Constant(data):
                return data if data.size <= _MOST else None
            case PrimValue(bool() | int() | float() as number, kind):
                return np.asarray(number, kind.numpy)
            case ShapeValue(dims):
                return self.shape(dims)
            case Tuple(fields):
                parts = [self.operand(f) for f in fields]
                arrays = tuple(p for p in parts if isinstance(p, np.ndarray))
                return arrays if len(arrays) == len(parts) else None
            case _:
                return None

    def is_small(self, kind: Type) -> bool:
        """Whether what is of a type has few elements."""
        match kind:
            case TensorType(tuple(dims)):
                shape = self.shape(dims)
                return shape is not None and prod(shape) <= _MOST
            case TupleType(fields):
                return all(map(self.is_small, fields))
            case _:
                return isinstance(kind, ShapeType)


def _open(attrs: Attrs) -> bool:
    """Whether attributes hold a size that is not known."""
    each = (v if isinstance(v, tuple) else (v,) for v in attrs.values())
    return any(isinstance(v, SymDim) and not isinstance(v, int) for of in each for v in of)
