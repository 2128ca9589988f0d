"""Broadcasting of dims that are unknown: which of them are 1 shows at run time.

Comes in: tensors that a node broadcasts. Comes out: the same, as the operators' type rules want
them: dims at one place equal, or known to be 1. Where two unknown dims meet, the result's is a new
symbol, which both are stretched to; that they fit is checked. The same dims give the same symbol
everywhere in a graph, and so does what was broadcast from them with one of them.

Only what meets attention's scores (a mask ``(b2, 1, 1, s2)``) and has fewer axes that are not
known to be 1 gives way: its unknown dims are 1 or the scores', which are not stretched. That would
cost attention, whose masks seldom have its dims' names, five times its run time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING

from unity.ir.dims import Dim, Symbol, as_dim, bounds, dim_max, dim_min, dim_text, equal, symbols_of
from unity.ir.graph import Call, Expr, Op, Var
from unity.ir.types import Shape

from .sizes import is_symbolic

if TYPE_CHECKING:
    from .emission import Emission


_KEEPS_SCORES = frozenset({"add", "multiply", "divide", "where", "reshape"})


@dataclass(slots=True)
class Broadcasts:
    """The symbols of a graph that stand for what unknown dims broadcast to.

    Attributes:
        made: Each by the dims it is made of.
        parts: The dims that each is made of.
        scores: What may be attention's scores: products of two batches, and what is made of such
            element by element.
    """

    made: dict[frozenset[Dim], Symbol] = field(default_factory=dict[frozenset[Dim], Symbol])
    parts: dict[Dim, frozenset[Dim]] = field(default_factory=dict[Dim, frozenset[Dim]])
    scores: set[Expr] = field(default_factory=set[Expr])

    def inner(self) -> Broadcasts:
        """Those of a graph within this one, which knows what is known here."""
        return Broadcasts(dict(self.made), dict(self.parts), set(self.scores))

    def note(self, call: Call, result: Var) -> None:
        """Note a result that may be attention's scores."""
        match call:
            case Call(Op("matmul"), args):
                batches = (getattr(a.type, "shape", None) for a in args if isinstance(a, Var))
                if sum(isinstance(s, tuple) and len(s) > 2 for s in batches) == 2:
                    self.scores.add(result)
            case Call(Op(name), args) if name in _KEEPS_SCORES:
                if any(isinstance(a, Var) and a in self.scores for a in args):
                    self.scores.add(result)
            case _:
                pass

    def parts_of(self, dims: Sequence[Dim]) -> frozenset[Dim]:
        """What some dims are made of."""
        found: frozenset[Dim] = frozenset()
        for d in dims:
            found |= self.parts.get(d, frozenset((d,)))
        return found


def broadcast(
    node: Emission, tensors: Sequence[Expr], inner: int = 0, *, onto: bool = False
) -> list[Expr]:
    """Tensors whose dims at one place are equal or known to be 1; but for the `inner` last axes.

    With `onto` the others are broadcast to the first, which is not stretched.

    A dim that the model names on its own may turn out to be 1, and is broadcast. One that is
    computed of what it meets (``n // 2 * 2`` and ``n``) is asserted to be equal.
    """
    shapes = [node.type_of(t).shape for t in tensors]
    known = [s for s in shapes if isinstance(s, tuple)]
    if len(known) < len(shapes):
        return list(tensors)
    scores = [isinstance(t, Var) and t in node.broadcasts.scores for t in tensors]
    wide = [sum(d != 1 for d in s) for s in known]
    ranks = [0] * len(known)
    if onto:
        ranks[0] = 1
    elif any(s and w == max(wide) for s, w in zip(scores, wide, strict=True)):
        ranks = wide
    wider = broadcast_shapes(node, known, inner, ranks)
    return [w.of(node, x) for x, w in zip(tensors, wider, strict=True)]


@dataclass(frozen=True, slots=True)
class Wider:
    """What is done to a tensor that is broadcast.

    Attributes:
        asserted: The shape that it is asserted to have.
        stretched: The shape that it is stretched to then.
    """

    asserted: Shape
    stretched: Shape

    def of(self, node: Emission, x: Expr) -> Expr:
        """The tensor with that done to it."""
        if self.asserted != node.type_of(x).shape:
            x = node.assert_shape(x, self.asserted)
        return x if self.stretched == self.asserted else node.op("stretch", x, self.stretched)


