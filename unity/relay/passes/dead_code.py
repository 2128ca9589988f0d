"""`DeadCodeElimination` and `RemoveUnusedFunctions`: what nothing reads is left out.

>>> from unity import relay
>>> mod = relay.parse('''#[version = "0.0.5"]
... def @main(%x: Tensor[(2), float32]) { let %y = exp(%x); negative(%x) }
... ''')
>>> print(relay.transform.DeadCodeElimination()(mod))
#[version = "0.0.5"]
def @main(%x: Tensor[(2), float32]) {
  %0 = negative(%x);
  %0
}
<BLANKLINE>
"""

from __future__ import annotations

from dataclasses import replace

from unity.frontend.relay import syntax
from unity.frontend.relay.recursion import reached_from
from unity.relay.nodes import post_order

from .rewriting import called, each, rewritten

_PURE = (
    syntax.Var,
    syntax.GlobalVar,
    syntax.Op,
    syntax.Constructor,
    syntax.Constant,
    syntax.Tuple,
    syntax.TupleGetItem,
    syntax.Function,
    syntax.RefRead,
    syntax.If,
    syntax.Let,
)


def eliminate_dead_code(module: syntax.Module) -> syntax.Module:
    """A module without lets whose variables nothing reads.

    Values that call functions stay, as they may write references or run without end, and so do
    matches, which may fail.
    """
    return each(module, lambda _, function: _alive(function))


def _alive(function: syntax.Function) -> syntax.Function:
    live = _live(function.body)

    def change(old: syntax.Expr, node: syntax.Expr) -> syntax.Expr:
        if isinstance(node, syntax.Let) and isinstance(old, syntax.Let) and old not in live:
            return node.body
        return node

    return rewritten(function, change)


def _live(root: syntax.Expr) -> set[syntax.Expr]:
    """What a value needs; a let is needed if its variable is read, or its value may do more."""
    waiting: dict[syntax.Var, syntax.Let] = {}
    found: set[syntax.Expr] = set()
    reached: set[syntax.Expr] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if node in reached:
            continue
        reached.add(node)
        if isinstance(node, syntax.Let):
            stack.append(node.body)
            if node.var not in reached and _is_pure(node.value):
                waiting[node.var] = node
                continue
            stack.append(node.value)
        else:
            stack += syntax.children(node)
        found.add(node)
        if isinstance(node, syntax.Var) and node in waiting:
            found.add(waiting[node])
            stack.append(waiting[node].value)
    return found


def _is_pure(value: syntax.Expr) -> bool:
    if isinstance(value, syntax.Function):
        return True
    return all(isinstance(n, _PURE) or called(n) for n in post_order(value))


def remove_unused_functions(module: syntax.Module) -> syntax.Module:
    """A module of its main and what that calls; one without a main as it is."""
    if "main" not in module.functions:
        return module
    kept = {"main", *reached_from(module, "main")}
    functions = {name: f for name, f in module.functions.items() if name in kept}
    same = len(functions) == len(module.functions)
    return module if same else replace(module, functions=functions)
