"""How often each variable is used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from unity.ir.graph import Body, Expr, Var
from unity.ir.visit import bodies_of, graph_children


def count_uses(body: Body) -> Counter[Var]:
    """The number of uses of each variable in a body, nested bodies included."""
    return Counter(_in_body(body))


def _in_body(body: Body) -> Iterator[Var]:
    for block in body.blocks:
        for binding in block.bindings:
            yield from variables(binding.value)
    yield from variables(body.result)


def variables(e: Expr) -> Iterator[Var]:
    """Each use of a variable in an expression, nested bodies included."""
    if isinstance(e, Var):
        yield e
    for child in graph_children(e):
        yield from variables(child)
    for inner in bodies_of(e):
        yield from _in_body(inner)
