"""Rewriting bodies binding by binding: what the graph passes share.

A pass subclasses `BodyRewriter` and overrides `rewrite`: it sees each right side with its operands
already rewritten, may look up what an operand is bound to, may emit bindings in front, and gives
the new right side. An atom as the new right side replaces the variable wherever it is used.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from unity.errors import Span
from unity.ir.dims import Symbol, dim
from unity.ir.graph import (
    Binding,
    BindingBlock,
    Body,
    Constant,
    Expr,
    Function,
    FunctionRef,
    Literal,
    MatchCast,
    Op,
    PrimValue,
    ShapeValue,
    Tuple,
    TupleGet,
    Var,
    VarBinding,
)
from unity.ir.lattice import atom_type
from unity.ir.module import IRModule
from unity.ir.types import Type
from unity.ir.visit import type_symbols, walk_bindings
from unity.ir.visiting.visit_graph import map_all, map_bodies, map_expr
from unity.op.infer import infer_type, signatures_of


class BodyRewriter:
    """Carries what each variable became, and what each emitted variable is bound to."""

    def __init__(self, module: IRModule) -> None:
        self.module = module
        self.signatures = signatures_of(module)
        self.env: dict[Var, Expr] = {}
        self.values: dict[Var, Expr] = {}
        self._out: list[Binding] = []
        self._retype = False
        self._symbols: set[str] | None = None
        self._function: Function | None = None

    def rewrite(self, var: Var, value: Expr) -> Expr:
        """The new right side of ``var = value``; to override."""
        return value

    def cast(self, binding: MatchCast) -> Expr | None:
        """What replaces a match_cast (its value rewritten); None keeps it; to override."""
        return None

    def refine(self) -> None:
        """Infer the type of the binding being rewritten anew."""
        self._retype = True

    def enter(self) -> None:
        """Called before a nested body; to override where there is scoped state."""

    def leave(self) -> None:
        """Called after a nested body."""

    def emit(
        self, value: Expr, name: str, span: Span | None = None, type: Type | None = None
    ) -> Var:
        """Bind a new expression in front of the binding being rewritten."""
        var = Var(name, self.infer(value) if type is None else type, span)
        self._add(VarBinding(var, value, span))
        return var

    def match_cast(self, value: Expr, kind: Type, name: str, span: Span | None = None) -> Var:
        """Assert a type in front of the binding being rewritten; its new symbols are in scope."""
        var = Var(name, kind, span)
        self._add(MatchCast(var, value, kind, span))
        return var

    def withdrawn(self, var: Var) -> Expr:
        """What was just emitted, no longer bound, to be a right side; else the variable."""
        if not self._out or self._out[-1].var is not var:
            return var
        del self._out[-1]
        return self.values.pop(var)

    def splice(self, body: Body) -> None:
        """Put a body's bindings in front of the binding being rewritten."""
        for block in body.blocks:
            for binding in block.bindings:
                self._add(binding)

    def infer(self, value: Expr) -> Type:
        """The type of an expression."""
        return infer_type(value, self.signatures, self.fresh)

    def fresh(self, hint: str) -> Symbol:
        """A symbol that the function does not use yet."""
        if self._symbols is None:
            assert self._function is not None
            self._symbols = {s.name for s in function_symbols(self._function)}
        name, count = hint, 0
        while name in self._symbols:
            count += 1
            name = f"{hint}_{count}"
        self._symbols.add(name)
        return dim(name)

    def function(self, f: Function) -> Function:
        """The function with its body rewritten; the same object if nothing changed."""
        self._function = f
        body = self.body(f.body)
        return f if body is f.body else replace(f, body=body)

    def body(self, body: Body) -> Body:
        """A body rewritten; blocks left empty are dropped."""
        outer, blocks = self._out, list[BindingBlock]()
        for block in body.blocks:
            self._out = []
            for binding in block.bindings:
                self._binding(binding)
            new = tuple(self._out)
            same = len(new) == len(block.bindings) and all(
                a is b for a, b in zip(new, block.bindings, strict=True)
            )
            if same:
                blocks.append(block)
            elif new:
                blocks.append(replace(block, bindings=new))
        self._out = []
        result = self.atom(body.result)
        if self._out:
            blocks.append(BindingBlock(tuple(self._out)))
        self._out = outer
        unchanged = (
            result is body.result
            and len(blocks) == len(body.blocks)
            and all(a is b for a, b in zip(blocks, body.blocks, strict=True))
        )
        return body if unchanged else Body(tuple(blocks), result)

    def atom(self, e: Expr) -> Expr:
        """An operand rewritten; one that is no atom is bound first."""
        match e:
            case Var():
                new = self.env.get(e, e)
                if new is not e and atom_type(new) != e.type:
                    self._retype = True
                return new
            case Constant() | ShapeValue() | PrimValue() | Literal() | FunctionRef() | Op():
                return e
            case Tuple():
                fields = map_all(e.fields, self.atom)
                return e if fields is e.fields else replace(e, fields=fields)
            case TupleGet():
                value = self.atom(e.value)
                return self.field(e if value is e.value else replace(e, value=value))
            case _:
                return self.emit(self.operands(e), "value", e.span)

    def field(self, e: TupleGet) -> Expr:
        """A field of a tuple: the field itself where the tuple is known."""
        known = self.values.get(e.value) if isinstance(e.value, Var) else e.value
        return known.fields[e.index] if isinstance(known, Tuple) else e

    def operands(self, e: Expr) -> Expr:
        """A right side with its operands and nested bodies rewritten."""
        return map_bodies(map_expr(e, self.atom), self._nested)

    def _nested(self, body: Body) -> Body:
        retype = self._retype
        self.enter()
        new = self.body(body)
        self.leave()
        self._retype = retype or new is not body
        return new

    def _binding(self, binding: Binding) -> None:
        self._retype = False
        match binding:
            case VarBinding(var, value):
                value = self.atom(value) if is_atom(value) else self.operands(value)
                if isinstance(value, TupleGet):
                    value = self.field(value)
                new = self.rewrite(var, value)
                if is_atom(new):
                    self.env[var] = new
                    return
                if new is value and not self._retype:
                    self._add(binding if value is binding.value else replace(binding, value=value))
                    return
                self._add(replace(binding, var=self._refined(var, new), value=new))
            case MatchCast():
                value = self.atom(binding.value)
                cast = binding if value is binding.value else replace(binding, value=value)
                instead = self.cast(cast)
                if instead is None:
                    self._add(cast)
                else:
                    self.env[binding.var] = instead
            case _:
                assert_never(binding)

    def _refined(self, var: Var, value: Expr) -> Var:
        """The variable with the type of its new right side, put in the old one's place."""
        found = self.infer(value)
        if found == var.type:
            return var
        new = Var(var.name, found, var.span)
        self.env[var] = new
        return new

    def _add(self, binding: Binding) -> None:
        self._out.append(binding)
        if isinstance(binding, VarBinding):
            self.values[binding.var] = binding.value


def is_atom(e: Expr) -> bool:
    """Whether an expression may stand for a variable anywhere."""
    return isinstance(e, Var | Constant | ShapeValue | PrimValue | Literal | FunctionRef)


def function_symbols(function: Function) -> set[Symbol]:
    """The symbols that the types within a function mention."""
    found: set[Symbol] = set()
    for param in function.params:
        found |= type_symbols(param.type)
    for binding in walk_bindings(function):
        found |= type_symbols(binding.var.type)
    return found
