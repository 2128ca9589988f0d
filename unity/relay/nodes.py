"""Relay's syntax walked: what an expression holds, binds and reads."""

from __future__ import annotations

from unity.frontend.relay import syntax


def post_order(root: syntax.Expr) -> list[syntax.Expr]:
    """The expressions within one, operands first, each once."""
    found: dict[syntax.Expr, None] = {}
    stack: list[tuple[syntax.Expr, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if node in found:
            continue
        if ready:
            found[node] = None
            continue
        bound = (node.var,) if isinstance(node, syntax.Let) else ()
        params = node.params if isinstance(node, syntax.Function) else ()
        stack.append((node, True))
        stack += ((e, False) for e in reversed((*params, *bound, *syntax.children(node))))
    return list(found)


def free(root: syntax.Expr) -> list[syntax.Var]:
    """The variables that an expression reads and does not bind, in the order it meets them."""
    nodes = post_order(root)
    inner = set(bound(nodes))
    return [n for n in nodes if isinstance(n, syntax.Var) and n not in inner]


def bound(nodes: list[syntax.Expr]) -> list[syntax.Var]:
    """The variables that some expressions bind."""
    found: list[syntax.Var] = []
    for node in nodes:
        match node:
            case syntax.Let():
                found.append(node.var)
            case syntax.Function():
                found += node.params
            case syntax.Match():
                for clause in node.clauses:
                    found += _in_pattern(clause.pattern)
            case _:
                pass
    return found


def _in_pattern(pattern: syntax.Pattern) -> list[syntax.Var]:
    match pattern:
        case syntax.VarPattern(var):
            return [var]
        case syntax.ConstructorPattern(_, fields) | syntax.TuplePattern(fields):
            return [v for f in fields for v in _in_pattern(f)]
        case syntax.WildcardPattern():
            return []
