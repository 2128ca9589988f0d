"""Finding patterns: backtracking over operand orders and alternatives, from a root upwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import TypeAlias, assert_never

import numpy as np

from unity.errors import UnityError
from unity.ir.graph import Call, Constant, Expr, Function, Op, Tuple, TupleGet, Var
from unity.ir.lattice import atom_type
from unity.ir.types import TensorType, TupleType

from .attrs import same_attr
from .graph import Graph
from .nodes import (
    COMMUTATIVE,
    Any,
    AttrTest,
    Const,
    Either,
    Field,
    OpCall,
    Pattern,
    Through,
    satisfies,
)


@dataclass(frozen=True, slots=True)
class Match:
    """Where a pattern was found.

    Attributes:
        root: The variable that the whole pattern computes.
        captures: What each name stands for.
        inner: The variables computed inside, the root left out, in no order.
    """

    root: Var
    captures: dict[str, Expr]
    inner: frozenset[Var]

    def __getitem__(self, name: str) -> Expr:
        """What a name stands for.

        Raises:
            UnityError: The pattern captured nothing under that name.
        """
        if name not in self.captures:
            known = ", ".join(sorted(self.captures)) or "(nothing)"
            raise UnityError(f"the match captured no {name!r}", hint=f"it captured {known}")
        return self.captures[name]

    def get(self, name: str) -> Expr | None:
        """What a name stands for, None if it is in a part that is not there."""
        return self.captures.get(name)

    @property
    def vars(self) -> frozenset[Var]:
        """All that it computes."""
        return self.inner | {self.root}


MatchTest: TypeAlias = Callable[[Match], bool]


def find(pattern: Pattern, within: Function | Graph, where: MatchTest | None = None) -> list[Match]:
    """The places where a pattern matches, none overlapping another, in order of their roots.

    Where two overlap the larger one is taken, then the later: of ``conv``, ``conv + bias`` and
    ``relu(conv + bias)``, whichever holds most.

    Args:
        pattern: What to look for.
        within: Where: a function's dataflow blocks, or what a `Graph` was made of.
        where: What a match must satisfy as a whole.
    """
    graph = within if isinstance(within, Graph) else Graph.of(within)
    order = {var: i for i, var in enumerate(graph.values)}
    matches = [m for var in graph.values if (m := match_at(pattern, graph, var, where)) is not None]
    matches.sort(key=lambda m: (len(m.inner), order[m.root]), reverse=True)
    taken: set[Var] = set()
    chosen: list[Match] = []
    for match in matches:
        if not match.vars & taken:
            taken |= match.vars
            chosen.append(match)
    return sorted(chosen, key=lambda m: order[m.root])


def match_at(
    pattern: Pattern, graph: Graph, root: Var, where: MatchTest | None = None
) -> Match | None:
    """The first match of a pattern that computes a variable, None if there is none.

    A value inside that is used outside as well, or that the function returns, ends a match unless
    the pattern lets it escape.
    """
    if not isinstance(graph.value(root), Call | TupleGet):
        return None
    matcher = _Matcher(graph)
    for found in matcher.match(pattern, root, _Found()):
        if root not in found.inner:
            continue
        inner = found.inner - {root}
        if all(matcher.closed(v, found.inner, found.escaping) for v in inner):
            match = Match(root, dict(found.captures), inner)
            if where is None or where(match):
                return match
    return None


@dataclass(frozen=True, slots=True)
class _Found:
    """What has been matched so far."""

    captures: tuple[tuple[str, Expr], ...] = ()
    inner: frozenset[Var] = frozenset()
    escaping: frozenset[Var] = frozenset()

    def captured(self, name: str | None, value: Expr) -> _Found | None:
        """With a name for a value; None if it stands for another."""
        if name is None:
            return self
        for known, other in self.captures:
            if known == name:
                return self if other is value or _same_constant(other, value) else None
        return replace(self, captures=(*self.captures, (name, value)))


@dataclass(frozen=True, slots=True)
class _Matcher:
    """Carries the function searched."""

    graph: Graph

    def closed(self, var: Var, inside: frozenset[Var], escaping: frozenset[Var]) -> bool:
        """Whether a value inside a match is used there only."""
        if var in escaping:
            return True
        return var not in self.graph.results and all(u in inside for u in self.graph.using(var))

    def match(self, p: Pattern, e: Expr, so_far: _Found) -> Iterator[_Found]:
        """All ways in which an expression matches."""
        if not satisfies(p, atom_type(e)) or not self.users_fit(p, e):
            return
        found = so_far.captured(p.name, e)
        if found is None:
            return
        match p:
            case Any(constant):
                if constant or not isinstance(self.graph.value(e), Constant):
                    yield found
            case Const():
                if self.is_constant(p, e):
                    yield found
            case OpCall():
                yield from self.call(p, e, self.entered(p, e, found))
            case Field(of_tuple, index):
                value = self.graph.value(e)
                if isinstance(value, TupleGet) and value.index == index:
                    yield from self.match(of_tuple, value.value, self.entered(p, e, found))
            case Either(options):
                for option in options:
                    yield from self.match(option, e, found)
            case Through(ops, inner):
                yield from self.match(inner, e, found)
                match self.graph.value(e):
                    case Call(Op(name), (first, *_)) if name in ops:
                        beyond = replace(p, name=None, test=None, users=None)
                        yield from self.match(beyond, first, self.entered(p, e, found))
                    case _:
                        pass
            case _:
                assert_never(p)

    def users_fit(self, p: Pattern, e: Expr) -> bool:
        """Whether only ops that may use a value do."""
        return p.users is None or not isinstance(e, Var) or self.graph.ops_using(e) <= p.users

    def entered(self, p: Pattern, e: Expr, found: _Found) -> _Found:
        """With a variable as one that is computed inside."""
        if not isinstance(e, Var):
            return found
        escaping = found.escaping | {e} if p.escapes else found.escaping
        return replace(found, inner=found.inner | {e}, escaping=escaping)

    def is_constant(self, p: Const, e: Expr) -> bool:
        """Whether an expression is the constant wanted."""
        value = self.graph.value(e)
        if not isinstance(value, Constant):
            return False
        if p.value is None:
            return True
        if value.data.size != 1:
            return False
        number = float(np.asarray(value.data, np.float64).reshape(()))
        return number == p.value or abs(number - p.value) <= p.tolerance * abs(p.value)

    def call(self, p: OpCall, e: Expr, found: _Found) -> Iterator[_Found]:
        """All ways in which an expression is the call wanted."""
        value = self.graph.value(e)
        if not isinstance(value, Call) or not isinstance(value.callee, Op):
            return
        name = value.callee.name
        if name not in p.ops or not _attrs_fit(p.attrs, name, value):
            return
        if p.args is None:
            yield found
            return
        given = _flat(value.args, self.graph)
        if len(given) < len(p.args) or (p.exact and len(given) > len(p.args)):
            return
        orders: Sequence[Sequence[Expr]] = [given[: len(p.args)]]
        if name in COMMUTATIVE and len(given) == len(p.args) == 2:
            orders = list(permutations(given))
        for order in orders:
            yield from self.all(list(zip(p.args, order, strict=True)), found)

    def all(self, pairs: list[tuple[Pattern, Expr]], found: _Found) -> Iterator[_Found]:
        """All ways in which several expressions match."""
        if not pairs:
            yield found
            return
        (p, e), *rest = pairs
        for step in self.match(p, e, found):
            yield from self.all(rest, step)


def _flat(args: Sequence[Expr], graph: Graph) -> list[Expr]:
    """Operands, a tuple's fields in its place."""
    found: list[Expr] = []
    for arg in args:
        value = graph.value(arg)
        found.extend(value.fields if isinstance(value, Tuple) else (arg,))
    return found


def _attrs_fit(tests: Mapping[str, AttrTest], op: str, call: Call) -> bool:
    first = atom_type(call.args[0]) if tests and call.args else None
    if isinstance(first, TupleType) and first.fields:
        first = first.fields[0]
    rank = first.ndim if isinstance(first, TensorType) else None
    for name, test in tests.items():
        if name not in call.attrs:
            return False
        given = call.attrs[name]
        if not (test(given) if callable(test) else same_attr(op, name, test, given, rank)):
            return False
    return True


def _same_constant(a: Expr, b: Expr) -> bool:
    if not isinstance(a, Constant) or not isinstance(b, Constant):
        return False
    return a.data is b.data or (
        a.data.dtype == b.data.dtype and bool(np.array_equal(a.data, b.data, equal_nan=False))
    )
