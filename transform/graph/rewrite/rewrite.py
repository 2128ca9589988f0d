"""Rewrite: users' rules, applied wherever they fit until none does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from unity.annotated import Kind
from unity.errors import UnityError
from unity.ir.dims import Symbol, dim
from unity.ir.graph import Binding, BindingBlock, Body, Expr, Function, Var, VarBinding
from unity.ir.module import IRModule
from unity.ir.visiting.visit_graph import map_bodies, substitute_vars

from ...passes import Context, Pass
from ...pattern import Graph, Match, find
from ..names import Names
from ..rewriter import function_symbols
from .rewrite_rule import RewriteRule


@dataclass(frozen=True, slots=True)
class Rewrite(Pass):
    """Puts the second function of a rule wherever the first one is found.

    Rules are tried in order, again and again, until none applies. Where a match computes something
    on its way that is used elsewhere as well, it is left alone; so it is where dims can't be proven
    to fit, or the result would have another type.

    >>> from unity.script import parse, print_module
    >>> from unity.transform.graph import Rewrite, RewriteRule
    >>> sides = parse('''
    ... @script.function
    ... def before(x: f32[Tensor, ...], y: f32[Tensor, ...]) -> f32[Tensor, ...]:
    ...     return R.multiply(R.exp(x), R.exp(y))
    ... @script.function
    ... def after(x: f32[Tensor, ...], y: f32[Tensor, ...]) -> f32[Tensor, ...]:
    ...     return R.exp(R.add(x, y))
    ... ''')
    >>> rule = RewriteRule("one_exp", sides["before"], sides["after"])
    >>> before = parse('''
    ... n = dim("n")
    ... @script.function
    ... def main(a: f32[Tensor, n], b: f32[Tensor, 4, n]) -> f32[Tensor, 4, n]:
    ...     c = R.exp(a)
    ...     d = R.exp(b)
    ...     e = R.multiply(c, d)
    ...     return e
    ... ''')
    >>> print(print_module(Rewrite((rule,))(before, Context())), end="")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.function
    def main(a: f32[Tensor, n], b: f32[Tensor, 4, n]) -> f32[Tensor, 4, n]:
        add = R.add(a, b)
        e = R.exp(add)
        return e

    Attributes:
        rules: Tried in order.
        limit: After so many rounds rules are taken to go on forever.
    """

    rules: Sequence[RewriteRule]
    limit: int = 1000
    kinds: ClassVar[Mapping[str, Kind]] = {
        "RewriteRule": Kind("rules", lambda _: True)  # what is none is told by its name, below
    }

    def __post_init__(self) -> None:
        for rule in self.rules:
            if not isinstance(rule, RewriteRule):
                what = getattr(rule, "name", type(rule).__name__)
                raise UnityError(f"{what} is no rule", hint="make one by unity.rewrite_rule")
        object.__setattr__(self, "rules", tuple(self.rules))

    @property
    def rules_followed(self) -> tuple[object, ...]:
        """Programs that users say are the same."""
        return tuple(self.rules)

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each graph function, nested bodies first."""
        functions = module.graph_functions()
        return module.with_({k: self.function(k, f) for k, f in functions.items()})

    def function(self, name: str, f: Function) -> Function:
        """A function after all its rewrites; the same object if there was none.

        Raises:
            UnityError: Rules apply without an end.
        """
        f = self.inside(name, f)
        most = 10 * self.limit  # of one round: rules may double what they match
        applied: list[str] = []
        for _ in range(self.limit):
            applied = []
            for rule in self.rules:
                f, count = _applied(rule, f)
                applied += [rule.name] * count
            if not applied:
                return f
            if len(applied) > most:
                break
        which = ", ".join(map(repr, dict.fromkeys(applied)))
        raise UnityError(
            f"rewriting {name!r} does not end: after {self.limit} rounds {which} still applies",
            hint="what a rule makes must not match it, or another rule that undoes it, again",
        )

    def inside(self, name: str, f: Function) -> Function:
        """A function with the bodies of its loops and branches rewritten."""

        def on_body(body: Body) -> Body:
            return self.function(name, replace(f, params=(), body=body)).body

        def on_binding(b: Binding) -> Binding:
            value = map_bodies(b.value, on_body)
            return b if value is b.value else replace(b, value=value)

        blocks = tuple(_with_bindings(b, tuple(map(on_binding, b.bindings))) for b in f.body.blocks)
        same = all(a is b for a, b in zip(blocks, f.body.blocks, strict=True))
        return f if same else replace(f, body=replace(f.body, blocks=blocks))


def _applied(rule: RewriteRule, f: Function) -> tuple[Function, int]:
    """A function with all matches of a rule replaced that do not overlap, and how many."""
    taken = Names(s.name for s in function_symbols(f))

    def fresh(hint: str) -> Symbol:
        return dim(taken.fresh(hint))

    made: dict[Var, tuple[tuple[VarBinding, ...], Expr]] = {}

    def fits(match: Match) -> bool:
        found = rule.replacement(match, fresh)
        if found is not None:
            made[match.root] = found
        return found is not None

    matches = find(rule.pattern, Graph.of(f, everywhere=True), fits)
    if not matches:
        return f, 0
    gone = {v for m in matches for v in m.inner}
    instead: dict[Var, Expr] = {}
    blocks: list[BindingBlock] = []
    roots = {m.root: made[m.root] for m in matches}
    for block in f.body.blocks:
        bindings = tuple(
            new
            for b in block.bindings
            if b.var not in gone
            for new in (_replaced(b, *roots[b.var], instead) if b.var in roots else (b,))
        )
        blocks.append(_with_bindings(block, bindings))
    body = Body(tuple(b for b in blocks if b.bindings), f.body.result)
    return replace(f, body=_substituted(body, instead)), len(matches)


def _replaced(
    root: Binding, bindings: Sequence[VarBinding], result: Expr, instead: dict[Var, Expr]
) -> tuple[VarBinding, ...]:
    """What is bound in place of a match's root, which keeps its name; or what stands for it."""
    spanned = tuple(replace(b, span=root.span) for b in bindings)
    if spanned and spanned[-1].var is result:
        return (*spanned[:-1], replace(spanned[-1], var=root.var))
    instead[root.var] = result
    return spanned


def _substituted(body: Body, instead: dict[Var, Expr]) -> Body:
    """A body in which variables are replaced, by some that may be replaced themselves."""
    if not instead:
        return body
    for var, value in instead.items():
        while isinstance(value, Var) and value in instead:
            value = instead[value]
        instead[var] = value
    return substitute_vars(body, instead)


def _with_bindings(block: BindingBlock, bindings: tuple[Binding, ...]) -> BindingBlock:
    same = len(bindings) == len(block.bindings) and all(
        a is b for a, b in zip(bindings, block.bindings, strict=True)
    )
    return block if same else replace(block, bindings=bindings)
