"""Which functions of a module call themselves, directly or through others."""

from __future__ import annotations

from . import syntax


def mentioned(root: syntax.Expr) -> set[syntax.Expr]:
    """The variables, local and global, and the functions that an expression holds."""
    found: set[syntax.Expr] = set()
    seen: set[syntax.Expr] = set()
    stack = [root]
    while stack:
        expr = stack.pop()
        if expr in seen:
            continue
        seen.add(expr)
        if isinstance(expr, syntax.Var | syntax.GlobalVar | syntax.Function):
            found.add(expr)
        stack += syntax.children(expr)
    return found


def recursive_globals(module: syntax.Module) -> frozenset[str]:
    """The names of global functions that reach themselves."""
    calls = _calls(module)
    return frozenset(name for name in calls if name in _reached(calls, name))


def reached_from(module: syntax.Module, start: str) -> set[str]:
    """The names of the global functions that one calls, directly or through others."""
    return _reached(_calls(module), start)


def _calls(module: syntax.Module) -> dict[str, set[str]]:
    return {
        name: {g.name for g in mentioned(f) if isinstance(g, syntax.GlobalVar)}
        for name, f in module.functions.items()
    }


def _reached(calls: dict[str, set[str]], start: str) -> set[str]:
    reached: set[str] = set()
    stack = [*calls[start]]
    while stack:
        name = stack.pop()
        if name in reached:
            continue
        reached.add(name)
        stack += calls.get(name, ())
    return reached
