"""EliminateDeadCode: bindings nobody reads, and compiler-made functions nobody calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from unity.ir.dims import Symbol
from unity.ir.graph import (
    Binding,
    BindingBlock,
    Body,
    Call,
    Expr,
    Function,
    FunctionRef,
    If,
    MatchCast,
    Scan,
    Var,
    VarBinding,
    While,
)
from unity.ir.lattice import atom_type
from unity.ir.module import IRModule
from unity.ir.types import Type
from unity.ir.visit import bodies_of, graph_children, type_symbols
from unity.ir.visiting.visit_graph import map_bodies

from ...passes import Context, Pass, Sight, map_functions
from ..purity import is_pure


@dataclass(frozen=True, slots=True)
class EliminateDeadCode(Pass):
    """Removes pure bindings whose variable is not used, then unused private functions.

    A binding stays if a symbol that only it brings into scope is used later. A `match_cast` is a
    run-time check and stays. Functions the user wrote stay; those with the attribute ``private``
    (made by the compiler) stay while something refers to them.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... @script.function
    ... def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    ...     y = R.exp(x)
    ...     z = R.negative(y)
    ...     return y
    ... ''')
    >>> print(print_module(EliminateDeadCode()(before, Context())), end="")
    @script.function
    def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
        y = R.exp(x)
        return y

    Attributes:
        entries: The functions that are called from outside, where not all that are not private are;
            what none of them comes to call is removed.

    Raises:
        UnityError: The module lacks one of the entries.
    """

    entries: tuple[str, ...] | None = None
    sees: ClassVar[Sight] = "signatures"

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Bodies from the end to the start; then functions."""
        module = map_functions(module, lambda f: _function(f, module))
        dead = set(module) - reachable(module, self.entries)
        return module.without(*dead) if dead else module


def _function(f: Function, module: IRModule) -> Function:
    scope = frozenset(s for p in f.params for s in type_symbols(p.type))
    body = _Sweep(module, scope).body(f.body)
    return f if body is f.body else replace(f, body=body)


@dataclass(slots=True)
class _Sweep:
    """Carries what is read further on, and the symbols that the parameters bring."""

    module: IRModule
    scope: frozenset[Symbol]
    live: set[Var] = field(default_factory=set[Var])

    def body(self, body: Body) -> Body:
        """The body without what is dead; notes the variables it reads."""
        self.note(body.result)
        blocks: list[BindingBlock] = []
        for block in reversed(body.blocks):
            kept: list[Binding] = []
            for binding in reversed(block.bindings):
                new = self.binding(binding)
                if new is not None:
                    kept.append(new)
            kept.reverse()
            if len(kept) == len(block.bindings) and all(map(_is, kept, block.bindings)):
                blocks.append(block)
            elif kept:
                blocks.append(replace(block, bindings=tuple(kept)))
        blocks.reverse()
        same = len(blocks) == len(body.blocks) and all(map(_is, blocks, body.blocks))
        return body if same else replace(body, blocks=tuple(blocks))

    def binding(self, binding: Binding) -> Binding | None:
        match binding:
            case VarBinding(var, value):
                needed = (
                    var in self.live
                    or self.brings_symbols(binding)
                    or not is_pure(value, self.module)
                )
                if not needed:
                    return None
                new = map_bodies(value, self.body)
                self.note(new)
                return binding if new is value else replace(binding, value=new)
            case MatchCast():
                self.note(binding.value)
                return binding

    def brings_symbols(self, binding: VarBinding) -> bool:
        """Whether the type mentions a symbol that no operand's type does."""
        if not isinstance(binding.value, Call | If | While | Scan):
            return False
        born = type_symbols(binding.var.type) - self.scope
        if not born:
            return False
        for operand in graph_children(binding.value):
            found: Type | None = atom_type(operand)
            if found is not None:
                born -= type_symbols(found)
        return bool(born)

    def note(self, e: Expr) -> None:
        if isinstance(e, Var):
            self.live.add(e)
        for child in graph_children(e):
            self.note(child)


def _is(a: object, b: object) -> bool:
    return a is b


def reachable(module: IRModule, entries: Sequence[str] | None = None) -> set[str]:
    """The functions that users may call, all that are not private or these, and what they refer to.

    Raises:
        MissingDefinitionError: The module lacks one of the entries.
    """
    if entries is None:
        todo = [name for name, f in module.items() if not _is_private(f)]
    else:
        todo = [name for name in dict.fromkeys(entries) if module[name]]
    seen = set(todo)
    while todo:
        f = module[todo.pop()]
        if isinstance(f, Function):
            for name in references(f.body):
                if name not in seen:
                    seen.add(name)
                    todo.append(name)
    return seen


def _is_private(f: object) -> bool:
    attrs = getattr(f, "attrs", {})
    return bool(attrs.get("private", False))


def references(body: Body) -> Iterator[str]:
    """The functions of the module that a body names, nested bodies included."""
    for block in body.blocks:
        for binding in block.bindings:
            yield from _references_in(binding.value)
    yield from _references_in(body.result)


def _references_in(e: Expr) -> Iterator[str]:
    if isinstance(e, FunctionRef):
        yield e.name
    for child in graph_children(e):
        yield from _references_in(child)
    for inner in bodies_of(e):
        yield from references(inner)
