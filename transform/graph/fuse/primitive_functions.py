"""Groups of kernel calls as primitive functions, shared among equal groups."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, Symbol
from unity.ir.graph import (
    Binding,
    BindingBlock,
    Body,
    CallTir,
    Constant,
    Expr,
    Function,
    ShapeValue,
    Tuple,
    Var,
    VarBinding,
)
from unity.ir.lattice import atom_type
from unity.ir.stmt import PrimFunc
from unity.ir.types import ShapeType, TupleType, Type

from ..names import Names
from ..symbols import Renaming, hidden_symbols


@dataclass(frozen=True, slots=True)
class PrimitiveCall:
    """How a group calls its primitive function.

    Attributes:
        name: Of the function.
        args: The tensors it takes.
        sizes: The sizes it takes behind them, those that no shape gives.
    """

    name: str
    args: tuple[Expr, ...]
    sizes: tuple[Dim, ...]

    @property
    def given(self) -> tuple[Expr, ...]:
        """All arguments, sizes as one."""
        return (*self.args, ShapeValue(self.sizes)) if self.sizes else self.args


@dataclass(frozen=True, slots=True)
class _Primitive:
    """A primitive function, and the sizes it takes as numbered symbols."""

    name: str
    sizes: tuple[Symbol, ...]


@dataclass(slots=True)
class Primitives:
    """Carries the primitive functions made so far.

    Attributes:
        names: Names that are free.
        kernels: The kernels that groups call, by name.
        made: The functions by name.
        known: Those of groups met before.
    """

    names: Names
    kernels: Mapping[str, PrimFunc]
    made: dict[str, Function] = field(default_factory=dict[str, Function])
    known: dict[Hashable, _Primitive] = field(default_factory=dict[Hashable, _Primitive])

    def call(self, members: Sequence[VarBinding], results: Sequence[Var] = ()) -> PrimitiveCall:
        """How to call the primitive function of a group of kernel calls.

        Args:
            members: In order; each gives one tensor.
            results: What the group gives, several as a tuple; nothing means its last member.
        """
        inside = {b.var for b in members}
        args: dict[Expr, None] = {}
        for binding in members:
            args.update((a, None) for a in tir_call(binding).args if a not in inside)
        renaming = Renaming()
        results = results or (members[-1].var,)
        key = _key(members, list(args), results, renaming)
        known = self.known.get(key)
        if known is None:
            known = self._make(members, list(args), results, renaming)
            self.known[key] = known
        original = {number: symbol for symbol, number in renaming.names.items()}
        return PrimitiveCall(known.name, tuple(args), tuple(original[s] for s in known.sizes))

    def _make(
        self,
        members: Sequence[VarBinding],
        args: Sequence[Expr],
        results: Sequence[Var],
        renaming: Renaming,
    ) -> _Primitive:
        """A new primitive function."""
        types = [_type(a) for a in args]
        hidden = hidden_symbols([*types, *(b.var.type for b in members)], types)
        hidden = tuple(sorted({*hidden, *_size_args(members, types)}, key=lambda s: s.name))
        params = [
            Var(_param_name(a, i), t) for i, (a, t) in enumerate(zip(args, types, strict=True))
        ]
        into: dict[Expr, Expr] = dict(zip(args, params, strict=True))
        body: list[Binding] = []
        for binding in members:
            call = tir_call(binding)
            value = replace(call, args=tuple(into.get(a, a) for a in call.args))
            into[binding.var] = Var(binding.var.name, binding.var.type, binding.var.span)
            body.append(VarBinding(cast("Var", into[binding.var]), value, binding.span))
        if hidden:
            params.append(Var("sizes", ShapeType(hidden)))
        called = [tir_call(b).callee.name for b in members]
        ops = [str(self.kernels[n].attrs.get("op", n)).rpartition(".")[2] for n in called]
        ops = [op.removeprefix("fused_") for op in ops]
        name = self.names.fresh("_".join(["fused", *ops]))
        result: Expr = Tuple(tuple(into[v] for v in results))
        kind: Type = TupleType(tuple(v.type for v in results))
        if len(results) == 1:
            result, kind = into[results[0]], results[0].type
        self.made[name] = Function(
            tuple(params),
            Body((BindingBlock(tuple(body), True),), result),
            kind,
            attrs=Attrs(primitive=True, private=True),
        )
        numbers = [renaming.names[s] for s in hidden]
        return _Primitive(name, tuple(s for s in numbers if isinstance(s, Symbol)))


def tir_call(binding: VarBinding) -> CallTir:
    """The kernel call that a binding is known to be."""
    assert isinstance(binding.value, CallTir)
    return binding.value


def _type(e: Expr) -> Type:
    found = atom_type(e)
    assert found is not None
    return found


def _size_args(members: Sequence[VarBinding], types: Sequence[Type]) -> tuple[Symbol, ...]:
    sizes = [ShapeType(tir_call(b).sym_args) for b in members]
    return hidden_symbols(sizes, types)


def _param_name(arg: Expr, i: int) -> str:
    match arg:
        case Var(name):
            return name
        case Constant(_, str() as name) if name.isidentifier():
            return name
        case _:
            return f"p{i}"


def _key(
    members: Sequence[VarBinding], args: Sequence[Expr], results: Sequence[Var], renaming: Renaming
) -> Hashable:
    """Equal for groups that compute the same from arguments of the same types."""
    place: dict[Expr, int] = {a: i for i, a in enumerate((*args, *(b.var for b in members)))}
    steps: list[Hashable] = [renaming.type(_type(a)) for a in args]
    for binding in members:
        call = tir_call(binding)
        out = renaming.type(binding.var.type)
        sizes = renaming.type(ShapeType(call.sym_args))
        steps.append((call.callee.name, tuple(place[a] for a in call.args), out, sizes))
    return (*steps, tuple(place[v] for v in results))
