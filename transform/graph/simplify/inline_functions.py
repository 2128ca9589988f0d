"""InlineFunctions: small functions become part of those that call them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from unity.errors import UnityError
from unity.ir.dims import Dim, Symbol, always_ge, bounds, divisor, symbol_of_facts
from unity.ir.graph import Call, Expr, Function, FunctionRef, Var
from unity.ir.lattice import atom_type, is_subtype, unify
from unity.ir.module import IRModule
from unity.ir.types import Type
from unity.ir.visit import substitute_symbols_in_type, type_symbols, walk_bindings
from unity.ir.visiting.visit_graph import copy_of

from ...passes import Context, Pass
from ..names import Names
from ..origins import INLINED, origins_of
from ..rewriter import BodyRewriter, function_symbols, is_atom
from .dce import reachable, references
from .normalize import Normalize

_TAKEN_ALONG = frozenset({"private", "source", INLINED})
"""Attributes that say nothing of how a function is to be called."""


@dataclass(frozen=True, slots=True)
class InlineFunctions(Pass):
    """Puts the bodies of small functions, and of closures, where they are called.

    A call is left alone where calling checks something at run time: sizes that are not proven to
    fit, declared facts, a result of declared type. So are recursive functions, and those whose
    attributes say more of them (aliased results). Functions stay, since users may call them; but
    private ones that nobody calls any more are removed. What a variable is a copy of is noted in
    the caller's attribute ``inlined``, by which `Resolve` knows its call sites.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... n = dim("n")
    ... m = dim("m")
    ... @script.function(attrs={"private": True})
    ... def act(a: f32[Tensor, m, 4]) -> f32[Tensor, m, 4]:
    ...     b = R.exp(a)
    ...     return b
    ... @script.function
    ... def main(x: f32[Tensor, n, 4]) -> f32[Tensor, 2 * n, 4]:
    ...     y = R.concat((x, x), axis=0)
    ...     z = act(y)
    ...     return z
    ... ''')
    >>> print(print_module(InlineFunctions()(before, Context())), end="")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.function(attrs={"inlined": (("act_b", "act/b"),)})
    def main(x: f32[Tensor, n, 4]) -> f32[Tensor, n * 2, 4]:
        with R.dataflow():
            y = R.concat((x, x))
            act_b = R.exp(y)
        return act_b

    Attributes:
        most: Bindings of a function that counts as small, with those of what it calls.
    """

    most: int = 32

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Callees first, so that what they have become is what their callers get."""
        calls = {name: set(references(f.body)) for name, f in module.graph_functions().items()}
        order, recursive = _callees_first(calls)
        new = module
        for name in order:
            inliner = _Inliner(new, name, self.most, recursive)
            new = new.with_({name: inliner.whole(module.graph_functions()[name])})
        if new is module:
            return module
        new = Normalize()(new, ctx)  # what was called may be control flow, and types are known
        return new.without(*(reachable(module) - reachable(new)))


def _callees_first(calls: Mapping[str, set[str]]) -> tuple[list[str], frozenset[str]]:
    """Functions in an order, and those that may come to call themselves."""
    beneath: dict[str, set[str]] = {}
    for name in calls:
        found, todo = set[str](), list(calls[name])
        while todo:
            callee = todo.pop()
            if callee not in found:
                found.add(callee)
                todo += calls.get(callee, ())
        beneath[name] = found
    # Unless it is recursive, what a function calls comes to call fewer others than itself.
    order = sorted(calls, key=lambda name: len(beneath[name]))
    return order, frozenset(name for name in calls if name in beneath[name])


class _Inliner(BodyRewriter):
    """Carries one caller through, and the names of its variables."""

    def __init__(self, module: IRModule, name: str, most: int, recursive: frozenset[str]) -> None:
        super().__init__(module)
        self.name = name
        self.most = most
        self.recursive = recursive
        self.names = Names(())
        self.origins: list[tuple[str, str]] = []
        self.scope: frozenset[Symbol] = frozenset()

    def whole(self, f: Function) -> Function:
        """A function with what it calls."""
        bound = (b.var.name for b in walk_bindings(f))
        self.scope = frozenset(s for p in f.params for s in type_symbols(p.type))
        self.names = Names((*(p.name for p in f.params), *bound))
        new = self.function(f)
        if not self.origins:
            return new
        return replace(new, attrs=new.attrs.with_(**{INLINED: tuple(self.origins)}))

    def rewrite(self, var: Var, value: Expr) -> Expr:
        if not isinstance(value, Call):
            return value
        callee, home = self.called(value)
        if callee is None or sum(1 for _ in walk_bindings(callee)) > self.most:
            return value
        if any(isinstance(b.value, Function) for b in walk_bindings(callee)):
            return value
        args = tuple(a if is_atom(a) else self.emit(a, "argument", value.span) for a in value.args)
        outer = isinstance(value.callee, Var)
        symbols = stands_for(callee, args, var.type, outer)
        born = function_symbols(callee) - (symbols or {}).keys()
        if outer:  # sizes that it brings forth itself would be brought forth at each call
            born -= self.scope.union(*(type_symbols(p.type) for p in callee.params))
        if symbols is None or (outer and born):
            return value if args == value.args else replace(value, args=args)
        for s in sorted(born, key=lambda s: s.name):
            symbols[s] = symbol_of_facts(self.fresh(s.name).name, s.facts)
        before = origins_of(callee)
        prefix = value.callee.name

        def named(name: str) -> str:
            new = self.names.fresh(f"{prefix}_{name}")
            known = (*before.get(name, ()), f"{home}/{name}")
            self.origins += [(new, origin) for origin in known]
            return new

        values = dict(zip(callee.params, args, strict=True))
        body = copy_of(callee.body, symbols, values, named)
        self.splice(body)
        return body.result

    def called(self, call: Call) -> tuple[Function | None, str]:
        """What is called and may be inlined for all that is known of it, and where it stands."""
        match call.callee:
            case FunctionRef(name):
                found = self.module[name]
                if not isinstance(found, Function) or name in self.recursive:
                    return None, name
                return (found if found.attrs.keys() <= _TAKEN_ALONG else None), name
            case Var():
                closure = self.values.get(call.callee)
                return (closure if isinstance(closure, Function) else None), self.name
            case _:
                return None, ""


def stands_for(
    callee: Function, args: Sequence[Expr], wanted: Type, closure: bool
) -> dict[Symbol, Dim] | None:
    """What a callee's symbols stand for at a call; None if the call has to check anything.

    Args:
        callee: The function.
        args: Atoms.
        wanted: The type of what the call is bound to.
        closure: Whether it sees the caller's symbols: they must stand for themselves.
    """
    types = [t for t in map(atom_type, args) if t is not None]
    params = [p.type for p in callee.params]
    given = atom_type(callee.body.result)
    if len(types) < len(args) or given is None or not is_subtype(given, callee.result):
        return None
    try:
        bound = {} if closure else unify(params, types)
    except UnityError:
        return None
    inside = [substitute_symbols_in_type(t, bound) for t in params]
    if not all(map(is_subtype, types, inside)):
        return None
    result = substitute_symbols_in_type(callee.result, bound)
    own = frozenset(s for t in (*params, callee.result) for s in type_symbols(t))
    if not is_subtype(result, wanted) or not (closure or own <= bound.keys()):
        return None
    return bound if all(holds(s, d) for s, d in bound.items()) else None


def holds(symbol: Symbol, value: Dim) -> bool:
    """Whether a size is known to have what is declared of a symbol."""
    facts, (_, high) = symbol.facts, bounds(value)
    fits = facts.max is None or (high is not None and high <= facts.max)
    return fits and always_ge(value, facts.min) and divisor(value) % facts.multiple_of == 0
