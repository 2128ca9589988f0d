"""Einsum, whose dims may be unknown: of one letter they are equal, of an ellipsis broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from unity.frontend.broadcasting import Wider, broadcast_shapes
from unity.frontend.products import matmul
from unity.ir.dims import Dim
from unity.ir.graph import Expr
from unity.op.contraction.einsum_product import einsum, terms

from .node import Converter, Node, Value


def _einsum(node: Node) -> Value:
    equation = node.text_of("equation", "")
    named, _ = terms(equation, [node.rank(i) for i in range(node.count)])
    tensors = _equal_letters(node, [node.tensor(i) for i in range(node.count)], named)
    return einsum(node, equation, _broadcast(node, tensors, named), partial(matmul, node))


def _equal_letters(node: Node, tensors: Sequence[Expr], named: Sequence[str]) -> list[Expr]:
    """Operands whose unknown dims of one letter are asserted to be equal."""
    sizes: dict[str, Dim | None] = {}
    for x, name in zip(tensors, named, strict=True):
        for c, d in zip(name, node.shape_of(x), strict=True):
            if c.isascii() and (c not in sizes or isinstance(d, int)):
                sizes[c] = d
    return [
        node.agreed(x, [sizes.get(c) for c in name]) for x, name in zip(tensors, named, strict=True)
    ]


def _broadcast(node: Node, tensors: Sequence[Expr], named: Sequence[str]) -> list[Expr]:
    """Operands whose unknown dims of an ellipsis, which has Greek letters, are broadcast."""
    ellipsis = [c for c in dict.fromkeys("".join(named)) if not c.isascii()]
    shapes = [
        dict(zip(n, node.shape_of(x), strict=True)) for x, n in zip(tensors, named, strict=True)
    ]
    wider = broadcast_shapes(node, [tuple(s.get(c, 1) for c in ellipsis) for s in shapes])
    found: list[Expr] = []
    for x, name, w in zip(tensors, named, wider, strict=True):
        own = dict(zip(name, node.shape_of(x), strict=True))
        asserted, stretched = (
            {**own, **{c: d for c, d in zip(ellipsis, s, strict=True) if c in own}}
            for s in (w.asserted, w.stretched)
        )
        whole = Wider(tuple(asserted[c] for c in name), tuple(stretched[c] for c in name))
        found.append(whole.of(node, x))
    return found


CONVERTERS: dict[str, Converter] = {"Einsum": _einsum}
