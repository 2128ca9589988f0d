"""`EliminateCommonSubexpr`: equal calls of operators become one.

>>> from unity import relay
>>> x = relay.var("x", shape=(2,))
>>> mod = relay.IRModule.from_expr(relay.exp(x) + relay.exp(x))
>>> print(relay.transform.EliminateCommonSubexpr()(mod))
#[version = "0.0.5"]
def @main(%x: Tensor[(2), float32]) {
  %0 = exp(%x);
  %1 = add(%0, %0);
  %1
}
<BLANKLINE>
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from unity.frontend.relay import syntax

from .rewriting import called, each, rewritten


def eliminate_common_subexpr(module: syntax.Module) -> syntax.Module:
    """A module each of whose functions computes a call of an operator once."""
    return each(module, lambda _, function: rewritten(function, _shared()))


def _shared() -> Callable[[syntax.Expr, syntax.Expr], syntax.Expr]:
    known: dict[Hashable, syntax.Expr] = {}

    def change(_: syntax.Expr, node: syntax.Expr) -> syntax.Expr:
        match node:
            case syntax.Call() if called(node):
                key: Hashable = (
                    called(node),
                    node.arguments,
                    repr(sorted(node.attributes.items())),
                )
            case syntax.TupleGetItem():
                key = ("", node.tuple, node.index)
            case _:
                return node
        return known.setdefault(key, node)

    return change
