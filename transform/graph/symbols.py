"""Symbols between graph functions and kernels: what a kernel's sizes are at a call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from unity.errors import UnityError
from unity.ir.attrs import Attrs, AttrValue
from unity.ir.dims import (
    Dim,
    Symbol,
    SymDim,
    as_dim,
    equal,
    floordiv,
    substitute,
    symbol_of_facts,
    symbols_of,
)
from unity.ir.prim_expr import PrimExpr, SizeVar
from unity.ir.signature import size_params
from unity.ir.stmt import Buffer, PrimFunc
from unity.ir.symbols.convert import size_var, to_dim
from unity.ir.types import TensorType, TupleType, Type
from unity.ir.visit import map_type_dims, substitute_symbols_in_type, type_symbols


def tensor_fields(t: Type) -> tuple[TensorType, ...] | None:
    """The tensors of a type, tuples flattened; None if there is anything else."""
    match t:
        case TensorType():
            return (t,)
        case TupleType(fields):
            found: list[TensorType] = []
            for inner in fields:
                part = tensor_fields(inner)
                if part is None:
                    return None
                found += part
            return tuple(found)
        case _:
            return None


def is_concrete(t: TensorType) -> bool:
    """Whether the dims (symbolic or not) and the dtype are known."""
    return isinstance(t.shape, tuple) and t.dtype is not None


def shape_of(t: Type) -> tuple[Dim, ...]:
    """The dims of a tensor type that is known to have them."""
    assert isinstance(t, TensorType)
    assert isinstance(t.shape, tuple)
    return t.shape


def plain_symbols(types: Iterable[Type]) -> frozenset[Symbol]:
    """The symbols that stand alone as a dim somewhere, so that arguments bind them."""
    return frozenset(
        d
        for t in types
        for tensor in tensor_fields(t) or ()
        if isinstance(tensor.shape, tuple)
        for d in tensor.shape
        if isinstance(d, Symbol)
    )


def hidden_symbols(types: Sequence[Type], given: Sequence[Type]) -> tuple[Symbol, ...]:
    """The symbols of `types` that the shapes `given` do not bind by themselves, sorted by name."""
    mentioned = frozenset(s for t in types for s in type_symbols(t))
    return tuple(sorted(mentioned - plain_symbols(given), key=lambda s: s.name))


def kernel_sizes(
    kernel: PrimFunc, tensors: Sequence[Type], sym_args: Sequence[Dim]
) -> dict[SizeVar, Dim]:
    """What each of a kernel's sizes is at a call, in the order of `size_params`.

    Args:
        kernel: The prim func called.
        tensors: The types of its inputs and outputs at the call.
        sym_args: The values of its explicit scalar parameters.

    Raises:
        UnityError: A size can't be told from the shapes.
    """
    bound: dict[SizeVar, Dim] = {}
    explicit = [p for p in kernel.params if not isinstance(p, Buffer)]
    bound.update((p, v) for p, v in zip(explicit, sym_args, strict=True) if isinstance(p, SizeVar))
    compound: list[tuple[PrimExpr, Dim]] = []
    for buffer, t in zip(kernel.buffers, tensors, strict=True):
        for extent, given in zip(buffer.shape, shape_of(t), strict=True):
            if isinstance(extent, SizeVar):
                bound.setdefault(extent, given)
            else:
                compound.append((extent, given))
    needed = size_params(kernel)
    for extent, given in compound:
        if any(s not in bound for s in needed):
            _solve(extent, given, bound)
    missing = [s.name for s in needed if s not in bound]
    if missing:
        raise UnityError(
            f"the sizes {', '.join(missing)} of a kernel don't follow from its arguments' shapes",
            hint="give the kernel an explicit size parameter and the call sym_args",
        )
    return {s: bound[s] for s in needed}


def _solve(extent: PrimExpr, given: Dim, bound: dict[SizeVar, Dim]) -> None:
    """Bind the one unknown of a linear extent such as ``2 * n + 1``."""
    value = to_dim(extent)
    if value is None:
        return
    unknown = [s for s in symbols_of(value) if size_var(s) not in bound]
    if len(unknown) != 1:
        return
    (symbol,) = unknown
    known = {s: bound[size_var(s)] for s in symbols_of(value) if s is not symbol}
    at_zero = substitute(value, {**known, symbol: 0})
    slope = as_dim(substitute(value, {**known, symbol: 1}) - at_zero)
    linear = equal(substitute(value, known), at_zero + symbol * slope)
    if linear and isinstance(slope, int) and slope > 0:
        bound[size_var(symbol)] = floordiv(given - at_zero, slope)


class Renaming:
    """Symbols numbered in order of first occurrence, so that equal sites have equal keys."""

    def __init__(self) -> None:
        self.names: dict[Symbol, Dim] = {}

    def type(self, t: Type) -> Type:
        """The type over numbered symbols."""
        map_type_dims(t, self._noted)
        return substitute_symbols_in_type(t, self.names)

    def attrs(self, attrs: Attrs) -> Attrs:
        """The attributes over numbered symbols."""
        return Attrs({k: self._attr(v) for k, v in attrs.items()})

    def _attr(self, value: AttrValue) -> AttrValue:
        if isinstance(value, tuple):
            return tuple(self._attr(v) for v in value)
        if not isinstance(value, SymDim):
            return value
        return substitute(self._noted(value), self.names)

    def _noted(self, value: Dim) -> Dim:
        new = sorted(symbols_of(value) - self.names.keys(), key=lambda s: s.name)
        for symbol in new:
            self.names[symbol] = symbol_of_facts(f"s{len(self.names)}", symbol.facts)
        return value
