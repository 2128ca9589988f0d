"""Normalize: A-normal form with every type filled in, no copies, few and large dataflow blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from unity.ir.graph import (
    Binding,
    BindingBlock,
    Body,
    Expr,
    Function,
    If,
    MatchCast,
    Scan,
    Var,
    While,
)
from unity.ir.lattice import atom_type, erase, is_subtype
from unity.ir.module import IRModule
from unity.ir.types import ObjectType, PrimType, ShapeType, TensorType, TupleType, Type
from unity.ir.visit import type_symbols
from unity.ir.visiting.visit_graph import map_bodies

from ...passes import Context, Pass, map_functions
from ..purity import is_pure
from ..rewriter import BodyRewriter


@dataclass(frozen=True, slots=True)
class Normalize(Pass):
    """Brings every graph function into the form that the other passes expect.

    Nested expressions are bound to variables of their own. Variables that are copies of others, or
    fields of a known tuple, give way to what they stand for, and so does a `match_cast` that is
    known to hold. Types that are vague are inferred anew. Pure bindings that follow each other form
    one dataflow block; control flow and effects stand in plain blocks.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... @script.function
    ... def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
    ...     pair = (x, R.exp(x))
    ...     y = pair[1]
    ...     return R.add(y, pair[0])
    ... ''')
    >>> print(print_module(before), end="")
    @script.function
    def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
        exp = R.exp(x)
        pair = (x, exp)
        y = pair[1]
        pair_0 = pair[0]
        add = R.add(y, pair_0)
        return add
    >>> print(print_module(Normalize()(before, Context())), end="")
    @script.function
    def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:
        with R.dataflow():
            exp = R.exp(x)
            pair = (x, exp)
            add = R.add(exp, x)
        return add
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each function by itself."""
        return map_functions(module, lambda f: _function(f, module))


def _function(f: Function, module: IRModule) -> Function:
    f = _Normalizer(module).function(f)
    body = _regroup(f.body, module)
    f = f if body is f.body else replace(f, body=body)
    if not is_vague(f.result):
        return f
    found = atom_type(f.body.result)
    scope = frozenset(s for p in f.params for s in type_symbols(p.type))
    known = f.result if found is None else erase(found, scope)
    return f if known == f.result else replace(f, result=known)


class _Normalizer(BodyRewriter):
    """The rewriter itself flattens and propagates copies; types are filled in here."""

    def rewrite(self, var: Var, value: Expr) -> Expr:
        if is_vague(var.type):
            self.refine()
        return value

    def cast(self, binding: MatchCast) -> Expr | None:
        found = atom_type(binding.value)
        holds = found is not None and is_subtype(found, binding.type)
        return binding.value if holds else None


def is_vague(t: Type) -> bool:
    """Whether a type leaves open what inference may know."""
    match t:
        case TensorType(shape, dtype):
            return dtype is None or not isinstance(shape, tuple)
        case ShapeType(dims):
            return not isinstance(dims, tuple)
        case TupleType(fields):
            return any(is_vague(f) for f in fields)
        case ObjectType():
            return True
        case PrimType(dtype, value):
            return dtype.is_int and value is None
        case _:
            return False


def _regroup(body: Body, module: IRModule) -> Body:
    """Maximal runs of bindings that may stand in a dataflow block, nested bodies included."""
    blocks: list[BindingBlock] = []
    run: list[Binding] = []
    flowing = True
    for block in body.blocks:
        for binding in block.bindings:
            binding = _within(binding, module)
            flows = _flows(binding, module)
            if flows != flowing and run:
                blocks.append(BindingBlock(tuple(run), flowing))
                run = []
            flowing = flows
            run.append(binding)
    if run:
        blocks.append(BindingBlock(tuple(run), flowing))
    return body if tuple(blocks) == body.blocks else Body(tuple(blocks), body.result)


def _within(binding: Binding, module: IRModule) -> Binding:
    value = map_bodies(binding.value, lambda b: _regroup(b, module))
    return binding if value is binding.value else replace(binding, value=value)


def _flows(binding: Binding, module: IRModule) -> bool:
    value = binding.value
    return not isinstance(value, If | While | Scan | Function) and is_pure(value, module)