def broadcast_shapes(
    node: Emission, shapes: Sequence[Shape], inner: int = 0, ranks: Sequence[int] | None = None
) -> list[Wider]:
    """What is to be done to tensors of some shapes that are broadcast to each other.

    `ranks` says which give way: those of a lower number to those of a higher one.
    """
    asserted, stretched = [list(s) for s in shapes], [list(s) for s in shapes]
    ranks = ranks or [0] * len(shapes)
    for back in range(inner + 1, max(map(len, shapes)) + 1):
        there = [k for k, s in enumerate(shapes) if len(s) >= back and s[-back] != 1]
        target, same = _target(node, [(shapes[k][-back], ranks[k]) for k in there])
        for k in there:
            d = shapes[k][-back]
            if target is None or equal(d, target):
                continue
            stretched[k][-back] = target
            if d in same:
                asserted[k][-back] = target
    return [Wider(tuple(a), tuple(b)) for a, b in zip(asserted, stretched, strict=True)]


def _target(node: Emission, dims: Sequence[tuple[Dim, int]]) -> tuple[Dim | None, Sequence[Dim]]:
    """What dims at one place broadcast to, and which of them must be just that.

    Args:
        node: Where.
        dims: Each with a number: a dim of a lower one gives way, and is not stretched to.

    Returns:
        None where nothing is to be done, or type rules say what is wrong.
    """
    distinct: dict[Dim, int] = {}
    for d, rank in dims:
        key = next((e for e in distinct if equal(d, e)), d)
        distinct[key] = max(rank, distinct.get(key, 0))
    if len(distinct) < 2 or not any(is_symbolic(d) for d in distinct):
        return None, ()
    firm = sorted((d for d in distinct if not _may_be_one(d)), key=is_symbolic)
    ones = [d for d in distinct if _may_be_one(d) and bounds(d)[1] == 1]  # or 0
    soft = [d for d in distinct if _may_be_one(d) and d not in ones]
    if not firm and not soft:
        soft, ones = ones, []
    most = max((distinct[d] for d in soft), default=0)
    apart, same = list[Dim](), list[Dim]()
    for d in sorted(soft, key=lambda d: -distinct[d]):
        alike = any(symbols_of(d) & symbols_of(e) for e in (*firm, *apart))
        (same if alike else apart).append(d)
    target = firm[0] if firm else _joined(node, [d for d in apart if distinct[d] == most])
    for d in (*apart, *ones):
        if firm or distinct[d] < most or d in ones:
            rule = f"{dim_text(d)} must be 1 or equal to {dim_text(target)}"
            _require_fit(node, (d, target), target, "" if firm or d in ones else rule)
    return target, [*firm[1:], *same]


def _may_be_one(d: Dim) -> bool:
    low, high = bounds(d)
    return is_symbolic(d) and (low is None or low < 2) and (high is None or high >= 1)


def _joined(node: Emission, dims: Sequence[Dim]) -> Dim:
    """The dim that some broadcast to, any of which may be 1."""
    graph = node.broadcasts
    parts = graph.parts_of(dims)
    if len(parts) == 1:
        return dims[0]
    if parts not in graph.made:
        ordered = sorted(parts, key=str)
        most, least = reduce(dim_max, ordered), reduce(dim_min, ordered)
        size = as_dim(most * dim_min(least, 1))  # 0 if one is 0, else the largest
        _require_fit(node, ordered, size)
        name = "_".join(d.name if isinstance(d, Symbol) else "size" for d in ordered)
        symbol = node.sized(size, name)
        graph.made[parts], graph.parts[symbol] = symbol, parts
    return graph.made[parts]


def _require_fit(node: Emission, dims: Sequence[Dim], size: Dim, rule: str = "") -> None:
    """Check that each dim is 1 or another."""
    wrong: Dim = 0
    for d in dims:
        wrong = wrong + dim_min(_distance(d, 1), 1) * dim_min(_distance(d, size), 1)
    *others, last = map(dim_text, dims)
    rule = rule or f"{', '.join(others)} and {last} must be equal where they are not 1"
    node.require(as_dim(wrong), 0, "dims_do_not_broadcast", rule)


def _distance(a: Dim, b: Dim) -> Dim:
    return as_dim(dim_max(a, b) - dim_min(a, b))
